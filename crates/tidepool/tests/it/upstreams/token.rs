//! A management token that the gateway refuses: it is tried, and a revocation that does not hold says so.

use std::time::Duration;

use serde_json::json;
use sim::with;

use super::{Kind, World, here};
use crate::keys::{try_once, work};

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_that_does_not_hold_yet_says_so() {
    let world = World::start(Kind::OneApi, here!("token"), false).await.unwrap();
    let site = &world.site;
    site.instances("a", 3).await;
    let (user, _) = world.employee("a0", 0).await;
    let (gone, _) = world.employee("a1", 0).await;
    for id in ["a0", "a1", "a2"] {
        site.admin.post("/keys", json!({"instance_id": id})).token(&site.root).ok().await;
    }
    let shown = world.shown("a0").await;
    assert_eq!(
        (shown["enabled"].as_bool(), shown["desired"].as_str(), shown["actual"].as_str()),
        (Some(true), Some("on"), Some("on"))
    );
    assert_eq!(world.guardian().await, "nothing found");
    assert_eq!(world.ready().await["gateway"]["status"], "ok");

    // Somebody makes another access token at the gateway.
    let users = &world.gateway.tables;
    users.run("UPDATE users SET access_token = ?", with!["another-access-token-of-32-chars"]).await.unwrap();
    site.wait(Duration::from_secs(120));
    let found = world.guardian().await;
    assert!(found.contains("management token"), "{found}");
    let ready = world.ready().await;
    assert!(ready["status"] == "ok" && ready["gateway"]["status"] == "down", "{ready}");
    assert!(ready["gateway"]["detail"].as_str().unwrap().contains("management token"), "{ready}");

    let root = world.root().await;
    let answer = site.admin.patch(&format!("/users/{user}"), json!({"status": "revoked"})).token(&root).ok().await;
    assert_eq!(answer["pending_keys"][0]["name"], "a0", "{answer}");
    assert_eq!(try_once(site, &["apply_key"]).await, 1);
    let answer = site.admin.delete(&format!("/users/{gone}")).token(&root).ok().await;
    assert_eq!(answer["pending_keys"][0]["name"], "a1", "{answer}");
    try_once(site, &["apply_key"]).await;
    let shown = world.shown("a0").await;
    assert_eq!(
        (shown["enabled"].as_bool(), shown["desired"].as_str(), shown["actual"].as_str()),
        (Some(true), Some("off"), Some("on"))
    );
    assert!(shown["problem"].as_str().unwrap().contains("One API"), "{shown}");
    assert_eq!(world.assistant_asks("a0", "still open").await, 200);

    site.wait(Duration::from_secs(60));
    world.round().await;
    let alerts = world.alerts("key_not_revoked").await;
    assert_eq!(alerts.len(), 1, "one for all: {alerts:?}");
    assert!(alerts[0].contains("a0") && alerts[0].contains("a1") && !alerts[0].contains("a2"), "{alerts:?}");

    // The right token again.
    users.run("UPDATE users SET access_token = ?", with![world.gateway.admin_token.expose()]).await.unwrap();
    site.wait(Duration::from_secs(120));
    world.round().await;
    work(site, &["apply_key"]).await;
    world.round().await;
    assert!(world.alerts("key_not_revoked").await.is_empty());
    let shown = world.shown("a0").await;
    assert_eq!(
        (shown["enabled"].as_bool(), shown["desired"].as_str(), shown["actual"].as_str()),
        (Some(false), Some("off"), Some("off"))
    );
    assert_eq!(shown["problem"], "");
    assert_eq!(world.assistant_asks("a0", "shut").await, 401);
    assert_eq!(world.guardian().await, "nothing found");
    assert_eq!(world.ready().await["gateway"]["status"], "ok");
}

/// Somebody enables the token of a revoked user at the gateway: that is seen without the management token.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_somebody_enabled_behind_our_back_is_seen_and_switched_off() {
    let world = World::start(Kind::OneApi, here!("token"), false).await.unwrap();
    let site = &world.site;
    site.instances("a", 1).await;
    let (user, _) = world.employee("a0", 0).await;
    site.admin.post("/keys", json!({"instance_id": "a0"})).token(&site.root).ok().await;
    let answer = tokio::join!(
        site.admin.patch(&format!("/users/{user}"), json!({"status": "revoked"})).token(&site.root).ok(),
        work(site, &["apply_key"])
    )
    .0;
    work(site, &["apply_key"]).await;
    assert!(answer["pending_keys"].as_array().unwrap().len() <= 1, "{answer}");
    assert_eq!(world.shown("a0").await["actual"], "off");
    world.gateway.tables.run("UPDATE tokens SET status = 1", vec![]).await.unwrap();
    site.run_job(&site.root, "llm_self_heal").await;
    assert_eq!(world.shown("a0").await["actual"], "on");
    assert_eq!(world.alerts("key_not_revoked").await.len(), 1);
    work(site, &["apply_key", "repair_instance"]).await;
    assert_eq!(world.token_status("a0").await, 2);
    site.run_job(&site.root, "llm_self_heal").await;
    world.round().await;
    assert_eq!(world.shown("a0").await["actual"], "off");
    assert!(world.alerts("key_not_revoked").await.is_empty());
}
