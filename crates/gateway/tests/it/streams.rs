//! Streams: byte for byte, written down before their end, cancelled with their client.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use store::request_log::RequestType;
use tokio::sync::Semaphore;

use crate::kit::{Act, Client, Database, Options, Provider, Site, answer, ask, stream_of};

fn streamed(model: &str) -> Value {
    let mut question = ask(model, "x");
    question["stream"] = json!(true);
    question
}

fn counted(model: &str) -> Value {
    let mut question = streamed(model);
    question["stream_options"] = json!({"include_usage": true});
    question
}

async fn with_openai(usual: Act) -> (Provider, Site, Client) {
    with_timing(usual, |_| ()).await
}

async fn with_timing(usual: Act, change: fn(&mut gateway::Timing)) -> (Provider, Site, Client) {
    let openai = Provider::start(usual).await;
    let mut options = Options::with(None, Some(&openai), None);
    change(&mut options.timing);
    let site = Site::start(Database::sqlite(), options).await;
    let client = site.free().await;
    (openai, site, client)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_passes_byte_for_byte_and_only_our_own_wish_is_left_out() {
    let pieces = stream_of(&["Hello", " \\\"usage\\\": ", "wor"], Some((9, 4)));
    let (openai, site, client) = with_openai(Act::Stream(pieces.clone(), Duration::ZERO)).await;
    // Who asks for usage gets every byte.
    let reply = client.chat(&counted("gpt-4o")).await;
    assert_eq!(reply.body, pieces.concat());
    assert_eq!(reply.header("content-type").as_deref(), Some("text/event-stream; charset=utf-8"));
    assert_eq!(openai.seen()[0].body, counted("gpt-4o").to_string().as_bytes(), "nothing to add");
    // Who does not gets every byte but the event that only we asked for.
    let reply = client.chat(&streamed("gpt-4o")).await;
    let without: Vec<u8> =
        pieces.iter().filter(|p| !p.windows(12).any(|w| w == b"\"choices\":[]")).flatten().copied().collect();
    assert_eq!(reply.text(), String::from_utf8(without).unwrap());
    let asked: Value = serde_json::from_slice(&openai.seen()[1].body).unwrap();
    assert_eq!(asked["stream_options"], json!({"include_usage": true}), "the provider is asked for usage");
    let rows = site.rows().await;
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert_eq!(
            (row.r#type, row.is_stream, row.estimated, row.prompt_tokens, row.completion_tokens),
            (RequestType::SUCCESS, true, false, 9, 4)
        );
    }
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_cut_into_any_pieces_is_the_same_stream() {
    let whole = stream_of(&["a", "b"], Some((3, 2))).concat();
    let (openai, site, client) = with_openai(Act::Close).await;
    let reference = {
        openai.then([Act::Stream(vec![whole.clone()], Duration::ZERO)]);
        client.chat(&streamed("gpt-4o")).await.body
    };
    for cut in (1..whole.len()).step_by(7) {
        let (a, b) = whole.split_at(cut);
        openai.then([Act::Stream(vec![a.to_vec(), b.to_vec()], Duration::from_millis(1))]);
        let reply = client.chat(&streamed("gpt-4o")).await;
        assert_eq!(reply.body, reference, "cut at {cut}");
    }
    let rows = site.rows().await;
    assert!(rows.iter().all(|row| (row.prompt_tokens, row.completion_tokens, row.estimated) == (3, 2, false)));
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn words_reach_the_client_as_they_come() {
    let gate = Arc::new(Semaphore::new(0));
    let pieces = stream_of(&["one", "two"], None);
    let (_openai, site, client) = with_openai(Act::GatedStream(pieces, gate.clone())).await;
    // Not collected and sent together: each word is here before the provider has sent the next.
    gate.add_permits(1);
    let mut stream = client.open(&streamed("gpt-4o")).await;
    stream.until("one").await;
    gate.add_permits(1);
    stream.until("two").await;
    gate.add_permits(1);
    assert!(stream.end().await.1);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_request_is_written_down_before_the_last_byte_leaves() {
    let (openai, site, client) = with_openai(Act::Close).await;
    for (pieces, last) in [
        (stream_of(&["one"], Some((5, 1))), "[DONE]"),
        // Some providers end without a word.
        (stream_of(&["one"], Some((5, 1)))[..2].to_vec(), "one"),
    ] {
        openai.then([Act::Stream(pieces, Duration::from_millis(20))]);
        let before = site.rows().await.len();
        let mut stream = client.open(&streamed("gpt-4o")).await;
        stream.until(last).await;
        if last == "[DONE]" {
            assert_eq!(site.rows().await.len(), before + 1, "[DONE] is there, and the row is not");
        }
        assert!(stream.end().await.1);
        assert_eq!(site.rows().await.len(), before + 1);
    }
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_cancels_the_provider_and_pays_for_what_it_got() {
    let words = ["a word of some length", "and another one"];
    let (openai, site, client) = with_openai(Act::SilentStream(stream_of(&words, None)[..2].to_vec())).await;
    let question = streamed("gpt-4o");
    let mut stream = client.open(&question).await;
    stream.until("another").await;
    drop(stream);
    openai.left(1).await;
    let row = &site.rows_until(1).await[0];
    assert_eq!((row.r#type, row.estimated), (RequestType::SUCCESS, true));
    let written: usize = words.iter().map(|w| w.len()).sum();
    let prompt = (question.to_string().len() as i64 + 1) / 2;
    // And what the provider may have written until it noticed.
    assert_eq!((row.prompt_tokens, row.completion_tokens), (prompt, (written as i64 + 1) / 2 + 32));
    assert!(row.quota > 0 && row.error_message.contains("client left"), "{row:?}");
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_breaks_off_says_so_and_costs_nothing() {
    let cut = Act::CutStream(stream_of(&["one", "two"], None)[..2].to_vec());
    let (openai, site, client) = with_openai(cut).await;
    let reply = client.chat(&streamed("gpt-4o")).await;
    assert_eq!(reply.status, 200, "the first byte was gone already");
    let text = reply.text();
    assert!(text.contains("two") && !text.contains("[DONE]"), "{text}");
    let last = crate::kit::event(text.split_inclusive("\n\n").last().unwrap());
    assert_eq!(last["error"]["code"], "provider_error");
    let row = &site.rows().await[0];
    assert_eq!((row.r#type, row.quota, row.estimated), (RequestType::ERROR, 0, true));
    assert!(row.error_message.contains("broke off"), "{row:?}");
    // So does one that tells an error in place of an answer.
    openai.then([Act::Stream(vec![b"data: {\"error\":{\"message\":\"overloaded\"}}\n\n".to_vec()], Duration::ZERO)]);
    assert!(client.chat(&streamed("gpt-4o")).await.text().contains("overloaded"));
    assert_eq!(site.rows().await[1].r#type, RequestType::ERROR);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_falls_silent_says_so() {
    let silent = Act::SilentStream(stream_of(&["one"], None)[..1].to_vec());
    let (openai, site, client) = with_timing(silent, |timing| timing.silence = Duration::from_millis(500)).await;
    let text = client.chat(&streamed("gpt-4o")).await.text();
    assert!(text.contains("one") && text.contains("\"error\""), "{text}");
    let row = &site.rows().await[0];
    assert_eq!((row.r#type, row.quota, row.estimated), (RequestType::ERROR, 0, true));
    assert!(row.error_message.contains("silent"), "{row:?}");
    openai.left(1).await;
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_without_end_is_ended_and_counts() {
    let words = ["a word of some length"; 100];
    let pieces = stream_of(&words, None)[..100].to_vec();
    let (openai, site, client) = with_timing(Act::SilentStream(pieces), |timing| timing.stream_bytes = 4096).await;
    let text = client.chat(&streamed("gpt-4o")).await.text();
    let last = crate::kit::event(text.split_inclusive("\n\n").last().unwrap());
    assert!(last["error"]["message"].as_str().unwrap().contains("longer than any"), "{text}");
    openai.left(1).await;
    let row = &site.rows_until(1).await[0];
    assert!(
        (row.r#type, row.estimated) == (RequestType::SUCCESS, true) && row.quota > 0,
        "what was passed on counts: {row:?}"
    );
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_without_usage_is_estimated() {
    let (_openai, site, client) =
        with_openai(Act::Stream(stream_of(&["123", "456", "789"], None), Duration::ZERO)).await;
    assert_eq!(client.chat(&streamed("gpt-4o")).await.body, stream_of(&["123", "456", "789"], None).concat());
    let row = &site.rows().await[0];
    assert_eq!((row.r#type, row.estimated, row.completion_tokens), (RequestType::SUCCESS, true, 5));
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_is_given_up() {
    let word = "x".repeat(64 * 1024);
    let pieces: Vec<Vec<u8>> = (0..400).map(|_| format!("data: {{\"content\":\"{word}\"}}\n\n").into_bytes()).collect();
    let unread = Act::Stream(pieces, Duration::ZERO);
    let (openai, site, client) = with_timing(unread, |timing| timing.reader = Duration::from_millis(300)).await;
    let stuck = client.post_only(&streamed("gpt-4o")).await;
    let row = &site.rows_until(1).await[0];
    assert!(row.error_message.contains("client left"), "{row:?}");
    assert_eq!(row.r#type, RequestType::SUCCESS, "what it was sent is paid for");
    drop(stuck);
    // Whoever else comes is served.
    openai.then([answer("ok", 1, 1)]);
    assert_eq!(client.chat(&ask("gpt-4o", "x")).await.status, 200);
    site.end().await;
}
