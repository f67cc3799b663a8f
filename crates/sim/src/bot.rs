//! A simulated chat-bot platform: bots by their tokens, webhooks that must be https, and messages that bots poll for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub struct Platform {
    pub url: String,
    bots: Arc<Mutex<Bots>>,
    serving: JoinHandle<()>,
}

#[derive(Default)]
struct Bots {
    by_token: HashMap<String, Bot>,
    calls: Vec<(String, String, Value)>,
    /// Whether every call is answered with 502.
    broken: bool,
    /// Calls of this method are not answered until it is released.
    held: Option<(String, watch::Receiver<bool>)>,
}

#[derive(Clone, Debug, Default)]
pub struct Bot {
    pub username: String,
    pub webhook: String,
    pub secret: String,
    pub pending: Vec<Value>,
    pub last_error: String,
}

impl Platform {
    pub async fn start() -> std::io::Result<Platform> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let bots = Arc::new(Mutex::new(Bots::default()));
        let router = Router::new().route("/{bot}/{method}", any(call)).with_state(bots.clone());
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap_or_default() });
        Ok(Platform { url, bots, serving })
    }

    fn bots(&self) -> MutexGuard<'_, Bots> {
        self.bots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a bot; its token is valid from now on.
    pub fn add(&self, token: &str, username: &str) {
        self.bots().by_token.insert(token.to_owned(), Bot { username: username.to_owned(), ..Bot::default() });
    }

    pub fn bot(&self, token: &str) -> Bot {
        self.bots().by_token.get(token).cloned().unwrap_or_default()
    }

    /// The methods that were called with a token.
    pub fn calls(&self, token: &str) -> Vec<String> {
        self.bots().calls.iter().filter(|(of, _, _)| of == token).map(|(_, method, _)| method.clone()).collect()
    }

    /// The messages that the bot sent: the bodies of its `sendMessage` calls.
    pub fn said(&self, token: &str) -> Vec<Value> {
        let bots = self.bots();
        let said = bots.calls.iter().filter(|(of, method, _)| of == token && method == "sendMessage");
        said.map(|(_, _, body)| body.clone()).collect()
    }

    /// Adds a message of a person to a bot that polls.
    pub fn write(&self, token: &str, update: Value) {
        if let Some(bot) = self.bots().by_token.get_mut(token) {
            bot.pending.push(update);
        }
    }

    pub fn set_broken(&self, broken: bool) {
        self.bots().broken = broken;
    }

    /// Holds calls of this method: they are recorded, but answered only when the returned sender is dropped.
    pub fn hold(&self, method: &str) -> watch::Sender<bool> {
        let (release, held) = watch::channel(false);
        self.bots().held = Some((method.to_owned(), held));
        release
    }

    /// Sets the webhook as if another program did it.
    pub fn set_webhook(&self, token: &str, url: &str) {
        if let Some(bot) = self.bots().by_token.get_mut(token) {
            bot.webhook = url.to_owned();
        }
    }

    /// Sets how many messages are undelivered, and the error of the last delivery.
    pub fn set_trouble(&self, token: &str, pending: usize, error: &str) {
        if let Some(bot) = self.bots().by_token.get_mut(token) {
            bot.pending = vec![json!({}); pending];
            bot.last_error = error.to_owned();
        }
    }
}

impl Drop for Platform {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn refused(status: StatusCode, words: &str) -> Response {
    (status, Json(json!({"ok": false, "error_code": status.as_u16(), "description": words}))).into_response()
}

/// Deletes the updates before the offset: the bot has read them. All others are delivered again.
fn confirmed(bots: &Mutex<Bots>, token: &str, offset: Option<i64>) {
    let mut bots = bots.lock().unwrap_or_else(PoisonError::into_inner);
    if let (Some(bot), Some(offset)) = (bots.by_token.get_mut(token), offset.filter(|offset| *offset > 0)) {
        bot.pending.retain(|update| update["update_id"].as_i64().is_none_or(|id| id >= offset));
    }
}

/// Waits until there is a message for the bot, or until the timeout.
async fn polled(bots: &Mutex<Bots>, token: &str, patience: Duration) {
    let began = Instant::now();
    let nothing = || {
        let bots = bots.lock().unwrap_or_else(PoisonError::into_inner);
        bots.by_token.get(token).is_some_and(|bot| bot.webhook.is_empty() && bot.pending.is_empty())
    };
    while nothing() && began.elapsed() < patience {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn call(
    State(bots): State<Arc<Mutex<Bots>>>,
    Path((bot, method)): Path<(String, String)>,
    body: Bytes,
) -> Response {
    let token = bot.strip_prefix("bot").unwrap_or_default().to_owned();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    if method == "getUpdates" {
        confirmed(&bots, &token, body["offset"].as_i64());
        polled(&bots, &token, Duration::from_secs(body["timeout"].as_u64().unwrap_or_default().min(10))).await;
    }
    let held = {
        let mut bots = bots.lock().unwrap_or_else(PoisonError::into_inner);
        if bots.broken {
            return (StatusCode::BAD_GATEWAY, "<html>bad gateway</html>").into_response();
        }
        bots.calls.push((token.clone(), method.clone(), body.clone()));
        bots.held.clone().filter(|(of, _)| *of == method)
    };
    if let Some((_, mut held)) = held {
        // Nothing is ever sent: the wait ends when the sender is dropped.
        held.changed().await.ok();
    }
    let mut bots = bots.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(bot) = bots.by_token.get_mut(&token) else { return refused(StatusCode::UNAUTHORIZED, "Unauthorized") };
    let result = match method.as_str() {
        "getMe" => json!({"id": 7, "is_bot": true, "first_name": "A bot", "username": bot.username}),
        "setWebhook" => {
            let url = body["url"].as_str().unwrap_or_default();
            if !url.is_empty() && !url.starts_with("https://") {
                return refused(
                    StatusCode::BAD_REQUEST,
                    "Bad Request: bad webhook: An HTTPS URL must be provided for webhook",
                );
            }
            bot.webhook = url.to_owned();
            bot.secret = body["secret_token"].as_str().unwrap_or_default().to_owned();
            json!(true)
        }
        "deleteWebhook" => {
            bot.webhook.clear();
            bot.secret.clear();
            json!(true)
        }
        "getWebhookInfo" => {
            let mut info =
                json!({"url": bot.webhook, "has_custom_certificate": false, "pending_update_count": bot.pending.len()});
            if !bot.last_error.is_empty() {
                info["last_error_message"] = json!(bot.last_error);
            }
            info
        }
        "getUpdates" if !bot.webhook.is_empty() => {
            return refused(StatusCode::CONFLICT, "Conflict: can't use getUpdates method while webhook is active");
        }
        "getUpdates" => json!(bot.pending),
        "sendMessage" => {
            json!({"message_id": 1, "date": 0, "chat": {"id": body["chat_id"], "type": "private"}, "text": body["text"]})
        }
        "sendChatAction" | "setMyCommands" | "deleteMyCommands" => json!(true),
        _ => return refused(StatusCode::NOT_FOUND, "Not Found"),
    };
    Json(json!({"ok": true, "result": result})).into_response()
}
