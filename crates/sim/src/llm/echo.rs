//! The model behind every simulated gateway: it repeats the last message, and a word is a token.

use std::convert::Infallible;

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
pub struct Request {
    pub model: String,
    pub messages: Vec<Message>,
    #[serde(default)]
    pub stream: bool,
    stream_options: Option<StreamOptions>,
}

#[derive(Deserialize)]
pub struct Message {
    #[serde(default)]
    content: Value,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

/// An answer with its tokens.
pub struct Reply {
    pub id: String,
    pub model: String,
    text: String,
    pub stream: bool,
    include_usage: bool,
    pub prompt_tokens: i64,
    /// The conversation before the last message: a provider has it in its cache.
    pub cached_tokens: i64,
    pub completion_tokens: i64,
}

fn words(text: &str) -> i64 {
    text.split_whitespace().count() as i64
}

impl Message {
    fn text(&self) -> &str {
        self.content.as_str().unwrap_or_default()
    }
}

pub fn answer(request: &Request, id: String) -> Reply {
    let text = request.messages.last().map(Message::text).unwrap_or_default().to_owned();
    Reply {
        id,
        model: request.model.clone(),
        stream: request.stream,
        include_usage: request.stream_options.as_ref().is_some_and(|o| o.include_usage),
        prompt_tokens: request.messages.iter().map(|m| words(m.text())).sum(),
        cached_tokens: request.messages.iter().rev().skip(1).map(|m| words(m.text())).sum(),
        completion_tokens: words(&text),
        text,
    }
}

impl Reply {
    fn usage(&self) -> Value {
        json!({
            "prompt_tokens": self.prompt_tokens,
            "prompt_tokens_details": {"cached_tokens": self.cached_tokens},
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
        })
    }

    fn chunk(&self, choices: Value, usage: Value) -> String {
        let chunk = json!({
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": jiff::Timestamp::now().as_second(),
            "model": self.model,
            "choices": choices,
            "usage": usage,
        });
        format!("data: {chunk}\n\n")
    }
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        if !self.stream {
            return axum::Json(json!({
                "id": self.id,
                "object": "chat.completion",
                "created": jiff::Timestamp::now().as_second(),
                "model": self.model,
                "choices": [{
                    "index": 0,
                    "message": {"role": "assistant", "content": self.text},
                    "finish_reason": "stop",
                }],
                "usage": self.usage(),
            }))
            .into_response();
        }
        let delta = |text: &str| json!([{"index": 0, "delta": {"content": text}, "finish_reason": null}]);
        let mut chunks: Vec<_> =
            self.text.split_inclusive(' ').map(|word| self.chunk(delta(word), Value::Null)).collect();
        let end = json!([{"index": 0, "delta": {}, "finish_reason": "stop"}]);
        chunks.push(self.chunk(end, Value::Null));
        if self.include_usage {
            chunks.push(self.chunk(json!([]), self.usage()));
        }
        chunks.push("data: [DONE]\n\n".to_owned());
        let body = Body::from_stream(stream::iter(chunks.into_iter().map(Ok::<_, Infallible>)));
        (StatusCode::OK, [(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
    }
}
