//! What a sub key has used of its quota is one number, whoever asks: what was logged since its record was made. And a key whose value
//! was lost on its way is made anew.

use std::time::Duration;

use base::Secret;
use serde_json::{Value, json};
use sim::llm::litellm;
use sim::with;
use store::request_log::{self, NewRequest};

use crate::keys::{at, foreign, try_once, work};
use crate::kit::{Database, Site, used_secret};
use crate::on_both;

/// Writes a request of so many units into the log.
async fn spend(site: &Site, token: &str, quota: i64) {
    let row = NewRequest {
        request_id: base::id::fresh(),
        token_name: token.into(),
        model: "gpt-4o".into(),
        provider: "ch-1".into(),
        kind: store::request_log::RequestType::SUCCESS,
        is_stream: false,
        prompt_tokens: 1,
        completion_tokens: 1,
        quota,
        duration_ms: 1,
        error_message: String::new(),
        estimated: false,
        detail: Default::default(),
        created_at: site.app.clock.now(),
    };
    let mut tx = site.app.db.begin().await.unwrap();
    request_log::add(&mut tx, &site.app.zone, &[row]).await.unwrap();
    tx.commit().await.unwrap();
}

async fn key(site: &Site, id: &str) -> store::gateway_key::GatewayKey {
    store::gateway_key::named(&site.app.db, id).await.unwrap().unwrap()
}

/// Gives an instance's key a quota, the only way there is: another record.
async fn again(site: &Site, id: &str, quota: i64) {
    site.admin.delete(&format!("/keys/{}", key(site, id).await.id)).token(&site.root).ok().await;
    site.admin.post("/keys", json!({"instance_id": id, "quota": quota})).token(&site.root).ok().await;
}

on_both! {
    async fn what_was_used_before_a_quota_was_given_counts_nowhere(site: Site) {
        site.instances("a", 1).await;
        site.admin.post("/keys", json!({"instance_id": "a0"})).token(&site.root).ok().await;
        spend(site, "a0", 10_000_000).await;
        again(site, "a0", 5_000_000).await;
        let open = async |rule: &str| {
            let path = format!("/alerts?rule={rule}&open=true");
            site.admin.get(&path).token(&site.root).ok().await["list"].as_array().unwrap().iter().map(|a| a["message"].clone()).collect::<Vec<Value>>()
        };
        assert!(site.run_job(&site.root, "sync_llm_spend").await.ends_with("0 budgets near their limit"));
        site.run_job(&site.root, "key_balance_alert").await;
        assert!(open("budget_near_limit").await.is_empty());
        assert!(open("key_balance_low").await.is_empty(), "$10 are left");
        let shown = site.app.upstream.gateway.find_key("a0").await.unwrap().unwrap();
        assert_eq!((shown.used_quota, shown.remain_quota), (0, Some(5_000_000)), "what the gateway enforces");
        spend(site, "a0", 4_500_000).await;
        assert!(site.run_job(&site.root, "sync_llm_spend").await.ends_with("1 budgets near their limit"));
        site.run_job(&site.root, "key_balance_alert").await;
        assert_eq!(open("budget_near_limit").await, ["key:a0 has used 4500000 of 5000000 (90 %)"]);
        assert_eq!(open("key_balance_low").await, ["key:a0 has $1.00 left"]);
        // Its instance is gone: nobody spends on it any more.
        site.admin.delete("/assistant-instances/a0").token(&site.root).ok().await;
        site.run_job(&site.root, "sync_llm_spend").await;
        site.run_job(&site.root, "key_balance_alert").await;
        assert!(open("budget_near_limit").await.is_empty() && open("key_balance_low").await.is_empty());
    }

    async fn keys_of_before_count_from_when_their_records_were_made(site: Site) {
        let db = &site.app.db;
        site.instances("a", 2).await;
        // What was logged before, in whole quarters of an hour, and what was logged since.
        for id in ["a0", "a1"] {
            spend(site, id, 700).await;
        }
        site.wait(Duration::from_secs(3600));
        for id in ["a0", "a1"] {
            site.admin.post("/keys", json!({"instance_id": id})).token(&site.root).ok().await;
            spend(site, id, 30).await;
        }
        // As a foreign gateway left it: its first key was changed for another.
        db.run("UPDATE gateway_key SET gateway_id = '7', carried_quota = 720 WHERE name = 'a1'", vec![]).await.unwrap();
        db.run("UPDATE gateway_key SET quota_from = 0", vec![]).await.unwrap();
        let (_, _, sql) = store::migrate::STEPS.iter().find(|(_, name, _)| *name == "quota").unwrap();
        for statement in sql.split(';').map(str::trim).filter(|statement| statement.starts_with("UPDATE")) {
            db.run(statement, vec![]).await.unwrap();
        }
        for id in ["a0", "a1"] {
            assert_eq!(key(site, id).await.used(), 30, "{id}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_changed_for_another_keeps_what_is_left_of_its_quota() {
    let world = foreign().await;
    let site = &world.site;
    site.instances("a", 1).await;
    let (user, _) = site.quick_employee("ada@example.com").await;
    site.admin.patch("/instances/a0/assign", json!({"user_id": user})).token(&site.root).ok().await;
    site.admin.post("/keys", json!({"instance_id": "a0"})).token(&site.root).ok().await;
    world.tokens("a0").await;
    spend(site, "a0", 1_000_000).await;
    again(site, "a0", 500_000).await;
    let left = async || {
        world.tokens("a0").await;
        world.gateway.tables.number("SELECT remain_quota FROM tokens WHERE name = ?", with!["a0"]).await.unwrap()
    };
    assert_eq!(left().await, 500_000);
    for (used, remains) in [(100_000, 400_000), (50_000, 350_000)] {
        let sql = "UPDATE tokens SET used_quota = ?, remain_quota = remain_quota - ?";
        world.gateway.tables.run(sql, with![used, used]).await.unwrap();
        spend(site, "a0", used).await;
        site.admin.patch("/instances/a0/assign", json!({"user_id": null})).token(&site.root).ok().await;
        world.work().await;
        assert_eq!(left().await, remains);
        site.admin.patch("/instances/a0/assign", json!({"user_id": user})).token(&site.root).ok().await;
    }
    let key = key(site, "a0").await;
    assert_eq!((key.used(), key.logged_quota, key.carried_quota), (150_000, 1_150_000, 1_150_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_was_changed_for_another_is_no_drift() {
    let world = foreign().await;
    let site = &world.site;
    site.instances("a", 1).await;
    let (user, _) = site.quick_employee("ada@example.com").await;
    site.admin.patch("/instances/a0/assign", json!({"user_id": user})).token(&site.root).ok().await;
    site.admin.post("/keys", json!({"instance_id": "a0"})).token(&site.root).ok().await;
    world.tokens("a0").await;
    world.gateway.tables.run("UPDATE tokens SET used_quota = 700", vec![]).await.unwrap();
    spend(site, "a0", 700).await;
    // The gateway's count has no day before to be compared with.
    assert!(site.run_job(&site.root, "spend_comparison").await.ends_with("drift unknown"));
    site.admin.patch("/instances/a0/assign", json!({"user_id": null})).token(&site.root).ok().await;
    world.work().await;
    world.tokens("a0").await;
    site.wait(Duration::from_secs(24 * 3600));
    let root = site.admin_login("root@example.com").await;
    let message = site.run_job(&root, "spend_comparison").await;
    assert!(message.ends_with("the gateway's count apart by 0; drift 0"), "{message}");
}

/// LiteLLM tells a key's value once. Where that answer was lost the key is found again by the value that we gave it; a key of
/// the same name that is somebody else's is never touched.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_whose_answer_was_lost_is_found_again_and_a_strangers_is_left_alone() {
    let name = "key_quotas::a_key_whose_answer_was_lost_is_found_again_and_a_strangers_is_left_alone";
    let Some(database) = Database::postgres(name).await else { return };
    let gateway = litellm::start(litellm::Options::new(database.url.clone())).await.unwrap();
    let site = at(&gateway, "litellm").await;
    site.instances("a", 2).await;
    let make = |id: &str| site.admin.post("/keys", json!({"instance_id": id})).token(&site.root);
    let lose = || gateway.switches.set(|s| &s.lose_next_key, true);
    let works = async || {
        let secret: Secret = key(&site, "a0").await.key(&site.app.sealer).unwrap();
        used_secret(secret.expose());
        let keys = site.app.upstream.gateway.keys().await.unwrap();
        assert_eq!(keys.iter().filter(|key| key.name == "a0").count(), 1);
        assert_eq!(site.app.upstream.gateway.check_key(&secret).await, remote::llm::KeyState::Valid);
        secret
    };
    lose();
    make("a0").refused("5020").await;
    make("a0").ok().await;
    let first = works().await;
    // The same when a key is changed for another: the old one is deleted, and the answer about the new one is lost.
    let (user, _) = site.quick_employee("ada@example.com").await;
    site.admin.patch("/instances/a0/assign", json!({"user_id": user})).token(&site.root).ok().await;
    site.admin.patch("/instances/a0/assign", json!({"user_id": null})).token(&site.root).ok().await;
    lose();
    assert_eq!(try_once(&site, &["apply_key"]).await, 1, "the answer is lost");
    site.wait(Duration::from_secs(60));
    work(&site, &["apply_key"]).await;
    let second = works().await;
    assert_ne!(first.expose(), second.expose());
    // And no value comes back with a name that was deleted.
    site.admin.delete(&format!("/keys/{}", key(&site, "a0").await.id)).token(&site.root).ok().await;
    make("a0").ok().await;
    let third = works().await;
    assert!(![first.expose(), second.expose()].contains(&third.expose()));

    let sql = "INSERT INTO \"LiteLLM_VerificationToken\" (token, key_alias, blocked) VALUES (?, ?, ?)";
    let strangers = litellm::hash(&base::id::fresh());
    gateway.tables.run(sql, with![strangers.as_str(), "a1", false]).await.unwrap();
    make("a1").refused("4090").await;
    assert!(site.app.upstream.gateway.read_key(&strangers).await.unwrap().is_some(), "it is not ours to delete");
}
