//! Why a gateway refuses a request, and why it closes a connection.

use std::time::Duration;

use base::{Error, Kind};
use serde_json::{Map, Value};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ErrorBody {
    /// `INVALID_REQUEST`, `NOT_PAIRED`, `FORBIDDEN`, `UNAVAILABLE` and others.
    pub code: String,
    pub message: String,
    pub retryable: bool,
    pub retry_after_ms: Option<u64>,
    pub details: Option<Value>,
    pub rest: Map<String, Value>,
}

/// The causes of a refusal that need different reactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The token is wrong.
    WrongToken,
    /// No token was sent where one is needed, or the client is one that needs a device.
    NotPaired,
    /// The gateway is starting: try again soon.
    Starting,
    /// The gateway speaks another protocol.
    Protocol,
    /// The page's origin is not in its list.
    Origin,
    /// The connection lacks the scope for this request.
    MissingScope,
    Other,
}

impl ErrorBody {
    pub(super) fn of(value: Option<Value>) -> ErrorBody {
        let Some(Value::Object(mut rest)) = value else { return ErrorBody::default() };
        let mut text = |key: &str| match rest.shift_remove(key) {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        let (code, message) = (text("code"), text("message"));
        let retryable = rest.shift_remove("retryable").and_then(|value| value.as_bool()).unwrap_or(false);
        let retry_after_ms = rest.shift_remove("retryAfterMs").and_then(|value| value.as_u64());
        let details = rest.shift_remove("details");
        ErrorBody { code, message, retryable, retry_after_ms, details, rest }
    }

    pub(super) fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("code".into(), self.code.as_str().into());
        map.insert("message".into(), self.message.as_str().into());
        if self.retryable {
            map.insert("retryable".into(), true.into());
        }
        if let Some(ms) = self.retry_after_ms {
            map.insert("retryAfterMs".into(), ms.into());
        }
        if let Some(details) = &self.details {
            map.insert("details".into(), details.clone());
        }
        map.extend(self.rest.clone());
        Value::Object(map)
    }

    pub fn refusal(&self) -> Refusal {
        let detail = self.details.as_ref().and_then(|details| details.get("code")).and_then(Value::as_str);
        match (detail.unwrap_or_default(), self.code.as_str()) {
            ("AUTH_TOKEN_MISMATCH", _) => Refusal::WrongToken,
            ("PROTOCOL_MISMATCH", _) => Refusal::Protocol,
            ("CONTROL_UI_ORIGIN_NOT_ALLOWED", _) => Refusal::Origin,
            ("MISSING_SCOPE", _) | (_, "FORBIDDEN") => Refusal::MissingScope,
            ("CONTROL_UI_DEVICE_IDENTITY_REQUIRED", _) | (_, "NOT_PAIRED") => Refusal::NotPaired,
            (_, "UNAVAILABLE") => Refusal::Starting,
            _ => Refusal::Other,
        }
    }

    pub fn to_error(&self) -> Error {
        let kind = if self.refusal() == Refusal::Starting { Kind::Unavailable } else { Kind::Gateway };
        let message: String = self.message.chars().take(300).collect();
        let error = Error::new(kind, "the instance refused").with_operator(format!("{}: {message}", self.code));
        match self.retry_after_ms {
            Some(ms) => error.retry_after(Duration::from_millis(ms.min(60_000))),
            None => error,
        }
    }
}

/// Why a connection was closed, by its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// The gateway stops or restarts; both have the same code.
    Restarting,
    Starting,
    /// Refused; an answer before the close has the reason.
    Refused,
    Protocol,
    /// A frame was too long.
    TooLarge,
    /// The connection ended without a close frame.
    Lost,
    Other,
}

impl Close {
    pub fn of(code: u16) -> Close {
        match code {
            1002 => Close::Protocol,
            1006 => Close::Lost,
            1008 => Close::Refused,
            1009 => Close::TooLarge,
            1012 => Close::Restarting,
            1013 => Close::Starting,
            _ => Close::Other,
        }
    }

    /// Whether the same request may succeed later.
    pub fn is_passing(self) -> bool {
        matches!(self, Close::Restarting | Close::Starting | Close::Lost)
    }
}
