//! Answers that are no streams, refusals, and what stands around them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use store::request_log::RequestType;
use testkit::{until, until_ok};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::kit::{Act, Client, Database, Options, PROVIDER_KEY, Provider, Site, answer, ask, stream_of};

async fn with_openai(usual: Act) -> (Provider, Site, Client) {
    let openai = Provider::start(usual).await;
    let site = Site::start(Database::sqlite(), Options::with(None, Some(&openai), None)).await;
    let client = site.free().await;
    (openai, site, client)
}

/// What clients leave is read on for a moment only.
async fn with_short_reading(usual: Act) -> (Provider, Site, Client) {
    let openai = Provider::start(usual).await;
    let mut options = Options::with(None, Some(&openai), None);
    options.timing.read_on.time = Duration::from_millis(300);
    let site = Site::start(Database::sqlite(), options).await;
    let client = site.free().await;
    (openai, site, client)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_passes_byte_for_byte_and_is_written_down() {
    let (openai, site, client) = with_openai(answer("Hi \\u00e9", 12, 30)).await;
    let reply = client.chat(&ask("gpt-4o", "hello")).await;
    assert_eq!(reply.status, 200);
    let Act::Json(_, _, sent) = answer("Hi \\u00e9", 12, 30) else { unreachable!() };
    assert_eq!(reply.text(), sent, "not a byte is changed");
    assert_eq!(reply.header("content-type").as_deref(), Some("application/json"));
    assert_eq!(reply.header("x-upstream-request-id").as_deref(), Some("of-the-provider"));
    assert_eq!(reply.header("x-tidepool-model"), None, "the model that was asked for answered");
    let rows = site.rows().await;
    let row = &rows[0];
    assert_eq!(rows.len(), 1);
    assert_eq!(Some(row.request_id.clone()), reply.header("x-request-id"));
    assert_eq!((row.token_name.as_str(), row.model.as_str(), row.provider.as_str()), ("free", "gpt-4o", "openai"));
    assert_eq!((row.r#type, row.is_stream, row.estimated), (RequestType::SUCCESS, false, false));
    // 42 tokens at 0.0025 dollars a thousand, 500,000 units a dollar, rounded up.
    assert_eq!((row.prompt_tokens, row.completion_tokens, row.quota), (12, 30, 53));
    assert_eq!(row.error_message, "");
    assert_eq!(openai.count(), 1);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_fields_reach_the_provider_untouched() {
    let (openai, site, client) = with_openai(answer("ok", 1, 1)).await;
    let body = "{ \"temperature\" : 1.0e0,\"model\":\"gpt-4o\",\n\t\"x_new\": {\"b\":1, \"a\":[null, 1e400, \"\\u0000\\ud83e\\udd80\"]}, \"messages\":[{\"role\":\"user\",\"content\":\"h\\u00e9\"}] }";
    assert_eq!(client.chat_bytes(body.as_bytes()).await.status, 200);
    assert_eq!(openai.seen()[0].body, body.as_bytes());
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_provider_gets_its_own_key_and_nothing_of_the_clients() {
    let (openai, site, client) = with_openai(answer("ok", 1, 1)).await;
    let mut stream = TcpStream::connect(site.address).await.unwrap();
    let body = ask("gpt-4o", "x").to_string();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\nauthorization: bearer {}\r\ncookie: a=b\r\nx-forwarded-for: 10.0.0.1\r\nuser-agent: curl\r\naccept: application/json\r\nopenai-beta: x=1\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        client.key,
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    let head = openai.seen()[0].head.to_lowercase();
    assert!(head.starts_with("post /v1/chat/completions http/1.1\r\n"), "{head}");
    assert!(head.contains(&format!("authorization: bearer {PROVIDER_KEY}\r\n")), "{head}");
    assert!(head.contains("openai-beta: x=1") && head.contains("accept: application/json"), "{head}");
    for not in [client.key.as_str(), "cookie", "forwarded", "curl"] {
        assert!(!head.contains(not), "{not} is in {head}");
    }
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn models_are_those_that_somebody_answers_for() {
    let openai = Provider::start(answer("ok", 1, 1)).await;
    let mut options = Options::with(None, Some(&openai), None);
    options.timing.models = Duration::from_millis(20);
    let site = Site::start(Database::sqlite(), options).await;
    let client = site.free().await;
    let list = client.get("/v1/models").await.json();
    let ids: Vec<&str> = list["data"].as_array().unwrap().iter().map(|m| m["id"].as_str().unwrap()).collect();
    assert_eq!((list["object"].as_str(), ids), (Some("list"), vec!["gpt-4o", "gpt-4o-mini"]));
    assert_eq!(client.get("/v1/models/gpt-4o").await.json()["owned_by"], "openai");
    client.get("/v1/models/claude-opus-4-6").await.refused(404, "model_not_found");
    let refusal = client.chat(&ask("claude-opus-4-6", "x")).await.refused(404, "model_not_found");
    let why = "the model `claude-opus-4-6` cannot be asked: its provider `anthropic` does not exist or cannot be used";
    assert_eq!(refusal, why);
    let mut tx = site.app.db.begin().await.unwrap();
    let mut model = store::model::find(&mut tx, "gpt-4o").await.unwrap().unwrap();
    model.enabled = false;
    store::model::update(&mut tx, &model).await.unwrap();
    tx.commit().await.unwrap();
    until("what is switched off is not answered", async || client.chat(&ask("gpt-4o", "x")).await.status != 200).await;
    let refusal = client.chat(&ask("gpt-4o", "x")).await.refused(404, "model_not_found");
    assert!(refusal.contains("switched off"), "{refusal}");
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_methods_and_bodies_are_refused_by_name() {
    let (openai, site, client) = with_openai(answer("ok", 1, 1)).await;
    assert_eq!(client.get("/healthz").await.json()["status"], "ok");
    client.get("/v1/completions").await.refused(404, "unknown_url");
    let reply = client.get("/v1/chat/completions").await;
    assert_eq!(reply.header("allow").as_deref(), Some("post"));
    reply.refused(405, "method_not_allowed");
    client.send("POST", "/v1/models", b"").await.refused(405, "method_not_allowed");
    for body in ["", "[]", "{\"model\":", "{\"messages\":[]}", "{\"model\":1}", "{\"model\":\"a\",\"model\":\"b\"}"] {
        client.chat_bytes(body.as_bytes()).await.refused(400, "invalid_request");
    }
    let refusal = client.chat(&ask("gpt-5", "x")).await.refused(404, "model_not_found");
    assert_eq!(refusal, "the model `gpt-5` does not exist");
    let large = format!("{{\"model\":\"gpt-4o\",\"x\":\"{}\"}}", "y".repeat(8 * 1024 * 1024));
    let refusal = client.chat_bytes(large.as_bytes()).await.refused(413, "payload_too_large");
    assert!(refusal.contains("8 MiB"), "{refusal}");
    // Refused before it is read, and still told why.
    site.client("sk-nothing").chat_bytes(large.as_bytes()).await.refused(401, "invalid_api_key");
    let just = format!("{{\"model\":\"gpt-4o\",\"x\":\"{}\"}}", "y".repeat(8 * 1024 * 1024 - 100));
    assert_eq!(client.chat_bytes(just.as_bytes()).await.status, 200);
    assert_eq!(openai.count(), 1, "nothing that was refused was asked");
    let rows = site.rows().await;
    assert_eq!(rows.len(), 9, "one row for every request that was let in, whatever became of it");
    for row in &rows[..8] {
        assert_eq!(
            (row.r#type, row.model.as_str(), row.provider.as_str(), row.quota),
            (RequestType::ERROR, "unknown", "", 0),
            "{row:?}"
        );
        assert!(!row.error_message.is_empty(), "{row:?}");
    }
    assert!(rows[6].error_message.contains("gpt-5"));
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_providers_refusal_is_passed_on_as_it_is() {
    let body = r#"{"error":{"message":"max_tokens is too large: 999999999","type":"invalid_request_error","param":"max_tokens","code":null}}"#;
    let (_openai, site, client) = with_openai(Act::Json(400, vec![("x-thing", "y".into())], body.into())).await;
    let reply = client.chat(&ask("gpt-4o", "x")).await;
    assert_eq!((reply.status, reply.text().as_str()), (400, body));
    assert_eq!(reply.header("x-thing").as_deref(), Some("y"));
    let row = &site.rows().await[0];
    assert_eq!(
        (row.r#type, row.provider.as_str(), row.model.as_str(), row.quota),
        (RequestType::ERROR, "openai", "gpt-4o", 0)
    );
    assert!(row.error_message.contains("400") && row.error_message.contains("max_tokens is too large"), "{row:?}");
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_refuses_our_key_is_no_fault_of_the_clients() {
    let body = r#"{"error":{"message":"Incorrect API key provided: a-key-******ider","code":"invalid_api_key"}}"#;
    let (_openai, site, client) = with_openai(Act::Json(401, vec![], body.into())).await;
    let reply = client.chat(&ask("gpt-4o", "x")).await;
    let refusal = reply.refused(502, "provider_key_refused");
    assert!(refusal.contains("refused the gateway's key (401)") && !refusal.contains("a-key"), "{refusal}");
    assert!(!site.rows().await[0].error_message.contains("a-key"));
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_usage_an_estimate_stands_in_and_says_so() {
    let (openai, site, client) = with_openai(answer("ok", 1, 1)).await;
    let body = r#"{"choices":[{"message":{"content":"123456789"}}]}"#;
    let question = ask("gpt-4o", "x");
    openai.then([
        Act::Json(200, vec![], body.into()),
        Act::Json(200, vec![], r#"{"choices":[],"usage":{"prompt_tokens":9e18,"completion_tokens":1}}"#.into()),
        // Nobody asked for an encoding; what cannot be read cannot be counted.
        Act::Json(200, vec![("content-encoding", "gzip".into())], "\u{1}\u{2}".into()),
    ]);
    let bytes = question.to_string().len() as i64;
    assert_eq!(client.chat(&question).await.text(), body);
    client.chat(&question).await;
    let reply = client.chat(&question).await;
    assert_eq!((reply.text().as_str(), reply.header("content-encoding").as_deref()), ("\u{1}\u{2}", Some("gzip")));
    let rows = site.rows().await;
    assert!(rows.iter().all(|row| row.estimated && row.r#type == RequestType::SUCCESS), "{rows:?}");
    assert!(rows.iter().all(|row| row.prompt_tokens == (bytes + 1) / 2), "{rows:?}");
    assert_eq!(rows.iter().map(|row| row.completion_tokens).collect::<Vec<_>>(), [5, 0, 0]);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_breaks_off_is_a_failure_and_nobody_else_is_asked() {
    let anthropic = Provider::start(Act::CutJson("{\"half\":".into())).await;
    let openai = Provider::start(answer("ok", 1, 1)).await;
    let site = Site::start(Database::sqlite(), Options::with(Some(&anthropic), Some(&openai), None)).await;
    let refusal = site.free().await.chat(&ask("claude-opus-4-6", "x")).await.refused(502, "provider_error");
    assert!(refusal.contains("broke off"), "{refusal}");
    assert_eq!((anthropic.count(), openai.count()), (1, 0), "an answer had begun");
    let row = &site.rows().await[0];
    assert_eq!((row.r#type, row.provider.as_str()), (RequestType::ERROR, "anthropic"));
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_before_the_answer_is_waited_for_no_longer_than_agreed() {
    let (openai, site, client) = with_short_reading(Act::Silence).await;
    let question = ask("gpt-4o", "x");
    let stream = client.post_only(&question).await;
    openai.asked(1).await;
    drop(stream);
    openai.left(1).await;
    let row = &site.rows_until(1).await[0];
    let prompt = (question.to_string().len() as i64 + 1) / 2;
    assert_eq!(
        (row.r#type, row.prompt_tokens, row.completion_tokens),
        (RequestType::SUCCESS, prompt, 4096),
        "what was reserved"
    );
    assert!(row.estimated && row.quota > 0 && row.error_message.contains("client left"), "{row:?}");
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_slow_is_not_waited_for_for_ever() {
    let openai = Provider::start(Act::Silence).await;
    // One limit is short at a time, and all others are longer than the test may take: it is the short one that ends a wait.
    let options = |shorten: &dyn Fn(&mut gateway::Timing)| {
        let mut options = Options::with(None, Some(&openai), None);
        let long = Duration::from_secs(3600);
        (options.timing.head, options.timing.body, options.timing.answer) = (long, long, long);
        shorten(&mut options.timing);
        options
    };
    let short = Duration::from_millis(200);
    let site = Site::start(Database::sqlite(), options(&|timing| timing.answer = short)).await;
    let client = site.free().await;
    let refusal = client.chat(&ask("gpt-4o", "x")).await.refused(504, "provider_timeout");
    assert!(refusal.contains("openai did not begin to answer in time"), "{refusal}");
    openai.left(1).await;
    // A body that does not come.
    let bodies = site.another(options(&|timing| timing.body = short)).await;
    let mut stream = TcpStream::connect(bodies.address).await.unwrap();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-length: 100\r\n\r\n{{",
        client.key
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut text = String::new();
    tokio::time::timeout(testkit::LIMIT, stream.read_to_string(&mut text)).await.unwrap().unwrap();
    assert!(text.starts_with("HTTP/1.1 408"), "{text}");
    // A head that does not come, and a connection that says nothing.
    let heads = site.another(options(&|timing| timing.head = short)).await;
    for said in ["POST /v1/chat", ""] {
        let mut stream = TcpStream::connect(heads.address).await.unwrap();
        stream.write_all(said.as_bytes()).await.unwrap();
        let mut byte = vec![];
        let ended = tokio::time::timeout(testkit::LIMIT, stream.read_to_end(&mut byte)).await;
        assert!(ended.is_ok(), "{said:?} is waited for");
    }
    bodies.stop().await;
    heads.stop().await;
    assert_eq!(site.rows().await.len(), 2);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_under_way_is_listed_for_the_platform_alone() {
    let silent = Act::SilentStream(stream_of(&["one", "two"], None)[..2].to_vec());
    let (openai, site, client) = with_short_reading(silent).await;
    let platform = site.client(&site.key("admin-token", None, None).await);
    let list = |reply: Value| reply["data"].as_array().unwrap().clone();
    assert!(list(platform.get("/live").await.json()).is_empty());
    client.get("/live").await.refused(403, "no_access");
    let mut question = ask("gpt-4o", "x");
    question["stream"] = json!(true);
    let mut stream = client.open(&question).await;
    stream.until("two").await;
    openai.then([Act::Silence]);
    let _waiting = client.post_only(&ask("gpt-4o", "y")).await;
    // One that leaves before the provider has heard of it is not seen to leave.
    openai.asked(2).await;
    let live = until_ok("both are under way", async || {
        let live = list(platform.get("/live").await.json());
        if live.len() == 2 { Ok(live) } else { Err(live) }
    })
    .await;
    assert_eq!(
        (&live[0]["token_name"], &live[0]["model"], &live[0]["provider"]),
        (&json!("free"), &json!("gpt-4o"), &json!("openai"))
    );
    assert_eq!(live[0]["protocol"], "chat");
    assert_eq!((&live[0]["state"], &live[1]["state"]), (&json!("answering"), &json!("asking")));
    assert!(live[0]["bytes"].as_u64().unwrap() > 100 && live[1]["bytes"] == 0, "{live:?}");
    assert!(
        live[0]["id"].as_str().unwrap().starts_with("req-") && live[0]["started_at"].as_str().unwrap().contains('T')
    );
    drop((stream, _waiting));
    openai.left(2).await;
    until_ok("nothing is under way any more", async || {
        let live = list(platform.get("/live").await.json());
        if live.is_empty() { Ok(()) } else { Err(live) }
    })
    .await;
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn echo_repeats_what_was_said() {
    let site = Site::start(Database::sqlite(), Options::echo()).await;
    let client = site.free().await;
    let answered = client.chat(&ask("claude-opus-4-6", "three small words")).await.json();
    assert_eq!(answered["choices"][0]["message"]["content"], "three small words");
    assert_eq!(answered["usage"], json!({"prompt_tokens": 3, "completion_tokens": 3, "total_tokens": 6}));
    let mut question = ask("gpt-4o", "three small words");
    question["max_tokens"] = json!(2);
    question["stream"] = json!(true);
    let reply = client.chat(&question).await;
    assert_eq!(reply.header("content-type").as_deref(), Some("text/event-stream"));
    let events: Vec<String> = reply.text().split_inclusive("\n\n").map(str::to_owned).collect();
    assert_eq!(events.last().unwrap(), "data: [DONE]\n\n");
    let said: String = events[..events.len() - 1]
        .iter()
        .map(|e| crate::kit::event(e)["choices"][0]["delta"]["content"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(said, "three small");
    assert!(reply.text().contains("\"finish_reason\":\"length\"") && !reply.text().contains("usage"));
    let parts = json!({"model": "gpt-4o", "messages": [{"role": "system", "content": "be kind"},
        {"role": "user", "content": [{"type": "text", "text": "parts of"}, {"type": "image_url"}, {"type": "text", "text": "it"}]}]});
    assert_eq!(client.chat(&parts).await.json()["choices"][0]["message"]["content"], "parts of it");
    let refusal = client.chat(&ask("gpt-4o-mini", "/fail 500 now")).await.refused(502, "provider_error");
    assert!(refusal.contains("gpt-4o-mini at echo answered 500"), "{refusal}");
    assert_eq!(client.chat(&ask("gpt-4o-mini", "/fail 418 now")).await.status, 418);
    let began = Instant::now();
    assert_eq!(
        client.chat(&ask("gpt-4o-mini", "/wait 100 a b")).await.json()["choices"][0]["message"]["content"],
        "a b"
    );
    assert!(began.elapsed() >= Duration::from_millis(200));
    let rows = site.rows().await;
    assert!(rows.iter().all(|row| row.provider == "echo"), "{rows:?}");
    assert_eq!(
        (rows[1].prompt_tokens, rows[1].completion_tokens, rows[1].is_stream, rows[1].estimated),
        (3, 2, true, false)
    );
    assert_eq!(rows[0].model, "claude-opus-4-6");
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_finishes_what_was_begun_and_cuts_what_takes_too_long() {
    let (openai, site, client) = with_openai(answer("late", 1, 1)).await;
    let pieces = stream_of(&["one", "two", "three"], Some((5, 3)));
    let gate = Arc::new(Semaphore::new(1));
    openai.then([Act::GatedStream(pieces.clone(), gate.clone())]);
    let mut question = ask("gpt-4o", "x");
    question["stream"] = json!(true);
    let mut stream = client.open(&question).await;
    stream.until("one").await;
    let address = site.address;
    let stopping = tokio::spawn(site.stop());
    until("nobody listens any more", async || TcpStream::connect(address).await.is_err()).await;
    // The answer is still under way then, and goes on to its end.
    gate.add_permits(pieces.len());
    let (body, whole) = stream.end().await;
    assert!(whole, "cut: {}", String::from_utf8_lossy(&body));
    assert!(String::from_utf8(body).unwrap().ends_with("data: [DONE]\n\n"));
    let stopped = stopping.await.unwrap();
    stopped.check().await;
    assert_eq!(stopped.count("request_log").await, 1);

    let openai = Provider::start(Act::SilentStream(pieces[..1].to_vec())).await;
    let mut options = Options::with(None, Some(&openai), None);
    options.timing.drain = Duration::from_millis(200);
    let site = Site::start(Database::sqlite(), options).await;
    let client = site.free().await;
    let mut stream = client.open(&question).await;
    stream.until("one").await;
    let app = site.app.clone();
    // The provider stays silent for as long as anybody listens: only the cut ends this.
    let stopped = tokio::time::timeout(testkit::LIMIT, site.stop()).await.unwrap();
    let (_, whole) = stream.end().await;
    assert!(!whole, "the client sees that it was cut");
    stopped.check().await;
    let rows =
        store::request_log::list(&app.db, &Default::default(), base::Page { offset: 0, limit: 10 }).await.unwrap();
    assert!(rows[0].error_message.contains("stopped"), "{rows:?}");
}
