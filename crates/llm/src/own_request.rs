//! Requests that the platform makes at the LLM gateway with its own key, over HTTP as every client does. They are how it
//! finds out whether a chat would succeed.

use std::time::{Duration, Instant};

use base::{Error, Kind, Result, Secret};
use http::HeaderMap;
use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};

use crate::unlogged::{self, Answered};
use crate::{App, key};

const LIST_LIMIT: Duration = Duration::from_secs(10);
const CHAT_LIMIT: Duration = Duration::from_secs(60);
/// The longest answer that is read, in bytes.
const LONGEST: usize = 1 << 20;
/// How many tokens the answer to the short chat may have. A model that thinks first uses some of them for that.
const MOST_TOKENS: u32 = 64;
/// How many characters of an answer or of a gateway's error are kept.
const MOST_SHOWN: usize = 200;

/// The models that the gateway lists for the key.
pub async fn models(app: &App, key: &Secret) -> Result<Vec<String>> {
    let url = app.upstream.gateway.chat_url().replace("/v1/chat/completions", "/v1/models");
    let (said, _) = answer(app.upstream.http.get(url), key, LIST_LIMIT).await?;
    let list = said["data"].as_array().ok_or_else(|| odd("it sends no list of models"))?;
    Ok(list.iter().filter_map(|model| model["id"].as_str()).map(str::to_owned).collect())
}

/// The answer to a short chat.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The model that answered, by the gateway's word.
    pub model: String,
    pub content: String,
    pub latency_ms: i64,
}

/// Asks a model for one word. This costs money: the request is in the gateway's log, under the key's name.
pub async fn chat(app: &App, key: &Secret, model: &str) -> Result<Reply> {
    let body = json!({
        "model": model,
        "messages": [{"role": "user", "content": "Reply with the word: ready"}],
        "max_tokens": MOST_TOKENS,
        "stream": false,
    });
    let (began, began_at) = (Instant::now(), app.clock.now());
    let request = app.upstream.http.post(app.upstream.gateway.chat_url()).json(&body);
    let (said, headers) = answer(request, key, CHAT_LIMIT).await?;
    let count = |field: &str| said["usage"][field].as_i64();
    let answered = Answered {
        request_id: unlogged::request_id(app, &headers),
        token_name: key::PLATFORM.to_owned(),
        user_id: None,
        prompt_tokens: count("prompt_tokens").unwrap_or_default(),
        completion_tokens: count("completion_tokens").unwrap_or_default(),
        estimated: count("prompt_tokens").is_none(),
        began_at,
    };
    unlogged::count(app, answered).await?;
    let choice = said["choices"].get(0).ok_or_else(|| odd("its answer to a chat has no choices"))?;
    Ok(Reply {
        model: said["model"].as_str().unwrap_or(model).to_owned(),
        content: short(choice["message"]["content"].as_str().unwrap_or_default()),
        latency_ms: i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX),
    })
}

async fn answer(request: RequestBuilder, key: &Secret, limit: Duration) -> Result<(Value, HeaderMap)> {
    let answered = async {
        let response = request.bearer_auth(key.expose()).send().await.map_err(|e| away(&e))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = read(response).await?;
        let said: Value = serde_json::from_slice(&body).unwrap_or_default();
        let message = said["error"]["message"].as_str().unwrap_or_default().replace(key.expose(), "(key)");
        match (status.is_success(), said["error"].is_object()) {
            (true, false) if said.is_object() => Ok((said, headers)),
            (true, false) => Err(odd("it sends no JSON object")),
            _ => Err(odd(&format!("it answers {} {}", status.as_u16(), short(&message)))),
        }
    };
    let late = || Error::new(Kind::TimedOut, format!("it does not answer within {} s", limit.as_secs()));
    tokio::time::timeout(limit, answered).await.unwrap_or_else(|_| Err(late()))
}

async fn read(mut response: Response) -> Result<Vec<u8>> {
    let mut bytes = vec![];
    while let Some(chunk) = response.chunk().await.map_err(|e| away(&e))? {
        if bytes.len() + chunk.len() > LONGEST {
            return Err(odd("its answer is too long"));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

fn away(error: &reqwest::Error) -> Error {
    let why = if error.is_connect() { "it cannot be reached" } else { "the connection to it broke off" };
    Error::new(Kind::Unavailable, why)
}

fn odd(why: &str) -> Error {
    Error::new(Kind::Gateway, why.trim_end().to_owned())
}

fn short(text: &str) -> String {
    text.chars().take(MOST_SHOWN).collect()
}
