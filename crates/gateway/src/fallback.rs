//! Asks the provider of a model, and when that fails, the model's further providers, then the next models of the fallback chain, as
//! far as they speak the same protocol. Where the failure is its key's (refused, spent, too many requests), the provider's other keys
//! are asked first.
//! A provider fails when it cannot be reached, breaks the connection, refuses the gateway's key, has no credit for it, or
//! answers 429, 3xx or 5xx. Every other answer is forwarded. Once an answer has begun, no other provider is asked.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, RETRY_AFTER};
use http::{Response, StatusCode};
use http_body_util::BodyExt as _;
use serde::Deserialize;
use serde_json::Value;

use crate::error::{OVERLOADED, Refusal};
use crate::header::{REQUEST_ID, UPSTREAM_ID};
use crate::log::record::shortened;
use crate::provider::{self, Answer, Key, Provider, Providers, Silent};
use crate::request::Asked;
use crate::ticket::{By, Ticket};
use crate::turn::{At, Turn};
use crate::wait::{MOST_WAIT, Waits};

/// How much of a failure's body is read, and for how long.
const MOST_FAILURE: usize = 16 * 1024;
const FAILURE_PATIENCE: Duration = Duration::from_secs(1);
/// `Retry-After` for the client when the provider names no time.
const SHORT_WAIT: Duration = Duration::from_secs(1);

/// By which the providers say that the account has no credit. Anthropic has no code for it, only words.
const SPENT_CODES: [&str; 3] = ["insufficient_quota", "billing_hard_limit_reached", "billing_not_active"];
const SPENT_WORDS: &str = "credit balance is too low";

/// Headers about a provider's limits begin with one of these.
const LIMITS: [&str; 3] = ["x-ratelimit-", "anthropic-ratelimit-", "retry-after-ms"];

/// Why one try failed.
struct Failure {
    /// For the client: which provider failed and how.
    message: String,
    /// For the operator only.
    detail: String,
    class: Class,
    /// What it said about its limits, and its request id.
    headers: HeaderMap,
}

impl Failure {
    fn new(message: String, detail: String, class: Class) -> Failure {
        Failure { message, detail, class, headers: HeaderMap::new() }
    }

    /// Whether another key of the provider may do better.
    fn is_of_key(&self) -> bool {
        matches!(self.class, Class::Wait(_) | Class::KeyRefused | Class::Spent)
    }

    /// As the health of providers has it.
    fn class(&self) -> provider::Failure {
        match self.class {
            Class::Wait(_) => provider::Failure::RateLimited,
            Class::KeyRefused => provider::Failure::KeyRefused,
            Class::Spent => provider::Failure::Spent,
            Class::Unreachable => provider::Failure::Unreachable,
            Class::Late => provider::Failure::Late,
            Class::Answered(_) | Class::Overloaded(_) | Class::Broken => provider::Failure::Failed,
        }
    }

    /// Whether the provider did not accept the request, and so bills nothing.
    fn is_refusal(&self) -> bool {
        !matches!(self.class, Class::Late | Class::Broken)
    }
}

enum Class {
    /// It asks to wait, for this time if it names one.
    Wait(Option<Duration>),
    /// It answered with a failure, and may have named a time to come back.
    Answered(Option<Duration>),
    /// It has too much to do, and may have named a time to come back.
    Overloaded(Option<Duration>),
    /// It refused the gateway's key.
    KeyRefused,
    /// The gateway's account there has no credit.
    Spent,
    /// It closed the connection without an answer.
    Broken,
    Unreachable,
    Late,
}

/// An answer that is forwarded, whatever its status.
pub struct Passed {
    pub response: Response<Answer>,
    pub by: By,
    /// Whether nobody who failed before named a time to come back: then the model and the provider that answered are asked
    /// first for a while, if they are not the first anyway.
    pub sticks: bool,
    /// The id of the key that answered, of a provider with several, and whether it is the first of them.
    pub pinned: Option<(Arc<str>, bool)>,
    /// The key that answered.
    pub key: Option<Arc<Key>>,
}

/// The request as the providers get it.
pub struct Question<'a> {
    pub asked: &'a Asked,
    pub from: provider::ClientRequest<'a>,
    pub deadline: tokio::time::Instant,
    pub echo: &'a Arc<str>,
}

/// Asks one provider after the other. If all fail, returns the refusal for the client and a text with details for the
/// log.
pub async fn ask(
    providers: &Providers,
    waits: &Waits,
    turns: &[Turn],
    question: Question<'_>,
    ticket: &mut Ticket,
) -> Result<Passed, (Refusal, String)> {
    let mut failures: Vec<Failure> = vec![];
    // The model and the provider that failed in a way that no other key changes.
    let mut given_up: Option<(Arc<str>, Arc<str>)> = None;
    for turn in turns {
        let by = turn.by(question.echo);
        if given_up.as_ref().is_some_and(|(model, provider)| *model == by.model.id && *provider == by.provider) {
            continue;
        }
        if let Some(left) = waits.left(&turn.waiting(question.from.protocol)) {
            let message = format!("{} at {} asked to wait", by.model.id, by.provider);
            failures.push(Failure::new(message, String::new(), Class::Wait(Some(left))));
            continue;
        }
        ticket.turns_to(by.clone());
        match once(providers, waits, turn, &question, &by).await {
            Ok(response) => {
                let sticks = !failures.iter().any(|failure| matches!(failure.class, Class::Wait(Some(_))));
                return Ok(Passed { response, by, sticks, pinned: turn.pinned(), key: turn.key().cloned() });
            }
            Err(failure) => {
                if failure.is_refusal() {
                    ticket.is_refused();
                }
                tracing::warn!(message = failure.message, detail = failure.detail, "a provider failed");
                metrics::counter!("tidepool_gateway_fallbacks_total", "provider" => by.provider.to_string())
                    .increment(1);
                if !failure.is_of_key() {
                    given_up = Some((by.model.id.clone(), by.provider.clone()));
                }
                failures.push(failure);
                // The client disconnected: nobody waits for another model's answer.
                if ticket.progress().has_left() {
                    break;
                }
            }
        }
    }
    Err(refusal(&failures))
}

async fn once(
    providers: &Providers,
    waits: &Waits,
    turn: &Turn,
    question: &Question<'_>,
    by: &By,
) -> Result<Response<Answer>, Failure> {
    let At::Provider(provider, key) = &turn.at else {
        let body = question.asked.body_for(&by.model.id, true);
        let answer = provider::echoed(question.from.protocol, &body);
        return judge(providers, waits, turn, question, by, answer).await;
    };
    let had_time = tokio::time::Instant::now() < question.deadline;
    let answered = of_provider(providers, waits, turn, question, by, (provider, key)).await;
    match &answered {
        Ok(response) if response.status().is_success() => {
            providers.succeeded(provider, key, question.from.protocol.is_billed);
        }
        // A refusal of the request says nothing of the provider: the client's request may be wrong, or the address is.
        Ok(_) => {}
        // Nobody is late who got no time.
        Err(failure) if had_time => providers.failed(provider, key, failure.class()),
        Err(_) => {}
    }
    answered
}

async fn of_provider(
    providers: &Providers,
    waits: &Waits,
    turn: &Turn,
    question: &Question<'_>,
    by: &By,
    (provider, key): (&Provider, &Key),
) -> Result<Response<Answer>, Failure> {
    let who = || format!("{} at {}", by.model.id, by.provider);
    let body = question.asked.body_for(by.model.name_at(&by.provider), provider.takes_usage_request);
    let asking = providers.ask(provider, key, body, &question.from);
    let deadline = question.deadline.min(tokio::time::Instant::now() + provider.answer);
    let response = match tokio::time::timeout_at(deadline, asking).await {
        Ok(Ok(response)) => response,
        Ok(Err(Silent::Connect(detail))) => {
            return Err(Failure::new(format!("{} cannot be reached", who()), detail, Class::Unreachable));
        }
        Ok(Err(Silent::Broken(detail))) => {
            let message = format!("{} closed the connection without an answer", who());
            return Err(Failure::new(message, detail, Class::Broken));
        }
        Err(_) => {
            let message = format!("{} did not begin to answer in time", who());
            return Err(Failure::new(message, String::new(), Class::Late));
        }
    };
    judge(providers, waits, turn, question, by, response).await
}

/// Whether an answer is forwarded, or why it counts as a failure.
async fn judge(
    providers: &Providers,
    waits: &Waits,
    turn: &Turn,
    question: &Question<'_>,
    by: &By,
    response: Response<Answer>,
) -> Result<Response<Answer>, Failure> {
    let who = || format!("{} at {}", by.model.id, by.provider);
    let status = response.status();
    if status.is_success() || (status.is_client_error() && !is_looked_into(status)) {
        return Ok(response);
    }
    let headers = limits(response.headers());
    let failed = |message: String, detail: String, class| Failure { message, detail, class, headers };
    // The refused key is the gateway's, not the client's. The body is not read: it may show a part of that key.
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        let message = format!("{} refused the gateway's key ({})", who(), status.as_u16());
        return Err(failed(message, String::new(), Class::KeyRefused));
    }
    let wait = retry_after(response.headers(), waits.now());
    let (response, said) = look_into(response).await;
    let message_of = |said: &Said| without_key(said.message(), turn.key().map(|key| &**key));
    if said.is_spent(status) {
        let message = format!("{}: the gateway's account there has no credit ({})", who(), status.as_u16());
        return Err(failed(message, message_of(&said), Class::Spent));
    }
    match status {
        StatusCode::BAD_REQUEST => Ok(response),
        StatusCode::TOO_MANY_REQUESTS => {
            if let Some(wait) = wait {
                // It is noted to be written before it begins: a wait that is neither written nor noted ends.
                let is_written = match turn.key() {
                    Some(key) if question.from.protocol.is_billed => {
                        providers.waits_for(key, &turn.model.id, wait.min(MOST_WAIT))
                    }
                    _ => false,
                };
                waits.wait(turn.waiting(question.from.protocol), wait, is_written);
            }
            Err(failed(format!("{} asks to wait (429)", who()), message_of(&said), Class::Wait(wait)))
        }
        _ => {
            let message = format!("{} answered {}", who(), status.as_u16());
            let class = match status.as_u16() {
                OVERLOADED => Class::Overloaded(wait),
                _ => Class::Answered(wait),
            };
            Err(failed(message, message_of(&said), class))
        }
    }
}

/// Statuses for which the client's request may not be the reason.
fn is_looked_into(status: StatusCode) -> bool {
    matches!(status.as_u16(), 400 | 401 | 402 | 403 | 429)
}

fn limits(headers: &HeaderMap) -> HeaderMap {
    let about_limits = |name: &&HeaderName| LIMITS.iter().any(|begin| name.as_str().starts_with(begin));
    let mut limits: HeaderMap = headers
        .keys()
        .filter(about_limits)
        .filter_map(|name| Some((name.clone(), headers.get(name)?.clone())))
        .collect();
    if let Some(id) = headers.get(REQUEST_ID).or_else(|| headers.get("request-id")) {
        limits.insert(UPSTREAM_ID, id.clone());
    }
    limits
}

/// The refusal when no provider answered: 429 if one asked to wait, else according to the last failure.
fn refusal(failures: &[Failure]) -> (Refusal, String) {
    let mut message: Vec<&str> = failures.iter().map(|f| f.message.as_str()).collect();
    // Several keys of a provider fail with the same words.
    message.dedup();
    let message = format!("no provider answered: {}", message.join("; "));
    let details: Vec<String> = failures
        .iter()
        .map(|f| if f.detail.is_empty() { f.message.clone() } else { format!("{}: {}", f.message, f.detail) })
        .collect();
    let waits = failures.iter().filter_map(|f| match f.class {
        Class::Wait(wait) => Some((wait.unwrap_or(SHORT_WAIT), f)),
        _ => None,
    });
    let (mut refusal, of) = match (waits.min_by_key(|(wait, _)| *wait), failures.last()) {
        (Some((wait, failure)), _) => (Refusal::rate_limited(message, wait), Some(failure)),
        (None, Some(failure)) => {
            let refusal = match failure.class {
                Class::Unreachable => Refusal::unreachable(message),
                Class::Late => Refusal::timed_out(message),
                Class::KeyRefused => Refusal::provider_key(message),
                Class::Spent => Refusal::provider_account(message),
                Class::Answered(wait) => Refusal::bad_gateway(message).after(wait),
                Class::Overloaded(wait) => Refusal::overloaded(message).after(wait),
                Class::Broken | Class::Wait(_) => Refusal::bad_gateway(message),
            };
            (refusal, Some(failure))
        }
        (None, None) => (Refusal::bad_gateway(message), None),
    };
    refusal.headers = of.map(|failure| Box::new(failure.headers.clone()));
    (refusal, details.join("; "))
}

/// The wait of a `Retry-After` header: seconds, or a date.
fn retry_after(headers: &HeaderMap, now: jiff::Timestamp) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let at = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    let wait = at.duration_since(now);
    Duration::try_from(wait).ok()
}

/// Reads the beginning of a failure's body. The response that is returned is still whole.
async fn look_into(response: Response<Answer>) -> (Response<Answer>, Said) {
    let (parts, mut answer) = response.into_parts();
    let mut pieces: VecDeque<Bytes> = VecDeque::new();
    let reading = async {
        let mut size = 0;
        while size < MOST_FAILURE
            && let Some(Ok(frame)) = answer.frame().await
        {
            let Ok(piece) = frame.into_data() else { continue };
            size += piece.len();
            pieces.push_back(piece);
        }
    };
    tokio::time::timeout(FAILURE_PATIENCE, reading).await.ok();
    let said = Said::read(&pieces.iter().flatten().copied().collect::<Vec<u8>>());
    (Response::from_parts(parts, Answer::Begun(pieces, Box::new(answer))), said)
}

#[derive(Deserialize)]
struct ErrorBody {
    error: Said,
}

/// What a provider says about its failure.
#[derive(Default, Deserialize)]
struct Said {
    #[serde(default)]
    message: Value,
    #[serde(default)]
    code: Value,
    #[serde(default, rename = "type")]
    kind: Value,
}

impl Said {
    /// Reads an error in OpenAI's or Anthropic's format. Some providers put a list around it.
    fn read(body: &[u8]) -> Said {
        let read = match body.trim_ascii_start().starts_with(b"[") {
            true => serde_json::from_slice::<Vec<ErrorBody>>(body).ok().and_then(|mut all| all.pop()),
            false => serde_json::from_slice::<ErrorBody>(body).ok(),
        };
        read.map(|parsed| parsed.error).unwrap_or_default()
    }

    fn message(&self) -> String {
        shortened(self.message.as_str().unwrap_or_default()).to_owned()
    }

    /// Whether the gateway's account has no credit.
    fn is_spent(&self, status: StatusCode) -> bool {
        let coded = || [&self.code, &self.kind].iter().any(|code| SPENT_CODES.iter().any(|known| *code == known));
        match status.as_u16() {
            402 => true,
            429 => coded(),
            400 => coded() || self.message.as_str().is_some_and(|message| message.contains(SPENT_WORDS)),
            _ => false,
        }
    }
}

/// The message of an error, without what it quotes of the key.
pub fn message(body: &[u8], key: Option<&Key>) -> String {
    without_key(Said::read(body).message(), key)
}

fn without_key(text: String, key: Option<&Key>) -> String {
    match key {
        Some(key) => key.taken_out_of(&text),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_seconds_or_a_date() {
        let now: jiff::Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let of = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, text.parse().unwrap());
            retry_after(&headers, now)
        };
        assert_eq!(of("30"), Some(Duration::from_secs(30)));
        assert_eq!(of("0.5"), Some(Duration::from_millis(500)));
        assert_eq!(of("-1"), None);
        assert_eq!(of("soon"), None);
        assert_eq!(of("Sun, 06 Nov 1994 08:49:37 GMT"), None, "past");
        assert_eq!(of("Sun, 15 Nov 2026 12:01:00 GMT"), Some(Duration::from_secs(60)));
    }

    #[test]
    fn an_account_without_credit_is_recognised() {
        let spent =
            |status: u16, body: &str| Said::read(body.as_bytes()).is_spent(StatusCode::from_u16(status).unwrap());
        assert!(spent(
            429,
            r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#
        ));
        assert!(spent(402, "{}"));
        let anthropic = r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#;
        assert!(spent(400, anthropic));
        assert!(!spent(429, r#"{"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}"#));
        assert!(!spent(400, r#"{"error":{"message":"max_tokens is too large","code":null}}"#));
        assert!(!spent(429, r#"{"error":{"message":7,"code":429}}"#));
        assert!(!spent(500, anthropic));
    }

    #[test]
    fn the_words_of_a_failure_are_found() {
        assert_eq!(message(br#"{"error":{"message":"overloaded","code":7}}"#, None), "overloaded");
        assert_eq!(message(br#"[{"error":{"message":"bad model"}}]"#, None), "bad model");
        assert_eq!(message(b"<html>", None), "");
        let key = Key::new("one", "…7890", &base::Secret::new("sk-abcdefghij1234567890")).unwrap();
        let quoting = br#"{"error":{"message":"no such key: sk-abcdefghij1234567890"}}"#;
        assert_eq!(message(quoting, Some(&key)), "no such key: ***");
    }
}
