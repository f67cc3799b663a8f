//! One HTTP call to a gateway: the answer's size is limited, and error messages contain no secrets.

use std::time::Duration;

use base::{Error, Kind, Result, Secret};
use reqwest::header::{AUTHORIZATION, HeaderValue, RETRY_AFTER};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde::de::DeserializeOwned;

use super::pace::{Lane, Limit, Pacer, Patience};
use super::{AdminToken, KeyState};
use crate::http;

/// A management API never sends a longer answer.
const LONGEST: usize = 16 << 20;
/// When to repeat a throttled call if the gateway does not say.
const LATER: Duration = Duration::from_secs(30);
/// A gateway that asks for a longer wait is not taken at its word.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

pub struct Caller {
    http: reqwest::Client,
    base: String,
    /// The gateway's name in messages for the operator.
    what: &'static str,
    pacer: Pacer,
}

pub struct Answer {
    pub status: StatusCode,
    body: Vec<u8>,
}

/// Why a call failed.
#[derive(Debug)]
pub enum Trouble {
    /// Too many calls: the gateway asks us to wait, and may say for how long.
    Throttled(Option<Duration>),
    /// The gateway understood the call and refused it.
    Refused {
        status: StatusCode,
        /// The gateway's error code; empty if it has none.
        code: String,
        message: String,
    },
    /// The call did not reach the gateway, or the answer makes no sense.
    Failed(Error),
}

pub type Outcome<T> = std::result::Result<T, Trouble>;

impl Caller {
    pub fn new(url: &str, what: &'static str, limit: Option<Limit>) -> Result<Caller> {
        let base = url.trim_end_matches('/').to_owned();
        Ok(Caller { http: http::client()?, base, what, pacer: Pacer::new(limit) })
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, self.url(path))
    }

    /// A call of the management API, at the gateway's pace. One that is refused because there were too many is repeated
    /// while it may wait.
    pub async fn paced(&self, lane: Lane, request: RequestBuilder) -> Outcome<Answer> {
        if lane == Lane::Probe {
            // It is how a gateway that refused is found to answer again, and there are few.
            return self.send(request).await;
        }
        let patience = Patience::of(lane);
        loop {
            self.pacer.slot(&patience).await.map_err(|wait| Trouble::Throttled(Some(wait)))?;
            let Some(again) = request.try_clone() else { return self.send(request).await };
            match self.send(again).await {
                Err(Trouble::Throttled(asked)) => {
                    let pause = self.pacer.refused(asked);
                    if !self.pacer.may_wait(&patience, pause) {
                        return Err(Trouble::Throttled(Some(pause)));
                    }
                }
                other => {
                    self.pacer.accepted();
                    return other;
                }
            }
        }
    }

    /// What a call that needs the management token tells about it.
    pub fn judge<T>(&self, outcome: Outcome<T>) -> AdminToken {
        match outcome {
            Ok(_) => AdminToken::Accepted,
            Err(trouble @ Trouble::Refused { .. }) => AdminToken::Refused(self.error(trouble).to_string()),
            Err(other) => AdminToken::Unknown(self.error(other).to_string()),
        }
    }

    /// Sends a request and reads the whole answer. Only "too many requests" is handled here: no other status means the
    /// same for all gateways.
    pub async fn send(&self, request: RequestBuilder) -> Outcome<Answer> {
        let failed = |e: reqwest::Error| Trouble::Failed(http::failed(self.what, &e));
        let mut answer = request.send().await.map_err(failed)?;
        let status = answer.status();
        if status == StatusCode::TOO_MANY_REQUESTS {
            let wait = answer.headers().get(RETRY_AFTER).and_then(|v| v.to_str().ok()?.parse().ok());
            let wait = wait.map(|seconds: u64| Duration::from_secs(seconds).min(LONGEST_WAIT));
            return Err(Trouble::Throttled(wait));
        }
        let mut body = vec![];
        while let Some(chunk) = answer.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > LONGEST {
                return Err(self.odd("the answer is too long"));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Answer { status, body })
    }

    pub fn odd(&self, why: impl std::fmt::Display) -> Trouble {
        Trouble::Failed(http::odd(self.what, why))
    }

    pub fn refused(&self, status: StatusCode, code: &str, message: &str) -> Trouble {
        Trouble::Refused { status, code: scrub(code), message: scrub(message) }
    }

    pub fn read<T: DeserializeOwned>(&self, answer: &Answer) -> Outcome<T> {
        // The body may hold a key, so the error names only the kind and the place of the mistake, never a value.
        serde_json::from_slice(&answer.body).map_err(|e| {
            self.odd(format_args!(
                "HTTP {}: no such answer ({:?} at column {})",
                answer.status,
                e.classify(),
                e.column()
            ))
        })
    }

    pub fn error(&self, trouble: Trouble) -> Error {
        match trouble {
            Trouble::Failed(error) => error,
            Trouble::Throttled(wait) => {
                let wait = wait.unwrap_or(LATER);
                Error::new(Kind::Unavailable, format!("{}: too many requests", self.what))
                    .with_operator(format_args!("{}: throttled for {} s", self.what, wait.as_secs()))
                    .retry_after(wait)
            }
            Trouble::Refused { status, code, message } => {
                let code = if code.is_empty() { String::new() } else { format!(" {code}") };
                http::odd(self.what, format_args!("HTTP {status}{code}: {message}"))
            }
        }
    }

    /// Calls `/v1/models` with a sub key: returns the models, or what is wrong with the key.
    pub async fn models_with(&self, key: &Secret) -> std::result::Result<Vec<String>, KeyState> {
        let request = self.request(Method::GET, "/v1/models").header(AUTHORIZATION, bearer(key));
        let answer = self.send(request).await.map_err(|trouble| match trouble {
            Trouble::Throttled(_) => KeyState::Throttled,
            other => KeyState::Unreachable(self.error(other).to_string()),
        })?;
        if answer.status.is_success() {
            // At a wrong address the gateway's own web page answers 200, so only a list of models counts.
            let list: ModelList = self.read(&answer).map_err(|t| KeyState::Unreachable(self.error(t).to_string()))?;
            return Ok(once(list.data.into_iter().map(|m| m.id)));
        }
        let fault: ErrorBody = self.read(&answer).unwrap_or_default();
        // Decide by status and code: messages come in several languages, and change between releases.
        Err(match (answer.status, fault.error.kind.as_str(), fault.error.code.text().as_str()) {
            (_, "budget_exceeded", _) | (_, _, "insufficient_user_quota" | "pre_consume_token_quota_failed") => {
                KeyState::Exhausted
            }
            (StatusCode::UNAUTHORIZED, ..) => KeyState::Invalid,
            (StatusCode::FORBIDDEN, ..) => KeyState::Denied,
            (status, kind, code) => KeyState::Unreachable(format!("{}: HTTP {status} {kind} {code}", self.what)),
        })
    }
}

/// A key as a header value that no log shows. A key that cannot be a header value becomes one that no gateway knows.
pub fn bearer(key: &Secret) -> HeaderValue {
    hidden(&format!("Bearer {}", key.expose()))
}

pub fn hidden(text: &str) -> HeaderValue {
    let mut value = HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static("-"));
    value.set_sensitive(true);
    value
}

/// Removes duplicates and keeps the order: one-api's list names some models several times.
pub fn once(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    names.filter(|name| !name.is_empty() && seen.insert(name.clone())).collect()
}

/// A gateway's message, shortened, and without anything that could be a key.
pub fn scrub(text: &str) -> String {
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '*' | '.');
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| word(c) != word(first)).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        let like_a_key = word(first) && (run.len() >= 24 || run.starts_with("sk-"));
        out.push_str(if like_a_key { "***" } else { run });
        rest = after;
    }
    match out.char_indices().nth(300) {
        Some((cut, _)) => format!("{}…", &out[..cut]),
        None => out,
    }
}

#[derive(serde::Deserialize)]
struct ModelList {
    data: Vec<Model>,
}

#[derive(serde::Deserialize)]
struct Model {
    id: String,
}

/// The body with which every gateway refuses a call to `/v1`.
#[derive(Default, serde::Deserialize)]
pub struct ErrorBody {
    #[serde(default)]
    pub error: Fault,
}

#[derive(Default, serde::Deserialize)]
pub struct Fault {
    #[serde(default)]
    pub message: String,
    #[serde(default, rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub code: Code,
}

/// Some gateways send a text, some a number, the rest null.
#[derive(Default, serde::Deserialize)]
#[serde(untagged)]
pub enum Code {
    Text(String),
    Number(i64),
    #[default]
    None,
}

impl Code {
    pub fn text(&self) -> String {
        match self {
            Code::Text(text) => text.clone(),
            Code::Number(number) => number.to_string(),
            Code::None => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_key_is_not_told() {
        assert_eq!(scrub("令牌 inst-0001（#3）额度已用尽"), "令牌 inst-0001（#3）额度已用尽");
        assert_eq!(
            scrub("Received API Key = sk-...abcd, hash=9f86d081884c7d659a2feaa0c55ad015"),
            "Received API Key = ***, hash=***"
        );
        assert_eq!(scrub("key sk-1"), "key ***");
        assert_eq!(scrub(&"é ".repeat(400)).chars().count(), 301);
    }

    #[test]
    fn codes_come_as_text_number_or_null() {
        let code = |json: &str| serde_json::from_str::<ErrorBody>(json).unwrap().error.code.text();
        assert_eq!(code(r#"{"error":{"code":"x"}}"#), "x");
        assert_eq!(code(r#"{"error":{"code":400}}"#), "400");
        assert_eq!(code(r#"{"error":{"code":null,"param":null}}"#), "");
        assert_eq!(code("{}"), "");
    }

    #[test]
    fn a_model_is_listed_once() {
        let names = ["b", "a", "b", "", "a"].map(str::to_owned);
        assert_eq!(once(names.into_iter()), ["b", "a"]);
    }
}
