//! The chat-bot platform: which bot a token belongs to, and where its messages go.
//!
//! The token is part of every URL, so no error or log line of this file may contain a URL.

use std::time::Duration;

use base::{Error, Kind, Result, Secret};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::http;

/// The platform's public address.
pub const PUBLIC: &str = "https://api.telegram.org";

const PATIENCE: Duration = Duration::from_secs(10);

pub struct Platform {
    url: String,
    http: reqwest::Client,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Me {
    pub id: i64,
    #[serde(default)]
    pub username: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub struct WebhookInfo {
    #[serde(default)]
    pub url: String,
    #[serde(default)]
    pub pending_update_count: i64,
    #[serde(default)]
    pub last_error_message: Option<String>,
}

#[derive(Deserialize)]
struct Answer {
    ok: bool,
    #[serde(default)]
    result: Value,
    #[serde(default)]
    description: String,
}

impl Platform {
    pub fn new(url: &str) -> Result<Platform> {
        Ok(Platform { url: url.trim_end_matches('/').to_owned(), http: http::client()? })
    }

    /// The platform's address, if it is not the public one: instances then need it in their configuration.
    pub fn own_address(&self) -> Option<&str> {
        (self.url != PUBLIC).then_some(self.url.as_str())
    }

    pub async fn me(&self, token: &Secret) -> Result<Me> {
        self.call(token, "getMe", json!({})).await
    }

    pub async fn set_webhook(&self, token: &Secret, url: &str, secret: &Secret) -> Result<()> {
        let body = json!({"url": url, "secret_token": secret.expose()});
        self.call::<Value>(token, "setWebhook", body).await.map(drop)
    }

    pub async fn delete_webhook(&self, token: &Secret) -> Result<()> {
        self.call::<Value>(token, "deleteWebhook", json!({"drop_pending_updates": false})).await.map(drop)
    }

    pub async fn webhook_info(&self, token: &Secret) -> Result<WebhookInfo> {
        self.call(token, "getWebhookInfo", json!({})).await
    }

    async fn call<T: DeserializeOwned>(&self, token: &Secret, method: &str, body: Value) -> Result<T> {
        // The token becomes a part of the URL's path.
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '_' | '-');
        if token.expose().is_empty() || !token.expose().chars().all(plain) {
            return Err(Error::field("bot_token", "may hold letters, digits, `:`, `_` and `-` only"));
        }
        let url = format!("{}/bot{}/{method}", self.url, token.expose());
        let sent = self.http.post(url).timeout(PATIENCE).json(&body).send().await;
        let response = sent.map_err(|e| {
            let error = http::failed("the bot platform", &e);
            // For the user who configures a bot, a slow platform and an absent one are the same.
            Error { kind: Kind::Unavailable, client: "the bot platform cannot be reached".into(), ..error }
        })?;
        let status = response.status();
        let answer = response.bytes().await.map_err(|e| http::failed("the bot platform", &e))?;
        let answer: Answer = match serde_json::from_slice(&answer) {
            Ok(answer) => answer,
            Err(_) if status.is_server_error() => {
                return Err(Error::new(Kind::Unavailable, "the bot platform cannot be reached").with_operator(status));
            }
            Err(_) => return Err(http::odd("the bot platform", format_args!("{method}: {status} without its JSON"))),
        };
        if !answer.ok {
            let words: String = answer.description.chars().filter(|c| !c.is_control()).take(300).collect();
            let words = words.replace(token.expose(), "***");
            let kind = match status.as_u16() {
                429 => Kind::TooManyRequests,
                500.. => Kind::Unavailable,
                _ => Kind::BadRequest,
            };
            return Err(Error::new(kind, format!("the bot platform refused: {words}")));
        }
        serde_json::from_value(answer.result).map_err(|e| http::odd("the bot platform", format_args!("{method}: {e}")))
    }
}
