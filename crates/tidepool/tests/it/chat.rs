//! POST /me/chat: forwarded with the instance's key, passed on as it comes, stored, and stopped when nobody listens.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::id::{InstanceId, MessageId, UserId};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use store::chat_message::{self, ChatMessage, Role, Unconfirmed};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};

use crate::kit::{Database, Gateway, Options, Site, used_secret};

/// A gateway whose every byte the test says. It hears one request per connection.
struct Scripted {
    url: String,
    /// What it says to the next request.
    script: Arc<Mutex<Script>>,
    heard: Arc<Mutex<Vec<Heard>>>,
    /// Tells when the other side of a connection is gone.
    gone: mpsc::UnboundedReceiver<()>,
}

#[derive(Clone, Debug)]
struct Heard {
    head: String,
    body: Value,
}

#[derive(Clone)]
enum Script {
    /// Pieces, with a rest between them, and then the end.
    Say(Vec<Vec<u8>>),
    /// Pieces, and further ones once the test lets them come.
    Held(Vec<Vec<u8>>, Arc<Notify>, Vec<Vec<u8>>),
    /// The same beginning, and then a piece again and again.
    Endless(Vec<u8>, Vec<u8>),
}

impl Scripted {
    async fn start(script: Script) -> Scripted {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let heard = Arc::new(Mutex::new(vec![]));
        let (left, gone) = mpsc::unbounded_channel();
        let kept = heard.clone();
        let script = Arc::new(Mutex::new(script));
        let current = script.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (script, kept, left) = (current.lock().unwrap().clone(), kept.clone(), left.clone());
                tokio::spawn(async move {
                    if speak(stream, script, kept).await.is_err() {
                        left.send(()).ok();
                    }
                });
            }
        });
        Scripted { url, script, heard, gone }
    }

    fn heard(&self) -> Heard {
        self.heard.lock().unwrap().last().unwrap().clone()
    }
}

async fn speak(mut stream: TcpStream, script: Script, heard: Arc<Mutex<Vec<Heard>>>) -> std::io::Result<()> {
    let mut bytes = vec![];
    let (head, length) = loop {
        let mut piece = [0; 4096];
        let n = stream.read(&mut piece).await?;
        if n == 0 {
            return Ok(());
        }
        bytes.extend_from_slice(&piece[..n]);
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        if let Some(end) = text.find("\r\n\r\n") {
            let length = text.split("content-length: ").nth(1).and_then(|t| t.split("\r\n").next()?.parse().ok());
            break (end + 4, length.unwrap_or(0usize));
        }
    };
    while bytes.len() < head + length {
        let mut piece = [0; 4096];
        let n = stream.read(&mut piece).await?;
        bytes.extend_from_slice(&piece[..n]);
    }
    let body = serde_json::from_slice(&bytes[head..]).unwrap_or_default();
    heard.lock().unwrap().push(Heard { head: String::from_utf8_lossy(&bytes[..head]).into_owned(), body });
    let pause = Duration::from_millis(5);
    let say = async |stream: &mut TcpStream, pieces: Vec<Vec<u8>>| {
        for piece in pieces {
            stream.write_all(&piece).await?;
            stream.flush().await?;
            // So that pieces arrive one by one.
            tokio::time::sleep(pause).await;
        }
        Ok(())
    };
    match script {
        Script::Say(pieces) => say(&mut stream, pieces).await,
        Script::Held(first, gate, rest) => {
            say(&mut stream, first).await?;
            gate.notified().await;
            say(&mut stream, rest).await
        }
        Script::Endless(first, again) => {
            stream.write_all(&first).await?;
            loop {
                stream.write_all(&again).await?;
                tokio::time::sleep(pause).await;
            }
        }
    }
}

const EVENTS: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

fn answered(status: &str, body: &Value) -> Script {
    let body = body.to_string();
    let text = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\nretry-after: 7\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    Script::Say(vec![text.into_bytes()])
}

struct Chat {
    site: Site,
    gateway: Scripted,
    user: String,
    token: String,
}

/// An employee with an instance, and a gateway that follows a script.
async fn chat(script: Script) -> Chat {
    let gateway = Scripted::start(script).await;
    let options = Options { gateway: Gateway::Embedded(gateway.url.clone()), ..Options::default() };
    let site = Site::with(Database::sqlite(), options).await;
    site.instances("a", 2).await;
    let (user, token) = site.quick_employee("ada@example.com").await;
    site.admin.patch("/instances/a0/assign", json!({"user_id": user})).token(&site.root).ok().await;
    Chat { site, gateway, user, token }
}

impl Chat {
    fn ask(&self, body: Value) -> crate::kit::Call {
        self.site.employee.post("/me/chat", body).token(&self.token)
    }

    async fn stream(&self) -> reqwest::Response {
        let url = format!("{}/api/v1/me/chat", self.site.employee.url);
        let body = json!({"instance_id": "a0", "message": "Hello there", "stream": true});
        self.site.employee.http.post(url).bearer_auth(&self.token).json(&body).send().await.unwrap()
    }

    /// Waits until the question and its answer are stored.
    async fn both_stored(&self) -> Vec<(Role, String, i64)> {
        testkit::until_ok("question and answer are stored", async || {
            let messages = self.messages().await;
            if messages.len() == 2 { Ok(messages) } else { Err(messages) }
        })
        .await
    }

    async fn messages(&self) -> Vec<(Role, String, i64)> {
        let messages: Vec<ChatMessage> = chat_message::newest(&self.site.app.db, &InstanceId::named("a0"), 10)
            .await
            .unwrap()
            .into_iter()
            .rev()
            .collect();
        assert!(messages.iter().all(|m| m.user_id.as_str() == self.user && m.unconfirmed == Unconfirmed::Stored));
        messages.into_iter().map(|m| (m.role, m.content, m.tokens)).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_forwarded_with_the_instances_own_key_and_both_sides_are_stored() {
    let reply = json!({"id": "chatcmpl-1", "model": "gpt-4o-2026", "choices": [{"message": {"role": "assistant",
        "content": "Hello to you"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 12, "completion_tokens": 3}});
    let chat = chat(answered("200 OK", &reply)).await;
    let said = chat.ask(json!({"instance_id": "a0", "message": "Hello there"})).ok().await;
    assert_eq!(said["content"], "Hello to you");
    assert_eq!((said["id"].as_str(), said["model"].as_str()), (Some("chatcmpl-1"), Some("gpt-4o-2026")));
    assert_eq!(said["usage"], json!({"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}));
    assert_eq!(said["finish_reason"], "stop");
    assert!(said["latency_ms"].is_i64());
    let heard = chat.gateway.heard();
    assert_eq!(heard.body["model"], "gpt-4o", "the instance's");
    assert_eq!(heard.body["messages"], json!([{"role": "user", "content": "Hello there"}]));
    assert!(heard.head.starts_with("POST /v1/chat/completions "));
    let keys = chat.site.admin.get("/keys").token(&chat.site.root).ok().await;
    assert_eq!((keys["total"].as_i64(), keys["list"][0]["name"].as_str()), (Some(1), Some("a0")), "made at first need");
    let key = store::gateway_key::named(&chat.site.app.db, "a0").await.unwrap().unwrap();
    let key = key.key(&chat.site.app.sealer).unwrap();
    used_secret(key.expose());
    assert!(heard.head.contains(&format!("Bearer {}", key.expose())), "with the instance's own key");
    assert_eq!(
        chat.messages().await,
        [(Role::User, "Hello there".into(), 0), (Role::Assistant, "Hello to you".into(), 3)]
    );

    // A whole conversation, another model; fields of a message that we do not know go along.
    let messages = json!([{"role": "system", "content": "Be brief"}, {"role": "user", "content": [{"type": "text", "text": "And you?"}], "name": "ada"}]);
    chat.ask(json!({"instance_id": "a0", "messages": messages, "model": "claude-opus-4-6"})).ok().await;
    assert_eq!(
        (&chat.gateway.heard().body["messages"], &chat.gateway.heard().body["model"]),
        (&messages, &json!("claude-opus-4-6"))
    );
    assert_eq!(chat.messages().await[2], (Role::User, "And you?".into(), 0));

    // One that names no model asks the one that its assistant uses.
    let body = json!({"id": "b0", "name": "Without a model", "server_id": "srv-a"});
    chat.site.admin.post("/assistant-instances", body).token(&chat.site.root).ok().await;
    chat.site.admin.patch("/instances/a0/assign", json!({"user_id": null})).token(&chat.site.root).ok().await;
    chat.site.admin.patch("/instances/b0/assign", json!({"user_id": chat.user})).token(&chat.site.root).ok().await;
    chat.ask(json!({"instance_id": "b0", "message": "Hello"})).ok().await;
    let b0 = store::instance::find(&chat.site.app.db, &base::id::InstanceId::named("b0")).await.unwrap().unwrap();
    let primary = fleet::assistant::access::models(&chat.site.app, &b0).await.unwrap().unwrap().primary;
    assert_eq!(chat.gateway.heard().body["model"], primary);
    chat.site.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_client_saved_first_is_stored_once() {
    let reply = json!({"choices": [{"message": {"content": "Hello to you"}}]});
    let chat = chat(answered("200 OK", &reply)).await;
    let save = |role: &str, words: &str| {
        let id = base::id::fresh();
        let body = json!({"instance_id": "a0", "role": role, "content": words, "session_key": "s", "client_id": id});
        chat.site.employee.post("/me/chat/save", body).token(&chat.token)
    };
    let ask = |words: &str| chat.ask(json!({"instance_id": "a0", "message": words}));
    let stored = async || chat_message::newest(&chat.site.app.db, &InstanceId::named("a0"), 100).await.unwrap();
    save("user", "Hello there").ok().await;
    ask("Hello there").ok().await;
    save("assistant", "Hello to you").ok().await;
    let all = stored().await;
    assert_eq!(all.len(), 2, "each of both once: {all:?}");
    assert!(all.iter().all(|m| m.session_key == "s" && m.unconfirmed == Unconfirmed::No), "{all:?}");
    ask("Hello there").ok().await;
    assert_eq!(stored().await.len(), 4, "said again, it is another");
    // Two of the same words at once: each has its own.
    save("user", "twice").ok().await;
    save("user", "twice").ok().await;
    let (one, two) = tokio::join!(ask("twice").send(), ask("twice").send());
    one.ok();
    two.ok();
    let count = |all: &[ChatMessage], words: &str| all.iter().filter(|m| m.content == words).count();
    assert_eq!(count(&stored().await, "twice"), 2);
    save("user", "later").ok().await;
    chat.site.wait(Duration::from_secs(61));
    ask("later").ok().await;
    assert_eq!(count(&stored().await, "later"), 2, "a minute later it is said again");
    // Of what is too long to be kept, the beginning is.
    ask(&"ä".repeat(200_000)).ok().await;
    assert!(stored().await.iter().all(|m| m.content.len() <= 256 * 1024));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_asked_is_refused_before_anything_is_stored() {
    let chat = chat(Script::Say(vec![])).await;
    for (body, code) in [
        (json!({"instance_id": "a0"}), "4000"),
        (json!({"instance_id": "a0", "message": "x", "messages": []}), "4000"),
        (json!({"instance_id": "a0", "message": "  "}), "4000"),
        (json!({"instance_id": "a0", "messages": []}), "4000"),
        (json!({"instance_id": "a0", "messages": [{"content": "x"}]}), "4000"),
        (json!({"instance_id": "a0", "messages": [{"role": "assistant", "content": "x"}]}), "4000"),
        (json!({"instance_id": "a0", "message": "x", "model": "gpt-9"}), "4000"),
        (json!({"instance_id": "a0", "message": "x", "model": "gpt\u{0}-4o"}), "4000"),
        (json!({"message": "x"}), "4000"),
        (json!({"instance_id": "a1", "message": "x"}), "4040"),
        (json!({"instance_id": "none", "message": "x"}), "4040"),
    ] {
        chat.ask(body).refused(code).await;
    }
    chat.site.admin.patch("/models/gpt-4o", json!({"enabled": false})).token(&chat.site.root).ok().await;
    chat.ask(json!({"instance_id": "a0", "message": "x"})).refused("4000").await;
    let long = "x".repeat(8 << 20);
    chat.ask(json!({"instance_id": "a0", "message": long})).refused("4130").await;
    assert!(chat.messages().await.is_empty());
    assert!(chat.gateway.heard.lock().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_passed_on_byte_for_byte_and_kept_before_its_end() {
    // With a comment, odd spaces, other line ends, unknown fields, letters cut in half, and the usage at the end.
    let text = "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}],\"x_odd\": [1,  2]}\n\n: keep-alive\n\n\
        data:{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Grüße, \"}}]}\r\n\r\nevent: message\ndata: {\"choices\":[{\"index\":0,\"delta\":\
        {\"content\":\"Welt\"}},{\"index\":1,\"delta\":{\"content\":\"not this\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\
        \"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4}}\n\ndata: [DONE]\n\n";
    let mut pieces = vec![EVENTS.as_bytes().to_vec()];
    pieces.extend(text.as_bytes().chunks(7).map(<[u8]>::to_vec));
    let chat = chat(Script::Say(pieces)).await;
    let response = chat.stream().await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let (mut passed, mut body) = (vec![], response.bytes_stream());
    while let Some(piece) = body.next().await {
        passed.extend_from_slice(&piece.unwrap());
        if String::from_utf8_lossy(&passed).contains("[DONE]") {
            let stored = chat.messages().await;
            assert_eq!(
                stored.last(),
                Some(&(Role::Assistant, "Grüße, Welt".into(), 4)),
                "stored before the end is passed on"
            );
        }
    }
    assert_eq!(String::from_utf8_lossy(&passed), text);
    let heard = chat.gateway.heard();
    assert_eq!((&heard.body["stream"], &heard.body["stream_options"]), (&json!(true), &json!({"include_usage": true})));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_breaks_off_ends_with_an_error_event_and_is_kept_as_far_as_it_came() {
    let begun = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Half an \"}}]}\n\n";
    let chat = chat(Script::Say(vec![EVENTS.as_bytes().to_vec(), begun.as_bytes().to_vec()])).await;
    let text = chat.stream().await.text().await.unwrap();
    let (passed, error) = text.split_once("event: error\ndata: ").unwrap();
    assert_eq!(passed, begun);
    let error: Value = serde_json::from_str(error).unwrap();
    assert_eq!(error, json!({"code": "5020", "data": null, "msg": "gateway error"}));
    assert_eq!(chat.messages().await[1], (Role::Assistant, "Half an ".into(), 0));
}

/// A model that never stopped was kept in memory for as long as it talked.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_end_is_ended() {
    let words = "on and on ".repeat(100_000);
    let piece = format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{words}\"}}}}]}}\n\n");
    let mut chat = chat(Script::Endless(EVENTS.as_bytes().to_vec(), piece.into_bytes())).await;
    let mut body = chat.stream().await.bytes_stream();
    let (mut came, mut last) = (0, vec![]);
    while let Some(bytes) = tokio::time::timeout(testkit::LIMIT, body.next()).await.expect("it never ended") {
        let bytes = bytes.unwrap();
        came += bytes.len();
        assert!(came < 80 << 20, "64 MiB are the most");
        last.extend_from_slice(&bytes);
        last.drain(..last.len().saturating_sub(200));
    }
    let last = String::from_utf8_lossy(&last).into_owned();
    assert!(last.contains("event: error") && last.contains("5020"), "{last}");
    assert!(tokio::time::timeout(testkit::LIMIT, chat.gateway.gone.recv()).await.is_ok(), "the gateway was never told");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_leaves_stops_the_model_and_keeps_what_was_said() {
    let piece = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"on and \"}}]}\n\n".to_vec();
    let mut chat = chat(Script::Endless(EVENTS.as_bytes().to_vec(), piece)).await;
    let mut body = chat.stream().await.bytes_stream();
    body.next().await.unwrap().unwrap();
    drop(body);
    let gone = tokio::time::timeout(testkit::LIMIT, chat.gateway.gone.recv()).await;
    assert!(gone.is_ok(), "the gateway was never told");
    let messages = chat.both_stored().await;
    assert!(messages[1].1.starts_with("on and "), "{messages:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_leaves_while_the_answer_is_stored_finds_it_all_the_same() {
    let first = vec![
        EVENTS.as_bytes().to_vec(),
        b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"all of it\"}}]}\n\n".to_vec(),
    ];
    let the_rest = Arc::new(Notify::new());
    let chat = chat(Script::Held(first, the_rest.clone(), vec![b"data: [DONE]\n\n".to_vec()])).await;
    // A connection of its own: the client hears on it that the server has let it go.
    let address = chat.site.employee.url.strip_prefix("http://").unwrap();
    let mut client = TcpStream::connect(address).await.unwrap();
    let question = json!({"instance_id": "a0", "message": "Hello there", "stream": true}).to_string();
    let request = format!(
        "POST /api/v1/me/chat HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{question}",
        chat.token,
        question.len()
    );
    client.write_all(request.as_bytes()).await.unwrap();
    let mut answer = vec![];
    while !String::from_utf8_lossy(&answer).contains("all of it") {
        assert!(client.read_buf(&mut answer).await.unwrap() > 0, "{}", String::from_utf8_lossy(&answer));
    }
    // The answer ends, and the database is somebody else's.
    let writing = chat.site.begin_patient().await;
    the_rest.notify_one();
    chat.site.until_blocked().await;
    client.shutdown().await.unwrap();
    // An error is as good: either way the server has ended the connection.
    let ended = tokio::time::timeout(testkit::LIMIT, client.read_to_end(&mut answer)).await;
    assert!(ended.is_ok(), "the server goes on for a client that is gone");
    assert!(!String::from_utf8_lossy(&answer).contains("[DONE]"), "the end is passed on before it is stored");
    drop(writing);
    assert_eq!(chat.both_stored().await[1].1, "all of it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_the_gateway_is_told_in_our_words() {
    let said = |code: &str| json!({"error": {"message": "daily quota used up: limit 5 tokens", "type": "tidepool", "code": code}});
    let chat = chat(Script::Say(vec![])).await;
    let mut asked = 0;
    for (status, body, code) in [
        ("429 Too Many Requests", said("insufficient_quota"), "4291"),
        ("429 Too Many Requests", said("rate_limit_exceeded"), "4290"),
        ("401 Unauthorized", said("invalid_api_key"), "5020"),
        // The account that all spend from: no employee's quota.
        ("403 Forbidden", said("insufficient_user_quota"), "5020"),
        ("403 Forbidden", said("pre_consume_token_quota_failed"), "4291"),
        ("400 Bad Request", said("context_length_exceeded"), "4000"),
        ("404 Not Found", said("model_not_found"), "4000"),
        ("500 Internal Server Error", said("boom"), "5020"),
        ("504 Gateway Timeout", said("slow"), "5040"),
        ("200 OK", json!({"odd": true}), "5020"),
    ] {
        *chat.gateway.script.lock().unwrap() = answered(status, &body);
        for stream in [false, true] {
            let reply = chat.ask(json!({"instance_id": "a0", "message": "x", "stream": stream})).send().await;
            assert_eq!(reply.json()["code"], code, "{status}, stream {stream}: {reply:?}");
            if status.starts_with("429") {
                assert_eq!(reply.header("retry-after"), "7");
            }
            asked += 1;
            let stored = chat_message::newest(&chat.site.app.db, &InstanceId::named("a0"), 100).await.unwrap();
            assert_eq!(stored.len(), asked, "{status}: each question is stored");
            assert!(stored.iter().all(|message| message.role == Role::User), "{status}: nothing else is: {stored:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_is_away_is_503_and_the_failure_is_recorded() {
    let site = Site::start(Database::sqlite()).await;
    site.instances("a", 1).await;
    let (user, token) = site.quick_employee("ada@example.com").await;
    site.admin.patch("/instances/a0/assign", json!({"user_id": user})).token(&site.root).ok().await;
    let ask = json!({"instance_id": "a0", "message": "x"});
    site.employee.post("/me/chat", ask).token(&token).refused("5030").await;
    let logs = site.employee.get("/me/usage/logs").token(&token).ok().await;
    assert_eq!((logs["total"].as_i64(), logs["logs"][0]["status"].as_str()), (Some(1), Some("error")));
    let shown = site.admin.get("/llm-logs").token(&site.root).ok().await;
    assert_eq!(shown["list"][0]["error_message"], "the LLM gateway cannot be reached");
    let summary = site.employee.get("/me/usage/summary").token(&token).ok().await;
    assert_eq!(summary["all_time"]["requests"], 0, "usage is not touched");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_keeps_its_newest_five_thousand_messages() {
    let reply = json!({"choices": [{"message": {"content": "new"}}]});
    let chat = chat(answered("200 OK", &reply)).await;
    let app = &chat.site.app;
    let mut tx = app.db.begin().await.unwrap();
    for i in 0..chat_message::KEPT {
        let message = ChatMessage {
            id: MessageId::fresh(),
            user_id: UserId::named(&chat.user),
            instance_id: InstanceId::named("a0"),
            role: Role::User,
            content: format!("old {i}"),
            tokens: 0,
            session_key: String::new(),
            client_id: None,
            unconfirmed: Unconfirmed::Stored,
            created_at: app.clock.now(),
        };
        chat_message::insert_unchecked(&mut tx, &message).await.unwrap();
    }
    tx.commit().await.unwrap();
    chat.site.wait(Duration::from_secs(1));
    chat.ask(json!({"instance_id": "a0", "message": "question"})).ok().await;
    let all = chat_message::newest(&app.db, &InstanceId::named("a0"), 10_000).await.unwrap();
    assert_eq!(all.len() as i64, chat_message::KEPT);
    let words: Vec<&str> = all.iter().map(|m| m.content.as_str()).collect();
    assert_eq!(words[..2], ["new", "question"]);
    assert_eq!((words.last(), words.contains(&"old 1")), (Some(&"old 2"), false), "the oldest two are gone");
}
