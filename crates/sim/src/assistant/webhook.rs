//! The listener for a bot's messages.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use super::Shared;

/// A message of the bot platform, with the names of its headers.
#[derive(Clone, Debug)]
pub struct Delivered {
    pub update: Value,
    pub headers: Vec<String>,
}

pub(super) async fn take(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    let secret = shared.webhook_secret.lock().unwrap_or_else(|e| e.into_inner()).clone();
    let shown = headers.get("x-telegram-bot-api-secret-token").and_then(|v| v.to_str().ok());
    if secret.is_none() || shown != secret.as_deref() {
        return (StatusCode::UNAUTHORIZED, "unauthorized").into_response();
    }
    let Ok(update) = serde_json::from_slice::<Value>(&body) else { return StatusCode::BAD_REQUEST.into_response() };
    let headers = headers.keys().map(|name| name.as_str().to_owned()).collect();
    let mut delivered = shared.delivered.lock().unwrap_or_else(|e| e.into_inner());
    // A repeated update is stored once.
    if !delivered.iter().any(|d| d.update["update_id"] == update["update_id"]) {
        delivered.push(Delivered { update, headers });
    }
    [("x-openclaw-delivery-accepted", "durable")].into_response()
}
