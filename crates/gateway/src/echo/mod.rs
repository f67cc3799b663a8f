//! A provider that answers by itself, for demonstrations and tests: it repeats the user's last message, word by word.
//!
//! A token is a word: the prompt has as many as its messages have words, the answer as many as it repeats, at least one
//! each. The limit for the answer cuts it short. It speaks every protocol (`Voice`). A message may begin with a command: `/wait 200` pauses 200 ms before every word,
//! `/fail 503` answers with that status.

pub mod chat;
pub mod embeddings;
pub mod messages;
pub mod responses;

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use serde_json::{Value, json};
use tokio::time::{Sleep, sleep};

/// The longest pause, in milliseconds.
const MOST_WAIT: u64 = 10_000;

/// How a protocol is spoken: what a request says, and what an answer looks like.
pub struct Voice {
    pub hear: fn(&Value) -> Heard,
    pub whole: fn(&Said<'_>) -> Value,
    /// The events of a stream: one for the beginning, one for each word, and those of the end.
    pub stream: fn(&Said<'_>) -> Vec<String>,
}

/// What a request says.
#[derive(Default)]
pub struct Heard {
    /// The user's last message.
    pub last: String,
    /// Words of the whole input.
    pub prompt: usize,
    /// The most words that the answer may have.
    pub limit: Option<u64>,
    /// Whether a stream tells its usage.
    pub wants_usage: bool,
}

/// The answer.
pub struct Said<'a> {
    pub model: &'a str,
    pub words: &'a [&'a str],
    /// The limit cut it short.
    pub is_cut: bool,
    pub prompt: usize,
    pub completion: usize,
    pub wants_usage: bool,
}

/// The text of a message's content: a string, or the text parts of a list.
pub fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            texts.join(" ")
        }
        _ => String::new(),
    }
}

/// What a list of messages says: the last one of the user, and the words of all.
pub fn hear_messages(messages: &Value) -> Heard {
    let messages = messages.as_array().map(Vec::as_slice).unwrap_or_default();
    let last = messages.iter().rev().find(|message| message["role"] == "user");
    Heard {
        last: last.map(|message| text(&message["content"])).unwrap_or_default(),
        prompt: messages.iter().map(|message| words(&text(&message["content"]))).sum(),
        ..Heard::default()
    }
}

pub fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

/// A word as a stream sends it: all but the first have a blank in front.
pub fn streamed(place: usize, word: &str) -> String {
    if place == 0 { word.to_owned() } else { format!(" {word}") }
}

/// An event with its name, as Anthropic and the Responses API send it.
pub fn named_event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default())
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

pub fn answer(voice: &Voice, body: &[u8]) -> Response<Echo> {
    let body: Value = match serde_json::from_slice(body) {
        Ok(body) => body,
        Err(error) => return failure(StatusCode::BAD_REQUEST, &format!("echo cannot read this: {error}")),
    };
    let heard = (voice.hear)(&body);
    let (wish, said) = wish(&heard.last);
    let pause = match wish {
        Wish::Repeat { pause } => pause,
        Wish::Fail(status) => return failure(status, "echo fails because it was asked to"),
    };
    let limit = heard.limit.and_then(|n| usize::try_from(n).ok());
    let mut words: Vec<&str> = said.split_whitespace().collect();
    let is_cut = limit.is_some_and(|limit| words.len() > limit);
    words.truncate(limit.unwrap_or(usize::MAX));
    let said = Said {
        model: body["model"].as_str().unwrap_or_default(),
        words: &words,
        is_cut,
        prompt: heard.prompt.max(1),
        completion: words.len().max(1),
        wants_usage: heard.wants_usage,
    };
    if body["stream"] == true {
        let pieces = (voice.stream)(&said).into_iter().map(Bytes::from).collect();
        return respond(StatusCode::OK, "text/event-stream", Echo { pieces, pause, pausing: None });
    }
    let whole = Echo::whole((voice.whole)(&said).to_string());
    let all = Echo { pause: pause * u32::try_from(words.len()).unwrap_or(u32::MAX), ..whole };
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
