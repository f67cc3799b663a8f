//! A model provider for the real OpenClaw: OpenAI and Anthropic at once, by their public documents. It streams, thinks,
//! calls a tool, caches by each provider's own rules, keeps what it was asked and writes a bill.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};

/// What a thought is signed with. It must come back as it is.
pub const SIGNATURE: &str = "c2lnbmVkLWJ5LXRoZS11cHN0cmVhbQ==";
/// The shortest prefix that is cached.
const LEAST_CACHED: i64 = 1024;
/// The tokens of a thought.
const THOUGHT: i64 = 17;

/// What a request costs, each token counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bill {
    pub input: i64,
    pub cache_read: i64,
    pub cache_write: i64,
    pub output: i64,
    pub reasoning: i64,
}

#[derive(Default)]
struct Kept {
    asked: Vec<(String, Value)>,
    bills: HashMap<String, Vec<Bill>>,
    /// The prefixes that are cached.
    cached: std::collections::HashSet<String>,
}

#[derive(Clone)]
pub struct Upstream {
    pub url: String,
    kept: Arc<Mutex<Kept>>,
}

impl Upstream {
    pub async fn start() -> Upstream {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let upstream = Upstream { url, kept: Arc::default() };
        let router = Router::new()
            .route("/v1/messages", post(messages))
            .route("/v1/responses", post(responses))
            .route("/v1/chat/completions", post(chat))
            .route("/v1/embeddings", post(embeddings))
            .layer(axum::extract::DefaultBodyLimit::max(32 << 20))
            .with_state(upstream.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        upstream
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap()
    }

    /// The bodies of the requests at a path.
    pub fn asked(&self, path: &str) -> Vec<Value> {
        self.kept().asked.iter().filter(|(at, _)| at == path).map(|(_, body)| body.clone()).collect()
    }

    /// The bills of a model.
    pub fn bills(&self, model: &str) -> Vec<Bill> {
        self.kept().bills.get(model).cloned().unwrap_or_default()
    }

    fn keep(&self, path: &str, body: &Value) {
        self.kept().asked.push((path.to_owned(), body.clone()));
    }

    /// Bills a request. Anthropic caches what is marked, and bills the writing; OpenAI caches by itself.
    fn bill(&self, body: &Value, parts: &[Value], is_marked: bool, said: &Said) -> Bill {
        let model = body["model"].as_str().unwrap_or_default().to_owned();
        let (mut prefix, mut all, mut read, mut marked) = (model.clone(), 0, 0, 0);
        let mut kept = self.kept();
        let mut new = vec![];
        for part in parts {
            let mut plain = part.clone();
            let is_mark = plain.as_object_mut().is_some_and(|map| map.remove("cache_control").is_some());
            let text = plain.to_string();
            all += tokens(&text);
            prefix = format!("{:x}", md(&(prefix + &text)));
            if (is_mark || !is_marked) && all >= LEAST_CACHED {
                if kept.cached.contains(&prefix) {
                    read = all;
                }
                marked = all;
                new.push(prefix.clone());
            }
        }
        kept.cached.extend(new);
        let written = if is_marked { (marked - read).max(0) } else { 0 };
        let bill = Bill {
            input: all - read - written,
            cache_read: read,
            cache_write: written,
            output: tokens(&said.text()) + if said.thinks { THOUGHT } else { 0 },
            reasoning: if said.thinks { THOUGHT } else { 0 },
        };
        kept.bills.entry(model).or_default().push(bill);
        bill
    }
}

fn tokens(text: &str) -> i64 {
    text.len() as i64 / 4 + 1
}

fn md(text: &str) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// What the model says.
struct Said {
    thinks: bool,
    words: String,
    /// A file to be read with the tool.
    reads: Option<String>,
}

impl Said {
    /// By the last thing that it heard: the result of its tool, or a person's words.
    fn to(last: &str, thinks: bool, has_image: bool) -> Said {
        let said = |words: String| Said { thinks, words, reads: None };
        if let Some((_, file)) = last.rsplit_once("please read ") {
            // The text stands in JSON: a quote ends it.
            let file = file.chars().take_while(|c| !c.is_whitespace() && !"\"\\".contains(*c)).collect();
            return Said { thinks, words: String::new(), reads: Some(file) };
        }
        if last.contains("the pearl is in the oyster") {
            return said("it says: the pearl is in the oyster".into());
        }
        said(if has_image { "I see a picture".into() } else { "I see no picture".into() })
    }

    fn arguments(&self) -> String {
        json!({"path": self.reads.as_deref().unwrap_or_default()}).to_string()
    }

    fn text(&self) -> String {
        if self.reads.is_some() { self.arguments() } else { self.words.clone() }
    }
}

/// The last thing that was said, without what OpenClaw adds about itself.
fn last_said(turns: &[Value]) -> String {
    let texts = turns.iter().rev().map(Value::to_string);
    texts.into_iter().find(|text| !text.contains("OPENCLAW_INTERNAL_CONTEXT")).unwrap_or_default()
}

fn stream(events: impl IntoIterator<Item = String>) -> Response {
    ([(CONTENT_TYPE, "text/event-stream")], events.into_iter().collect::<String>()).into_response()
}

/// An event with the name of its type.
fn named(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())
}

/// The parts of a content: a text is one part.
fn parts_of(content: &Value) -> Vec<Value> {
    match content {
        Value::Array(list) => list.clone(),
        Value::Null => vec![],
        other => vec![json!({"type": "text", "text": other})],
    }
}

async fn messages(State(upstream): State<Upstream>, Json(body): Json<Value>) -> Response {
    upstream.keep("/v1/messages", &body);
    let said_by = |message: &Value| {
        parts_of(&message["content"])
            .into_iter()
            .map(|mut part| {
                // What a person and what a model says are different prefixes.
                part["role"] = message["role"].clone();
                part
            })
            .collect::<Vec<_>>()
    };
    let turns = body["messages"].as_array().cloned().unwrap_or_default();
    let mut parts = parts_of(&body["tools"]);
    parts.extend(parts_of(&body["system"]));
    parts.extend(turns.iter().flat_map(said_by));
    let last = last_said(&turns);
    let thinks = body["thinking"]["type"].as_str().is_some_and(|kind| kind != "disabled");
    let said = Said::to(&last, thinks, last.contains("\"image\""));
    let bill = upstream.bill(&body, &parts, true, &said);
    let id = base::id::fresh();
    let usage = json!({"input_tokens": bill.input, "cache_read_input_tokens": bill.cache_read,
        "cache_creation_input_tokens": bill.cache_write, "output_tokens": 1});
    let mut events = vec![json!({"type": "message_start", "message": {"id": format!("msg_{id}"), "type": "message",
        "role": "assistant", "model": body["model"], "content": [], "stop_reason": null, "usage": usage}})];
    let mut blocks: Vec<(Value, Vec<Value>)> = vec![];
    if thinks {
        blocks.push((
            json!({"type": "thinking", "thinking": "", "signature": ""}),
            vec![
                json!({"type": "thinking_delta", "thinking": "let me see"}),
                json!({"type": "signature_delta", "signature": SIGNATURE}),
            ],
        ));
    }
    blocks.push(match &said.reads {
        Some(_) => (
            json!({"type": "tool_use", "id": format!("toolu_{id}"), "name": "read", "input": {}}),
            vec![json!({"type": "input_json_delta", "partial_json": said.arguments()})],
        ),
        None => (json!({"type": "text", "text": ""}), vec![json!({"type": "text_delta", "text": said.words})]),
    });
    for (index, (block, deltas)) in blocks.into_iter().enumerate() {
        events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        events.extend(
            deltas.into_iter().map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})),
        );
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let reason = if said.reads.is_some() { "tool_use" } else { "end_turn" };
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
        "usage": {"output_tokens": bill.output}}));
    events.push(json!({"type": "message_stop"}));
    stream(events.iter().map(named))
}

async fn responses(State(upstream): State<Upstream>, Json(body): Json<Value>) -> Response {
    upstream.keep("/v1/responses", &body);
    let input = body["input"].as_array().cloned().unwrap_or_default();
    let mut parts = parts_of(&body["tools"]);
    parts.extend(parts_of(&body["instructions"]));
    parts.extend(input.clone());
    let last = last_said(&input);
    let thinks = body["reasoning"]["effort"].as_str().is_some_and(|effort| effort != "none");
    let said = Said::to(&last, thinks, last.contains("input_image"));
    let bill = upstream.bill(&body, &parts, false, &said);
    let id = base::id::fresh();
    let mut items = vec![];
    if thinks {
        items.push(
            json!({"type": "reasoning", "id": format!("rs_{id}"), "summary": [], "encrypted_content": SIGNATURE}),
        );
    }
    items.push(match &said.reads {
        Some(_) => {
            json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": format!("call_{id}"), "name": "read",
            "arguments": said.arguments(), "status": "completed"})
        }
        None => json!({"type": "message", "id": format!("msg_{id}"), "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": said.words, "annotations": []}]}),
    });
    let response = |status: &str, output: &[Value], usage: Value| {
        json!({"id": format!("resp_{id}"), "object": "response",
        "created_at": 1_790_000_000, "status": status, "model": body["model"], "output": output, "usage": usage, "store": false})
    };
    let mut events = vec![json!({"type": "response.created", "response": response("in_progress", &[], Value::Null)})];
    for (index, item) in items.iter().enumerate() {
        let mut begun = item.clone();
        match item["type"].as_str().unwrap() {
            "message" => begun["content"] = json!([]),
            "function_call" => begun["arguments"] = json!(""),
            _ => {}
        }
        events.push(json!({"type": "response.output_item.added", "output_index": index, "item": begun}));
        let of = json!({"item_id": item["id"], "output_index": index, "content_index": 0});
        let about = |more: Value| {
            let mut event = of.clone();
            event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            event
        };
        match item["type"].as_str().unwrap() {
            "message" => {
                let empty = json!({"type": "output_text", "text": "", "annotations": []});
                events.push(about(json!({"type": "response.content_part.added", "part": empty})));
                events.push(about(json!({"type": "response.output_text.delta", "delta": said.words})));
                events.push(about(json!({"type": "response.output_text.done", "text": said.words})));
                events.push(about(json!({"type": "response.content_part.done", "part": item["content"][0]})));
            }
            "function_call" => {
                events
                    .push(about(json!({"type": "response.function_call_arguments.delta", "delta": said.arguments()})));
                events.push(about(
                    json!({"type": "response.function_call_arguments.done", "arguments": said.arguments()}),
                ));
            }
            _ => {}
        }
        events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    }
    let prompt = bill.input + bill.cache_read;
    let usage = json!({"input_tokens": prompt, "input_tokens_details": {"cached_tokens": bill.cache_read},
        "output_tokens": bill.output, "output_tokens_details": {"reasoning_tokens": bill.reasoning},
        "total_tokens": prompt + bill.output});
    events.push(json!({"type": "response.completed", "response": response("completed", &items, usage)}));
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = json!(number);
    }
    stream(events.iter().map(named))
}

async fn chat(State(upstream): State<Upstream>, Json(body): Json<Value>) -> Response {
    upstream.keep("/v1/chat/completions", &body);
    let turns = body["messages"].as_array().cloned().unwrap_or_default();
    let mut parts = parts_of(&body["tools"]);
    parts.extend(turns.clone());
    let last = last_said(&turns);
    let said = Said::to(&last, false, last.contains("image_url"));
    let bill = upstream.bill(&body, &parts, false, &said);
    let id = base::id::fresh();
    let chunk = |choices: Value, usage: Value| {
        let chunk = json!({"id": format!("chatcmpl-{id}"), "object": "chat.completion.chunk", "created": 1_790_000_000,
            "model": body["model"], "choices": choices, "usage": usage});
        format!("data: {chunk}\n\n")
    };
    let (delta, reason) = match &said.reads {
        Some(_) => (
            json!({"role": "assistant", "tool_calls": [{"index": 0, "id": format!("call_{id}"), "type": "function",
                "function": {"name": "read", "arguments": said.arguments()}}]}),
            "tool_calls",
        ),
        None => (json!({"role": "assistant", "content": said.words}), "stop"),
    };
    let prompt = bill.input + bill.cache_read;
    let usage = json!({"prompt_tokens": prompt, "completion_tokens": bill.output, "total_tokens": prompt + bill.output,
        "prompt_tokens_details": {"cached_tokens": bill.cache_read}, "completion_tokens_details": {"reasoning_tokens": 0}});
    stream([
        chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]), Value::Null),
        chunk(json!([{"index": 0, "delta": {}, "finish_reason": reason}]), Value::Null),
        chunk(json!([]), usage),
        "data: [DONE]\n\n".to_owned(),
    ])
}

async fn embeddings(State(upstream): State<Upstream>, Json(body): Json<Value>) -> Response {
    upstream.keep("/v1/embeddings", &body);
    let texts = match &body["input"] {
        Value::Array(list) => list.iter().map(Value::to_string).collect(),
        one => vec![one.to_string()],
    };
    let input = texts.iter().map(|text| tokens(text)).sum();
    let model = body["model"].as_str().unwrap_or_default().to_owned();
    upstream.kept().bills.entry(model).or_default().push(Bill { input, ..Bill::default() });
    // Sixteen numbers of four bytes each, as the SDKs ask for them, or as a list.
    let vector = match body["encoding_format"] == "base64" {
        true => json!("AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPw=="),
        false => json!(vec![1.0; 16]),
    };
    let data: Vec<Value> =
        (0..texts.len()).map(|index| json!({"object": "embedding", "index": index, "embedding": vector})).collect();
    let usage = json!({"prompt_tokens": input, "total_tokens": input});
    Json(json!({"object": "list", "data": data, "model": body["model"], "usage": usage})).into_response()
}
