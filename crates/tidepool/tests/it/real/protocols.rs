//! The real OpenClaw with the model access that the platform writes asks each model in its own protocol, through the embedded
//! gateway: pictures, tools, thinking and caches arrive, and what is counted is the upstream's bill.

use std::path::Path;

use base::id::InstanceId;
use base::{Clock, Secret};
use fleet::assistant::access;
use openclaw::{Document, Version};
use serde_json::{Value, json};
use store::request_log::{self, Request};

use super::gateway::sub_key;
use super::openclaw::OpenClaw;
use super::upstream::{Bill, SIGNATURE, Upstream};
use crate::kit::{PASSWORD, Process, used_secret};

/// A red square of 8 × 8 pixels.
const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEklEQVR4nGP4z8CAFWEXHbQSACj/P8Fu7N9hAAAAAElFTkSuQmCC";
const KEY: &str = "sk-upstream-0123456789abcdef";

/// A model, how agents name it, where it is asked, and its prices in dollars per million tokens: input, cache read, cache write,
/// output.
struct Case {
    model: &'static str,
    reference: &'static str,
    path: &'static str,
    /// How a picture looks there, and the signed thought that comes back.
    picture: &'static str,
    thought: Option<Value>,
    prices: [f64; 4],
}

fn cases() -> [Case; 3] {
    [
        Case {
            model: "claude-sonnet-4-6",
            reference: "tidepool-anthropic/claude-sonnet-4-6",
            path: "/v1/messages",
            picture: r#""type":"image""#,
            thought: Some(json!({"signature": SIGNATURE})),
            prices: [3.0, 0.3, 3.75, 15.0],
        },
        Case {
            model: "gpt-5",
            reference: "tidepool-responses/gpt-5",
            path: "/v1/responses",
            picture: r#""type":"input_image""#,
            thought: Some(json!({"encrypted_content": SIGNATURE})),
            prices: [1.25, 0.125, 1.25, 10.0],
        },
        Case {
            model: "gpt-4o",
            reference: "tidepool/gpt-4o",
            path: "/v1/chat/completions",
            picture: r#""type":"image_url""#,
            thought: None,
            prices: [2.5, 1.25, 2.5, 10.0],
        },
    ]
}

/// The platform with its providers at one address, an employee with an assistant, and the models that the cases ask.
async fn platform(folder: &Path, upstream: &Upstream) -> (Process, String) {
    let mut server = Process::serve(
        folder,
        &[
            ("TIDEPOOL_BOOTSTRAP_ADMIN_EMAIL", "root@example.com"),
            ("TIDEPOOL_BOOTSTRAP_ADMIN_PASSWORD", PASSWORD),
            ("TIDEPOOL_PROVIDER_ANTHROPIC_URL", &upstream.url),
            ("TIDEPOOL_PROVIDER_ANTHROPIC_KEY", KEY),
            ("TIDEPOOL_PROVIDER_OPENAI_URL", &upstream.url),
            ("TIDEPOOL_PROVIDER_OPENAI_KEY", KEY),
        ],
    );
    server.ready().await;
    let login = json!({"email": "root@example.com", "password": PASSWORD});
    let root = server.admin.post("/auth/login", login).ok().await["token"].as_str().unwrap().to_owned();
    let post = async |path: &str, body: Value| server.admin.post(path, body).token(&root).ok().await;
    for model in ["gpt-5", "text-embedding-3-small"] {
        post("/models", json!({"id": model, "from_table": model})).await;
    }
    let machine = post("/servers", json!({"name": "Here", "host": "local"})).await;
    let instance = json!({"id": "real-1", "name": "Real", "server_id": machine["id"], "model": "claude-sonnet-4-6"});
    post("/assistant-instances", instance).await;
    let user = json!({"email": "ada@example.com", "name": "Ada", "department": "Tests", "password": PASSWORD});
    let user = post("/users", user).await;
    post(&format!("/users/{}/assign-instance", user["id"].as_str().unwrap()), json!({"instance_id": "real-1"})).await;
    post("/keys", json!({"instance_id": "real-1"})).await;
    (server, root)
}

async fn database(folder: &Path) -> store::Db {
    let url = Secret::new(format!("sqlite:{}", folder.join("data/tidepool.db").display()));
    store::Db::open(&url).await.unwrap()
}

/// What the platform writes of models into the instance's configuration.
async fn written(folder: &Path, gateway: &str) -> Value {
    let engine = queue::App::for_tests(database(folder).await, Clock::default()).unwrap();
    let people = people::App::for_tests(llm::App::for_tests(engine).unwrap()).unwrap();
    let mut app = fleet::App::for_tests(people).unwrap();
    app.assistants.gateway_url = format!("http://{gateway}");
    let instance = store::instance::find(&app.db, &InstanceId::named("real-1")).await.unwrap().unwrap();
    let models = access::models(&app, &instance).await.unwrap().unwrap();
    let access = models.access(&app, Secret::new(sub_key(folder, "real-1").await));
    let mut document = Document::empty();
    access.apply(&mut document, &Version::TESTED).unwrap();
    document.value()
}

/// A person's conversation with an assistant.
struct Conversation<'a> {
    assistant: &'a OpenClaw,
    http: &'a reqwest::Client,
    of: &'a Case,
}

impl Conversation<'_> {
    async fn say(&self, content: Value) -> String {
        let ask = json!({"model": "openclaw", "messages": [{"role": "user", "content": content}]});
        let request = self
            .http
            .post(format!("{}/v1/chat/completions", self.assistant.url))
            .bearer_auth(&self.assistant.token)
            .header("x-openclaw-model", self.of.reference)
            .header("x-openclaw-session-key", format!("agent:main:{}", self.of.model))
            .json(&ask);
        let answer: Value = request.send().await.unwrap().json().await.unwrap();
        let said = answer["choices"][0]["message"]["content"].as_str();
        said.unwrap_or_else(|| panic!("{}: {answer}", self.of.reference)).to_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_model_is_asked_in_its_protocol_and_billed_to_the_token() {
    used_secret(KEY);
    let (folder, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let upstream = Upstream::start().await;
    let (server, _) = platform(folder.path(), &upstream).await;
    let mut config = written(folder.path(), &server.gateway).await;
    let defaults = &mut config["agents"]["defaults"];
    assert_eq!(defaults["model"]["primary"], "tidepool-anthropic/claude-sonnet-4-6");
    defaults["skipBootstrap"] = json!(true);
    defaults["thinkingDefault"] = json!("low");
    let workspace = home.path().join(".openclaw/workspace");
    std::fs::create_dir_all(&workspace).unwrap();
    std::fs::write(workspace.join("note.txt"), "the pearl is in the oyster\n").unwrap();
    let mut assistant = OpenClaw::start(home.path(), &config);
    let http = reqwest::Client::new();
    assistant.ready(&http, home.path()).await;

    for case in &cases() {
        let talk = Conversation { assistant: &assistant, http: &http, of: case };
        let picture = json!([{"type": "text", "text": "what do you see?"},
            {"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{PICTURE}")}}]);
        assert_eq!(talk.say(picture).await, "I see a picture", "{}", case.reference);
        let read = talk.say(json!("please read note.txt")).await;
        assert_eq!(read, "it says: the pearl is in the oyster", "{}", case.reference);
        assert_eq!(talk.say(json!("and now?")).await, "I see no picture", "{}", case.reference);
        looks_right(case, &upstream);
    }
    // Whatever names a model by the entry of all models is answered, too.
    let older = Case {
        reference: "tidepool/gpt-5",
        model: "gpt-5",
        path: "/v1/chat/completions",
        ..cases().into_iter().nth(2).unwrap()
    };
    let talk = Conversation { assistant: &assistant, http: &http, of: &older };
    assert_eq!(talk.say(json!("and in the older entry?")).await, "I see no picture");

    let embed = json!({"model": "openclaw", "input": "low water at six"});
    let request = http.post(format!("{}/v1/embeddings", assistant.url)).bearer_auth(&assistant.token).json(&embed);
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    assert!(answer["data"][0]["embedding"].is_array(), "{answer}");
    assert!(!upstream.asked("/v1/embeddings").is_empty(), "texts for its memory go through the gateway");

    is_billed(folder.path(), &server, &upstream).await;
}

/// What arrived at the upstream in a conversation.
fn looks_right(case: &Case, upstream: &Upstream) {
    let asked: Vec<Value> = upstream.asked(case.path).into_iter().filter(|body| body["model"] == case.model).collect();
    assert!(asked.iter().any(|body| body.to_string().contains(case.picture)), "{}: no picture", case.reference);
    let last = asked.last().unwrap().to_string();
    if let Some(thought) = &case.thought {
        let (name, value) = thought.as_object().unwrap().iter().next().unwrap();
        assert!(
            last.contains(&format!("\"{name}\":{value}")),
            "{}: the thought did not come back: {last}",
            case.reference
        );
    }
    let bills = upstream.bills(case.model);
    assert!(bills.len() >= 4, "{}: {bills:?}", case.reference);
    assert!(
        bills[1..].iter().all(|bill| bill.cache_read > 0),
        "{}: a later turn reads no cache: {bills:?}",
        case.reference
    );
    assert!(case.thought.is_none() || bills.iter().all(|bill| bill.reasoning > 0), "{}: {bills:?}", case.reference);
}

/// The log has every request, with the upstream's counts and its price, and the employee sees as many.
async fn is_billed(folder: &Path, server: &Process, upstream: &Upstream) {
    let embedding = ("text-embedding-3-small", [0.02, 0.0, 0.0, 0.0]);
    let (db, all) = (database(folder).await, base::Page { offset: 0, limit: 1000 });
    let rows = testkit::until_ok("the last request is in the log", async || {
        let rows = request_log::list(&db, &Default::default(), all).await.unwrap();
        if rows.iter().any(|row| row.model == embedding.0) { Ok(rows) } else { Err(rows.len()) }
    })
    .await;
    for (model, prices) in cases().iter().map(|case| (case.model, case.prices)).chain([embedding]) {
        let of_it: Vec<&Request> = rows.iter().filter(|row| row.model == model).collect();
        let bills = upstream.bills(model);
        assert_eq!(of_it.len(), bills.len(), "{model}: {of_it:?}");
        let counted = |of: fn(&Request) -> i64| of_it.iter().map(|row| of(row)).sum::<i64>();
        let billed = |of: fn(&Bill) -> i64| bills.iter().map(of).sum::<i64>();
        let all_input = billed(|bill| bill.input + bill.cache_read + bill.cache_write);
        assert_eq!(counted(|row| row.prompt_tokens), all_input, "{model}");
        assert_eq!(counted(|row| row.completion_tokens), billed(|bill| bill.output), "{model}");
        let from_cache = counted(|row| row.cache_read_tokens.unwrap_or(0));
        assert_eq!(from_cache, billed(|bill| bill.cache_read), "{model}");
        assert_eq!(counted(|row| row.cache_write_tokens.unwrap_or(0)), billed(|bill| bill.cache_write), "{model}");
        // Anthropic does not say how much of its output is thinking.
        if model != "claude-sonnet-4-6" {
            assert_eq!(counted(|row| row.reasoning_tokens.unwrap_or(0)), billed(|bill| bill.reasoning), "{model}");
        }
        let [input, read, write, output] = prices;
        let cost = |bill: &Bill| {
            let cached = bill.cache_read as f64 * read + bill.cache_write as f64 * write;
            bill.input as f64 * input + cached + bill.output as f64 * output
        };
        let cost = bills.iter().map(cost).sum::<f64>() * 1e3;
        let exact = counted(|row| row.quota * 2_000 + row.quota_rest);
        // Each row is rounded to a billionth of a dollar.
        assert!((cost - exact as f64).abs() <= bills.len() as f64, "{model}: {cost} {exact} billionths of a dollar");
        println!(
            "{model}: {} requests, {from_cache} of {all_input} input tokens from the cache, {exact} nano$",
            bills.len()
        );
    }
    let login = json!({"email": "ada@example.com", "password": PASSWORD});
    let token = server.employee.post("/auth/login", login).ok().await["token"].as_str().unwrap().to_owned();
    let usage = server.employee.get("/me/usage/summary").token(&token).ok().await;
    let tokens: i64 = rows.iter().map(|row| row.prompt_tokens + row.completion_tokens).sum();
    assert_eq!(usage["today"]["total_tokens"].as_i64(), Some(tokens), "{usage}");
}
