//! What our records want of an instance arrives on its server, by whichever request they were changed. On a simulated
//! server.

use serde_json::{Value, json};

use crate::kit::simulated::Simulated;
use crate::kit::used_secret;

const HOME: &str = "/srv/assistants/1";
const TOKEN: &str = "gateway-token-after-the-change";

async fn patch(ground: &Simulated, body: Value) -> Value {
    let site = &ground.site;
    site.admin.patch("/assistant-instances/a", body).token(&site.root).ok().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_patched_arrives() {
    used_secret(TOKEN);
    let ground = Simulated::new().await;
    let unit = ground.provisioned("a").await;
    let site = &ground.site;
    let before = ground.config(HOME);
    assert_eq!(before["agents"]["defaults"]["model"]["primary"], "tidepool/gpt-4o", "{before}");

    let unchanged = patch(&ground, json!({"name": "Another name", "notes": "n", "model": "gpt-4o"})).await;
    assert_eq!(unchanged["task_id"], Value::Null, "none of it is on the server");

    let changed = patch(&ground, json!({"gateway_token": TOKEN, "model": "claude-sonnet-4-6"})).await;
    let task = base::id::TaskId::named(changed["task_id"].as_str().expect("the answer names the task"));
    let working = ground.work();
    ground.done(&task).await;
    let config = ground.config(HOME);
    assert_eq!(config["gateway"]["auth"]["token"], TOKEN);
    assert_eq!(config["agents"]["defaults"]["model"]["primary"], "tidepool/claude-sonnet-4-6", "{config}");
    assert!(ground.machine.is_well(&unit));
    let checked = site.admin.get("/instances/health-check").token(&site.root).ok().await;
    assert_eq!(checked["list"][0]["health_status"], "healthy", "{checked}");

    for (body, pointer, expected) in [
        (json!({"config_json": {"messages": {"responsePrefix": "hi"}}}), "/messages/responsePrefix", json!("hi")),
        (json!({"gateway_url": "ws://192.0.2.7:18789"}), "/gateway/bind", json!("lan")),
    ] {
        let changed = patch(&ground, body.clone()).await;
        let task = changed["task_id"].as_str().unwrap_or_else(|| panic!("{body} names no task: {changed}"));
        ground.done(&base::id::TaskId::named(task)).await;
        assert_eq!(ground.config(HOME).pointer(pointer), Some(&expected), "{body}");
    }
    working.stop().await;
    site.check().await;
}

/// The record was changed without a task, as releases before this one did; or somebody edited the file.
#[tokio::test(flavor = "multi_thread")]
async fn the_guardian_has_a_configuration_written_that_is_not_what_our_records_want() {
    let ground = Simulated::new().await;
    ground.provisioned("a").await;
    let site = &ground.site;
    let run = async || fleet::guardian::run(site.app.clone(), "guardian_inst_auth").await.unwrap();
    assert_eq!(run().await, "nothing found");
    site.app.db.run("UPDATE instance SET model = 'claude-sonnet-4-6' WHERE id = 'a'", vec![]).await.unwrap();
    let found = run().await;
    assert!(found.starts_with("1 found, 0 left; a: it is not what our records want: agents.defaults.model"), "{found}");
    ground.settle().await;
    assert_eq!(ground.config(HOME)["agents"]["defaults"]["model"]["primary"], "tidepool/claude-sonnet-4-6");
    assert_eq!(run().await, "nothing found");

    // What would restart it waits for a person.
    site.app.db.run("UPDATE instance SET gateway_url = 'ws://0.0.0.0:18789' WHERE id = 'a'", vec![]).await.unwrap();
    let found = run().await;
    assert!(found.starts_with("1 found, 1 left;"), "{found}");
    let open = async || {
        let alerts = site.admin.get("/alerts?open=true").token(&site.root).ok().await;
        alerts["list"].as_array().unwrap().iter().any(|alert| alert["subject"] == "instance:a:configuration")
    };
    assert!(open().await);
    ground.settle().await;
    assert_eq!(ground.config(HOME)["gateway"]["bind"], "loopback", "nothing was done");
    let working = ground.work();
    let written = ground.enqueue("write_config", json!({"instance_id": "a"})).await;
    ground.done(&written).await;
    working.stop().await;
    assert_eq!((run().await.as_str(), open().await), ("nothing found", false));
    site.check().await;
}

fn path_of_config() -> String {
    format!("{HOME}/.openclaw/openclaw.json")
}

/// Somebody edits the configuration on the server.
fn edit_by_hand(ground: &Simulated, edit: impl Fn(&mut Value)) {
    let mut config = ground.config(HOME);
    edit(&mut config);
    ground.machine.write(&path_of_config(), &config.to_string());
}

async fn pass(ground: &Simulated) -> String {
    fleet::reconcile::pass::run(&ground.site.app).await.unwrap()
}

async fn state(ground: &Simulated) -> Value {
    ground.site.admin.get("/instances/a/state").token(&ground.site.root).ok().await
}

async fn is_asked(ground: &Simulated) -> bool {
    let alerts = ground.site.admin.get("/alerts?open=true").token(&ground.site.root).ok().await;
    alerts["list"].as_array().unwrap().iter().any(|alert| alert["subject"] == "instance:a:configuration")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_ours_is_restored_and_what_is_theirs_is_kept_and_shown() {
    let ground = Simulated::new().await;
    let unit = ground.provisioned("a").await;
    let site = &ground.site;
    assert_eq!(pass(&ground).await, "0 differ: 0 are reconciled, 0 are left to people");
    assert_eq!(state(&ground).await["next"], "nothing");
    edit_by_hand(&ground, |config| {
        config["agents"]["defaults"]["model"]["primary"] = json!("other/model");
        config["messages"] = json!({"responsePrefix": "theirs"});
    });
    let shown = state(&ground).await;
    assert_eq!((&shown["next"], &shown["untouched"]), (&json!("reconcile"), &json!(false)), "{shown:#}");
    let differs = shown["fields"].as_array().unwrap().iter().find(|f| f["effect"] == "hot").unwrap();
    assert_eq!(differs["name"], "agents.defaults.model.primary");
    assert_eq!((&differs["desired"], &differs["observed"]), (&json!("tidepool/gpt-4o"), &json!("other/model")));
    assert_eq!(shown["steps"], json!(["write_config", "reload"]));
    let foreign = shown["foreign"].as_array().unwrap();
    assert!(foreign.contains(&json!({"path": "messages.responsePrefix", "value": "theirs"})), "{foreign:#?}");

    let starts = ground.machine.starts(&unit);
    assert_eq!(pass(&ground).await, "1 differ: 1 are reconciled, 0 are left to people");
    assert_eq!(pass(&ground).await, "0 differ: 0 are reconciled, 0 are left to people", "a task works on it");
    ground.settle().await;
    let config = ground.config(HOME);
    assert_eq!(config["agents"]["defaults"]["model"]["primary"], "tidepool/gpt-4o");
    assert_eq!(config["messages"]["responsePrefix"], "theirs");
    assert_eq!(ground.machine.starts(&unit), starts, "it was not restarted");
    let audit = site.admin.get("/audit-logs?action=instance.update").token(&site.root).ok().await;
    let both = r#"agents.defaults.model.primary: "other/model" → "tidepool/gpt-4o""#;
    assert!(
        audit["list"].as_array().unwrap().iter().any(|one| one["detail"].as_str().unwrap().contains(both)),
        "{audit:#}"
    );
    let shown = state(&ground).await;
    assert_eq!((&shown["next"], &shown["differs"]), (&json!("nothing"), &json!("")), "{shown:#}");
    assert_eq!(shown["generation"], shown["applied"]);
    site.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_needs_a_restart_waits_for_a_person_and_the_rest_does_not() {
    let ground = Simulated::new().await;
    let unit = ground.provisioned("a").await;
    let site = &ground.site;
    let starts = ground.machine.starts(&unit);
    edit_by_hand(&ground, |config| {
        config["gateway"]["bind"] = json!("lan");
        config["agents"]["defaults"]["model"]["primary"] = json!("other/model");
    });
    assert_eq!(pass(&ground).await, "1 differ: 1 are reconciled, 0 are left to people");
    assert!(is_asked(&ground).await, "the part that takes a restart");
    ground.settle().await;
    let config = ground.config(HOME);
    assert_eq!(config["agents"]["defaults"]["model"]["primary"], "tidepool/gpt-4o", "what is hot is done at once");
    assert_eq!(config["gateway"]["bind"], "lan");
    assert_eq!(ground.machine.starts(&unit), starts);
    assert_eq!(pass(&ground).await, "1 differ: 0 are reconciled, 1 are left to people");
    let shown = state(&ground).await;
    assert_eq!((&shown["next"], &shown["steps"]), (&json!("ask"), &json!(["write_config", "restart"])), "{shown:#}");
    assert!(shown["ask"].as_str().unwrap().contains("restart"), "{shown:#}");

    let asked = site.admin.post("/instances/a/reconcile", json!({"restart": true})).token(&site.root).ok().await;
    let working = ground.work();
    ground.done(&base::id::TaskId::named(asked["task_id"].as_str().unwrap())).await;
    working.stop().await;
    assert_eq!(ground.config(HOME)["gateway"]["bind"], "loopback");
    assert_eq!(ground.machine.starts(&unit), starts + 1);
    assert_eq!(pass(&ground).await, "0 differ: 0 are reconciled, 0 are left to people");
    assert!(!is_asked(&ground).await);

    // The next restart brings it too, whoever asks for it.
    edit_by_hand(&ground, |config| config["gateway"]["bind"] = json!("lan"));
    let restarted = ground.enqueue("restart_instance", json!({"instance_id": "a"})).await;
    ground.settle().await;
    ground.done(&restarted).await;
    assert_eq!(ground.config(HOME)["gateway"]["bind"], "loopback");
    site.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_of_the_platform_restarts_and_writes_nothing() {
    let ground = Simulated::new().await;
    let unit = ground.provisioned("a").await;
    let site = &ground.site;
    site.app.db.run("UPDATE reconcile SET release = 'an older one'", vec![]).await.unwrap();
    edit_by_hand(&ground, |config| config["agents"]["defaults"]["model"]["primary"] = json!("other/model"));
    let (before, starts) = (ground.config(HOME), ground.machine.starts(&unit));
    let first = pass(&ground).await;
    assert_eq!(first, "1 differ: 0 are reconciled, 0 are left to people; 1 are only reported after an upgrade");
    ground.settle().await;
    assert_eq!((ground.config(HOME), ground.machine.starts(&unit)), (before, starts));
    assert!(state(&ground).await["differs"].as_str().unwrap().contains("other/model"));
    assert_eq!(pass(&ground).await, "1 differ: 1 are reconciled, 0 are left to people");
    ground.settle().await;
    assert_eq!(ground.config(HOME)["agents"]["defaults"]["model"]["primary"], "tidepool/gpt-4o");
    site.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn five_failures_stop_it_until_something_changes() {
    let ground = Simulated::new().await;
    ground.provisioned("a").await;
    let site = &ground.site;
    edit_by_hand(&ground, |config| config["agents"]["defaults"]["model"]["primary"] = json!("other/model"));
    ground.machine.refuse("write-file", "the disk is gone");
    assert_eq!(pass(&ground).await, "1 differ: 1 are reconciled, 0 are left to people");
    let working = ground.work();
    let task = ground.over(&ground.latest("reconcile_instance").await).await;
    assert_eq!((task.status, task.failures), (queue::task::Status::Dead, 5));
    working.stop().await;
    assert_eq!(pass(&ground).await, "1 differ: 0 are reconciled, 1 are left to people");
    let shown = state(&ground).await;
    assert_eq!((&shown["next"], &shown["failures"]), (&json!("ask"), &json!(5)), "{shown:#}");
    assert!(shown["ask"].as_str().unwrap().starts_with("it failed five times"), "{shown:#}");
    assert!(is_asked(&ground).await);

    // Something changes on the server: it is tried again.
    ground.machine.go_on();
    edit_by_hand(&ground, |config| config["agents"]["defaults"]["model"]["primary"] = json!("another/model"));
    assert_eq!(pass(&ground).await, "1 differ: 1 are reconciled, 0 are left to people");
    ground.settle().await;
    assert_eq!(pass(&ground).await, "0 differ: 0 are reconciled, 0 are left to people");
    let shown = state(&ground).await;
    assert_eq!((&shown["failures"], &shown["error"]), (&json!(0), &json!("")), "{shown:#}");
    assert!(!is_asked(&ground).await);
    site.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_instance_is_left_alone_and_given_to_nobody() {
    let ground = Simulated::new().await;
    let unit = ground.provisioned("a").await;
    let site = &ground.site;
    let hold = |minutes: i64, reason: &str| {
        let until = site.app.clock.now() + jiff::SignedDuration::from_mins(minutes);
        site.admin.put("/instances/a/hold", json!({"until": until.to_string(), "reason": reason})).token(&site.root)
    };
    hold(-1, "too late").refused("4000").await;
    hold(60 * 24 * 31, "too long").refused("4000").await;
    hold(60, "").refused("4000").await;
    hold(60, "its logs are read").ok().await;
    let listed = site.admin.get("/instances").token(&site.root).ok().await;
    assert!(listed["list"][0]["held_until"].is_string(), "{listed:#}");
    assert_eq!(state(&ground).await["hold"]["reason"], "its logs are read");

    edit_by_hand(&ground, |config| config["agents"]["defaults"]["model"]["primary"] = json!("other/model"));
    assert_eq!(pass(&ground).await, "1 differ: 0 are reconciled, 0 are left to people");
    let (_, token) = site.quick_employee("ada@example.com").await;
    site.employee.post("/me/instances/claim", json!({})).token(&token).refused("4092").await;
    site.employee.post("/me/instances/claim", json!({"instance_id": "a"})).token(&token).refused("4092").await;
    // It goes down: nobody restarts it.
    ground.machine.stop(&unit);
    for _ in 0..3 {
        site.admin.get("/instances/health-check").token(&site.root).ok().await;
    }
    let (begun, left) = fleet::recovery::recover(&site.app).await.unwrap();
    assert_eq!((begun.len(), left.len()), (0, 1));
    let synced = ground.enqueue("sync_models_to_instance", json!({"instance_id": "a"})).await;
    ground.settle().await;
    assert!(ground.done(&synced).await.result.contains("held until"));
    assert_eq!(ground.config(HOME)["agents"]["defaults"]["model"]["primary"], "other/model");

    // What a person asks for by name is done.
    let restarted = ground.enqueue("restart_instance", json!({"instance_id": "a"})).await;
    ground.settle().await;
    ground.done(&restarted).await;
    assert!(ground.machine.is_well(&unit));

    // The hold ends by itself, and what was left is done.
    edit_by_hand(&ground, |config| config["agents"]["defaults"]["model"]["primary"] = json!("other/model"));
    site.wait(std::time::Duration::from_secs(3601));
    assert_eq!(pass(&ground).await, "1 differ: 1 are reconciled, 0 are left to people");
    ground.settle().await;
    site.admin.get("/instances/health-check").token(&site.root).ok().await;
    let (_, token) = site.quick_employee("bob@example.com").await;
    site.employee.post("/me/instances/claim", json!({"instance_id": "a"})).token(&token).ok().await;
    ground.settle().await;
    site.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_that_somebody_changed_is_put_back_when_a_person_says_so() {
    let ground = Simulated::new().await;
    let unit = ground.provisioned("a").await;
    let site = &ground.site;
    let path = format!("/etc/systemd/system/{unit}");
    let before = String::from_utf8(ground.machine.read(&path).unwrap()).unwrap();
    ground.machine.write(&path, &before.replace("Restart=", "Nice=5\nRestart="));
    site.wait(std::time::Duration::from_secs(3601));
    assert_eq!(pass(&ground).await, "1 differ: 0 are reconciled, 1 are left to people");
    let shown = state(&ground).await;
    assert_eq!(shown["steps"], json!(["write_unit", "restart"]), "{shown:#}");
    let asked = site.admin.post("/instances/a/reconcile", json!({"restart": true})).token(&site.root).ok().await;
    ground.settle().await;
    ground.done(&base::id::TaskId::named(asked["task_id"].as_str().unwrap())).await;
    assert_eq!(String::from_utf8(ground.machine.read(&path).unwrap()).unwrap(), before);
    assert!(ground.machine.is_well(&unit));
    let audit = site.admin.get("/audit-logs?action=instance.update").token(&site.root).ok().await;
    assert!(audit.to_string().contains("its unit was changed on the server"), "{audit:#}");
    site.check().await;
}

/// The change of a record arrives although every attempt of its task fails: the instance is a generation behind.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_whose_task_died_arrives_with_a_later_pass() {
    let ground = Simulated::new().await;
    ground.provisioned("a").await;
    let site = &ground.site;
    ground.machine.refuse("write-file", "the disk is gone");
    let changed = patch(&ground, json!({"model": "claude-sonnet-4-6"})).await;
    let working = ground.work();
    let task = ground.over(&base::id::TaskId::named(changed["task_id"].as_str().unwrap())).await;
    assert_eq!(task.status, queue::task::Status::Dead);
    working.stop().await;
    let shown = state(&ground).await;
    assert!(shown["applied"].as_i64() < shown["generation"].as_i64(), "{shown:#}");
    ground.machine.go_on();
    assert_eq!(pass(&ground).await, "1 differ: 1 are reconciled, 0 are left to people");
    ground.settle().await;
    assert_eq!(ground.config(HOME)["agents"]["defaults"]["model"]["primary"], "tidepool/claude-sonnet-4-6");
    let shown = state(&ground).await;
    assert_eq!(shown["applied"], shown["generation"], "{shown:#}");
    site.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_is_deleted_leaves_no_question_behind() {
    let ground = Simulated::new().await;
    ground.provisioned("a").await;
    let site = &ground.site;
    edit_by_hand(&ground, |config| config["gateway"]["bind"] = json!("lan"));
    pass(&ground).await;
    assert!(is_asked(&ground).await);
    site.admin.delete("/assistant-instances/a").token(&site.root).ok().await;
    assert!(!is_asked(&ground).await);
    ground.settle().await;
    site.check().await;
}

/// A tenant may write anything: that is a difference for people, and hides nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_cannot_be_read_is_left_to_people() {
    let ground = Simulated::new().await;
    ground.provisioned("a").await;
    let site = &ground.site;
    let before = ground.config(HOME);
    for broken in ["{ gateway: ", "{\"models\": 1}"] {
        ground.machine.write(&path_of_config(), broken);
        assert_eq!(pass(&ground).await, "1 differ: 0 are reconciled, 1 are left to people", "{broken}");
        let shown = state(&ground).await;
        assert_eq!((&shown["next"], &shown["steps"]), (&json!("ask"), &json!([])), "{shown:#}");
        assert!(shown["ask"].as_str().unwrap().contains("cannot be read"), "{shown:#}");
        assert!(is_asked(&ground).await);
        let file = String::from_utf8(ground.machine.read(&path_of_config()).unwrap()).unwrap();
        assert_eq!(file, broken, "it is not overwritten");
    }
    ground.machine.write(&path_of_config(), &before.to_string());
    assert_eq!(pass(&ground).await, "0 differ: 0 are reconciled, 0 are left to people");
    assert!(!is_asked(&ground).await);
    site.check().await;
}

/// A gateway that takes nothing over by itself is not restarted for that by the pass.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_does_not_reload_is_restarted_by_a_person_alone() {
    let ground = Simulated::new().await;
    let unit = ground.provisioned("a").await;
    let site = &ground.site;
    let starts = ground.machine.starts(&unit);
    edit_by_hand(&ground, |config| {
        config["agents"]["defaults"]["model"]["primary"] = json!("other/model");
        config["gateway"]["reload"] = json!({"mode": "off"});
    });
    assert_eq!(pass(&ground).await, "1 differ: 1 are reconciled, 0 are left to people");
    ground.settle().await;
    let task = ground.done(&ground.latest("reconcile_instance").await).await;
    assert_eq!(task.result, "what needs a restart waits for one", "{:#?}", ground.log(&task.id).await);
    assert_eq!(ground.config(HOME)["agents"]["defaults"]["model"]["primary"], "tidepool/gpt-4o");
    assert_eq!(ground.machine.starts(&unit), starts);
    site.admin.post("/instances/a/reconcile", json!({"restart": true})).token(&site.root).ok().await;
    ground.settle().await;
    assert_eq!((ground.machine.starts(&unit), ground.machine.is_well(&unit)), (starts + 1, true));
    assert_eq!(pass(&ground).await, "0 differ: 0 are reconciled, 0 are left to people");
    site.check().await;
}

/// The worker dies when the unit is written and the old process still runs under what somebody else wrote.
#[tokio::test(flavor = "multi_thread")]
async fn a_unit_that_was_put_back_is_never_left_without_its_restart() {
    let ground = Simulated::new().await;
    let unit = ground.provisioned("a").await;
    let site = &ground.site;
    let path = format!("/etc/systemd/system/{unit}");
    let text = || String::from_utf8(ground.machine.read(&path).unwrap()).unwrap();
    let (before, starts) = (text(), ground.machine.starts(&unit));
    ground.machine.write(&path, &before.replace("Restart=", "Nice=5\nRestart="));
    site.admin.post("/instances/a/reconcile", json!({"restart": true})).token(&site.root).ok().await;
    ground.broken_off("stop-unit", async || text() == before).await;
    assert_eq!(ground.machine.starts(&unit), starts);
    site.wait(std::time::Duration::from_secs(3601));
    ground.settle().await;
    assert_eq!((ground.machine.starts(&unit), ground.machine.is_well(&unit)), (starts + 1, true));
    site.check().await;
}

/// An instance that somebody else made: a repair writes what it is about, and nothing else of ours.
#[tokio::test(flavor = "multi_thread")]
async fn a_repair_leaves_the_rest_of_a_configuration_that_is_not_ours() {
    let ground = Simulated::new().await;
    let unit = ground.provisioned("a").await;
    let site = &ground.site;
    let starts = ground.machine.starts(&unit);
    edit_by_hand(&ground, |config| {
        config["models"]["providers"]["tidepool"]["apiKey"] = json!("sk-somebody-elses");
        config["gateway"]["bind"] = json!("lan");
        config["logging"]["file"] = json!("/somewhere/else.jsonl");
    });
    site.app.db.run("UPDATE instance SET config_hash = '' WHERE id = 'a'", vec![]).await.unwrap();
    assert_eq!(pass(&ground).await, "0 differ: 0 are reconciled, 0 are left to people", "it is not the platform's");
    assert_eq!(fleet::key_check::rewrite_wrong(&site.app).await.unwrap().len(), 1);
    ground.settle().await;
    let config = ground.config(HOME);
    assert_ne!(config["models"]["providers"]["tidepool"]["apiKey"], "sk-somebody-elses");
    assert_eq!(
        (&config["gateway"]["bind"], &config["logging"]["file"]),
        (&json!("lan"), &json!("/somewhere/else.jsonl"))
    );
    assert_eq!(ground.machine.starts(&unit), starts);
    site.check().await;
}

/// A cleaning fails after the new user was made and before the unit starts it as that user.
#[tokio::test(flavor = "multi_thread")]
async fn a_cleaning_that_failed_before_the_unit_was_written_is_finished() {
    let ground = Simulated::new().await;
    let unit = ground.provisioned("a").await;
    let site = &ground.site;
    let (user, _) = site.quick_employee("ada@example.com").await;
    site.admin.patch("/instances/a/assign", json!({"user_id": user})).token(&site.root).ok().await;
    ground.settle().await;
    ground.machine.write(&format!("{HOME}/.openclaw/workspace/diary.md"), "mine alone");
    let task = ground.enqueue("clean_instance", json!({"instance_id": "a"})).await;
    ground.machine.refuse("write-file", "the disk is full");
    let working = ground.work();
    assert_eq!(ground.ended(&task).await.status, queue::task::Status::Failed);
    ground.machine.go_on();
    let task = ground.over(&task).await;
    working.stop().await;
    assert_eq!(task.result, "cleaned", "{:#?}", ground.log(&task.id).await);
    assert!(ground.machine.is_well(&unit));
    assert_eq!(ground.machine.read(&format!("{HOME}/.openclaw/workspace/diary.md")), None);
    site.check().await;
}

/// The table of debts, as the release before this one left it, with an upgrade in its middle.
async fn upgraded(database: crate::kit::Database) {
    use store::args;
    use store::reconcile::{self, Pending};

    let db = crate::kit::database_before(22, &database.url).await;
    let mut tx = db.begin().await.unwrap();
    for (port, id) in [(18000i64, "done"), (18100, "begun"), (18200, "never")] {
        let sql = "INSERT INTO instance (id, id_key, server_id, pooled, name, gateway_port, gateway_url, gateway_token, model, \
            health_status, notes, config_json, created_at, updated_at) VALUES (?, ?, 's', 0, '', ?, '', '', '', 'unknown', '', '{}', 0, 0)";
        tx.run(sql, args![id, id, port]).await.unwrap();
    }
    let sql = "INSERT INTO debt (instance_id, owed, log_size, told) VALUES ('done', '', 7, ''), ('begun', 'restart', 9, 'told')";
    tx.run(sql, vec![]).await.unwrap();
    let sql = "INSERT INTO task (id, type, payload, status, source, instance_id, next_attempt_at, created_at, updated_at) \
        VALUES ('t1', 'upgrade_instance', '{}', 'failed', '', 'begun', 0, 0, 0), ('t0', 'upgrade_instance', '{}', 'done', '', 'begun', 0, 0, 0)";
    tx.run(sql, vec![]).await.unwrap();
    tx.commit().await.unwrap();
    store::migrate::run(&db).await.unwrap();
    let of = async |id: &str| reconcile::find(&db, &base::id::InstanceId::named(id)).await.unwrap();
    let begun = of("begun").await;
    assert_eq!((begun.generation, begun.applied, begun.pending, begun.log_size), (1, 0, Pending::Restart, 9));
    assert_eq!((begun.unrecorded.as_str(), begun.operation.as_deref()), ("told", Some("t1")));
    assert!(begun.is_behind() && !of("done").await.is_behind() && !of("never").await.is_behind());
    assert_eq!(begun.release, "", "the first comparison only reports");

    // Processes of the older release may run beside this one for a week. Then the table is dropped, and they refuse to start.
    store::record! { struct Count { n: i64 } }
    let open = "SELECT COUNT(*) AS n FROM debt WHERE owed <> '' OR told <> ''";
    let debts = async || db.first::<Count>(open, vec![]).await.map(|found| found.map(|one| one.n));
    let newest = async || {
        let sql = "SELECT MAX(version) AS n FROM schema_version";
        db.first::<Count>(sql, vec![]).await.unwrap().unwrap().n
    };
    store::migrate::run(&db).await.unwrap();
    assert_eq!((debts().await.unwrap(), newest().await), (Some(0), 21));
    let week = 7 * 24 * 3_600_000i64;
    let sql = "UPDATE schema_step SET applied_at = applied_at - ? WHERE version = 22";
    db.run(sql, args![week]).await.unwrap();
    store::migrate::run(&db).await.unwrap();
    assert!(debts().await.is_err(), "the table is gone");
    assert_eq!(newest().await, 22);
    store::migrate::run(&db).await.unwrap();
}

#[tokio::test]
async fn open_debts_become_a_generation_behind_sqlite() {
    upgraded(crate::kit::Database::sqlite()).await;
}

#[tokio::test]
async fn open_debts_become_a_generation_behind_postgres() {
    if let Some(database) = crate::kit::Database::postgres(module_path!()).await {
        upgraded(database).await;
    }
}
