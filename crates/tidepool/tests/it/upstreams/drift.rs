//! Drift is a difference that stays, between what the gateway counts and what its log says.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::{Kind, World, here};

async fn synced(world: &World, name: &str) -> Value {
    let path = format!("/keys/{}/sync", world.key(name).await.id);
    world.site.admin.post(&path, json!({})).token(&world.site.root).ok().await
}

/// One API counts nothing of a token without a limit: there is nothing to compare.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_a_one_api_does_not_count_is_not_comparable() {
    let world = World::start(Kind::OneApi, here!("drift"), false).await.unwrap();
    let site = &world.site;
    site.instances("a", 2).await;
    site.admin.post("/keys", json!({"instance_id": "a0"})).token(&site.root).ok().await;
    site.admin.post("/keys", json!({"instance_id": "a1", "quota": 1_000_000})).token(&site.root).ok().await;
    for name in ["a0", "a1"] {
        assert_eq!(world.assistant_asks(name, "one two three four").await, 200);
    }
    world.read_log().await;
    let unlimited = synced(&world, "a0").await;
    assert_eq!((&unlimited["drift_quota"], &unlimited["logged_quota"]), (&Value::Null, &json!(25)), "{unlimited}");
    let limited = synced(&world, "a1").await;
    assert_eq!((&limited["drift_quota"], &limited["used_quota"]), (&json!(0), &json!(25)), "{limited}");
    let warnings = site.admin.get("/audit-logs?action=key.sync&level=WARN").token(&site.root).ok().await;
    assert_eq!(warnings["total"], 0, "{warnings}");
    let compared = site.run_job(&site.root, "spend_comparison").await;
    // The rows agree; there is no earlier reading of the counter to compare with.
    assert!(compared.ends_with("the gateway's count apart by unknown; drift unknown"), "{compared}");
    // The account's counter has what the log lacks.
    world.gateway.tables.run("UPDATE users SET used_quota = used_quota + 777", vec![]).await.unwrap();
    site.wait(std::time::Duration::from_secs(24 * 3600));
    let root = world.root().await;
    let compared = site.run_job(&root, "spend_comparison").await;
    assert!(compared.ends_with("the gateway's count apart by 777; drift 777"), "{compared}");
}

/// new-api counts some seconds after the answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_counter_that_is_late_is_no_drift_and_one_that_stays_apart_is() {
    let world = World::start(Kind::NewApi, here!("drift"), false).await.unwrap();
    let site = &world.site;
    site.instances("a", 1).await;
    site.admin.post("/keys", json!({"instance_id": "a0"})).token(&site.root).ok().await;
    world.gateway.switches.count_delay_ms.store(2_000, Ordering::SeqCst);
    assert_eq!(world.assistant_asks("a0", "one two three four").await, 200);
    // The row is there, the counter is not.
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let at_once = synced(&world, "a0").await;
    assert_eq!((&at_once["drift_quota"], &at_once["used_quota"]), (&json!(0), &json!(25)), "{at_once}");
    world.gateway.tables.run("UPDATE tokens SET used_quota = used_quota + 1234", vec![]).await.unwrap();
    assert_eq!(synced(&world, "a0").await["drift_quota"], 1234);
    assert_eq!(world.shown("a0").await["drift_quota"], 1234);
    // What is used afterwards does not change what was found.
    world.gateway.switches.count_delay_ms.store(0, Ordering::SeqCst);
    world.assistant_asks("a0", "one two three four").await;
    world.read_log().await;
    assert_eq!(world.shown("a0").await["drift_quota"], 1234);
    let warnings = site.admin.get("/audit-logs?action=key.sync&level=WARN").token(&site.root).ok().await;
    assert_eq!(warnings["total"], 1, "{warnings}");
}

/// A LiteLLM's costs are finer than our unit of two millionths of a dollar: the sum is rounded, not each row.
#[tokio::test(flavor = "multi_thread")]
async fn fractions_of_a_unit_are_not_lost_row_by_row() {
    let Some(world) =
        World::start(Kind::LiteLlm, here!("drift::fractions_of_a_unit_are_not_lost_row_by_row"), false).await
    else {
        return;
    };
    let site = &world.site;
    site.instances("a", 1).await;
    site.admin.post("/keys", json!({"instance_id": "a0"})).token(&site.root).ok().await;
    // A token in and one out cost 0.75 millionths of a dollar with the smaller model: 0.375 of a unit, which rounds to 0.
    let secret = world.key("a0").await.key(&site.app.sealer).unwrap();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    for _ in 0..80 {
        let body = json!({"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "x"}]});
        let url = format!("{}/v1/chat/completions", world.gateway.url);
        http.post(url).bearer_auth(secret.expose()).json(&body).send().await.unwrap();
    }
    world.read_log().await;
    let (today, month) =
        (site.app.zone.date(site.app.clock.now()), site.app.zone.date(site.app.clock.now()).first_of_month());
    let days = store::usage::daily(&site.app.db, month, Some("a0")).await.unwrap();
    let quota: i64 = days.iter().filter(|day| day.date == today.to_string()).map(|day| day.sums.quota()).sum();
    assert_eq!(quota, 30, "80 times 0.375");
    assert_eq!(store::usage::of_all_time(&site.app.db, "a0").await.unwrap().quota(), 30);
    let synced = synced(&world, "a0").await;
    let numbers = [&synced["logged_quota"], &synced["used_quota"], &synced["drift_quota"]];
    assert_eq!(numbers, [&json!(30), &json!(30), &json!(0)], "{synced}");
    assert_eq!(synced["spend_today"], 0.00006);
}
