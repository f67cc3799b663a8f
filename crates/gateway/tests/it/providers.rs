//! Providers as records: how the gateway finds them, which of their keys is asked, which is spared, and how they are reached.

use base::id::{ProviderId, ProviderKeyId};
use base::{Kind, Secret};
use jiff::SignedDuration;
use llm::provider::{self, Failure, NewProvider, Patch, Protocol, Trial};
use queue::audit::By;
use serde_json::{Value, json};
use store::model::{self, Model, ProviderKind};
use testkit::trace::used_secret;

use crate::kit::{Act, Client, Database, Options, Provider, Proxy, Reply, Site, answer, ask, stream_of};

const FIRST: &str = "sk-the-first-key-of-a-provider-0001";
const SECOND: &str = "sk-the-second-key-of-a-provider-0002";

fn said(reply: &Reply) -> Value {
    reply.json()["choices"][0]["message"]["content"].clone()
}

fn new(name: &str, url: &str, keys: &[&str]) -> NewProvider {
    NewProvider {
        name: name.into(),
        kind: ProviderKind::Compatible,
        preset: String::new(),
        base_url: Some(url.into()),
        protocols: None,
        enabled: true,
        connect_seconds: Some(5),
        answer_seconds: Some(30),
        proxy: None,
        keys: keys.iter().map(|key| Secret::new(*key)).collect(),
    }
}

fn options() -> Options {
    let mut options = Options::default();
    options.timing.models = std::time::Duration::from_millis(20);
    options.timing.providers = std::time::Duration::from_millis(20);
    options
}

/// A site with a record, and a model that names it.
struct Scene {
    site: Site,
    client: Client,
    id: ProviderId,
}

impl Scene {
    async fn start(provider: &Provider, keys: &[&str]) -> Scene {
        Scene::of(Site::start(Database::sqlite(), options()).await, new("own", &provider.url(), keys)).await
    }

    async fn of(site: Site, new: NewProvider) -> Scene {
        used_secret(FIRST);
        used_secret(SECOND);
        let name = new.name.clone();
        let id = provider::create(&site.app, &By::system(), new).await.unwrap();
        add_model(&site, "own-model", &name, None).await;
        let client = site.free().await;
        let scene = Scene { site, client, id };
        scene.is_listed(true).await;
        scene
    }

    /// Waits until the gateway lists the model, or does not.
    async fn is_listed(&self, expected: bool) {
        testkit::until_ok("the gateway knows the provider", async || {
            let reply = self.client.get("/v1/models/own-model").await;
            if (reply.status == 200) == expected { Ok(()) } else { Err(reply.status) }
        })
        .await;
    }

    async fn ask(&self) -> Reply {
        self.client.chat(&ask("own-model", "hello")).await
    }

    /// Waits until something is in the database.
    async fn until(&self, what: &str, is_true: impl Fn(&provider::Listed, &provider::Provider) -> bool) {
        testkit::until_ok(what, async || {
            let listed = provider::list(&self.site.app).await.unwrap();
            let of = listed.providers.iter().find(|of| of.id == self.id).unwrap();
            if is_true(&listed, of) { Ok(()) } else { Err(format!("{:?} {:?}", listed.coolings, listed.health)) }
        })
        .await;
    }

    async fn update(&self, patch: Patch) {
        provider::update(&self.site.app, &By::system(), &self.id, patch).await.unwrap();
    }
}

async fn add_model(site: &Site, id: &str, provider: &str, chain: Option<i64>) {
    let named = Model::named(id, ProviderKind::Compatible, site.app.clock.now());
    let model =
        Model { provider: provider.into(), price: base::money::Price::of("gpt-4o"), chain, sort_order: 50, ..named };
    let mut tx = site.app.db.begin().await.unwrap();
    assert!(model::insert(&mut tx, &model).await.unwrap());
    tx.commit().await.unwrap();
}

fn keys_of(provider: &Provider) -> Vec<&'static str> {
    let of = |head: &str| {
        if head.contains(FIRST) {
            "first"
        } else if head.contains(SECOND) {
            "second"
        } else {
            "none"
        }
    };
    provider.seen().iter().map(|seen| of(&seen.head)).collect()
}

fn refused(status: u16) -> Act {
    Act::Json(status, vec![], r#"{"error":{"message":"no"}}"#.into())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_answers_and_its_changes_hold_at_once() {
    let (one, other) = (Provider::start(answer("one", 1, 1)).await, Provider::start(answer("other", 1, 1)).await);
    let scene = Scene::start(&one, &[FIRST]).await;
    assert_eq!(said(&scene.ask().await), "one");
    assert!(one.seen()[0].head.starts_with("POST /v1/chat/completions "), "{}", one.seen()[0].head);
    let rows = scene.site.rows().await;
    assert_eq!(rows[0].provider, "own");
    // Another address: keys that were given for the first one do not go there.
    scene.update(Patch { base_url: Some(other.url()), ..Patch::default() }).await;
    assert!(provider::find(&scene.site.app, &scene.id).await.unwrap().keys.is_empty());
    provider::add_key(&scene.site.app, &By::system(), &scene.id, &Secret::new(SECOND)).await.unwrap();
    testkit::until_ok("the change holds", async || {
        let reply = scene.ask().await;
        if reply.status == 200 && said(&reply) == "other" { Ok(()) } else { Err(reply.status) }
    })
    .await;
    assert!(!keys_of(&other).contains(&"first"));
    // Off: nobody is asked, and the answer says why.
    scene.update(Patch { enabled: Some(false), ..Patch::default() }).await;
    scene.is_listed(false).await;
    let asked = other.count();
    let refusal = scene.ask().await.refused(404, "model_not_found");
    assert!(refusal.contains("its provider `own` is switched off"), "{refusal}");
    assert_eq!(other.count(), asked);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_protocol_that_a_record_does_not_name_is_not_asked_for() {
    let provider = Provider::start(answer("ok", 1, 1)).await;
    let scene = Scene::start(&provider, &[FIRST]).await;
    let body = r#"{"model":"own-model","max_tokens":9,"messages":[{"role":"user","content":"x"}]}"#;
    let reply = scene.client.send("POST", "/v1/messages", body.as_bytes()).await;
    assert_eq!(reply.status, 400);
    assert!(String::from_utf8_lossy(&reply.body).contains("/v1/chat/completions"));
    scene.update(Patch { protocols: Some(vec![Protocol::Chat, Protocol::Messages]), ..Patch::default() }).await;
    testkit::until_ok("the protocol is asked for", async || {
        match scene.client.send("POST", "/v1/messages", body.as_bytes()).await.status {
            200 => Ok(()),
            status => Err(status),
        }
    })
    .await;
    let head = provider.seen().last().unwrap().head.clone();
    assert!(head.starts_with("POST /v1/messages "), "{head}");
    // Those who are not Anthropic take the key in one header or the other.
    assert!(head.contains(&format!("x-api-key: {FIRST}")) && head.contains(&format!("Bearer {FIRST}")), "{head}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_key_is_asked_when_one_is_to_wait_and_the_sub_key_stays_with_it() {
    let provider = Provider::start(answer("ok", 1, 1)).await;
    let scene = Scene::start(&provider, &[FIRST, SECOND]).await;
    provider.then([Act::Json(429, vec![("retry-after", "30".into())], "{}".into())]);
    assert_eq!(scene.ask().await.status, 200);
    assert_eq!(keys_of(&provider), ["first", "second"]);
    scene
        .until("the key cools down", |listed, of| {
            let cooling: Vec<_> = listed.coolings_of(&of.keys[0].id).collect();
            cooling.len() == 1 && cooling[0].model == "own-model" && cooling[0].reason == Failure::RateLimited
        })
        .await;
    assert_eq!(scene.ask().await.status, 200);
    assert_eq!(keys_of(&provider)[2..], ["second"], "the first is not asked while it cools down");
    // Its time is over. This sub key stays where its cache is; another begins with the first.
    scene.site.app.clock.advance(SignedDuration::from_secs(31));
    assert_eq!(scene.ask().await.status, 200);
    let other = scene.site.client(&scene.site.key("other", None, None).await);
    assert_eq!(other.chat(&ask("own-model", "x")).await.status, 200);
    assert_eq!(keys_of(&provider)[3..], ["second", "first"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_key_cools_down_for_longer_than_an_hour() {
    let provider = Provider::start(answer("ok", 1, 1)).await;
    let scene = Scene::start(&provider, &[FIRST]).await;
    provider.then([Act::Json(429, vec![("retry-after", "86400".into())], "{}".into())]);
    scene.ask().await.refused(429, "rate_limit_exceeded");
    scene.ask().await.refused(429, "rate_limit_exceeded");
    assert_eq!(provider.count(), 1);
    scene.site.app.clock.advance(SignedDuration::from_secs(3601));
    assert_eq!(scene.ask().await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_key_comes_last_until_it_works_again() {
    let provider = Provider::start(answer("ok", 1, 1)).await;
    let scene = Scene::start(&provider, &[FIRST, SECOND]).await;
    provider.then([refused(401)]);
    assert_eq!(scene.ask().await.status, 200);
    assert_eq!(scene.ask().await.status, 200);
    assert_eq!(keys_of(&provider), ["first", "second", "second"]);
    scene
        .until("the key is spared for all models", |listed, of| {
            listed
                .coolings_of(&of.keys[0].id)
                .any(|cooling| cooling.model.is_empty() && cooling.reason == Failure::KeyRefused)
        })
        .await;
    // Where the other is refused too, the first is tried all the same.
    provider.then([refused(403)]);
    assert_eq!(scene.ask().await.status, 200);
    assert_eq!(keys_of(&provider)[3..], ["second", "first"]);
    scene.until("it works again", |listed, of| listed.coolings_of(&of.keys[0].id).next().is_none()).await;
    // A test that succeeds ends it, too.
    provider.then([refused(401), refused(401)]);
    let other = scene.site.client(&scene.site.key("other", None, None).await);
    other.chat(&ask("own-model", "x")).await;
    scene
        .until("both are spared", |listed, of| of.keys.iter().all(|key| listed.coolings_of(&key.id).next().is_some()))
        .await;
    let key = provider::find(&scene.site.app, &scene.id).await.unwrap().keys[1].id.clone();
    let trial = Trial { key: Some(key), ..Trial::default() };
    let tried = provider::test(&scene.site.app, &By::system(), &scene.id, trial).await.unwrap();
    assert!(tried.ok && tried.hint == "…0002" && tried.model == "own-model", "{} {}", tried.hint, tried.body);
    scene.until("the second is asked again", |listed, of| listed.coolings_of(&of.keys[1].id).next().is_none()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_that_is_no_keys_goes_to_the_next_model() {
    let (own, openai) = (Provider::start(refused(500)).await, Provider::start(answer("of openai", 1, 1)).await);
    let site = Site::start(Database::sqlite(), Options { openai: Some(openai.url()), ..options() }).await;
    let name = provider::create(&site.app, &By::system(), new("own", &own.url(), &[FIRST, SECOND])).await.unwrap();
    add_model(&site, "own-model", "own", Some(0)).await;
    let scene = Scene { client: site.free().await, site, id: name };
    scene.is_listed(true).await;
    let reply = scene.ask().await;
    assert_eq!(said(&reply), "of openai");
    assert_eq!(own.count(), 1, "the second key of a provider that fails is not tried");
    // Both keys are spent: then the next model answers, too.
    own.then([refused(402), refused(402)]);
    scene.site.app.clock.advance(SignedDuration::from_secs(120));
    assert_eq!(said(&scene.ask().await), "of openai");
    assert_eq!(own.count(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_process_meets_the_others_know() {
    let provider = Provider::start(answer("ok", 1, 1)).await;
    let scene = Scene::start(&provider, &[FIRST, SECOND]).await;
    let twin = scene.site.another(Options { clock: scene.site.app.clock.clone(), ..options() }).await;
    provider.then([refused(401)]);
    assert_eq!(scene.ask().await.status, 200);
    scene.until("it is written", |listed, _| !listed.coolings.is_empty()).await;
    let of_twin = twin.client(&scene.client.key);
    testkit::until_ok("the other process spares the key", async || {
        let before = provider.count();
        of_twin.chat(&ask("own-model", "x")).await;
        match keys_of(&provider)[before..] {
            ["second"] => Ok(()),
            _ => Err(keys_of(&provider)),
        }
    })
    .await;
    scene
        .until("both are counted", |listed, of| {
            let counts: Vec<_> = of.keys.iter().map(|key| listed.health.iter().find(|h| h.key_id == key.id)).collect();
            let failed =
                counts[0].is_some_and(|h| h.failure == Some(Failure::KeyRefused) && h.recent(listed.at).1 == 1);
            failed && counts[1].is_some_and(|h| h.recent(listed.at).0 >= 2 && h.last_success_at.is_some())
        })
        .await;
    twin.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_address_is_refused_when_it_is_connected_to() {
    let provider = Provider::start(answer("ok", 1, 1)).await;
    let scene = Scene::start(&provider, &[FIRST]).await;
    // Written down where it was allowed. This process does not allow it: neither as an address nor as a name that leads to one.
    let strict = Options { allow_local: false, clock: scene.site.app.clock.clone(), ..options() };
    let strict = scene.site.another(strict).await;
    let client = strict.client(&scene.client.key);
    client.chat(&ask("own-model", "x")).await.refused(503, "provider_unreachable");
    let by_name = format!("http://localhost:{}", provider.address.port());
    scene.update(Patch { base_url: Some(by_name), ..Patch::default() }).await;
    provider::add_key(&scene.site.app, &By::system(), &scene.id, &Secret::new(FIRST)).await.unwrap();
    testkit::until_ok("the name is refused", async || {
        let reply = client.chat(&ask("own-model", "x")).await;
        if reply.status == 503 { Ok(()) } else { Err(reply.status) }
    })
    .await;
    let tried = provider::test(&strict.app, &By::system(), &scene.id, Trial::default()).await.unwrap();
    assert!(!tried.ok && tried.failure == Some(Failure::Unreachable), "{:?}", tried.error);
    assert_eq!(provider.count(), 0);
    // And nobody writes one down there.
    for url in
        ["https://127.0.0.1", "https://localhost:1", "https://[::1]", "https://169.254.169.254", "http://a.example"]
    {
        let refused = provider::create(&strict.app, &By::system(), new("bad", url, &[])).await.unwrap_err();
        assert!(refused.client.starts_with("base_url"), "{url}: {}", refused.client);
    }
    strict.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_not_followed() {
    let elsewhere = Provider::start(answer("elsewhere", 1, 1)).await;
    let location = vec![("location", format!("{}/v1/chat/completions", elsewhere.url()))];
    let provider = Provider::start(Act::Json(307, location, "{}".into())).await;
    let scene = Scene::start(&provider, &[FIRST]).await;
    scene.ask().await.refused(502, "provider_error");
    let tried = provider::test(&scene.site.app, &By::system(), &scene.id, Trial::default()).await.unwrap();
    assert_eq!((tried.ok, tried.status), (false, Some(307)));
    assert_eq!(elsewhere.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_is_asked_for_a_way() {
    used_secret("a-proxys-password");
    let provider = Provider::start(answer("ok", 1, 1)).await;
    // ada:a-proxys-password
    let proxy = Proxy::start("Proxy-Authorization: Basic YWRhOmEtcHJveHlzLXBhc3N3b3Jk").await;
    let url = format!("http://ada:a-proxys-password@{}", proxy.address);
    let with = NewProvider { proxy: Some(Secret::new(url)), ..new("own", &provider.url(), &[FIRST]) };
    let scene = Scene::of(Site::start(Database::sqlite(), options()).await, with).await;
    assert_eq!(said(&scene.ask().await), "ok");
    let heads = proxy.seen();
    assert!(heads[0].starts_with(&format!("CONNECT {} HTTP/1.1\r\n", provider.address)), "{heads:?}");
    let shown = provider::find(&scene.site.app, &scene.id).await.unwrap().shown_proxy();
    assert_eq!(shown, Some(format!("http://***@{}", proxy.address)));
    // One that does not let us in is an unreachable provider, whose key is spared nothing.
    let wrong = Some(Some(Secret::new(format!("http://eve@{}", proxy.address))));
    scene.update(Patch { proxy: wrong, ..Patch::default() }).await;
    provider::add_key(&scene.site.app, &By::system(), &scene.id, &Secret::new(FIRST)).await.unwrap();
    testkit::until_ok("the other way is taken", async || match scene.ask().await.status {
        503 => Ok(()),
        status => Err(status),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_has_a_time_of_its_own_to_begin() {
    let provider = Provider::start(Act::Silence).await;
    let slow = NewProvider { answer_seconds: Some(1), ..new("own", &provider.url(), &[FIRST]) };
    let scene = Scene::of(Site::start(Database::sqlite(), options()).await, slow).await;
    scene.ask().await.refused(504, "provider_timeout");
    scene
        .until("it is noted", |listed, of| listed.health_of(&of.id).any(|health| health.failure == Some(Failure::Late)))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_without_a_key_is_asked_without_one() {
    let provider = Provider::start(answer("ok", 1, 1)).await;
    let scene = Scene::start(&provider, &[]).await;
    assert_eq!(said(&scene.ask().await), "ok");
    assert!(!provider.seen()[0].head.to_lowercase().contains("authorization"));
    scene
        .until("it is counted", |listed, of| listed.health_of(&of.id).any(|health| health.recent(listed.at).0 == 1))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_configuration_names_cannot_be_edited() {
    let openai = Provider::start(answer("ok", 1, 1)).await;
    let site = Site::start(Database::sqlite(), Options { openai: Some(openai.url()), ..options() }).await;
    let listed = provider::list(&site.app).await.unwrap();
    let fixed = &listed.providers[0];
    assert_eq!((fixed.name.as_str(), fixed.keys.len()), ("openai", 1));
    let by = By::system();
    let key = ProviderKeyId::named("x");
    let refusals = [
        provider::update(&site.app, &by, &fixed.id, Patch::default()).await.unwrap_err(),
        provider::delete(&site.app, &by, &fixed.id).await.unwrap_err(),
        provider::add_key(&site.app, &by, &fixed.id, &Secret::new(FIRST)).await.unwrap_err(),
        provider::put_first(&site.app, &by, &fixed.id, &key).await.unwrap_err(),
        provider::delete_key(&site.app, &by, &fixed.id, &key).await.unwrap_err(),
        provider::create(&site.app, &by, new("openai", &openai.url(), &[])).await.unwrap_err(),
    ];
    for refusal in refusals {
        assert_eq!(refusal.kind, Kind::Conflict);
        assert!(refusal.client.contains("TIDEPOOL_PROVIDER_"), "{}", refusal.client);
    }
    // It can be tested.
    let tried = provider::test(&site.app, &by, &fixed.id, Trial::default()).await.unwrap();
    assert!(tried.ok, "{}", tried.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_shows_what_came_back_and_no_key() {
    let quoting = format!(r#"{{"error":{{"message":"Incorrect API key: {FIRST}"}}}}"#);
    let provider = Provider::start(Act::Json(401, vec![], quoting)).await;
    let scene = Scene::start(&provider, &[FIRST]).await;
    let tried = provider::test(&scene.site.app, &By::system(), &scene.id, Trial::default()).await.unwrap();
    assert_eq!((tried.ok, tried.status, tried.failure), (false, Some(401), Some(Failure::KeyRefused)));
    assert!(tried.body.contains("Incorrect API key: ***") && !tried.body.contains("sk-the"), "{}", tried.body);
    let sent: Value = serde_json::from_slice(&provider.seen()[0].body).unwrap();
    assert_eq!((sent["model"].as_str(), sent["max_tokens"].as_i64()), (Some("own-model"), Some(64)));
    assert!(scene.site.rows().await.is_empty(), "it is no request of anybody's");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_refuses_unknown_fields_is_not_asked_for_the_usage_of_a_stream() {
    for (preset, expected) in [("mistral", false), ("deepseek", true)] {
        let provider = Provider::start(Act::Stream(stream_of(&["yes"], Some((3, 2))), std::time::Duration::ZERO)).await;
        let of = NewProvider { preset: preset.into(), ..new("own", &provider.url(), &[FIRST]) };
        let scene = Scene::of(Site::start(Database::sqlite(), options()).await, of).await;
        let mut streamed = ask("own-model", "hello");
        streamed["stream"] = json!(true);
        assert_eq!(scene.client.chat(&streamed).await.status, 200);
        let sent: Value = serde_json::from_slice(&provider.seen()[0].body).unwrap();
        assert_eq!(sent.get("stream_options").is_some(), expected, "{preset}: {sent}");
        let row = scene.site.rows_until(1).await.remove(0);
        assert_eq!((row.prompt_tokens, row.completion_tokens, row.estimated), (3, 2, false), "{preset}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_that_succeeds_ends_the_time_to_wait() {
    let provider = Provider::start(answer("ok", 1, 1)).await;
    let scene = Scene::start(&provider, &[FIRST]).await;
    provider.then([Act::Json(429, vec![("retry-after", "3600".into())], "{}".into())]);
    scene.ask().await.refused(429, "rate_limit_exceeded");
    scene.until("it is written", |listed, _| !listed.coolings.is_empty()).await;
    scene.ask().await.refused(429, "rate_limit_exceeded");
    assert_eq!(provider.count(), 1);
    let tried = provider::test(&scene.site.app, &By::system(), &scene.id, Trial::default()).await.unwrap();
    assert!(tried.ok, "{}", tried.body);
    testkit::until_ok("it is asked again", async || match scene.ask().await.status {
        200 => Ok(()),
        status => Err(status),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_for_one_model_leaves_the_waits_of_others() {
    let provider = Provider::start(answer("ok", 1, 1)).await;
    let scene = Scene::start(&provider, &[FIRST]).await;
    add_model(&scene.site, "other-model", "own", None).await;
    testkit::until("the other model is known", async || scene.client.get("/v1/models/other-model").await.status == 200)
        .await;
    provider.then([Act::Json(429, vec![("retry-after", "600".into())], "{}".into()), refused(401)]);
    scene.client.chat(&ask("other-model", "x")).await.refused(429, "rate_limit_exceeded");
    scene.ask().await.refused(502, "provider_key_refused");
    scene.until("both are written", |listed, of| listed.coolings_of(&of.keys[0].id).count() == 2).await;
    assert_eq!(scene.ask().await.status, 200);
    scene
        .until("the key is asked again, and the other model waits", |listed, of| {
            let waiting: Vec<_> = listed.coolings_of(&of.keys[0].id).map(|cooling| cooling.model.as_str()).collect();
            waiting == ["other-model"]
        })
        .await;
    // Providers are read several times in the meantime.
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    let asked = provider.count();
    scene.client.chat(&ask("other-model", "x")).await.refused(429, "rate_limit_exceeded");
    assert_eq!(provider.count(), asked, "it is not asked before its time");
    // A test that succeeds ends all of them.
    let tried = provider::test(&scene.site.app, &By::system(), &scene.id, Trial::default()).await.unwrap();
    assert!(tried.ok, "{}", tried.body);
    testkit::until("the other model is asked again", async || {
        scene.client.chat(&ask("other-model", "x")).await.status == 200
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_of_a_moment_is_kept_and_not_written() {
    let provider = Provider::start(answer("ok", 1, 1)).await;
    let scene = Scene::start(&provider, &[FIRST]).await;
    provider.then([Act::Json(429, vec![("retry-after", "1".into())], "{}".into())]);
    scene.ask().await.refused(429, "rate_limit_exceeded");
    scene
        .until("only the failure is written", |listed, of| {
            let failed = listed.health_of(&of.id).any(|health| health.recent(listed.at).1 == 1);
            failed && listed.coolings.is_empty()
        })
        .await;
    // Providers are read several times in the meantime.
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    scene.ask().await.refused(429, "rate_limit_exceeded");
    assert_eq!(provider.count(), 1, "it is not asked before its time");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_request_is_no_success_of_the_key() {
    let provider = Provider::start(refused(404)).await;
    let scene = Scene::start(&provider, &[FIRST]).await;
    provider.then([refused(401)]);
    scene.ask().await.refused(502, "provider_key_refused");
    scene.until("the key is spared", |listed, _| !listed.coolings.is_empty()).await;
    // As where the path of the address is wrong.
    assert_eq!(scene.ask().await.status, 404);
    provider.then([refused(500)]);
    scene.ask().await.refused(502, "provider_error");
    scene
        .until("two failures are counted, no success, and the key is spared", |listed, of| {
            let counted = listed.health_of(&of.id).any(|health| health.recent(listed.at) == (0, 2));
            counted && !listed.coolings.is_empty()
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_says_why_its_provider_cannot_be_asked() {
    let site = Site::start(Database::sqlite(), options()).await;
    let client = site.free().await;
    let says = async |why: &'static str| {
        testkit::until_ok(why, async || match client.chat(&ask("own-model", "x")).await.text() {
            text if text.contains(why) => Ok(()),
            text => Err(text),
        })
        .await;
    };
    add_model(&site, "own-model", "own", None).await;
    says("its provider `own` does not exist or cannot be used").await;
    let keyless = NewProvider { kind: ProviderKind::Openai, ..new("own", "http://127.0.0.1:1", &[]) };
    provider::create(&site.app, &By::system(), keyless).await.unwrap();
    says("its provider `own` has no key").await;
}
