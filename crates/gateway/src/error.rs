//! The gateway's refusals, in the format of the protocol that was spoken. The message and the code say whose failure it
//! is: the client's request, the sub key, a quota, the model, the provider, the key or the account there, or the gateway.

use std::time::Duration;

use base::Kind;
use http::{HeaderMap, StatusCode};
use serde::Serialize;

#[derive(Debug)]
pub struct Refusal {
    pub status: StatusCode,
    pub kind: &'static str,
    pub code: &'static str,
    pub message: String,
    pub param: Option<&'static str>,
    pub retry_after: Option<Duration>,
    /// What the provider said about its limits.
    pub headers: Option<Box<HeaderMap>>,
}

/// How an error looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `{"error": {message, type, param, code}}`
    OpenAi,
    /// `{"type": "error", "error": {type, message}, "request_id"}`
    Anthropic,
}

/// The kinds of errors that OpenAI's clients know.
const INVALID: &str = "invalid_request_error";
const SERVER: &str = "server_error";
const UPSTREAM: &str = "upstream_error";

/// Anthropic's status for a provider that has too much to do.
pub const OVERLOADED: u16 = 529;

impl Refusal {
    fn new(status: StatusCode, kind: &'static str, code: &'static str, message: impl Into<String>) -> Refusal {
        Refusal { status, kind, code, message: message.into(), param: None, retry_after: None, headers: None }
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
            "no such key: send `Authorization: Bearer sk-…`, `x-api-key` or `api-key` with a sub key",
        )
    }

    pub fn disabled_key(why: &str) -> Refusal {
        Refusal::new(StatusCode::UNAUTHORIZED, INVALID, "invalid_api_key", format!("the key is disabled: {why}"))
    }

    pub fn no_access() -> Refusal {
        Refusal::new(StatusCode::FORBIDDEN, INVALID, "no_access", "only the platform's own key may ask for this")
    }

    pub fn unknown_path(paths: &[&str]) -> Refusal {
        let message = format!("unknown path: there are {}, /v1/models and /healthz", paths.join(", "));
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

    /// The model's providers do not speak the protocol that it was asked in.
    pub fn wrong_protocol(model: &str, paths: &str) -> Refusal {
        let message = match paths {
            "" => format!("the model `{model}` does not answer: no provider of it speaks one of its protocols"),
            paths => format!("the model `{model}` does not answer here: ask it at {paths}"),
        };
        Refusal::new(StatusCode::BAD_REQUEST, INVALID, "unsupported_protocol", message).about("model")
    }

    /// There is no answer of this key with the id that a request wants to continue.
    pub fn unknown_answer() -> Refusal {
        let message = "previous_response_id: no answer of this sub key has this id";
        Refusal::new(StatusCode::BAD_REQUEST, INVALID, "previous_response_not_found", message)
    }

    pub fn unknown_encoding() -> Refusal {
        let message = "content-encoding: only gzip is known";
        Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, INVALID, "unsupported_encoding", message)
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

    /// The provider has too much to do. Anthropic's clients know this status, and wait longer than after others.
    pub fn overloaded(message: impl Into<String>) -> Refusal {
        let status = StatusCode::from_u16(OVERLOADED).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
        Refusal::new(status, UPSTREAM, "provider_overloaded", message)
    }

    /// The provider refused the gateway's own key. It is no failure of the sub key.
    pub fn provider_key(message: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::BAD_GATEWAY, UPSTREAM, "provider_key_refused", message)
    }

    /// The gateway's account at the provider has no credit left. It is no failure of the user's.
    pub fn provider_account(message: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::BAD_GATEWAY, UPSTREAM, "provider_account_spent", message)
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

    /// The kind of error that Anthropic's clients know.
    fn anthropic_kind(&self) -> &'static str {
        match self.status.as_u16() {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            504 => "timeout_error",
            OVERLOADED => "overloaded_error",
            400..500 => "invalid_request_error",
            _ => "api_error",
        }
    }

    /// The body of the answer; `id` is the request's, if it has one.
    pub fn body(&self, shape: Shape, id: Option<&str>) -> Vec<u8> {
        let json = match shape {
            Shape::OpenAi => {
                let error =
                    ErrorObject { message: &self.message, r#type: self.kind, param: self.param, code: self.code };
                serde_json::to_vec(&Envelope { error })
            }
            Shape::Anthropic => {
                let error = AnthropicError { r#type: self.anthropic_kind(), message: &self.message };
                serde_json::to_vec(&AnthropicEnvelope { r#type: "error", error, request_id: id })
            }
        };
        json.unwrap_or_default()
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

#[derive(Serialize)]
struct AnthropicEnvelope<'a> {
    r#type: &'static str,
    error: AnthropicError<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
}

#[derive(Serialize)]
struct AnthropicError<'a> {
    r#type: &'static str,
    message: &'a str,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_answers_nowhere_names_no_path() {
        let of = |paths| Refusal::wrong_protocol("gpt-4o", paths).message;
        assert_eq!(of("/v1/responses"), "the model `gpt-4o` does not answer here: ask it at /v1/responses");
        assert_eq!(of(""), "the model `gpt-4o` does not answer: no provider of it speaks one of its protocols");
    }
}
