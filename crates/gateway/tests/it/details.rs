//! What the log says of a request beside its tokens: the kinds of tokens, the protocol, the tries and the first byte.

use std::time::Duration;

use serde_json::json;
use store::request_log::{Request, RequestType};

use crate::kit::{Act, Database, Options, Provider, Site, Wire, ask};
use crate::on_both;

/// Known input, read from a cache, written into it, thinking.
fn kinds(row: &Request) -> [Option<i64>; 4] {
    [row.known_input_tokens, row.cache_read_tokens, row.cache_write_tokens, row.reasoning_tokens]
}

/// What `Wire::usage` says of 100 tokens in and 40 out.
fn reported(wire: Wire) -> [Option<i64>; 4] {
    match wire {
        Wire::Chat | Wire::Embeddings => [None; 4],
        Wire::Messages => [Some(100), Some(50), Some(25), None],
        Wire::Responses => [Some(100), Some(50), None, Some(20)],
    }
}

async fn site_of(database: Database, wire: Wire, usual: Act) -> (Provider, Site) {
    let provider = Provider::start(usual).await;
    let options = match wire {
        Wire::Messages => Options::with(Some(&provider), None, None),
        Wire::Chat | Wire::Responses | Wire::Embeddings => Options::with(None, Some(&provider), None),
    };
    (provider, Site::start(database, options).await)
}

on_both! {
    async fn what_a_provider_says_of_its_cache_is_in_the_log_and_in_the_sums(database: Database) {
        let openai = Provider::start(Act::Close).await;
        let site = Site::start(database, Options::with(Some(&openai), Some(&openai), None)).await;
        let client = site.free().await;
        for wire in Wire::ALL {
            openai.then([Act::Json(200, vec![], wire.whole("hi", Some((100, 40))).to_string())]);
            assert_eq!(client.speaking(wire).chat(&wire.ask(wire.model(), "x")).await.status, 200);
            openai.then([Act::Stream(wire.stream(&["hi"], Some((100, 40))), Duration::ZERO)]);
            assert_eq!(client.speaking(wire).chat(&wire.streamed(wire.model(), "x")).await.status, 200);
        }
        let rows = site.rows().await;
        let names = ["chat", "messages", "responses"];
        for (wire, pair) in Wire::ALL.into_iter().zip(rows.chunks(2)) {
            for row in pair {
                assert_eq!(kinds(row), reported(wire), "{wire:?}");
                assert_eq!((row.prompt_tokens, row.completion_tokens, row.r#type), (100, 40, RequestType::SUCCESS));
                assert_eq!(row.protocol, names[Wire::ALL.iter().position(|one| *one == wire).unwrap()]);
                assert_eq!((row.asked_model.as_str(), row.retries, row.quota_rest), (wire.model(), Some(0), 0));
            }
        }
        let sums = store::usage::of_all_time(&site.app.db, "free").await.unwrap();
        assert_eq!((sums.prompt_tokens, sums.known_input_tokens, sums.cache_read_tokens), (600, 400, 200));
        assert_eq!((sums.cache_write_tokens, sums.reasoning_tokens), (50, 40));
        site
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn chats_tell_their_cache_in_the_details() {
    let usage = json!({"prompt_tokens": 1000, "completion_tokens": 90, "total_tokens": 1090,
        "prompt_tokens_details": {"cached_tokens": 896}, "completion_tokens_details": {"reasoning_tokens": 64}});
    let mut answer = Wire::Chat.whole("hi", None);
    answer["usage"] = usage;
    let (_openai, site) = site_of(Database::sqlite(), Wire::Chat, Act::Json(200, vec![], answer.to_string())).await;
    assert_eq!(site.free().await.chat(&ask("gpt-4o", "x")).await.status, 200);
    assert_eq!(kinds(&site.rows().await[0]), [Some(1000), Some(896), None, Some(64)]);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_reports_is_unknown_and_not_zero() {
    let whole = Wire::Chat.whole("hi", None).to_string();
    let (openai, site) = site_of(Database::sqlite(), Wire::Chat, Act::Json(200, vec![], whole)).await;
    let client = site.free().await;
    assert_eq!(client.chat(&ask("gpt-4o", "no usage")).await.status, 200);
    openai.then([Act::Json(400, vec![], r#"{"error":{"message":"no"}}"#.into())]);
    assert_eq!(client.chat(&ask("gpt-4o", "refused")).await.status, 400);
    assert_eq!(client.chat(&ask("no-such-model", "x")).await.status, 404);
    let rows = site.rows().await;
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| kinds(row) == [None; 4] && row.protocol == "chat"), "{rows:?}");
    assert!(rows[0].estimated && rows[0].first_byte_ms.is_some());
    assert!(rows[1].first_byte_ms.is_some(), "its refusal was passed on");
    assert_eq!((rows[2].asked_model.as_str(), rows[2].first_byte_ms, rows[2].retries), ("", None, Some(0)));
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tries_that_failed_are_counted_and_the_model_that_was_asked_for_is_kept() {
    let failing = Act::Json(503, vec![], r#"{"error":{"message":"no"}}"#.into());
    let anthropic = Provider::start(failing.clone()).await;
    let openai = Provider::start(Act::Json(200, vec![], Wire::Chat.whole("hi", Some((3, 2))).to_string())).await;
    let site = Site::start(Database::sqlite(), Options::with(Some(&anthropic), Some(&openai), None)).await;
    let client = site.free().await;
    assert_eq!(client.chat(&ask("claude-opus-4-6", "x")).await.status, 200);
    // All of the chain: every try failed, and all but the last one were tried again elsewhere.
    openai.then(std::iter::repeat_n(failing, 20));
    assert_eq!(client.chat(&ask("claude-opus-4-6", "x")).await.status, 502);
    let asked = (anthropic.count() + openai.count()) as i64;
    let rows = site.rows().await;
    let tries: Vec<i64> = rows.iter().map(|row| row.retries.unwrap() + 1).collect();
    assert_eq!(tries.iter().sum::<i64>(), asked, "{tries:?}");
    assert!(tries[0] > 1, "a model of the first provider failed before: {tries:?}");
    assert_eq!((rows[0].model.as_str(), rows[0].provider.as_str()), ("gpt-4o", "openai"));
    assert!(rows.iter().all(|row| row.asked_model == "claude-opus-4-6"));
    assert_eq!((rows[0].first_byte_ms.is_some(), rows[1].first_byte_ms), (true, None));
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_byte_is_where_the_stream_begins() {
    const PAUSE: Duration = Duration::from_millis(120);
    let pieces = Wire::Chat.stream(&["one", "two", "three"], Some((3, 3)));
    let pauses = pieces.len() as i64;
    let (_openai, site) = site_of(Database::sqlite(), Wire::Chat, Act::Stream(pieces, PAUSE)).await;
    assert_eq!(site.free().await.chat(&Wire::Chat.streamed("gpt-4o", "x")).await.status, 200);
    let row = &site.rows().await[0];
    let first = row.first_byte_ms.unwrap();
    let pause = PAUSE.as_millis() as i64;
    assert!(first >= pause - 20, "a pause is before the first byte: {first}");
    assert!(row.duration_ms - first >= (pauses - 2) * pause, "the others behind it: {first} of {}", row.duration_ms);
    site.end().await;
}
