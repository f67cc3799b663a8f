//! What somebody changed on the server.

use serde_json::json;

use super::{AT_REST, HOME, edit_by_hand, is_asked, pass, path_of_config, state};
use crate::kit::simulated::Simulated;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_ours_is_restored_and_what_is_theirs_is_kept_and_shown() {
    let ground = Simulated::new().await;
    let unit = ground.provisioned("a").await;
    let site = &ground.site;
    assert_eq!(pass(&ground).await, AT_REST);
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
    assert_eq!(pass(&ground).await, AT_REST, "a task works on it");
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
    assert_eq!(pass(&ground).await, AT_REST);
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
async fn a_unit_that_somebody_changed_is_put_back_when_a_person_says_so() {
    let ground = Simulated::new().await;
    let unit = ground.provisioned("a").await;
    let site = &ground.site;
    let path = format!("/etc/systemd/system/{unit}");
    let before = ground.unit(&unit);
    ground.machine.write(&path, &before.replace("Restart=", "Nice=5\nRestart="));
    site.wait(std::time::Duration::from_secs(3601));
    assert_eq!(pass(&ground).await, "1 differ: 0 are reconciled, 1 are left to people");
    let shown = state(&ground).await;
    assert_eq!(shown["steps"], json!(["write_unit", "restart"]), "{shown:#}");
    let asked = site.admin.post("/instances/a/reconcile", json!({"restart": true})).token(&site.root).ok().await;
    ground.settle().await;
    ground.done(&base::id::TaskId::named(asked["task_id"].as_str().unwrap())).await;
    assert_eq!(ground.unit(&unit), before);
    assert!(ground.machine.is_well(&unit));
    let audit = site.admin.get("/audit-logs?action=instance.update").token(&site.root).ok().await;
    assert!(audit.to_string().contains("its unit was changed on the server"), "{audit:#}");
    site.check().await;
}

/// The worker dies when the unit is written and the old process still runs under what somebody else wrote.
#[tokio::test(flavor = "multi_thread")]
async fn a_unit_that_was_put_back_is_never_left_without_its_restart() {
    let ground = Simulated::new().await;
    let unit = ground.provisioned("a").await;
    let site = &ground.site;
    let path = format!("/etc/systemd/system/{unit}");
    let (before, starts) = (ground.unit(&unit), ground.machine.starts(&unit));
    ground.machine.write(&path, &before.replace("Restart=", "Nice=5\nRestart="));
    site.admin.post("/instances/a/reconcile", json!({"restart": true})).token(&site.root).ok().await;
    ground.broken_off("stop-unit", async || ground.unit(&unit) == before).await;
    assert_eq!(ground.machine.starts(&unit), starts);
    site.wait(std::time::Duration::from_secs(3601));
    ground.settle().await;
    assert_eq!((ground.machine.starts(&unit), ground.machine.is_well(&unit)), (starts + 1, true));
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
    assert_eq!(pass(&ground).await, AT_REST);
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
    assert_eq!(pass(&ground).await, AT_REST);
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
    assert_eq!(pass(&ground).await, AT_REST, "it is not the platform's");
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
