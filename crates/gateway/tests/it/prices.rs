//! Names and prices of models: a request by another name, what a provider calls a model, and costs by kind of token.

use std::sync::Arc;
use std::time::Duration;

use base::money::Price;
use base::price::{PerMillion, Prices, Rate, Tier, TierRate};
use jiff::SignedDuration;
use serde_json::{Value, json};
use store::model::price::{self, PriceSource, Version};
use store::model::{self, Model, Protocol, ProviderKind, Purpose, Words};
use tokio::sync::Semaphore;

use crate::kit::{Act, Client, Database, Options, Provider, Site, Wire, ask};
use crate::on_both;

/// How often the gateway reads the models in these tests.
const PAUSE: Duration = Duration::from_millis(20);

async fn start(database: Database) -> (Provider, Site, Client) {
    let provider =
        Provider::start(Act::Json(200, vec![], answered(&json!({"prompt_tokens": 10, "completion_tokens": 5})))).await;
    let mut options = Options::with(Some(&provider), Some(&provider), None);
    options.timing.models = PAUSE;
    let site = Site::start(database, options).await;
    let client = site.free().await;
    (provider, site, client)
}

/// A provider's answer with this usage.
fn answered(usage: &Value) -> String {
    json!({"id": "x", "model": "what-the-provider-says", "service_tier": "default", "choices": [{"index": 0,
        "message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}], "usage": usage})
    .to_string()
}

fn usd(price: f64) -> Option<PerMillion> {
    Some(PerMillion::from_usd(price).unwrap())
}

fn row(tier: Tier, above: i64, input: f64, output: f64, cache_read: f64, cache_write: Option<f64>) -> TierRate {
    let cache_write = cache_write.and_then(usd);
    let rate =
        Rate { input: usd(input), output: usd(output), cache_read: usd(cache_read), cache_write, cache_write_1h: None };
    TierRate { tier, above, rate }
}

async fn set_prices(site: &Site, id: &str, single: f64, rates: Vec<TierRate>) {
    // No two versions begin at the same time.
    site.app.clock.advance(SignedDuration::from_secs(1));
    let mut tx = site.app.db.begin().await.unwrap();
    let mut model = model::lock(&mut tx, id).await.unwrap().unwrap();
    model.price = Price::from_usd(single).unwrap();
    model::update(&mut tx, &model).await.unwrap();
    let version = Version {
        model: id.into(),
        valid_from: site.app.clock.now(),
        prices: Prices { single: model.price, rates },
        source: PriceSource::Edited,
        who: "root@example.com".into(),
    };
    let from = price::add(&mut tx, &version).await.unwrap();
    // The gateway reads names before prices: whoever knows this one knows the price.
    let name = format!("priced-{}", from.as_millisecond());
    model::set_aliases(&mut tx, id, std::slice::from_ref(&name)).await.unwrap();
    tx.commit().await.unwrap();
    let client = site.client(&site.key(&name, None, None).await);
    let path = format!("/v1/models/{name}");
    testkit::until("the price is known", async || client.get(&path).await.status == 200).await;
}

/// The quota of a request that is answered with this usage.
async fn cost(provider: &Provider, site: &Site, client: &Client, answer: String) -> i64 {
    provider.then([Act::Json(200, vec![], answer)]);
    assert_eq!(client.chat(&ask("gpt-4o", "x")).await.status, 200);
    site.rows().await.pop().unwrap().quota
}

/// What the provider bills, in millionths of a billionth of a dollar.
fn bill(price: [i64; 3], prompt: i64, cached: i64, output: i64) -> i128 {
    let part = |tokens: i64, price: i64| i128::from(tokens) * i128::from(price);
    part(prompt - cached, price[0]) + part(cached, price[1]) + part(output, price[2])
}

on_both! {
    async fn a_request_by_another_name_is_logged_under_the_models_id(database: Database) {
        let (provider, site, client) = start(database).await;
        let mut tx = site.app.db.begin().await.unwrap();
        model::set_aliases(&mut tx, "gpt-4o", &["fast".into(), "openai/best".into()]).await.unwrap();
        let mut gpt = model::lock(&mut tx, "gpt-4o").await.unwrap().unwrap();
        gpt.upstream_name = "gpt-4o-2024-11-20".into();
        model::update(&mut tx, &gpt).await.unwrap();
        tx.commit().await.unwrap();
        testkit::until("the alias is known", async || client.chat(&ask("fast", "x")).await.status == 200).await;
        for name in ["fast", "openai/best", "gpt-4o"] {
            let reply = client.chat(&ask(name, "x")).await;
            assert_eq!(reply.json()["model"], "what-the-provider-says");
            let asked: Value = serde_json::from_slice(&provider.seen().pop().unwrap().body).unwrap();
            assert_eq!(asked["model"], "gpt-4o-2024-11-20", "{name}");
            assert_eq!(site.rows().await.pop().unwrap().model, "gpt-4o");
            assert_eq!(client.get(&format!("/v1/models/{name}")).await.json()["id"], "gpt-4o");
        }
        let list = client.get("/v1/models").await.json();
        let ids: Vec<&str> = list["data"].as_array().unwrap().iter().filter_map(|m| m["id"].as_str()).collect();
        assert!(ids.contains(&"gpt-4o") && !ids.contains(&"fast"), "{ids:?}");
        client.chat(&ask("slow", "x")).await.refused(404, "model_not_found");
        site
    }

    async fn a_request_costs_what_its_tokens_cost_by_kind(database: Database) {
        let (provider, site, client) = start(database).await;
        let rates = vec![
            row(Tier::Standard, 0, 2.5, 10.0, 1.25, None),
            row(Tier::Standard, 200_000, 5.0, 15.0, 2.5, None),
            row(Tier::Flex, 0, 1.25, 5.0, 0.625, None),
        ];
        set_prices(&site, "gpt-4o", 0.0025, rates).await;
        // Numbers that look random, and are the same each time.
        let mut seed: i64 = 7;
        let mut random = |below: i64| {
            seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
            seed % below
        };
        for turn in 0..40 {
            let (prompt, output) = (1 + random(400_000), random(20_000));
            let cached = random(prompt + 1);
            let flex = turn % 4 == 3 && prompt <= 200_000;
            let price = match (flex, prompt > 200_000) {
                (true, _) => [1_250_000_000, 625_000_000, 5_000_000_000],
                (false, true) => [5_000_000_000, 2_500_000_000, 15_000_000_000],
                (false, false) => [2_500_000_000, 1_250_000_000, 10_000_000_000],
            };
            let usage = json!({"prompt_tokens": prompt, "completion_tokens": output,
                "prompt_tokens_details": {"cached_tokens": cached}, "completion_tokens_details": {"reasoning_tokens": output / 2}});
            let answer = answered(&usage);
            let answer = if flex { answer.replace(r#""service_tier":"default""#, r#""service_tier":"flex""#) } else { answer };
            let quota = cost(&provider, &site, &client, answer).await;
            let unit = 2_000_000_000;
            let billed = bill(price, prompt, cached, output);
            assert_eq!(i128::from(quota), (billed + unit - 1) / unit, "{prompt} {cached} {output} {flex}");
            let row = site.rows().await.pop().unwrap();
            let exact = i128::from(row.quota) * 2_000 + i128::from(row.quota_rest);
            assert_eq!(exact * 1_000_000, billed, "to the billionth of a dollar: {prompt} {cached} {output} {flex}");
        }
        site
    }

    async fn a_changed_price_holds_for_what_is_asked_from_then_on(database: Database) {
        let (provider, site, client) = start(database).await;
        let plain = || answered(&json!({"prompt_tokens": 1_000, "completion_tokens": 1_000}));
        assert_eq!(cost(&provider, &site, &client, plain()).await, 2_500, "the spec's single price");
        set_prices(&site, "gpt-4o", 0.0025, vec![row(Tier::Standard, 0, 2.5, 10.0, 1.25, None)]).await;
        assert_eq!(cost(&provider, &site, &client, plain()).await, 1_250 + 5_000);
        // A request that was made before the change costs what was true then, although it ends after it.
        let mut held = ask("gpt-4o", "x");
        held["stream"] = json!(true);
        let chunk = |text: &str| format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n").into_bytes();
        let last = b"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":1000}}\n\ndata: [DONE]\n\n".to_vec();
        let gate = Arc::new(Semaphore::new(1));
        provider.then([Act::GatedStream(vec![chunk("a"), last], gate.clone())]);
        let mut stream = client.open(&held).await;
        stream.until("\"a\"").await;
        set_prices(&site, "gpt-4o", 0.004, vec![]).await;
        gate.add_permits(1);
        assert_eq!(stream.rest().await.status, 200);
        assert_eq!(site.rows().await.pop().unwrap().quota, 1_250 + 5_000, "what was true at its begin");
        // An edited single price is in force for every kind.
        assert_eq!(cost(&provider, &site, &client, plain()).await, 4_000);
        site
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_hour_in_the_cache_costs_is_billed() {
    let (provider, site, client) = start(Database::sqlite()).await;
    let mut standard = row(Tier::Standard, 0, 5.0, 25.0, 0.5, Some(6.25));
    standard.rate.cache_write_1h = usd(10.0);
    set_prices(&site, "claude-opus-4-6", 0.015, vec![standard]).await;
    let answer = r#"{"id":"m","type":"message","content":[{"type":"text","text":"yes"}],"stop_reason":"end_turn","usage":{
        "input_tokens":100,"cache_read_input_tokens":10000,"cache_creation_input_tokens":3000,
        "cache_creation":{"ephemeral_5m_input_tokens":1000,"ephemeral_1h_input_tokens":2000},"output_tokens":400}}"#;
    provider.then([Act::Json(200, vec![], answer.into())]);
    let reply = client.speaking(Wire::Messages).chat(&Wire::Messages.ask("claude-opus-4-6", "x")).await;
    assert_eq!(reply.status, 200);
    // 500 + 5,000 + 6,250 + 20,000 + 10,000 millionths of a dollar, of which a unit is two.
    assert_eq!(site.rows().await.pop().unwrap().quota, 41_750 / 2);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_asked_only_in_its_protocols() {
    let (_provider, site, client) = start(Database::sqlite()).await;
    let mut tx = site.app.db.begin().await.unwrap();
    let now = site.app.clock.now();
    let embedding = Model { purpose: Purpose::Embedding, ..Model::named("vectors", ProviderKind::Openai, now) };
    let codex =
        Model { protocols: Words(vec![Protocol::Responses]), ..Model::named("codex", ProviderKind::Openai, now) };
    for model in [&embedding, &codex] {
        assert!(model::insert(&mut tx, model).await.unwrap());
    }
    tx.commit().await.unwrap();
    testkit::until("the models are known", async || client.get("/v1/models/codex").await.status == 200).await;
    let refusal = client.chat(&ask("vectors", "x")).await.refused(400, "unsupported_protocol");
    assert!(refusal.contains("/v1/embeddings") && !refusal.contains("/v1/chat"), "{refusal}");
    let refusal = client.chat(&ask("codex", "x")).await.refused(400, "unsupported_protocol");
    assert!(refusal.contains("/v1/responses") && !refusal.contains("/v1/chat"), "{refusal}");
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_broken_off_costs_what_its_cache_costs() {
    let (provider, site, client) = start(Database::sqlite()).await;
    set_prices(&site, "claude-opus-4-6", 0.015, vec![row(Tier::Standard, 0, 5.0, 25.0, 0.5, Some(6.25))]).await;
    let usage = json!({"input_tokens": 100, "cache_read_input_tokens": 100_000, "cache_creation_input_tokens": 1_000,
        "output_tokens": 1});
    let start =
        json!({"type": "message_start", "message": {"id": "m", "type": "message", "content": [], "usage": usage}});
    let start = format!("event: message_start\ndata: {start}\n\n");
    provider.then([Act::SilentStream(vec![start.into_bytes(), Wire::Messages.word("abcdef").into_bytes()])]);
    let mut stream = client.speaking(Wire::Messages).open(&Wire::Messages.streamed("claude-opus-4-6", "x")).await;
    stream.until("abcdef").await;
    drop(stream);
    provider.left(1).await;
    let row = site.rows_until(1).await.remove(0);
    assert!(row.estimated && row.prompt_tokens == 101_100 && row.completion_tokens > 1, "{row:?}");
    // In millionths of a dollar: 100 tokens of input, what was read, what was written, and an estimate of the output.
    let expected = 500 + 50_000 + 6_250 + 25 * row.completion_tokens;
    assert_eq!(row.quota * 2_000 + row.quota_rest, expected * 1_000, "{row:?}");
    site.end().await;
}
