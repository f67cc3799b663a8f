//! A change of a cell that fails, or is broken off, is taken back: once, and over nothing that came after it.

use std::time::Duration;

use base::id::InstanceId;
use serde_json::{Value, json};

use super::of;
use crate::kit::hosts::{CURRENT, Ground};
use crate::kit::simulated::Simulated;

/// A worker that goes away in the middle: the next one goes back to what was before.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_the_cell_that_was_broken_off_is_taken_back() {
    let ground = Simulated::new().await;
    let unit = ground.provisioned("a").await;
    let text = || String::from_utf8(ground.machine.read(&format!("/etc/systemd/system/{unit}")).unwrap()).unwrap();
    let before = text();
    assert!(before.contains("\n# The cell.\nProtectSystem=strict\n"), "{before}");
    let asked = ground.enqueue("confine_instance", json!({"instance_id": "a", "confined": false})).await;
    // It goes away before the chat that would have it accepted.
    ground.broken_off("chat.send", async || !text().contains("# The cell.")).await;
    let working = ground.work();
    let failed = ground.ended(&asked).await;
    assert!(failed.error.contains("broken off"), "{}", failed.error);
    assert_eq!(text(), before);
    assert_eq!(ground.site.admin.get("/instances/a").token(&ground.site.root).ok().await["cell"], "confined");
    working.stop().await;
    ground.site.check().await;
}

const HOME: &str = "/srv/assistants/1";

/// Takes the instance out of its cell in a way that fails: its assistant answers no chat. Answers the task.
async fn failed_change(ground: &Simulated) -> base::id::TaskId {
    ground.machine.refuse("chat.send", "the model is away");
    let asked = ground.enqueue("confine_instance", json!({"instance_id": "a", "confined": false})).await;
    let working = ground.work();
    let failed = ground.ended(&asked).await;
    assert!(failed.error.contains("failed and was taken back"), "{}", failed.error);
    working.stop().await;
    ground.machine.go_on();
    asked
}

/// Has a task that failed tried once more.
async fn tried_again(ground: &Simulated, task: &base::id::TaskId) -> queue::task::Task {
    let before = queue::task_admin::show(&ground.site.app, task).await.unwrap().attempts;
    ground.site.wait(Duration::from_secs(120));
    let working = ground.work();
    let now = testkit::until_ok("it is tried again", async || {
        let now = queue::task_admin::show(&ground.site.app, task).await.unwrap();
        let ended = now.status != queue::task::Status::Processing;
        if now.attempts > before && ended { Ok(now) } else { Err((now.status, now.attempts)) }
    })
    .await;
    working.stop().await;
    now
}

/// A home that is more than half full has no room for its state twice: the limit is lifted while that is put back.
#[tokio::test(flavor = "multi_thread")]
async fn the_disks_limit_is_lifted_while_a_state_is_put_back() {
    let ground = Simulated::new().await;
    ground.provisioned("a").await;
    assert_eq!(ground.machine.disk_limits(), ["10485760"]);
    failed_change(&ground).await;
    // Without its cell none; while the state is put back none; then as before.
    assert_eq!(ground.machine.disk_limits()[1..], ["0", "0", "10485760"]);
    ground.site.check().await;
}

/// What was taken back once is not taken back again: what was written and changed since stays.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_the_cell_that_failed_is_gone_back_from_once() {
    let ground = Simulated::new().await;
    let unit = ground.provisioned("a").await;
    let asked = failed_change(&ground).await;
    let site = &ground.site;
    site.admin.put("/instances/a/cell/limits", json!({"memory_mib": 512})).token(&site.root).ok().await;
    ground.settle().await;
    let now = ground.unit(&unit);
    assert!(now.contains("MemoryMax=512M"), "{now}");
    let diary = format!("{HOME}/.openclaw/workspace/diary.md");
    ground.machine.write(&diary, "said since");
    let again = tried_again(&ground, &asked).await;
    assert!(again.error.contains("see the first attempt"), "{}: {:#?}", again.error, ground.log(&asked).await);
    assert_eq!(ground.machine.read(&diary).as_deref(), Some(&b"said since"[..]), "{:#?}", ground.log(&asked).await);
    assert_eq!(ground.unit(&unit), now);
    site.check().await;
}

/// A worker goes away in the middle, and the unit is changed by something else before the next one comes: nothing is put back.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_the_cell_that_was_broken_off_is_not_taken_back_over_another() {
    let ground = Simulated::new().await;
    let unit = ground.provisioned("a").await;
    let asked = ground.enqueue("confine_instance", json!({"instance_id": "a", "confined": false})).await;
    ground.broken_off("chat.send", async || !ground.unit(&unit).contains("# The cell.")).await;
    let path = format!("/etc/systemd/system/{unit}");
    let other = ground.unit(&unit).replace("Description=", "Description=Another ");
    ground.machine.write(&path, &other);
    let diary = format!("{HOME}/.openclaw/workspace/diary.md");
    ground.machine.write(&diary, "said since");
    let working = ground.work();
    let failed = ground.ended(&asked).await;
    working.stop().await;
    assert!(failed.error.contains("something else changed its unit since"), "{}", failed.error);
    assert_eq!(ground.machine.read(&diary).as_deref(), Some(&b"said since"[..]), "{:#?}", ground.log(&asked).await);
    assert_eq!(ground.unit(&unit), other);
    ground.site.check().await;
}

/// What a change of the cell copied of one holder's state never comes to the next.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_the_cell_brings_nobodys_traces_back() {
    let ground = Simulated::new().await;
    let unit = ground.provisioned("a").await;
    let site = &ground.site;
    let (user, _) = site.quick_employee("ada@example.com").await;
    site.admin.patch("/instances/a/assign", json!({"user_id": user})).token(&site.root).ok().await;
    ground.settle().await;
    let diary = format!("{HOME}/.openclaw/workspace/diary.md");
    ground.machine.write(&diary, "mine alone");
    let asked = failed_change(&ground).await;
    let (next, _) = site.quick_employee("bob@example.com").await;
    for user in [Value::Null, json!(next)] {
        site.admin.patch("/instances/a/assign", json!({"user_id": user})).token(&site.root).ok().await;
    }
    ground.settle().await;
    assert_eq!(ground.machine.read(&diary), None);
    tried_again(&ground, &asked).await;
    assert_eq!(ground.machine.read(&diary), None, "{:#?}", ground.log(&asked).await);
    assert!(ground.machine.is_well(&unit));
    site.check().await;
}

/// An upgrade that was taken back, and still has to start the assistant, leaves the unit that was written since.
#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_that_was_taken_back_leaves_a_unit_that_was_changed_since() {
    let ground = Simulated::new().await;
    let unit = ground.provisioned("a").await;
    ground.machine.refuse("chat.send", "the model is away");
    let asked = ground.enqueue("upgrade_instance", json!({"instance_id": "a", "version": "2026.5.28"})).await;
    let working = ground.work();
    assert!(ground.ended(&asked).await.error.contains("taken back"));
    working.stop().await;
    ground.machine.go_on();
    let site = &ground.site;
    site.admin.put("/instances/a/cell/limits", json!({"memory_mib": 512})).token(&site.root).ok().await;
    ground.settle().await;
    let now = ground.unit(&unit);
    store::reconcile::set_pending(&site.app.db, &InstanceId::named("a"), store::reconcile::Pending::Start)
        .await
        .unwrap();
    ground.machine.stop(&unit);
    tried_again(&ground, &asked).await;
    assert_eq!(ground.unit(&unit), now, "{:#?}", ground.log(&asked).await);
    assert!(ground.machine.is_well(&unit));
    site.check().await;
}

/// What cannot run in its cell is put back as it was, with all that it had.
#[tokio::test(flavor = "multi_thread")]
async fn an_assistant_that_does_not_come_up_in_its_cell_is_put_back() {
    let name = "cell::taken_back::an_assistant_that_does_not_come_up_in_its_cell_is_put_back";
    let Some(mut ground) = Ground::with(name, Duration::from_secs(20)).await else { return };
    let id = ground.provisioned(json!({})).await;
    let unit = format!("/etc/systemd/system/openclaw-{id}.service");
    let left = ground.run("confine_instance", json!({"instance_id": id, "confined": false})).await;
    assert_eq!(left.result, "it runs outside of its cell");
    assert_eq!(ground.show(&id).await["cell"], "unconfined");
    let before = ground.sh("cat \"$1\"", &[&unit]).await;
    assert!(!before.contains("# The cell."));
    // A restart and an upgrade leave it as it is: it comes into its cell when somebody says so.
    ground.run("restart_instance", of(&id)).await;
    assert_eq!(ground.sh("cat \"$1\"", &[&unit]).await, before);

    ground.wrong(&id, json!({"outside_only": true})).await;
    let failed = ground.fails("confine_instance", json!({"instance_id": id, "confined": true})).await;
    assert!(failed.error.contains("failed and was taken back"), "{}", failed.error);
    assert_eq!(
        ground.sh("cat \"$1\"; systemctl is-active \"openclaw-$2\"", &[&unit, &id]).await,
        format!("{before}\nactive")
    );
    assert_eq!(ground.show(&id).await["cell"], "unconfined");
    let audit =
        ground.site.admin.get("/audit-logs?level=ERROR&action=instance.update").token(&ground.site.root).ok().await;
    assert_eq!(audit["total"], 1, "{audit}");
    ground.wrong(&id, json!({})).await;
    let many =
        ground.site.admin.post("/cells/enter", json!({"instance_ids": [id]})).token(&ground.site.root).ok().await;
    ground.done(&base::id::TaskId::named(many["task_ids"][0].as_str().unwrap())).await;
    assert_eq!(ground.show(&id).await["cell"], "confined");
    assert!(ground.sh("cat \"$1\"", &[&unit]).await.contains(CURRENT));

    // Somebody with root takes the cell away by hand: the next look says so.
    ground.sh("sed -i '/^# The cell/,/^$/d' \"$1\" && systemctl daemon-reload", &[&unit]).await;
    is_seen(&ground, &id, "unconfined").await;
    let audit =
        ground.site.admin.get("/audit-logs?level=WARN&q=gone+from+its+unit").token(&ground.site.root).ok().await;
    assert_eq!(audit["total"], 1, "{audit}");
    // A unit of somebody else's has no cell, and says so.
    ground.sh("sed -i '1d' \"$1\" && systemctl daemon-reload", &[&unit]).await;
    is_seen(&ground, &id, "foreign").await;
    let path = format!("/instances/{id}/cell/enter");
    let refused = ground.site.admin.post(&path, json!({})).token(&ground.site.root).refused("4090").await;
    assert!(refused.contains("not ours"), "{refused}");
    ground.end().await;
}

/// Looks until a look says so: one that a busy machine did not come to the end of says nothing.
async fn is_seen(ground: &Ground, id: &str, cell: &str) {
    testkit::until_ok("the cell is seen as it is", async || {
        fleet::health::check(&ground.site.app).await.unwrap();
        let seen = ground.show(id).await["cell"].clone();
        if seen == cell { Ok(()) } else { Err(seen) }
    })
    .await;
}
