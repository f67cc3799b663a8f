//! Calls the LLM gateway, and translates its refusals into errors for the employee.

use std::time::Duration;

use base::{Error, Kind, Secret};
use reqwest::{Response, StatusCode, header};
use serde_json::Value;

use super::{Answer, Failure, Turn};

/// Timeout of a whole answer; a model may think for long.
const WHOLE: Duration = Duration::from_secs(600);
/// Timeout until an answer begins.
const FIRST: Duration = Duration::from_secs(300);
/// Maximum sizes of a whole answer and of a refusal, in bytes.
const LONGEST: usize = 16 << 20;
const REFUSAL: usize = 64 << 10;

pub async fn whole(turn: &Turn, body: &[u8], key: &Secret) -> Result<Answer, Failure> {
    let call = async {
        let response = sent(turn, body, key).await?;
        read(response, LONGEST).await
    };
    let bytes = tokio::time::timeout(WHOLE, call).await.map_err(|_| timed_out())??;
    let said: Value = serde_json::from_slice(&bytes).map_err(|e| Failure::odd(format_args!("no JSON: {e}")))?;
    if let Some(error) = said["error"]["message"].as_str() {
        return Err(Failure::odd(error));
    }
    let choice = &said["choices"][0];
    let content = choice["message"]["content"].as_str();
    if !choice.is_object() {
        return Err(Failure::odd("the answer has no choices"));
    }
    let count = |field: &str| said["usage"][field].as_i64().unwrap_or(0);
    Ok(Answer {
        id: said["id"].as_str().unwrap_or_default().to_owned(),
        model: said["model"].as_str().unwrap_or(&turn.model).to_owned(),
        content: content.unwrap_or_default().to_owned(),
        finish_reason: choice["finish_reason"].as_str().map(str::to_owned),
        prompt_tokens: count("prompt_tokens"),
        completion_tokens: count("completion_tokens"),
        latency_ms: turn.began.elapsed().as_millis() as i64,
    })
}

pub async fn stream(turn: &Turn, body: &[u8], key: &Secret) -> Result<Response, Failure> {
    let response = tokio::time::timeout(FIRST, sent(turn, body, key)).await.map_err(|_| timed_out())??;
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    if !kind.starts_with("text/event-stream") {
        return Err(Failure::odd(format_args!("asked for a stream, got {kind}")));
    }
    Ok(response)
}

async fn sent(turn: &Turn, body: &[u8], key: &Secret) -> Result<Response, Failure> {
    let llm = &turn.app.upstream;
    let request = llm.http.post(llm.gateway.chat_url()).bearer_auth(key.expose());
    let request = request.header(header::CONTENT_TYPE, "application/json").body(body.to_vec());
    let response = request.send().await.map_err(|e| {
        let kind = if e.is_timeout() { Kind::TimedOut } else { Kind::Unavailable };
        let text =
            if kind == Kind::TimedOut { "the LLM gateway timed out" } else { "the LLM gateway cannot be reached" };
        Failure::unanswered(Error::new(kind, text).with_operator(e.without_url()))
    })?;
    if response.status().is_success() { Ok(response) } else { Err(refused(response).await) }
}

async fn read(mut response: Response, most: usize) -> Result<Vec<u8>, Failure> {
    let mut bytes = vec![];
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if bytes.len() + chunk.len() <= most => bytes.extend_from_slice(&chunk),
            Ok(Some(_)) => return Err(Failure::odd("the answer is too long")),
            Ok(None) => return Ok(bytes),
            Err(error) => return Err(Failure::odd(error.without_url())),
        }
    }
}

fn timed_out() -> Failure {
    Failure::unanswered(Error::new(Kind::TimedOut, "the LLM gateway took too long"))
}

/// Translates a refusal into an error for the employee. Its kind follows from status and code, never from the message:
/// foreign gateways word their messages differently.
async fn refused(response: Response) -> Failure {
    let status = response.status();
    let after = response.headers().get(header::RETRY_AFTER).and_then(|v| v.to_str().ok()).and_then(|v| v.parse().ok());
    let body = read(response, REFUSAL).await.unwrap_or_default();
    let said: Value = serde_json::from_slice(&body).unwrap_or_default();
    let (code, kind) = (text(&said["error"]["code"]), text(&said["error"]["type"]));
    let message = text(&said["error"]["message"]);
    let spent = ["insufficient_quota", "insufficient_user_quota", "pre_consume_token_quota_failed", "budget_exceeded"];
    let error = if spent.contains(&code.as_str()) || spent.contains(&kind.as_str()) {
        Error::new(Kind::QuotaUsedUp, or(message.clone(), "the quota at the LLM gateway is used up"))
    } else {
        match status {
            StatusCode::TOO_MANY_REQUESTS => Error::new(Kind::TooManyRequests, "the model is busy: try again later"),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Error::new(Kind::Gateway, "the LLM gateway refuses this instance's key")
            }
            StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNPROCESSABLE_ENTITY => {
                Error::new(Kind::BadRequest, or(message.clone(), "the LLM gateway refuses the request"))
            }
            StatusCode::NOT_FOUND => Error::field("model", "the LLM gateway does not offer it"),
            StatusCode::GATEWAY_TIMEOUT | StatusCode::REQUEST_TIMEOUT => {
                Error::new(Kind::TimedOut, "the model took too long")
            }
            _ => Error::from(Kind::Gateway),
        }
    };
    let error = error.with_operator(format_args!("the LLM gateway answered {status} {code} {}", short(&message)));
    let error = match after {
        Some(seconds) => error.retry_after(Duration::from_secs(seconds)),
        None => error,
    };
    Failure { error, answered: true }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn or(text: String, otherwise: &str) -> String {
    if text.is_empty() { otherwise.to_owned() } else { short(&text) }
}

fn short(text: &str) -> String {
    text.chars().take(500).collect()
}
