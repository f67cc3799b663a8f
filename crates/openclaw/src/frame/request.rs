//! The requests that the platform itself sends.

use serde_json::{Map, Value, json};

use super::{Frame, Request};
use crate::pairing;

impl Request {
    pub fn new(id: impl Into<String>, method: &str, params: Value) -> Request {
        Request { id: id.into(), method: method.to_owned(), params: Some(params), rest: Map::new() }
    }

    /// The key makes a retry harmless: a request with the same key never runs twice. `attachments` are `{type,
    /// mimeType, fileName, content}`.
    pub fn chat_send(id: impl Into<String>, session: &str, message: &str, key: &str, attachments: &[Value]) -> Request {
        let mut params = json!({"sessionKey": session, "message": message, "idempotencyKey": key});
        if !attachments.is_empty() {
            params["attachments"] = Value::from(attachments);
        }
        Request::new(id, "chat.send", params)
    }

    pub fn chat_history(id: impl Into<String>, session: &str, limit: Option<u32>) -> Request {
        Request::new(id, "chat.history", with(json!({"sessionKey": session}), [("limit", limit.map(Value::from))]))
    }

    /// Without a run, aborts whatever the session is doing.
    pub fn chat_abort(id: impl Into<String>, session: &str, run: Option<&str>) -> Request {
        Request::new(id, "chat.abort", with(json!({"sessionKey": session}), [("runId", run.map(Value::from))]))
    }

    pub fn sessions_list(id: impl Into<String>, limit: Option<u32>) -> Request {
        Request::new(id, "sessions.list", with(json!({}), [("limit", limit.map(Value::from))]))
    }

    /// Without a key, the gateway chooses one.
    pub fn sessions_create(
        id: impl Into<String>,
        key: Option<&str>,
        label: Option<&str>,
        model: Option<&str>,
    ) -> Request {
        let fields =
            [("key", key), ("label", label), ("model", model)].map(|(name, text)| (name, text.map(Value::from)));
        Request::new(id, "sessions.create", with(json!({}), fields))
    }

    /// Needs `Scope::Admin`, as does `sessions_delete`.
    pub fn sessions_reset(id: impl Into<String>, key: &str) -> Request {
        Request::new(id, "sessions.reset", json!({"key": key}))
    }

    pub fn sessions_delete(id: impl Into<String>, key: &str) -> Request {
        Request::new(id, "sessions.delete", json!({"key": key}))
    }

    pub fn models_list(id: impl Into<String>) -> Request {
        Request::new(id, "models.list", json!({}))
    }

    pub fn health(id: impl Into<String>) -> Request {
        Request::new(id, "health", json!({}))
    }

    pub fn channels_status(id: impl Into<String>) -> Request {
        Request::new(id, "channels.status", json!({}))
    }

    /// Needs `Scope::Admin`.
    pub fn channels_start(id: impl Into<String>, channel: &str) -> Request {
        Request::new(id, "channels.start", json!({"channel": channel}))
    }

    /// Needs `Scope::Pairing`, as does `device_approve`.
    pub fn devices(id: impl Into<String>) -> Request {
        Request::new(id, "device.pair.list", json!({}))
    }

    pub fn device_approve(id: impl Into<String>, request: &str) -> Request {
        Request::new(id, "device.pair.approve", json!({"requestId": request}))
    }

    /// The people who wait to be allowed to write to the channel's bot. Needs `Scope::Pairing`, as does `pairing_dismiss`.
    pub fn pairing_list(id: impl Into<String>) -> Request {
        Request::new(id, "channels.pairing.list", json!({"channel": pairing::CHANNEL}))
    }

    pub fn pairing_dismiss(id: impl Into<String>, request: &str) -> Request {
        let params = json!({"channel": pairing::CHANNEL, "accountId": pairing::ACCOUNT, "requestId": request});
        Request::new(id, "channels.pairing.dismiss", params)
    }

    /// Secrets in the answer are redacted by the gateway.
    pub fn config_get(id: impl Into<String>) -> Request {
        Request::new(id, "config.get", json!({}))
    }

    pub fn to_text(&self) -> String {
        Frame::Request(self.clone()).to_text()
    }
}

/// Adds the fields that have a value to `params`.
fn with<const N: usize>(mut params: Value, fields: [(&str, Option<Value>); N]) -> Value {
    for (name, value) in fields {
        if let Some(value) = value {
            params[name] = value;
        }
    }
    params
}
