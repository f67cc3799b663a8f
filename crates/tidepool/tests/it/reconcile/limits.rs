//! What the pass leaves alone: everything right after an upgrade, what failed five times, what a person holds.

use serde_json::json;

use super::{AT_REST, HOME, edit_by_hand, is_asked, pass, state};
use crate::kit::simulated::Simulated;

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
    assert_eq!(pass(&ground).await, AT_REST);
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
