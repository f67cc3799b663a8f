//! The gateway's refusals, in OpenAI's format: `{"error": {message, type, param, code}}`. The message names the limit,
//! the model or the provider that it is about.

use std::time::Duration;

use base::Kind;
use http::StatusCode;
use serde::Serialize;

#[derive(Debug)]
pub struct Refusal {
    pub status: StatusCode,
    pub kind: &'static str,
    pub code: &'static str,
    pub message: String,
    pub param: Option<&'static str>,
    pub retry_after: Option<Duration>,
}

/// The kinds of errors that OpenAI's clients know.
const INVALID: &str = "invalid_request_error";
const SERVER: &str = "server_error";
const UPSTREAM: &str = "upstream_error";

impl Refusal {
    fn new(status: StatusCode, kind: &'static str, code: &'static str, message: impl Into<String>) -> Refusal {
        Refusal { status, kind, code, message: message.into(), param: None, retry_after: None }
    }

    pub fn about(mut self, param: &'static str) -> Refusal {
        self.param = Some(param);
        self
    }

    pub fn after(mut self, wait: Option<Duration>) -> Refusal {
        self.retry_after = wait;
        self
    }

    pub fn bad_request(message: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, INVALID, "invalid_request", message)
    }

    pub fn unknown_key() -> Refusal {
        Refusal::new(
            StatusCode::UNAUTHORIZED,
            INVALID,
            "invalid_api_key",
            "no such key: send `Authorization: Bearer sk-…`",
        )
    }

    pub fn disabled_key(why: &str) -> Refusal {
        Refusal::new(StatusCode::UNAUTHORIZED, INVALID, "invalid_api_key", format!("the key is disabled: {why}"))
    }

    pub fn no_access() -> Refusal {
        Refusal::new(StatusCode::FORBIDDEN, INVALID, "no_access", "only the platform's own key may ask for this")
    }

    pub fn unknown_path() -> Refusal {
        let message = "unknown path: there are /v1/chat/completions, /v1/models and /healthz";
        Refusal::new(StatusCode::NOT_FOUND, INVALID, "unknown_url", message)
    }

    pub fn unknown_method(allowed: &str) -> Refusal {
        let message = format!("method not allowed: this path takes {allowed}");
        Refusal::new(StatusCode::METHOD_NOT_ALLOWED, INVALID, "method_not_allowed", message)
    }

    pub fn unknown_model(model: &str, why: &str) -> Refusal {
        let message = format!("the model `{model}` {why}");
        Refusal::new(StatusCode::NOT_FOUND, INVALID, "model_not_found", message).about("model")
    }

    pub fn too_large(most: usize) -> Refusal {
        let message = format!("the body has more than {} MiB", most / 1024 / 1024);
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, INVALID, "payload_too_large", message)
    }

    pub fn slow_body() -> Refusal {
        Refusal::new(StatusCode::REQUEST_TIMEOUT, INVALID, "timeout", "the body did not arrive in time")
    }

    /// A quota of ours is used up.
    pub fn quota(message: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::TOO_MANY_REQUESTS, "insufficient_quota", "insufficient_quota", message)
    }

    /// No provider answered, and at least one asked to wait.
    pub fn rate_limited(message: impl Into<String>, wait: Duration) -> Refusal {
        let code = "rate_limit_exceeded";
        Refusal::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", code, message).after(Some(wait))
    }

    pub fn bad_gateway(message: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::BAD_GATEWAY, UPSTREAM, "provider_error", message)
    }

    pub fn unreachable(message: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, UPSTREAM, "provider_unreachable", message)
    }

    pub fn timed_out(message: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::GATEWAY_TIMEOUT, UPSTREAM, "provider_timeout", message)
    }

    /// A temporary failure of the platform itself: the database or the disk.
    pub fn unavailable(message: impl Into<String>) -> Refusal {
        let wait = Some(Duration::from_secs(1));
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, SERVER, "unavailable", message).after(wait)
    }

    pub fn internal() -> Refusal {
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, SERVER, "internal_error", "internal error")
    }

    pub fn body(&self) -> Vec<u8> {
        let error = ErrorObject { message: &self.message, r#type: self.kind, param: self.param, code: self.code };
        serde_json::to_vec(&Envelope { error }).unwrap_or_default()
    }
}

#[derive(Serialize)]
struct Envelope<'a> {
    error: ErrorObject<'a>,
}

#[derive(Serialize)]
struct ErrorObject<'a> {
    message: &'a str,
    r#type: &'a str,
    param: Option<&'a str>,
    code: &'a str,
}

/// An error of a crate below. Its operator text goes to the log only, never to the client.
impl From<base::Error> for Refusal {
    fn from(error: base::Error) -> Refusal {
        if let Some(operator) = &error.operator {
            tracing::warn!(operator, "a request is refused");
        }
        match error.kind {
            Kind::QuotaUsedUp => Refusal::quota(error.client).after(error.retry_after),
            Kind::Unavailable | Kind::TimedOut => Refusal::unavailable("the gateway's database does not answer"),
            _ => Refusal::internal(),
        }
    }
}
