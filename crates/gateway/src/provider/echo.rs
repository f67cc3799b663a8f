//! A provider that answers by itself, for demonstrations and tests: it repeats the user's last message, word by word.
//!
//! A token is a word: the prompt has as many as its messages have words, the answer as many as it repeats, at least one
//! each. `max_tokens` cuts it short. A message may begin with a command: `/wait 200` pauses 200 ms before every word,
//! `/fail 503` answers with that status.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Sleep, sleep};

/// The longest pause, in milliseconds.
const MOST_WAIT: u64 = 10_000;

#[derive(Deserialize)]
struct Asked {
    model: String,
    #[serde(default)]
    messages: Vec<Message>,
    #[serde(default)]
    stream: Option<bool>,
    stream_options: Option<Value>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Message {
    role: String,
    #[serde(default)]
    content: Value,
}

impl Message {
    /// Its text: a string, or the text parts of a list.
    fn text(&self) -> String {
        match &self.content {
            Value::String(text) => text.clone(),
            Value::Array(parts) => {
                let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
                texts.join(" ")
            }
            _ => String::new(),
        }
    }
}

/// The body of an answer: its pieces, each after a pause.
pub struct Echo {
    pieces: VecDeque<Bytes>,
    pause: Duration,
    pausing: Option<Pin<Box<Sleep>>>,
}

impl Echo {
    fn whole(text: String) -> Echo {
        Echo { pieces: [text.into()].into(), pause: Duration::ZERO, pausing: None }
    }

    pub fn is_over(&self) -> bool {
        self.pieces.is_empty()
    }

    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if !self.pause.is_zero() && !self.pieces.is_empty() {
            let pausing = self.pausing.get_or_insert_with(|| Box::pin(sleep(self.pause)));
            if pausing.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.pausing = None;
        }
        Poll::Ready(self.pieces.pop_front())
    }
}

/// The command at the beginning of the last message.
enum Wish {
    Repeat { pause: Duration },
    Fail(StatusCode),
}

pub fn answer(body: &[u8]) -> Response<Echo> {
    let asked: Asked = match serde_json::from_slice(body) {
        Ok(asked) => asked,
        Err(error) => return failure(StatusCode::BAD_REQUEST, &format!("echo cannot read this: {error}")),
    };
    let said = asked.messages.iter().rev().find(|m| m.role == "user").map(Message::text).unwrap_or_default();
    let (wish, said) = wish(&said);
    let pause = match wish {
        Wish::Repeat { pause } => pause,
        Wish::Fail(status) => return failure(status, "echo fails because it was asked to"),
    };
    let limit = asked.max_completion_tokens.or(asked.max_tokens).and_then(|n| usize::try_from(n).ok());
    let mut words: Vec<&str> = said.split_whitespace().collect();
    let finish = if limit.is_some_and(|limit| words.len() > limit) { "length" } else { "stop" };
    words.truncate(limit.unwrap_or(usize::MAX));
    let prompt: usize = asked.messages.iter().map(|m| m.text().split_whitespace().count()).sum();
    let (prompt, completion) = (prompt.max(1), words.len().max(1));
    let usage = json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion});
    if asked.stream == Some(true) {
        let wants_usage = asked.stream_options.is_some_and(|o| o["include_usage"] == true);
        return stream(&asked.model, &words, finish, wants_usage.then_some(usage), pause);
    }
    let message = json!({"role": "assistant", "content": words.join(" ")});
    let body = json!({
        "id": "chatcmpl-echo", "object": "chat.completion", "created": 0, "model": asked.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": usage,
    });
    let all = Echo { pause: pause * u32::try_from(words.len()).unwrap_or(u32::MAX), ..Echo::whole(body.to_string()) };
    respond(StatusCode::OK, "application/json", all)
}

fn wish(said: &str) -> (Wish, &str) {
    let mut words = said.split_whitespace();
    let (first, number) = (words.next(), words.next().and_then(|n| n.parse::<u64>().ok()));
    let rest = || said.trim_start().splitn(3, char::is_whitespace).nth(2).unwrap_or_default();
    match (first, number) {
        (Some("/wait"), Some(ms)) => (Wish::Repeat { pause: Duration::from_millis(ms.min(MOST_WAIT)) }, rest()),
        (Some("/fail"), Some(status)) => {
            let status = u16::try_from(status).ok().and_then(|s| StatusCode::from_u16(s).ok());
            let status = status.filter(|s| s.is_client_error() || s.is_server_error());
            (Wish::Fail(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)), rest())
        }
        _ => (Wish::Repeat { pause: Duration::ZERO }, said),
    }
}

fn stream(model: &str, words: &[&str], finish: &str, usage: Option<Value>, pause: Duration) -> Response<Echo> {
    let chunk = |choices: Value, usage: Option<&Value>| {
        let mut chunk = json!({
            "id": "chatcmpl-echo", "object": "chat.completion.chunk", "created": 0, "model": model, "choices": choices,
        });
        if let Some(usage) = usage {
            chunk["usage"] = usage.clone();
        }
        let mut event = String::from("data: ");
        // Writing to a string does not fail.
        let _ = write!(event, "{chunk}\n\n");
        Bytes::from(event)
    };
    let delta = |delta: Value, finish: Value| json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
    let mut pieces = VecDeque::with_capacity(words.len() + 4);
    pieces.push_back(chunk(delta(json!({"role": "assistant", "content": ""}), Value::Null), None));
    for (i, word) in words.iter().enumerate() {
        let text = if i == 0 { (*word).to_owned() } else { format!(" {word}") };
        pieces.push_back(chunk(delta(json!({"content": text}), Value::Null), None));
    }
    pieces.push_back(chunk(delta(json!({}), finish.into()), None));
    if let Some(usage) = usage {
        pieces.push_back(chunk(json!([]), Some(&usage)));
    }
    pieces.push_back(Bytes::from_static(b"data: [DONE]\n\n"));
    respond(StatusCode::OK, "text/event-stream", Echo { pieces, pause, pausing: None })
}

fn failure(status: StatusCode, message: &str) -> Response<Echo> {
    let body = json!({"error": {"message": message, "type": "echo_error", "param": null, "code": null}});
    let mut response = respond(status, "application/json", Echo::whole(body.to_string()));
    if status == StatusCode::TOO_MANY_REQUESTS {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

fn respond(status: StatusCode, kind: &'static str, body: Echo) -> Response<Echo> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
