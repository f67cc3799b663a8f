//! What is begun on a server and does not come to its end: a worker that goes away in the middle, a step that fails. Whoever comes
//! next finishes it, and no assistant is left down by the platform itself. On a simulated server.

use std::time::Duration;

use base::id::{InstanceId, TaskId};
use queue::task::Status;
use serde_json::{Value, json};
use sim::host::Power;
use store::instance::Health;
use store::reconcile::{Pending, Writing};
use testkit::{until, until_ok};

use crate::kit::simulated::Simulated;
use crate::marketplace::item;

const HOME: &str = "/srv/assistants/1";

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_port_is_where_it_listens() {
    let ground = Simulated::new().await;
    let unit = ground.provisioned("a").await;
    let site = &ground.site;
    let changed =
        site.admin.patch("/assistant-instances/a", json!({"gateway_port": 19500})).token(&site.root).ok().await;
    assert_eq!(changed["gateway_port"], 19500);
    let working = ground.work();
    let written = ground.latest("write_config").await;
    let task = ground.done(&written).await;
    assert_eq!((task.failures, ground.config(HOME)["gateway"]["port"].as_i64()), (0, Some(19500)));
    let text = String::from_utf8(ground.machine.read(&format!("/etc/systemd/system/{unit}")).unwrap()).unwrap();
    assert!(text.contains(" --port 19500 "), "{text}");
    let checked = site.admin.get("/instances/health-check").token(&site.root).ok().await;
    assert_eq!(checked["list"][0]["health_status"], "healthy", "{checked}");
    // Another may have the old one.
    ground.provisioned("b").await;
    assert_eq!(site.admin.get("/instances/b").token(&site.root).ok().await["gateway_port"], 18789);
    working.stop().await;
    site.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_whose_snapshot_fails_leaves_it_running() {
    let ground = Simulated::new().await;
    let unit = ground.provisioned("a").await;
    ground.machine.refuse("make-snapshot", "the disk is gone");
    let asked = ground.enqueue("upgrade_instance", json!({"instance_id": "a", "version": "2026.5.28"})).await;
    let working = ground.work();
    let task = ground.ended(&asked).await;
    assert_eq!(task.status, Status::Failed, "{}", task.result);
    assert!(ground.machine.is_well(&unit), "{:#?}", ground.log(&asked).await);
    working.stop().await;
    ground.site.check().await;
}

/// The script that writes a unit or a configuration on a server.
const WRITE: &str = "write-file";

/// A copy from before the switch is not gone back to: it may have run since, or while it was being made.
#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_that_was_broken_off_before_the_switch_loses_nothing() {
    let ground = Simulated::new().await;
    let unit = ground.provisioned("a").await;
    let asked = ground.enqueue("upgrade_instance", json!({"instance_id": "a", "version": "2026.5.28"})).await;
    let snapshot = format!("{HOME}.archive/upgrade-{}", asked.as_str());
    let other = std::cell::OnceCell::new();
    let is_copied = async || {
        let is_copied = ground.machine.read(&format!("{snapshot}/complete")).is_some();
        if is_copied {
            other.set(ground.enqueue("write_config", json!({"instance_id": "a"})).await).unwrap();
            ground.site.wait(Duration::from_secs(1));
        }
        is_copied
    };
    ground.broken_off(WRITE, is_copied).await;
    ground.machine.restart(&unit);
    let since = format!("{HOME}/.openclaw/workspace/since.md");
    ground.machine.write(&since, "said since");
    ground.settle().await;
    let (upgraded, written) = (ground.done(&asked).await, ground.done(other.get().unwrap()).await);
    assert!(upgraded.result.ends_with("to 2026.5.28"), "{}: {:#?}", upgraded.result, ground.log(&asked).await);
    // What was asked for meanwhile has begun when the upgrade was over, and found nothing to pay.
    assert_eq!(written.result, "the configuration is as it should be", "{:#?}", ground.log(&asked).await);
    assert_eq!(ground.machine.read(&since).as_deref(), Some(&b"said since"[..]));
    assert!(ground.machine.is_well(&unit));
    ground.site.check().await;
}

/// Between a restored state and the unit that belongs to it somebody else starts the assistant: it is gone back all the same.
#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_is_taken_back_to_its_end_whoever_started_the_assistant() {
    let ground = Simulated::new().await;
    let unit = ground.provisioned("a").await;
    let before = ground.unit(&unit);
    let asked = ground.enqueue("upgrade_instance", json!({"instance_id": "a", "version": "2026.5.28"})).await;
    let snapshot = format!("{HOME}.archive/upgrade-{}", asked.as_str());
    ground.broken_off("start-unit", async || ground.unit(&unit).contains("2026.5.28")).await;
    ground.broken_off(WRITE, async || ground.machine.read(&format!("{snapshot}/used")).is_some()).await;
    ground.machine.restart(&unit);
    store::reconcile::set_pending(&ground.site.app.db, &InstanceId::named("a"), Pending::Nothing).await.unwrap();
    let working = ground.work();
    let task = ground.ended(&asked).await;
    working.stop().await;
    assert!(task.error.contains("taken back"), "{}", task.error);
    assert_eq!(ground.unit(&unit), before, "{:#?}", ground.log(&asked).await);
    assert!(ground.machine.is_well(&unit));

    // Once another upgrade was made, nothing is left to be taken back.
    let other = ground.enqueue("upgrade_instance", json!({"instance_id": "a", "version": "2026.8.2"})).await;
    ground.settle().await;
    ground.done(&other).await;
    ground.site.wait(Duration::from_secs(60));
    let working = ground.work();
    until_ok("it is tried again", async || {
        let now = queue::task_admin::show(&ground.site.app, &asked).await.unwrap();
        if now.failures > task.failures { Ok(()) } else { Err((now.status, now.failures)) }
    })
    .await;
    working.stop().await;
    assert!(ground.unit(&unit).contains("2026.8.2"), "{:#?}", ground.log(&asked).await);
    ground.site.check().await;
}

/// A cleaning that comes into the middle of an upgrade is not undone by it.
#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_brings_nobodys_traces_back() {
    let ground = Simulated::new().await;
    let unit = ground.provisioned("a").await;
    let site = &ground.site;
    let (user, _) = site.quick_employee("ada@example.com").await;
    site.admin.patch("/instances/a/assign", json!({"user_id": user})).token(&site.root).ok().await;
    ground.settle().await;
    let diary = format!("{HOME}/.openclaw/workspace/diary.md");
    ground.machine.write(&diary, "mine alone");
    let asked = ground.enqueue("upgrade_instance", json!({"instance_id": "a", "version": "2026.5.28"})).await;
    ground.broken_off("start-unit", async || ground.unit(&unit).contains("2026.5.28")).await;
    let (next, _) = site.quick_employee("bob@example.com").await;
    for user in [Value::Null, json!(next)] {
        site.admin.patch("/instances/a/assign", json!({"user_id": user})).token(&site.root).ok().await;
    }
    ground.settle().await;
    let upgraded = ground.done(&asked).await;
    assert!(upgraded.result.ends_with("to 2026.5.28"), "{}: {:#?}", upgraded.result, ground.log(&asked).await);
    assert_eq!(ground.machine.read(&diary), None, "{:#?}", ground.log(&asked).await);
    assert!(ground.machine.is_well(&unit));
    site.check().await;
}

/// What was surely not written is neither told as written, nor a reason to restart anything.
#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_found_no_room_was_not_written() {
    let ground = Simulated::new().await;
    let unit = ground.provisioned("a").await;
    let starts = ground.machine.starts(&unit);
    ground.machine.refuse(WRITE, "No space left on device");
    let task = wish(&ground, json!({"gateway": {"controlUi": {"basePath": "/never"}}})).await;
    let working = ground.work();
    assert_eq!(ground.ended(&task).await.status, Status::Failed);
    working.stop().await;
    ground.machine.go_on();
    let state = store::reconcile::find(&ground.site.app.db, &InstanceId::named("a")).await.unwrap();
    assert_eq!((state.pending, state.unrecorded.as_str()), (Pending::Nothing, ""));
    assert_eq!((audited(&ground, "/never").await, ground.machine.starts(&unit)), (0, starts));
    ground.site.check().await;
}

/// Has a configuration written; answers the task.
async fn wish(ground: &Simulated, wishes: Value) -> TaskId {
    let body = json!({"config_json": wishes});
    let set = ground.site.admin.patch("/instances/a/config", body).token(&ground.site.root).ok().await;
    TaskId::named(set["task_id"].as_str().unwrap())
}

/// How many entries of the audit log tell of this.
async fn audited(ground: &Simulated, words: &str) -> usize {
    let audit = ground.site.admin.get("/audit-logs?limit=200").token(&ground.site.root).ok().await;
    audit["list"].as_array().unwrap().iter().filter(|entry| entry["detail"].as_str().unwrap().contains(words)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_takes_hold_although_its_worker_went_away() {
    let ground = Simulated::new().await;
    let unit = ground.provisioned("a").await;
    let machine = &ground.machine;
    let path = |config: &Value| config["gateway"]["controlUi"]["basePath"].as_str().unwrap_or_default().to_owned();

    // Stopped, and not started again.
    let task = wish(&ground, json!({"gateway": {"controlUi": {"basePath": "/stopped"}}})).await;
    ground.broken_off("start-unit", async || !machine.is_well(&unit)).await;
    assert!(!machine.is_well(&unit));
    let working = ground.work();
    let done = ground.done(&task).await;
    assert!(machine.is_well(&unit), "{}: {:#?}", done.result, ground.log(&task).await);
    assert_eq!(audited(&ground, "/stopped").await, 1);
    working.stop().await;

    // Written, and not taken over: it goes on with the old one.
    let starts = machine.starts(&unit);
    let task = wish(&ground, json!({"gateway": {"controlUi": {"basePath": "/written"}}})).await;
    ground.broken_off("stop-unit", async || path(&ground.config(HOME)) == "/written").await;
    assert_eq!(machine.starts(&unit), starts);
    let working = ground.work();
    ground.done(&task).await;
    assert_eq!((machine.starts(&unit), machine.is_well(&unit)), (starts + 1, true), "{:#?}", ground.log(&task).await);
    assert_eq!(audited(&ground, "/written").await, 1);
    working.stop().await;

    // What a running one takes over by itself needs no restart, the second time either.
    let task = wish(&ground, json!({"messages": {"hot": true}})).await;
    ground.broken_off("config hot reload applied", async || ground.config(HOME)["messages"]["hot"] == true).await;
    ground.settle().await;
    ground.done(&task).await;
    assert_eq!(machine.starts(&unit), starts + 1, "{:#?}", ground.log(&task).await);

    // And nothing is owed any more.
    let task = ground.enqueue("write_config", json!({"instance_id": "a"})).await;
    ground.settle().await;
    assert_eq!(ground.done(&task).await.result, "the configuration is as it should be");
    assert_eq!(machine.starts(&unit), starts + 1);

    // Written, and its worker gone before the audit log told of it.
    let unrecorded = "configuration: of a worker that went away".to_owned();
    let writing = Writing { pending: Pending::Nothing, log_size: 0, previous: String::new(), unrecorded };
    store::reconcile::set_writing(&ground.site.app.db, &InstanceId::named("a"), &writing).await.unwrap();
    for _ in 0..2 {
        ground.enqueue("write_config", json!({"instance_id": "a"})).await;
        ground.settle().await;
        assert_eq!(audited(&ground, "of a worker that went away").await, 1);
    }
    ground.site.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_is_there_and_so_is_the_assistant() {
    let ground = Simulated::new().await;
    let unit = ground.provisioned("a").await;
    let site = &ground.site;
    let (user, token) = site.quick_employee("ada@example.com").await;
    site.admin.patch("/instances/a/assign", json!({"user_id": user})).token(&site.root).ok().await;
    ground.settle().await;
    let item = item(site, "tides").await;
    let path = format!("/marketplace/items/{item}/install");
    let asked = site.employee.post(&path, json!({"instance_id": "a"})).token(&token).ok().await;
    ground.broken_off("start-unit", async || !ground.machine.is_well(&unit)).await;
    ground.settle().await;
    let task = TaskId::named(asked["task_id"].as_str().unwrap());
    ground.done(&task).await;
    assert!(ground.machine.is_well(&unit), "{:#?}", ground.log(&task).await);
    assert_eq!(site.employee.get("/me/installs").token(&token).ok().await["list"][0]["state"], "installed");
    site.check().await;
}

/// The task's log says that it got as far as stopping the assistant.
async fn has_stopped(ground: &Simulated, task: &TaskId) -> bool {
    ground.log(task).await.iter().any(|line| line.starts_with("stopped after"))
}

async fn ledger(ground: &Simulated) -> Value {
    ground.site.admin.get("/repairs").token(&ground.site.root).ok().await["list"][0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repair_that_was_broken_off_leaves_nothing_stopped() {
    let ground = Simulated::new().await;
    let unit = ground.provisioned("a").await;
    ground.machine.crash(&unit);
    let scanned = fleet::repair::scan(&ground.site.app).await.unwrap();
    assert_eq!(scanned.begun, ["a exit_loop"], "{scanned:?}");
    let task = ground.latest("repair_instance").await;
    ground.broken_off("start-unit", async || has_stopped(&ground, &task).await).await;
    ground.settle().await;
    ground.done(&task).await;
    assert!(ground.machine.is_well(&unit), "{} {:#?}", ledger(&ground).await, ground.log(&task).await);
    assert_eq!(ledger(&ground).await["status"], "success");
    ground.site.check().await;
}

/// The server is away between its stop and its start: the repair is not over with that.
#[tokio::test(flavor = "multi_thread")]
async fn a_repair_that_failed_after_its_stop_leaves_nothing_stopped() {
    let ground = Simulated::new().await;
    let unit = ground.provisioned("a").await;
    ground.machine.crash(&unit);
    assert_eq!(fleet::repair::scan(&ground.site.app).await.unwrap().begun, ["a exit_loop"]);
    let task = ground.latest("repair_instance").await;
    ground.machine.hold("doctor");
    let working = ground.work();
    until("it has stopped the assistant", async || has_stopped(&ground, &task).await).await;
    ground.machine.set_power(Power::Down);
    ground.machine.go_on();
    assert_eq!(ground.ended(&task).await.status, Status::Failed);
    assert_eq!(ledger(&ground).await["status"], "running");
    ground.machine.set_power(Power::Up);
    // A server that was away is not asked again at once, and an attempt that comes too early is one of five.
    until_ok("the server is talked to again", async || {
        let path = "/instances/a/config";
        let seen = ground.site.admin.get(path).token(&ground.site.root).send().await;
        if seen.status == 200 { Ok(()) } else { Err(seen.status) }
    })
    .await;
    assert_eq!(ground.over(&task).await.status, Status::Done, "{:#?}", ground.log(&task).await);
    assert!(ground.machine.is_well(&unit), "{} {:#?}", ledger(&ground).await, ground.log(&task).await);
    assert_eq!(ledger(&ground).await["status"], "success");
    working.stop().await;
    ground.site.check().await;
}

/// One that is down is to run when its repair is done, whoever does the end of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_repair_of_one_that_is_down_starts_it_although_its_worker_went_away() {
    let ground = Simulated::new().await;
    let unit = ground.provisioned("a").await;
    let mut config = ground.config(HOME);
    config["auth"] = json!({"profiles": {"x": {"provider": "remote", "mode": "api_key"}}});
    ground.machine.write(&format!("{HOME}/.openclaw/openclaw.json"), &config.to_string());
    assert_eq!(fleet::repair::scan(&ground.site.app).await.unwrap().begun, ["a auth_profiles"]);
    let task = ground.latest("repair_instance").await;
    ground.machine.stop(&unit);
    ground.broken_off("start-unit", async || ground.config(HOME)["auth"].is_null()).await;
    assert!(!ground.machine.is_well(&unit));
    ground.settle().await;
    ground.done(&task).await;
    assert!(ground.machine.is_well(&unit), "{} {:#?}", ledger(&ground).await, ground.log(&task).await);
    assert_eq!(ledger(&ground).await["status"], "success");
    ground.site.check().await;
}

/// What one task wrote, and went away before telling of it, is told by the next that writes.
#[tokio::test(flavor = "multi_thread")]
async fn what_two_tasks_wrote_is_told_of_both() {
    let ground = Simulated::new().await;
    ground.provisioned("a").await;
    let unrecorded = "configuration: of a worker that went away".to_owned();
    let writing = Writing { pending: Pending::Nothing, log_size: 0, previous: String::new(), unrecorded };
    store::reconcile::set_writing(&ground.site.app.db, &InstanceId::named("a"), &writing).await.unwrap();
    let task = wish(&ground, json!({"gateway": {"controlUi": {"basePath": "/later"}}})).await;
    ground.settle().await;
    ground.done(&task).await;
    assert_eq!((audited(&ground, "of a worker that went away").await, audited(&ground, "/later").await), (1, 1));
    ground.site.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recovery_that_was_broken_off_leaves_nothing_stopped() {
    let ground = Simulated::new().await;
    let unit = ground.provisioned("a").await;
    let app = &ground.site.app;
    ground.machine.wedge(&unit);
    let id = InstanceId::named("a");
    store::instance::set_health(&app.db, &id, Health::Unhealthy, 3, app.clock.now()).await.unwrap();
    // A start is a while ago: now it is not waited for any more.
    ground.site.wait(Duration::from_secs(600));
    assert_eq!(fleet::recovery::recover(app).await.unwrap().0, ["a"]);
    let task = ground.latest("repair_instance").await;
    ground.broken_off("start-unit", async || has_stopped(&ground, &task).await).await;
    ground.settle().await;
    ground.done(&task).await;
    assert!(ground.machine.is_well(&unit), "{} {:#?}", ledger(&ground).await, ground.log(&task).await);
    assert_eq!(ledger(&ground).await["status"], "success");
    ground.site.check().await;
}
