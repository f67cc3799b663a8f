//! An adopted assistant is moved into a cell, and back: what was adopted stays as it was.

use serde_json::{Value, json};

use super::{TOKEN, add, adopt, config_path, wish};
use crate::kit::simulated::Simulated;

/// A path in the state folder of a home.
fn below(home: &str, path: &str) -> String {
    format!("{home}/.openclaw/{path}")
}

async fn ground() -> Simulated {
    let ground = Simulated::new().await;
    add(&ground, "ada", "ada", 19000);
    let mut config = ground.config("/home/ada");
    config["agents"] = json!({"defaults": {"workspace": below("/home/ada", "workspace")}});
    ground.machine.write(&config_path("ada"), &config.to_string());
    ground.machine.write(&below("/home/ada", "workspace/NOTES.md"), "what she wrote");
    let root = ground.site.root.clone();
    adopt(&ground, &root, vec![wish("ada", json!({"keeps_llm": true}))]).await;
    ground
}

async fn shown(ground: &Simulated) -> Value {
    ground.site.admin.get("/instances/ada").token(&ground.site.root).ok().await
}

async fn go(ground: &Simulated, path: &str) -> base::id::TaskId {
    let asked = ground.site.admin.post(path, json!({})).token(&ground.site.root).ok().await;
    ground.settle().await;
    base::id::TaskId::named(asked["task_id"].as_str().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn it_runs_in_its_cell_with_all_that_it_had_and_goes_back() {
    let ground = ground().await;
    let site = &ground.site;
    let before = ground.machine.read(&config_path("ada"));
    let task = go(&ground, "/instances/ada/move-into-cell").await;
    ground.done(&task).await;
    let now = shown(&ground).await;
    assert_eq!(
        (&now["home"], &now["unit"], &now["isolation"]),
        (&json!("/srv/assistants/1"), &json!(""), &json!("own")),
        "{now:#}"
    );
    assert_eq!((&now["cell"], &now["own_llm"]), (&json!("confined"), &json!(true)));
    assert_eq!(now["moved_from"]["home"], "/home/ada");
    let config = ground.config("/srv/assistants/1");
    assert_eq!(
        config["agents"]["defaults"]["workspace"], "/srv/assistants/1/.openclaw/workspace",
        "its paths follow it"
    );
    assert_eq!(config["gateway"]["auth"]["token"], TOKEN);
    assert_eq!(
        ground.machine.read("/srv/assistants/1/.openclaw/workspace/NOTES.md").as_deref(),
        Some(&b"what she wrote"[..])
    );
    assert!(!ground.machine.is_well("ada.service") && ground.machine.is_well("openclaw-ada.service"));
    assert_eq!(ground.machine.read(&config_path("ada")), before, "what was adopted stays as it was");
    site.admin.get("/instances/health-check").token(&site.root).ok().await;
    assert_eq!(shown(&ground).await["health_status"], "healthy");
    // What it was is known, and nobody adopts it a second time.
    let found = super::discovered(&ground).await;
    assert!(found.iter().all(|one| one["instance_id"] == "ada"), "{found:#?}");
    site.admin.post("/instances/ada/move-into-cell", json!({})).token(&site.root).refused("4090").await;

    let task = go(&ground, "/instances/ada/move-back").await;
    ground.done(&task).await;
    let back = shown(&ground).await;
    assert_eq!(
        (&back["home"], &back["unit"], &back["isolation"]),
        (&json!("/home/ada"), &json!("ada.service"), &json!("adopted")),
        "{back:#}"
    );
    assert_eq!((&back["moved_from"], &back["runs_as"]), (&Value::Null, &json!("ada")));
    assert!(ground.machine.is_well("ada.service") && !ground.machine.is_well("openclaw-ada.service"));
    assert_eq!(ground.machine.read(&config_path("ada")), before);
    assert!(
        ground.machine.read("/srv/assistants/1/.openclaw/openclaw.json").is_none(),
        "its home in the cell is put away"
    );
    site.admin.post("/instances/ada/move-back", json!({})).token(&site.root).refused("4090").await;
    let audit = site.admin.get("/audit-logs?action=instance.update").token(&site.root).ok().await.to_string();
    assert!(audit.contains("moved from /home/ada into a cell") && audit.contains("moved back to /home/ada"), "{audit}");
    site.check().await;
}

/// It is taken back once, and not tried again: every try would interrupt people.
#[tokio::test(flavor = "multi_thread")]
async fn a_move_that_fails_is_taken_back() {
    for script in ["stop-unit", "bring-state", "make-user"] {
        let ground = ground().await;
        let before = (ground.machine.read(&config_path("ada")), shown(&ground).await);
        ground.machine.refuse(script, "no space left on device");
        let path = "/instances/ada/move-into-cell";
        let asked = ground.site.admin.post(path, json!({})).token(&ground.site.root).ok().await;
        let task = base::id::TaskId::named(asked["task_id"].as_str().unwrap());
        let working = ground.work();
        let failed = ground.ended(&task).await;
        ground.machine.go_on();
        let starts = ground.machine.starts("ada.service");
        assert!(failed.error.contains("taken back"), "{script}: {}", failed.error);
        let last = ground.over(&task).await;
        working.stop().await;
        assert!(last.error.contains("see the first attempt"), "{script}: {}", last.error);
        let now = shown(&ground).await;
        for field in ["home", "unit", "isolation", "own_llm", "moved_from", "runner", "runs_as"] {
            assert_eq!(now[field], before.1[field], "{script}: {field}");
        }
        assert!(ground.machine.is_well("ada.service"), "{script}");
        assert_eq!(ground.machine.starts("ada.service"), starts, "{script}: it is not tried again");
        assert_eq!(ground.machine.read(&config_path("ada")), before.0, "{script}");
        // Somebody may ask for it again.
        let task = go(&ground, path).await;
        ground.done(&task).await;
        ground.site.check().await;
    }
}

/// Homes that somebody else made in the base folder are neither written nor put away.
#[tokio::test(flavor = "multi_thread")]
async fn somebody_elses_home_is_left_alone() {
    let ground = ground().await;
    let theirs = below("/srv/assistants/1", "openclaw.json");
    let home = "/srv/assistants/1".to_owned();
    let instance = sim::host::Instance { unit: "bob.service".into(), home, port: 19500, token: TOKEN.into() };
    ground.machine.add_as("bob", &instance);
    let before = ground.machine.read(&theirs);
    let task = go(&ground, "/instances/ada/move-into-cell").await;
    ground.done(&task).await;
    assert_eq!(shown(&ground).await["home"], "/srv/assistants/2");
    assert_eq!(ground.machine.read(&theirs), before);
    assert!(ground.machine.is_well("bob.service"));
    ground.site.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_it_since_does_not_get_what_was_there_before() {
    let ground = ground().await;
    let site = &ground.site;
    let (first, _) = site.quick_employee("first@example.com").await;
    let (second, _) = site.quick_employee("second@example.com").await;
    let assign = async |user: Value| {
        site.admin.patch("/instances/ada/assign", json!({"user_id": user})).token(&site.root).ok().await;
        ground.settle().await;
    };
    assign(json!(first)).await;
    let (token, starts) = (shown(&ground).await["gateway_token"].clone(), ground.machine.starts("ada.service"));
    assert_eq!(starts, 1, "who has it is no reason to restart it");
    let task = go(&ground, "/instances/ada/move-into-cell").await;
    ground.done(&task).await;
    assign(Value::Null).await;
    assign(json!(second)).await;
    let now = shown(&ground).await;
    assert_eq!(now["own_llm"], false, "its own provider went with the traces of whoever had it");
    assert!(ground.config("/srv/assistants/1")["models"]["providers"]["tidepool"].is_object());
    site.admin.post("/instances/ada/move-back", json!({})).token(&site.root).refused("4090").await;
    assign(Value::Null).await;
    assign(json!(first)).await;
    let operator = site.plain_admin("op@example.com", "operator").await;
    site.admin.post("/instances/ada/move-back", json!({})).token(&operator).refused("4030").await;
    let task = go(&ground, "/instances/ada/move-back").await;
    ground.done(&task).await;
    assert_eq!(ground.config("/home/ada")["gateway"]["auth"]["token"], token, "what was adopted keeps its token");
    site.check().await;
}

/// Only the state folder is moved: what the configuration names beside it would be lost.
#[tokio::test(flavor = "multi_thread")]
async fn what_lies_outside_of_its_state_is_not_left_behind() {
    let ground = ground().await;
    let mut config = ground.config("/home/ada");
    config["agents"]["defaults"]["workspace"] = json!("~/claw");
    ground.machine.write(&config_path("ada"), &config.to_string());
    let starts = ground.machine.starts("ada.service");
    let asked = ground.site.admin.post("/instances/ada/move-into-cell", json!({})).token(&ground.site.root).ok().await;
    let working = ground.work();
    let task = ground.ended(&base::id::TaskId::named(asked["task_id"].as_str().unwrap())).await;
    working.stop().await;
    assert!(task.error.contains("agents.defaults.workspace leads outside"), "{}", task.error);
    assert!(ground.machine.is_well("ada.service") && ground.machine.starts("ada.service") == starts);
    ground.site.check().await;
}

/// The worker goes away in the middle: the next attempt takes back what the first began.
#[tokio::test(flavor = "multi_thread")]
async fn a_move_that_is_broken_off_is_taken_back() {
    let ground = ground().await;
    let before = ground.machine.read(&config_path("ada"));
    ground.machine.hold("bring-state");
    let asked = ground.site.admin.post("/instances/ada/move-into-cell", json!({})).token(&ground.site.root).ok().await;
    let working = ground.work();
    testkit::until("the state is about to be copied", async || ground.machine.held() > 0).await;
    working.stop().await;
    assert_eq!(shown(&ground).await["home"], "/srv/assistants/1");
    ground.machine.go_on();
    let working = ground.work();
    let task = ground.ended(&base::id::TaskId::named(asked["task_id"].as_str().unwrap())).await;
    working.stop().await;
    assert!(task.error.contains("broken off and taken back"), "{}", task.error);
    assert_eq!(shown(&ground).await["home"], "/home/ada");
    assert!(ground.machine.is_well("ada.service"));
    assert_eq!(ground.machine.read(&config_path("ada")), before);
    ground.site.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_platform_made_is_not_moved() {
    let ground = ground().await;
    ground.provisioned("ours").await;
    let site = &ground.site;
    site.admin.post("/instances/ours/move-into-cell", json!({})).token(&site.root).refused("4090").await;
    site.admin.post("/instances/ada/move-back", json!({})).token(&site.root).refused("4090").await;
    let admin = site.plain_admin("plain@example.com", "admin").await;
    site.admin.post("/instances/ada/move-into-cell", json!({})).token(&admin).refused("4030").await;
    let body = json!({"type": "move_into_cell", "payload": {"instance_id": "ada"}});
    site.admin.post("/tasks", body).token(&admin).refused("4030").await;
    site.check().await;
}
