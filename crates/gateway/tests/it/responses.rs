//! OpenAI's Responses API: what passes, what is counted, and whose answers may be continued.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::kit::{Act, Client, Database, Options, Provider, Site, Wire};
use crate::on_both;

const WIRE: Wire = Wire::Responses;

fn question(text: &str) -> Value {
    WIRE.ask("gpt-4o", text)
}

fn continuing(id: &str) -> Value {
    let mut question = question("and then?");
    question["previous_response_id"] = json!(id);
    question
}

fn answer(id: &str, input: i64, output: i64) -> Act {
    let mut answer = WIRE.whole("ok", Some((input, output)));
    answer["id"] = json!(id);
    Act::Json(200, vec![], answer.to_string())
}

async fn with_openai(database: Database, usual: Act) -> (Provider, Site, Client) {
    let openai = Provider::start(usual).await;
    let site = Site::start(database, Options::with(None, Some(&openai), None)).await;
    let client = site.free().await.speaking(WIRE);
    (openai, site, client)
}

const RICH: &str = r#"{ "model" : "gpt-4o-mini", "input":[{"role":"user","content":[{"type":"input_text","text":"h\u00e9"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]},
  {"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAAA=="},{"type":"function_call","call_id":"c","name":"w","arguments":"{\"file_id\":1}"},{"type":"function_call_output","call_id":"c","output":"1"}],
  "instructions":"be kind","max_output_tokens":1.0e3,"reasoning":{"effort":"low","summary":"auto"},"include":["reasoning.encrypted_content"],"store":false,
  "tools":[{"type":"function","name":"w","strict":true,"parameters":{"type":"object"}},{"type":"custom","name":"c"}],"parallel_tool_calls":true,
  "text":{"format":{"type":"json_schema","name":"a","schema":{}}},"service_tier":"flex","prompt_cache_key":"k","metadata":{"a":"b"},"x_new":[null, 1e400] }"#;

#[tokio::test(flavor = "multi_thread")]
async fn requests_answers_and_streams_pass_byte_for_byte() {
    let answered = WIRE.whole("ok", Some((30, 8))).to_string();
    let (openai, site, client) =
        with_openai(Database::sqlite(), Act::Json(200, vec![("x-request-id", "req_1".into())], answered.clone())).await;
    let headers = [
        ("authorization", format!("Bearer {}", client.key)),
        ("openai-beta", "responses=v1".into()),
        ("openai-organization", "org-x".into()),
    ];
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let reply = client.send_with("POST", "/v1/responses", &headers, RICH.as_bytes()).await;
    assert_eq!((reply.status, reply.text()), (200, answered));
    assert_eq!(reply.header("x-upstream-request-id").as_deref(), Some("req_1"));
    let seen = &openai.seen()[0];
    assert_eq!(String::from_utf8_lossy(&seen.body), RICH);
    let head = seen.head.to_lowercase();
    assert!(
        head.starts_with("post /v1/responses http/1.1\r\n") && head.contains("openai-beta: responses=v1"),
        "{head}"
    );
    assert!(!head.contains("org-x") && !head.contains(&client.key), "{head}");
    let pieces = WIRE.stream(&["one", "two"], Some((400, 90)));
    openai.then([Act::Stream(pieces.clone(), Duration::ZERO)]);
    let reply = client.chat(&WIRE.streamed("gpt-4o", "x")).await;
    assert_eq!(reply.body, pieces.concat());
    let rows = site.rows().await;
    let counted: Vec<_> =
        rows.iter().map(|row| (row.prompt_tokens, row.completion_tokens, row.is_stream, row.estimated)).collect();
    assert_eq!(counted, [(30, 8, false, false), (400, 90, true, false)]);
    site.end().await;
}

on_both! {
    async fn an_answer_is_continued_by_the_key_that_got_it_alone(database: Database) {
        let (openai, site, client) = with_openai(database, answer("resp_other", 3_000, 500)).await;
        openai.then([answer("resp_a", 3_000, 500)]);
        let (_, _, key) = site.employee("ada", 1_000_000).await;
        let ada = site.client(&key).speaking(WIRE);
        assert_eq!(client.chat(&question("x")).await.status, 200);
        assert_eq!(client.chat(&continuing("resp_a")).await.status, 200, "at once");
        assert_eq!(openai.seen()[1].body, continuing("resp_a").to_string().as_bytes());
        for id in ["resp_a", "resp_never"] {
            let refusal = ada.chat(&continuing(id)).await.refused(400, "previous_response_not_found");
            assert!(!refusal.contains(id), "{refusal}");
        }
        assert_eq!(openai.count(), 2, "what is refused is not asked");
        // The id of a stream, and one that the provider does not keep.
        let stream = String::from_utf8(WIRE.stream(&["one"], Some((40, 9))).concat()).unwrap().replace("resp_1", "resp_s");
        openai.then([Act::Stream(vec![stream.into_bytes()], Duration::ZERO), answer("resp_gone", 1, 1)]);
        assert_eq!(ada.chat(&WIRE.streamed("gpt-4o", "x")).await.status, 200);
        let mut not_kept = question("x");
        not_kept["store"] = json!(false);
        assert_eq!(ada.chat(&not_kept).await.status, 200);
        assert_eq!(ada.chat(&continuing("resp_s")).await.status, 200);
        ada.chat(&continuing("resp_gone")).await.refused(400, "previous_response_not_found");
        // Another process knows it too, a moment later.
        let second = site.another(Options::with(None, Some(&openai), None)).await;
        let there = second.client(&ada.key).speaking(WIRE);
        assert_eq!(there.chat(&continuing("resp_s")).await.status, 200);
        there.chat(&continuing("resp_a")).await.refused(400, "previous_response_not_found");
        // A key with another secret is another key.
        let secret = base::Secret::new("sk-test-rotated");
        site.replace_secret("free", &secret).await;
        site.client(secret.expose()).speaking(WIRE).chat(&continuing("resp_a")).await.refused(400, "previous_response_not_found");
        second.stop().await;
        site
    }

    async fn owners_survive_a_crash_and_expire(database: Database) {
        let (openai, site, client) = with_openai(database, answer("resp_a", 30, 5)).await;
        assert_eq!(client.chat(&question("x")).await.status, 200);
        let next = site.die().await.another(Options::with(None, Some(&openai), None)).await;
        let client = next.client(&client.key).speaking(WIRE);
        assert_eq!(client.chat(&continuing("resp_a")).await.status, 200);
        let now = next.app.clock.now();
        let (before, after) = (SignedDuration::from_hours(29 * 24), SignedDuration::from_hours(31 * 24));
        assert_eq!(store::answer_owner::delete_expired(&next.app.db, now + before).await.unwrap(), 0);
        assert!(store::answer_owner::find(&next.app.db, "resp_a", now + before).await.unwrap().is_some());
        assert!(store::answer_owner::find(&next.app.db, "resp_a", now + after).await.unwrap().is_none());
        assert_eq!(store::answer_owner::delete_expired(&next.app.db, now + after).await.unwrap(), 1);
        next
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_continued_is_reserved_and_counted_as_input() {
    let (openai, site, _) = with_openai(Database::sqlite(), answer("resp_long", 60_000, 1_000)).await;
    let (_, _, key) = site.employee("ada", 100_000).await;
    let ada = site.client(&key).speaking(WIRE);
    assert_eq!(ada.chat(&question("x")).await.status, 200);
    // A client that leaves in the middle pays for all that the provider read.
    let pieces = WIRE.stream(&["one"], None);
    openai.then([Act::SilentStream(pieces[..2].to_vec())]);
    let mut question = continuing("resp_long");
    question["stream"] = json!(true);
    let mut stream = ada.open(&question).await;
    stream.until("one").await;
    drop(stream);
    openai.left(1).await;
    let row = site.rows_until(2).await.pop().unwrap();
    assert!(row.estimated && row.prompt_tokens > 61_000, "{row:?}");
    site.app.clock.advance(SignedDuration::from_secs(2));
    ada.chat(&continuing("resp_long")).await.refused(429, "insufficient_quota");
    site.end().await;
}
