//! The parts of a conversation that we read: the events of a running answer, the history, the list of sessions.

use serde::Deserialize;
use serde_json::Value;

/// The payload of a `chat` event. A connection gets the events of all sessions.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatEvent {
    pub run_id: String,
    #[serde(default)]
    pub session_key: Option<String>,
    /// Counts the events of one run.
    #[serde(default)]
    pub seq: Option<u64>,
    pub state: ChatState,
    /// The text that a `delta` adds.
    #[serde(default)]
    pub delta_text: Option<String>,
    /// The whole message so far, in every `delta` and at the end.
    #[serde(default)]
    pub message: Option<Value>,
    #[serde(default)]
    pub error_message: Option<String>,
    #[serde(default)]
    pub stop_reason: Option<String>,
    /// Set in a `status`: `preparing_workspace`, `preparing_context`, `starting_model`.
    #[serde(default)]
    pub phase: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChatState {
    Status,
    Delta,
    Final,
    Error,
    Aborted,
    #[serde(other)]
    Other,
}

impl ChatEvent {
    /// Whether the run has ended. After an error another event may follow that explains it.
    pub fn is_end(&self) -> bool {
        matches!(self.state, ChatState::Final | ChatState::Error | ChatState::Aborted)
    }

    /// The text so far.
    pub fn text(&self) -> String {
        self.message.as_ref().map(text_of).unwrap_or_default()
    }
}

/// The text of a message: its content is a text, or a list of parts of which some are texts.
pub fn text_of(message: &Value) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts = parts.iter().filter(|part| part.get("type").and_then(Value::as_str) == Some("text"));
            texts.filter_map(|part| part.get("text").and_then(Value::as_str)).collect()
        }
        _ => String::new(),
    }
}

/// The answer to `chat.send`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sent {
    pub run_id: String,
    /// `started`; for a repeated request `in_flight`, and `ok` when the run is over.
    pub status: String,
}

/// The answer to `chat.history`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct History {
    pub session_key: String,
    #[serde(default)]
    pub messages: Vec<Value>,
    #[serde(default)]
    pub has_more: bool,
    /// An answer that is still running, with its text so far, for a client that reconnects.
    #[serde(default)]
    pub in_flight_run: Option<InFlight>,
    #[serde(default)]
    pub session_info: Option<Session>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InFlight {
    pub run_id: String,
    #[serde(default)]
    pub text: String,
}

/// A conversation, as `sessions.list` and `chat.history` describe it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    pub key: String,
    #[serde(default)]
    pub label: Option<String>,
    #[serde(default)]
    pub session_id: Option<String>,
    /// `running`, `done` and others.
    #[serde(default)]
    pub status: Option<String>,
    #[serde(default)]
    pub model_provider: Option<String>,
    #[serde(default)]
    pub model: Option<String>,
    /// Milliseconds since 1970.
    #[serde(default)]
    pub updated_at: Option<i64>,
    #[serde(default)]
    pub started_at: Option<i64>,
    #[serde(default)]
    pub has_active_run: Option<bool>,
    #[serde(default)]
    pub last_run_id: Option<String>,
}
