//! Quotas do not fail open: what we forwarded counts until the log has it, and a log that says nothing is noticed.

use std::time::Duration;

use base::Secret;
use sim::llm::one_api;
use sim::with;

use super::{Kind, World, here};
use crate::kit::Database;

/// Ten tokens.
const TEN: &str = "one two three four five";

async fn answers_count_while_the_log_says_nothing(kind: Kind, name: &str) {
    let Some(world) = World::start(kind, name, false).await else { return };
    world.site.instances("a", 1).await;
    let (_, token) = world.employee("a0", 20).await;
    world.gateway.switches.set(|s| &s.log_nothing, true);
    for _ in 0..2 {
        world.ask(&token, "a0", TEN).ok().await;
    }
    let refusal = world.ask(&token, "a0", TEN).refused("4291").await;
    assert!(refusal.contains("limit 20 tokens, used 20,"), "{refusal}");
    // Also when whatever was reserved for the requests is released.
    tokio::time::sleep(world.site.app.upstream.gateway.kind().row_delay.min(Duration::from_secs(4))).await;
    world.read_log().await;
    world.ask(&token, "a0", TEN).refused("4291").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_count_while_a_one_api_logs_nothing() {
    answers_count_while_the_log_says_nothing(Kind::OneApi, here!("quota")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_count_while_a_one_api_on_mariadb_logs_nothing() {
    let name = here!("quota::answers_count_while_a_one_api_on_mariadb_logs_nothing");
    answers_count_while_the_log_says_nothing(Kind::OneApiMariadb, name).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_count_while_a_litellm_logs_nothing() {
    let name = here!("quota::answers_count_while_a_litellm_logs_nothing");
    answers_count_while_the_log_says_nothing(Kind::LiteLlm, name).await;
}

/// What an answer said counts until its row is there, and then the row counts.
async fn an_answer_counts_once(kind: Kind, name: &str) {
    let Some(world) = World::start(kind, name, false).await else { return };
    world.site.instances("a", 1).await;
    let (user, token) = world.employee("a0", 30).await;
    let user = base::id::UserId::named(&user);
    let counted = async || {
        let midnight = world.site.app.zone.midnight(world.site.app.clock.now());
        llm::usage::spent_and_unlogged(&world.site.app, &user, midnight).await.unwrap()
    };
    // The assistant itself asks too: its row, with the same numbers, is another request.
    world.ask(&token, "a0", TEN).ok().await;
    world.read_log().await;
    assert_eq!(counted().await, (10, 0));
    world.gateway.switches.log_delay_ms.store(1500, std::sync::atomic::Ordering::SeqCst);
    world.ask(&token, "a0", TEN).ok().await;
    if !matches!(kind, Kind::LiteLlm) {
        assert_eq!(counted().await, (10, 10));
    }
    world.read_log().await;
    assert_eq!(counted().await, (20, 0));
    let answer = world.ask_stream(&token, "a0", TEN).await;
    assert!(answer.contains("[DONE]"), "{answer}");
    world.read_log().await;
    assert_eq!(counted().await, (30, 0));
    let refusal = world.ask(&token, "a0", TEN).refused("4291").await;
    assert!(refusal.contains("limit 30 tokens, used 30,") && !refusal.contains("reserved"), "{refusal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_a_one_api_counts_once() {
    an_answer_counts_once(Kind::OneApi, here!("quota")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_an_old_one_api_counts_once() {
    an_answer_counts_once(Kind::OneApiOld, here!("quota")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_a_new_api_counts_once() {
    an_answer_counts_once(Kind::NewApi, here!("quota")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_a_litellm_counts_once() {
    an_answer_counts_once(Kind::LiteLlm, here!("quota::an_answer_of_a_litellm_counts_once")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_is_switched_off_is_noticed_and_keys_go_off_meanwhile() {
    for keys_off in [false, true] {
        let world = World::start(Kind::OneApi, here!("quota"), keys_off).await.unwrap();
        let site = &world.site;
        site.instances("a", 2).await;
        world.employee("a0", 5_000).await;
        world.employee("a1", 0).await;
        for id in ["a0", "a1"] {
            site.admin.post("/keys", serde_json::json!({"instance_id": id})).token(&site.root).ok().await;
        }
        // Only what the gateway offers, for the chat that looks whether the log moves again.
        site.admin.post("/models/sync", serde_json::json!({})).token(&site.root).ok().await;
        world.assistant_asks("a0", TEN).await;
        world.read_log().await;
        world.round().await;
        assert_eq!(
            (world.guardian().await.as_str(), world.ready().await["log"]["status"].as_str()),
            ("nothing found", Some("ok"))
        );
        // Nobody asks: that is no silence.
        site.wait(Duration::from_secs(600));
        world.round().await;
        assert!(world.alerts("gateway_log_silent").await.is_empty());

        world.gateway.switches.set(|s| &s.log_nothing, true);
        assert_eq!(world.assistant_asks("a0", TEN).await, 200);
        for _ in 0..3 {
            site.wait(Duration::from_secs(90));
            world.round().await;
        }
        let alerts = world.alerts("gateway_log_silent").await;
        assert_eq!(alerts.len(), 1, "{alerts:?}");
        assert!(alerts[0].contains("does not move"), "{alerts:?}");
        assert!(world.guardian().await.contains("does not move"));
        let ready = world.ready().await;
        assert!(ready["status"] == "ok" && ready["log"]["status"] == "silent", "{ready}");
        world.work().await;
        let status = (world.token_status("a0").await, world.token_status("a1").await);
        assert_eq!(status, if keys_off { (2, 1) } else { (1, 1) }, "only a key that a quota binds");
        assert_eq!(world.shown("a0").await["log_silent"], keys_off);

        // It is switched on again. With the keys off nobody asks any more, so we do.
        world.gateway.switches.set(|s| &s.log_nothing, false);
        if !keys_off {
            world.assistant_asks("a0", TEN).await;
        }
        for _ in 0..4 {
            site.wait(Duration::from_secs(120));
            world.round().await;
            world.read_log().await;
        }
        world.round().await;
        assert!(world.alerts("gateway_log_silent").await.is_empty());
        world.work().await;
        assert_eq!(world.token_status("a0").await, 1, "on again");
        assert_eq!(world.ready().await["log"]["status"], "ok");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_may_not_be_read_any_more_is_noticed() {
    let Some(database) = Database::postgres(here!("quota::a_log_that_may_not_be_read_any_more_is_noticed")).await
    else {
        return;
    };
    let gateway = one_api::start(one_api::Options::new(database.url.clone())).await.unwrap();
    let reader = format!("reader_{}", base::id::fresh().replace('-', ""));
    for sql in [format!("CREATE ROLE {reader} LOGIN"), format!("GRANT SELECT ON logs TO {reader}")] {
        gateway.tables.run(&sql, vec![]).await.unwrap();
    }
    let log_url = Secret::new(database.url.expose().replace("//postgres@", &format!("//{reader}@")));
    let folder = tempfile::tempdir().unwrap();
    let world = World::at(gateway, Kind::OneApi, log_url, false, Some(database), folder).await;
    let site = &world.site;
    site.instances("a", 1).await;
    let (_, token) = world.employee("a0", 20).await;
    world.ask(&token, "a0", TEN).ok().await;
    world.read_log().await;
    world.round().await;
    assert!(world.alerts("gateway_log_silent").await.is_empty());
    world.gateway.tables.run(&format!("REVOKE SELECT ON logs FROM {reader}"), vec![]).await.unwrap();
    world.ask(&token, "a0", TEN).ok().await;
    world.ask(&token, "a0", TEN).refused("4291").await;
    site.wait(Duration::from_secs(90));
    world.read_log().await;
    world.round().await;
    let alerts = world.alerts("gateway_log_silent").await;
    assert!(alerts.len() == 1 && alerts[0].contains("cannot be read"), "{alerts:?}");
    assert!(world.guardian().await.contains("cannot be read"));
    assert_eq!(world.ready().await["log"]["status"], "down");
    world.gateway.tables.run(&format!("GRANT SELECT ON logs TO {reader}"), vec![]).await.unwrap();
    world.read_log().await;
    world.round().await;
    assert!(world.alerts("gateway_log_silent").await.is_empty());
    assert_eq!(world.guardian().await, "nothing found");
    world.gateway.tables.run(&format!("DROP OWNED BY {reader}"), with![]).await.unwrap();
}
