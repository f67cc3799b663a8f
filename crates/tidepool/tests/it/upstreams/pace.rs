//! Many changes at once stay within the gateway's limit of calls.

use serde_json::json;

use super::{Kind, World, here};

#[tokio::test(flavor = "multi_thread")]
async fn fifty_revocations_at_once_leave_no_dead_task() {
    let world = World::start(Kind::OneApi, here!("pace"), false).await.unwrap();
    let site = &world.site;
    site.instances("a", 50).await;
    let mut users = vec![];
    for n in 0..50 {
        let id = format!("a{n}");
        users.push(world.employee(&id, 0).await.0);
        world.adopted_key(&id).await;
    }
    // The real limit, 480 calls in 180 s, scaled down.
    *world.gateway.switches.api_limit.lock().unwrap() = Some((40, 3_000));
    let before = world.gateway.switches.calls().len();
    let working = world.work_beside();
    let revoke = |user: &String| {
        site.admin.patch(&format!("/users/{user}"), json!({"status": "revoked"})).token(&site.root).ok()
    };
    futures_util::future::join_all(users.iter().map(revoke)).await;
    testkit::until_ok("every token is off", async || {
        let on = world.gateway.tables.number("SELECT COUNT(*) FROM tokens WHERE status = 1", vec![]).await.unwrap();
        if on == 0 { Ok(()) } else { Err(on) }
    })
    .await;
    working.stop().await;
    world.work().await;
    for status in ["failed", "dead"] {
        let path = format!("/tasks?type=apply_key&status={status}");
        assert_eq!(site.admin.get(&path).token(&site.root).ok().await["total"], 0, "{status}");
    }
    let calls = world.gateway.switches.calls().split_off(before);
    let switches = calls.iter().filter(|call| call.starts_with("PUT /api/token")).count() as u64;
    let refused = world.gateway.switches.refused();
    assert_eq!(switches - refused, 50, "one call for each switch: {calls:?}");
    assert!(calls.iter().all(|call| !call.starts_with("GET /api/token")), "{calls:?}");
    world.round().await;
    assert!(world.alerts("task_dead").await.is_empty() && world.alerts("key_not_revoked").await.is_empty());
}

/// While the gateway is away, many changes that fail are one alert.
#[tokio::test(flavor = "multi_thread")]
async fn many_changes_that_fail_are_one_alert() {
    let world = World::start(Kind::OneApi, here!("pace"), false).await.unwrap();
    let site = &world.site;
    site.instances("a", 8).await;
    let mut users = vec![];
    for n in 0..8 {
        let id = format!("a{n}");
        users.push(world.employee(&id, 0).await.0);
        site.admin.post("/keys", json!({"instance_id": id})).token(&site.root).ok().await;
    }
    world.gateway.tables.run("UPDATE users SET access_token = 'rotated'", vec![]).await.unwrap();
    let revoke = |user: &String| {
        site.admin.patch(&format!("/users/{user}"), json!({"status": "revoked"})).token(&site.root).ok()
    };
    futures_util::future::join_all(users.iter().map(revoke)).await;
    for _ in 0..6 {
        crate::keys::try_once(site, &["apply_key"]).await;
        site.wait(std::time::Duration::from_secs(120));
    }
    let root = world.root().await;
    let dead = site.admin.get("/tasks?type=apply_key&status=dead").token(&root).ok().await;
    assert_eq!(dead["total"], 8, "{dead}");
    world.round().await;
    assert!(world.alerts("task_dead").await.is_empty());
    let alerts = world.alerts("key_not_revoked").await;
    assert!(alerts.len() == 1 && alerts[0].starts_with("8 sub keys"), "{alerts:?}");
}
