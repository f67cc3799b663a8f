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
