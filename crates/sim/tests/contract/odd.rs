//! Health, models, and what happens when the gateway is slow to please: throttled, mistaken for another, misconfigured,
//! or not there.

use base::{Kind as Fault, Secret};
use remote::llm::KeyState;
use sim::with;

use crate::bench::{Bench, Server, Setup, fault, new_key, open, setup};
use crate::on_every_gateway;

on_every_gateway! {
    async fn it_is_well_and_names_its_models(bench: Bench) {
        let health = bench.gateway.health().await;
        assert!(health.ok && health.detail.is_empty(), "{health:?}");
        assert!(health.version.is_some());
        assert_eq!(health.per_usd.map(base::PerUsd::get), bench.family().then_some(500_000.0));
        assert_eq!(bench.gateway.models().await.unwrap(), ["gpt-4o-mini", "gpt-4o", "echo"]);
        assert_eq!(bench.gateway.chat_url(), format!("{}/v1/chat/completions", bench.url()));
        assert_eq!(bench.gateway.kind().name, bench.setup.kind);
        let unknown = Secret::new("sk-test-nobody-has-this-one");
        assert_eq!(bench.gateway.check_key(&unknown).await, KeyState::Invalid);
        assert_eq!(bench.gateway.check_key(&Secret::new("two\nlines")).await, KeyState::Invalid);
    }

    async fn throttled_is_not_missing(bench: Bench) {
        let key = bench.create("inst-busy", None).await;
        bench.sim().switches.set(|s| &s.throttled, true);
        for (kind, text) in [
            fault(bench.gateway.find_key("inst-busy").await),
            fault(bench.gateway.read_key(&key.gateway_id).await),
            fault(bench.gateway.create_key(&new_key("inst-other", None)).await),
            fault(bench.gateway.delete_key(&key.gateway_id).await),
            fault(bench.gateway.set_enabled(&key.gateway_id, false).await),
            fault(bench.gateway.keys().await),
            fault(bench.gateway.balance().await),
        ] {
            assert_eq!(kind, Fault::Unavailable, "{text}");
            assert!(text.contains("throttled"), "{text}");
        }
        let error = bench.gateway.keys().await.unwrap_err();
        assert!(error.retry_after.is_some());
        let health = bench.gateway.health().await;
        assert!(health.ok, "who says too many is there: {health:?}");
        bench.sim().switches.set(|s| &s.throttled, false);
        // After so many refusals nobody calls before the pause is over, for which the error asked.
        tokio::time::sleep(error.retry_after.unwrap()).await;
        assert_eq!(bench.gateway.keys().await.unwrap().len(), 1);
        assert!(bench.gateway.read_key(&key.gateway_id).await.unwrap().unwrap().enabled());
    }

    async fn a_wrong_management_token_is_an_error_not_an_empty_list(bench: Bench) {
        let key = bench.create("inst-kept", None).await;
        let wrong = Secret::new("sk-test-wrong-management-token-000000");
        testkit::trace::used_secret(wrong.expose());
        let stranger = open(bench.setup.kind, &bench.sim().url, &wrong);
        for (kind, text) in [
            fault(stranger.find_key("inst-kept").await),
            fault(stranger.read_key(&key.gateway_id).await),
            fault(stranger.keys().await),
            fault(stranger.create_key(&new_key("inst-kept", None)).await),
            fault(stranger.set_enabled(&key.gateway_id, false).await),
            fault(stranger.delete_key(&key.gateway_id).await),
            fault(stranger.balance().await),
            fault(stranger.models().await),
        ] {
            assert_eq!(kind, Fault::Gateway, "{text}");
            assert!(!text.contains("wrong-management"), "{text}");
        }
        assert_eq!(bench.gateway.keys().await.unwrap().len(), 1);
    }

    async fn a_gateway_that_is_not_there_says_nothing_of_keys(bench: Bench) {
        let key = bench.create("inst-alone", None).await;
        // A port that nobody listens on.
        let dead = open(bench.setup.kind, "http://127.0.0.1:1", &bench.sim().admin_token);
        let health = dead.health().await;
        assert!(!health.ok && !health.detail.is_empty(), "{health:?}");
        assert!(matches!(dead.check_key(key.key.as_ref().unwrap()).await, KeyState::Unreachable(_)));
        assert_eq!(fault(dead.read_key(&key.gateway_id).await).0, Fault::Unavailable);
        assert_eq!(fault(dead.find_key("inst-alone").await).0, Fault::Unavailable);
        // A page that answers everything with 200 is no gateway either.
        let web = open(bench.setup.kind, &format!("{}/somewhere", bench.sim().url), &bench.sim().admin_token);
        assert!(!web.health().await.ok);
        assert!(matches!(web.check_key(key.key.as_ref().unwrap()).await, KeyState::Unreachable(_)));
        assert_eq!(fault(web.find_key("inst-alone").await).0, Fault::Gateway);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_worth_of_a_unit_is_scaled_both_ways() {
    for kind in ["one-api", "new-api"] {
        let setup = Setup { quota_per_unit: 100_000.0, ..setup(kind, Server::Sqlite) };
        let bench = Bench::start(setup, "odd::another_worth_of_a_unit_is_scaled_both_ways").await.unwrap();
        assert_eq!(bench.gateway.health().await.per_usd.unwrap().get(), 100_000.0);
        // A dollar and a half, in ours; theirs are a fifth of it.
        let key = bench.create("inst-scaled", Some(750_000)).await;
        let id: i64 = key.gateway_id.parse().unwrap();
        let raw = "SELECT remain_quota FROM tokens WHERE id = ?";
        assert_eq!(bench.sim().tables.number(raw, with![id]).await.unwrap(), 150_000);
        assert_eq!(key.quota, Some(750_000));
        bench.say(&key, "one two three four five").await;
        bench.written().await;
        let read = bench.gateway.read_key(&key.gateway_id).await.unwrap().unwrap();
        assert_eq!((read.used_quota, read.remain_quota), (10, Some(749_990)));
        assert_eq!(bench.gateway.balance().await.unwrap().used, 10);
        // The log stays in theirs: who reads it scales it.
        let row = bench.rows().await.pop().unwrap();
        assert_eq!((row.quota, base::PerUsd::new(100_000.0).unwrap().to_ours(row.quota)), (2, 10));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_kind_is_not_taken_for_the_other() {
    for (is, said) in [("one-api", "new-api"), ("new-api", "one-api")] {
        let bench = Bench::start(setup(is, Server::Sqlite), "odd::one_kind_is_not_taken_for_the_other").await.unwrap();
        let mistaken = open(said, &bench.sim().url, &bench.sim().admin_token);
        let health = mistaken.health().await;
        assert!(!health.ok && health.detail.contains("gateway_kind"), "{health:?}");
        let kind = store::foreign::LogKind::find(said).unwrap();
        let refusal = store::foreign::ForeignLog::open(kind, &bench.sim().log_url).await.unwrap_err().to_string();
        assert!(refusal.contains(is), "{refusal}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limited_search_is_followed_by_the_list() {
    // Ten searches a minute: the eleventh is answered 429, and the list is not.
    let bench =
        Bench::start(setup("new-api", Server::Sqlite), "odd::a_limited_search_is_followed_by_the_list").await.unwrap();
    bench.smuggle("inst-there", true).await;
    for _ in 0..15 {
        assert!(bench.gateway.find_key("inst-there").await.unwrap().is_some());
        assert!(bench.gateway.find_key("inst-absent").await.unwrap().is_none());
    }
    let calls = bench.sim().switches.calls();
    let to = |path: &str| calls.iter().filter(|call| call.starts_with(path)).count();
    assert_eq!(to("GET /api/token/search"), 30);
    assert_eq!(to("GET /api/token/?"), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_masked_key_is_revealed_or_asked_for_later() {
    // Twenty keys are told in twenty minutes. The twenty-first exists, but is not handed out without its value.
    let bench = Bench::start(setup("new-api", Server::Sqlite), "odd::a_masked_key_is_revealed_or_asked_for_later")
        .await
        .unwrap();
    for i in 0..20 {
        let key = bench.create(&format!("inst-{i}"), None).await;
        assert!(!key.key.unwrap().expose().contains('*'));
    }
    let (kind, _) = fault(bench.gateway.create_key(&new_key("inst-late", None)).await);
    assert_eq!(kind, Fault::Unavailable);
    let error = bench.gateway.create_key(&new_key("inst-late", None)).await.unwrap_err();
    assert_eq!(error.retry_after.unwrap().as_secs(), 1200);
    let listed = bench.gateway.keys().await.unwrap();
    assert_eq!(listed.iter().filter(|key| key.name == "inst-late").count(), 1, "the repeat makes no second one");
    assert!(listed.iter().all(|key| key.key.is_none()), "a list hides every value");
}

#[tokio::test(flavor = "multi_thread")]
async fn new_api_is_told_whose_token_it_is() {
    let bench = Bench::start(setup("new-api", Server::Sqlite), "odd::new_api_is_told_whose_token_it_is").await.unwrap();
    let named = Secret::new(format!("1:{}", bench.sim().admin_token.expose()));
    open("new-api", &bench.sim().url, &named).keys().await.unwrap();
    let another = Secret::new(format!("2:{}", bench.sim().admin_token.expose()));
    assert_eq!(fault(open("new-api", &bench.sim().url, &another).keys().await).0, Fault::Gateway);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_that_race_for_an_alias_end_with_one() {
    // The proxy looks for the alias, thinks, and takes it: both are told that it is free.
    let setup = Setup { hesitation: 200, ..setup("litellm", Server::Postgres) };
    let Some(bench) = Bench::start(setup, "odd::two_processes_that_race_for_an_alias_end_with_one").await else {
        return;
    };
    let (one, two) = (new_key("inst-alias", None), {
        let mut other = new_key("inst-alias", None);
        other.value = Some(Secret::new("sk-test-a-value-of-the-other-process"));
        other
    });
    let (first, second) = tokio::join!(bench.gateway.create_key(&one), bench.twin.create_key(&two));
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!(first.gateway_id, second.gateway_id);
    assert_eq!(bench.gateway.keys().await.unwrap().len(), 1);
    // Exactly the one whose value was kept knows it.
    assert_eq!(first.key.is_some() as u8 + second.key.is_some() as u8, 1);
    assert_eq!(bench.gateway.check_key(first.key.or(second.key).as_ref().unwrap()).await, KeyState::Valid);
}
