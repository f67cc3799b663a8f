//! Records that were changed: what is patched arrives, also if its task died or nothing but a look finds it.

use serde_json::{Value, json};

use super::{AT_REST, HOME, edit_by_hand, is_asked, pass, patch, state};
use crate::kit::simulated::Simulated;
use crate::kit::used_secret;

const TOKEN: &str = "gateway-token-after-the-change";

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
    assert_eq!(config["agents"]["defaults"]["model"]["primary"], "tidepool-anthropic/claude-sonnet-4-6", "{config}");
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
    assert_eq!(ground.config(HOME)["agents"]["defaults"]["model"]["primary"], "tidepool-anthropic/claude-sonnet-4-6");
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
    assert_eq!(ground.config(HOME)["agents"]["defaults"]["model"]["primary"], "tidepool-anthropic/claude-sonnet-4-6");
    let shown = state(&ground).await;
    assert_eq!(shown["applied"], shown["generation"], "{shown:#}");
    site.check().await;
}

/// As releases wrote it that knew one entry, and nothing of models but their names.
#[tokio::test(flavor = "multi_thread")]
async fn an_assistant_of_before_gets_an_entry_for_each_protocol_and_true_limits_while_it_runs() {
    let ground = Simulated::new().await;
    let site = &ground.site;
    llm::model::table::bring(&site.app.db, site.app.clock.now()).await.unwrap();
    let unit = ground.provisioned("a").await;
    site.admin.patch("/assistant-instances/a", json!({"model": "claude-sonnet-4-6"})).token(&site.root).ok().await;
    ground.settle().await;
    let brought = ground.config(HOME);
    let starts = ground.machine.starts(&unit);
    edit_by_hand(&ground, |config| {
        let entries = config["models"]["providers"].as_object_mut().unwrap();
        entries.retain(|name, _| name == "tidepool");
        for model in entries["tidepool"]["models"].as_array_mut().unwrap() {
            *model = json!({"id": model["id"], "name": model["name"]});
        }
        config["agents"]["defaults"]["model"] = json!({"primary": "tidepool/claude-sonnet-4-6", "fallbacks": []});
        config["agents"]["defaults"].as_object_mut().unwrap().remove("params");
    });
    assert_eq!(pass(&ground).await, "1 differ: 1 are reconciled, 0 are left to people");
    ground.settle().await;
    let config = ground.config(HOME);
    assert_eq!(config["models"], brought["models"]);
    assert_eq!(config["agents"]["defaults"]["params"], json!({"cacheRetention": "short"}));
    assert_eq!(config["agents"]["defaults"]["model"]["primary"], "tidepool-anthropic/claude-sonnet-4-6");
    assert_eq!(ground.machine.starts(&unit), starts, "it was not restarted");
    let of = |entry: &str| {
        let models = config["models"]["providers"][entry]["models"].as_array().unwrap();
        models.iter().find(|model| model["id"] == "claude-sonnet-4-6").unwrap().clone()
    };
    let expected = json!({"id": "claude-sonnet-4-6", "name": "claude-sonnet-4-6", "contextWindow": 1_000_000, "maxTokens": 64_000,
        "input": ["text", "image"], "reasoning": true, "cost": {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}});
    assert_eq!(of("tidepool-anthropic"), expected);
    assert_eq!(of("tidepool"), expected, "sessions that name it there keep answering");
    assert_eq!(pass(&ground).await, AT_REST);

    // A price that is edited is what the assistant shows, too.
    let edited = json!({"prices": [{"input": 2, "output": 9}]});
    site.admin.patch("/models/claude-sonnet-4-6", edited).token(&site.root).ok().await;
    site.app.clock.advance(jiff::SignedDuration::from_hours(2));
    assert_eq!(pass(&ground).await, "1 differ: 1 are reconciled, 0 are left to people");
    ground.settle().await;
    let models = &ground.config(HOME)["models"]["providers"]["tidepool-anthropic"]["models"];
    let costs: Vec<&Value> = models
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["id"] == "claude-sonnet-4-6")
        .map(|one| &one["cost"])
        .collect();
    assert_eq!(costs, [&json!({"input": 2, "output": 9, "cacheRead": 2, "cacheWrite": 2})]);
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
