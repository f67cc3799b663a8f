//! Calls the LLM gateway. What it refuses is translated by `refusal`.

use std::time::Duration;

use base::{Error, Kind, Secret};
use llm::unlogged;
use reqwest::{Response, header};
use serde_json::Value;

use super::{Answer, Failure, Turn, Used, refusal};

/// Timeout of a whole answer; a model may think for long.
const WHOLE: Duration = Duration::from_secs(600);
/// Timeout until an answer begins.
const FIRST: Duration = Duration::from_secs(300);
/// Maximum size of a whole answer, in bytes.
const LONGEST: usize = 16 << 20;

pub async fn whole(turn: &mut Turn, body: &[u8], key: &Secret) -> Result<(Answer, Used), Failure> {
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
    let count = |field: &str| said["usage"][field].as_i64();
    let used = Used { prompt_tokens: count("prompt_tokens"), completion_tokens: count("completion_tokens") };
    let answer = Answer {
        id: said["id"].as_str().unwrap_or_default().to_owned(),
        model: said["model"].as_str().unwrap_or(&turn.model).to_owned(),
        content: content.unwrap_or_default().to_owned(),
        finish_reason: choice["finish_reason"].as_str().map(str::to_owned),
        prompt_tokens: used.prompt_tokens.unwrap_or(0),
        completion_tokens: used.completion_tokens.unwrap_or(0),
        latency_ms: turn.began.elapsed().as_millis() as i64,
    };
    Ok((answer, used))
}

pub async fn stream(turn: &mut Turn, body: &[u8], key: &Secret) -> Result<Response, Failure> {
    let response = tokio::time::timeout(FIRST, sent(turn, body, key)).await.map_err(|_| timed_out())??;
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    if !kind.starts_with("text/event-stream") {
        return Err(Failure::odd(format_args!("asked for a stream, got {kind}")));
    }
    Ok(response)
}

async fn sent(turn: &mut Turn, body: &[u8], key: &Secret) -> Result<Response, Failure> {
    let llm = &turn.app.upstream;
    let request = llm.http.post(llm.gateway.chat_url()).bearer_auth(key.expose());
    let request = request.header(header::CONTENT_TYPE, "application/json").body(body.to_vec());
    let response = request.send().await.map_err(|e| {
        let kind = if e.is_timeout() { Kind::TimedOut } else { Kind::Unavailable };
        let text =
            if kind == Kind::TimedOut { "the LLM gateway timed out" } else { "the LLM gateway cannot be reached" };
        Failure::unanswered(Error::new(kind, text).with_operator(e.without_url()))
    })?;
    if response.status().is_success() {
        turn.request_id = unlogged::request_id(&turn.app, response.headers());
        Ok(response)
    } else {
        Err(refusal::translate(response, turn.app.upstream.embedded).await)
    }
}

pub async fn read(mut response: Response, most: usize) -> Result<Vec<u8>, Failure> {
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
