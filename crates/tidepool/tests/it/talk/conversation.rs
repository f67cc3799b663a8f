//! Conversations through the relay: streamed, aborted, taken up again, by two at once, and over a server's SSH connection.

use serde_json::{Value, json};
use testkit::until;

use crate::kit::talk::{Client, Closed, MAIN, Talk, browse, own_address, ticket, words};
use crate::kit::{Database, Options};

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_streamed_and_the_token_stays_with_us() {
    let talk = Talk::start(Database::sqlite()).await;
    let mut client = Client::open(&talk.site.employee, "a0", &talk.ticket().await, &[]).await.unwrap();
    // A browser that does not wait for the hello.
    client.ask("chat.history", json!({"sessionKey": MAIN})).await;
    let hello = client.event("relay.hello").await;
    assert_eq!((&hello["protocol"], &hello["server"]["version"]), (&json!(4), &json!("2026.9.6")));
    assert_eq!(hello["policy"]["maxPayload"], 26_214_400);
    assert_eq!(hello["policy"]["attachments"], json!({"maxBytes": 19_464_192, "maxImageBytes": 6_291_456}));
    let methods: Vec<&str> = hello["methods"].as_array().unwrap().iter().map(|m| m.as_str().unwrap()).collect();
    assert!(methods.contains(&"chat.send") && !methods.contains(&"config.set"), "{methods:?}");

    assert_eq!(client.send("run-1", "Grüße, 🌊").await, json!({"runId": "run-1", "status": "started"}));
    let first = client.chat("run-1", "delta").await;
    assert_eq!((&first["deltaText"], words(&first)), (&json!("You "), "You "));
    let second = client.chat("run-1", "delta").await;
    assert_eq!((&second["deltaText"], words(&second)), (&json!("said: "), "You said: "));
    let whole = client.chat("run-1", "final").await;
    assert_eq!(words(&whole), "You said: Grüße, 🌊");
    let history = client.request("chat.history", json!({"sessionKey": MAIN})).await.unwrap();
    assert_eq!(history["messages"].as_array().unwrap().len(), 2);
    let made = client.request("sessions.create", json!({"key": "agent:main:work", "label": "Work"})).await.unwrap();
    assert_eq!(made["key"], "agent:main:work");
    let listed = client.request("sessions.list", json!({})).await.unwrap();
    assert_eq!(listed["count"], 2);
    client.request("models.list", json!({})).await.unwrap();
    // What is not on the list is not passed on, also where the gateway would have taken it.
    for method in ["config.get", "health", "sessions.delete", "connect", "exec.approvals.set", ""] {
        let refused = client.request(method, json!({})).await.unwrap_err();
        assert_eq!(refused["code"], "FORBIDDEN", "{method}: {refused}");
    }
    assert!(!client.heard.contains(&talk.gateway_token));
    let connects = talk.assistant.connects();
    assert_eq!(connects.len(), 1, "one handshake, ours");
    let (headers, params) = (connects[0]["headers"].to_string(), &connects[0]["params"]);
    assert!(!headers.contains("origin") && !headers.contains("forwarded"), "{headers}");
    assert_eq!(params["client"]["mode"], "backend");
    assert_eq!(params["scopes"], json!(["operator.read", "operator.write"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_aborted() {
    let talk = Talk::start(Database::sqlite()).await;
    let mut client = talk.connect().await;
    client.send("run-1", "count 1000").await;
    client.chat("run-1", "delta").await;
    let aborted = client.request("chat.abort", json!({"sessionKey": MAIN, "runId": "run-1"})).await.unwrap();
    assert_eq!(aborted, json!({"ok": true, "aborted": true, "runIds": ["run-1"]}));
    let event = client.chat("run-1", "aborted").await;
    assert!(words(&event).starts_with("word1 "));
    let again = client.request("chat.abort", json!({"sessionKey": MAIN, "runId": "run-1"})).await.unwrap();
    assert_eq!(again["aborted"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_drops_in_the_middle_is_taken_up_where_the_answer_is() {
    let talk = Talk::start(Database::sqlite()).await;
    let mut client = talk.connect().await;
    client.send("run-1", "count 30").await;
    client.chat("run-1", "delta").await;
    client.chat("run-1", "delta").await;
    // The answer stands in the middle while nobody is there.
    talk.assistant.set_paused(true);
    // Gone without a word.
    drop(client);
    until("its place is given back", async || talk.site.app.sockets.count() == 0).await;
    let mut client = talk.connect().await;
    let history = client.request("chat.history", json!({"sessionKey": MAIN})).await.unwrap();
    let so_far = history["inFlightRun"]["text"].as_str().unwrap().to_owned();
    assert_eq!(history["inFlightRun"]["runId"], "run-1");
    assert!(so_far.starts_with("word1 word2 "), "{so_far}");
    // Sent again, since nobody knows whether it arrived.
    assert_eq!(client.send("run-1", "count 30").await["status"], "in_flight");
    talk.assistant.set_paused(false);
    let next = client.chat("run-1", "delta").await;
    assert!(words(&next).starts_with(&so_far), "the next delta has the whole message so far");
    let whole = client.chat("run-1", "final").await;
    let expected: String = (1..=30).map(|i| format!("word{i} ")).collect();
    assert_eq!(words(&whole), expected);
    assert_eq!(client.send("run-1", "count 30").await["status"], "ok");
    assert_eq!(talk.assistant.runs().await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_restarts_in_the_middle_says_so_and_is_found_again() {
    let mut talk = Talk::start(Database::sqlite()).await;
    let mut client = talk.connect().await;
    client.send("run-1", "count 1000").await;
    client.chat("run-1", "delta").await;
    talk.assistant.stop().await;
    assert_eq!(client.event("shutdown").await["reason"], "gateway restarting");
    assert_eq!(client.closed().await, Closed(1012, "service restart".into()));
    // Nobody is there.
    let mut client = Client::open(&talk.site.employee, "a0", &talk.ticket().await, &[]).await.unwrap();
    assert_eq!(client.closed().await, Closed(1011, "the instance does not answer".into()));
    talk.assistant.resume().await.unwrap();
    talk.assistant.set_starting(true);
    let mut client = Client::open(&talk.site.employee, "a0", &talk.ticket().await, &[]).await.unwrap();
    assert_eq!(client.closed().await, Closed(1013, "the instance is starting".into()));
    // One that is ready soon is waited for: it was asked, and said that it is starting.
    let asked = talk.assistant.connects().len();
    let mut client = Client::open(&talk.site.employee, "a0", &talk.ticket().await, &[]).await.unwrap();
    until("it was asked", async || talk.assistant.connects().len() > asked).await;
    talk.assistant.set_starting(false);
    client.event("relay.hello").await;
    let history = client.request("chat.history", json!({"sessionKey": MAIN})).await.unwrap();
    assert!(history["messages"][1]["openclawAbort"].is_object(), "what was said until then is kept");
    client.send("run-2", "hello again").await;
    assert_eq!(words(&client.chat("run-2", "final").await), "You said: hello again");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_at_once_see_the_same_and_each_gets_own_answers() {
    let talk = Talk::start(Database::sqlite()).await;
    let (mut one, mut two) = (talk.connect().await, talk.connect().await);
    one.send("run-1", "count 30").await;
    two.send("run-2", "count 30").await;
    let expected: String = (1..=30).map(|i| format!("word{i} ")).collect();
    for client in [&mut one, &mut two] {
        let (mut first, mut second) = (None::<Value>, None::<Value>);
        while first.is_none() || second.is_none() {
            let event = client.event("chat").await;
            match (event["runId"].as_str(), event["state"].as_str()) {
                (Some("run-1"), Some("final")) => first = Some(event),
                (Some("run-2"), Some("final")) => second = Some(event),
                _ => {}
            }
        }
        assert_eq!((words(&first.unwrap()), words(&second.unwrap())), (expected.as_str(), expected.as_str()));
    }
    assert_eq!(talk.assistant.connections(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_token_and_a_gateway_that_grants_nothing_are_told_without_secrets() {
    let talk = Talk::start(Database::sqlite()).await;
    let patch = json!({"gateway_token": "another-token-than-its-own"});
    talk.site.admin.patch("/assistant-instances/a0", patch).token(&talk.site.root).ok().await;
    let mut client = Client::open(&talk.site.employee, "a0", &talk.ticket().await, &[]).await.unwrap();
    assert_eq!(client.closed().await, Closed(1011, "the instance refused".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn files_pass_up_to_what_the_gateway_allows() {
    let talk = Talk::start(Database::sqlite()).await;
    let mut client = talk.connect().await;
    let file = |kind: &str, name: &str, bytes: usize| json!({"type": kind, "mimeType": "text/plain", "fileName": name, "content": "QUJD".repeat(bytes / 3)});
    let send = |run: &str, file: Value| json!({"sessionKey": MAIN, "message": "look", "idempotencyKey": run, "attachments": [file]});
    client.request("chat.send", send("run-1", file("file", "big.txt", 19_000_000))).await.unwrap();
    client.chat("run-1", "final").await;
    let history = client.request("chat.history", json!({"sessionKey": MAIN})).await.unwrap();
    let media = &history["messages"][0]["__openclaw"]["media"][0];
    assert_eq!((&media["fileName"], media["sizeBytes"].as_i64().unwrap() / 1000), (&json!("big.txt"), 18_999));
    let refused = client.request("chat.send", send("run-2", file("image", "big.png", 7_026_438))).await.unwrap_err();
    assert!(
        refused["message"].as_str().unwrap().contains("image exceeds size limit (7026438 > 6291456 bytes)"),
        "{refused}"
    );
    // The socket is as good as before.
    client.send("run-3", "still there").await;
    client.chat("run-3", "final").await;
}

/// An instance b0 of bob's on a server that nobody can log in to, at `url`; answers bob's token.
async fn away(talk: &Talk, url: &str) -> String {
    let site = &talk.site;
    let server = json!({"id": "away", "name": "Away", "host": "198.51.100.1"});
    site.admin.post("/servers", server).token(&site.root).ok().await;
    let instance = json!({"id": "b0", "name": "Straight", "server_id": "away", "gateway_url": url, "gateway_token": talk.gateway_token});
    site.admin.post("/assistant-instances", instance).token(&site.root).ok().await;
    let (user, token) = site.quick_employee("bob@example.com").await;
    site.admin.patch("/instances/b0/assign", json!({"user_id": user})).token(&site.root).ok().await;
    token
}

async fn enter(talk: &Talk, token: &str) -> Client {
    let employee = &talk.site.employee;
    Client::open(employee, "b0", &ticket(employee, token, "b0").await, &[]).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_way_over_its_server_the_gateway_is_asked_straight() {
    let Some(address) = own_address(module_path!()) else { return };
    let talk = Talk::with(Database::sqlite(), Options::default(), |options| {
        (options.address, options.path) = (address, "/a");
    })
    .await;
    let site = &talk.site;
    let port = talk.assistant.port;
    // An address at which nobody listens.
    let token = away(&talk, &format!("ws://{address}:1")).await;
    assert_eq!(enter(&talk, &token).await.closed().await, Closed(1011, "the instance cannot be reached".into()));
    let to = |url: String| site.admin.patch("/assistant-instances/b0", json!({"gateway_url": url})).token(&site.root);
    to(format!("ws://{address}:{port}")).ok().await;
    assert_eq!(
        enter(&talk, &token).await.closed().await,
        Closed(1011, "the instance does not answer".into()),
        "another gateway of the same host is another"
    );
    // What stands before the host is nobody's to know.
    to(format!("ws://user:password@{address}:{port}/a")).ok().await;
    let mut client = enter(&talk, &token).await;
    client.event("relay.hello").await;
    client.send("run-1", "straight").await;
    assert_eq!(words(&client.chat("run-1", "final").await), "You said: straight");
    let headers = talk.assistant.connects()[0]["headers"].to_string();
    assert!(headers.contains(&format!("host: {address}:{port}")) && !headers.contains("password"), "{headers}");
    // Its page is below the same path.
    let ticket = site.employee.post("/me/instances/b0/embed-ticket", json!({})).token(&token).ok().await;
    let url = ticket["url"].as_str().unwrap().split('#').next().unwrap().replace("/chat/main", "/assets/index.js");
    let script = browse(&site.employee.http, &url).send().await.unwrap();
    assert_eq!((script.status().as_u16(), script.text().await.unwrap().as_str()), (200, "import './more.js';\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_gateway_url_leads_to_the_platform_itself() {
    let talk = Talk::start(Database::sqlite()).await;
    let site = &talk.site;
    let port = talk.assistant.port;
    let token = away(&talk, &format!("ws://127.0.0.1:{port}")).await;
    let to = |url: &str| site.admin.patch("/assistant-instances/b0", json!({"gateway_url": url})).token(&site.root);
    // What no instance can have is not taken.
    for bad in
        ["ws://0.0.0.0:1", "http://169.254.169.254/", "ws://[fe80::1]:1", "http://[::ffff:169.254.169.254]", "ws://0:1"]
    {
        to(bad).refused("4000").await;
    }
    // Loopback is the server's own, however it is spelled: there is no way to it but over the server.
    for own in ["127.0.0.1", "127.1", "2130706433", "[::ffff:127.0.0.1]", "localhost", "a.localhost"] {
        to(&format!("ws://{own}:{port}")).ok().await;
        let Closed(code, reason) = enter(&talk, &token).await.closed().await;
        assert_eq!((code, reason.contains("no SSH key")), (1011, true), "{own}: {reason}");
    }
    assert_eq!(talk.assistant.connections(), 0);
    assert!(talk.assistant.connects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_platform_that_stops_tells_everybody_to_come_back() {
    let talk = Talk::with(Database::sqlite(), Options::default(), |_| {}).await;
    let mut client = talk.connect().await;
    talk.site.app.sockets.close();
    assert_eq!(client.closed().await, Closed(1012, "the platform is restarting".into()));
}
