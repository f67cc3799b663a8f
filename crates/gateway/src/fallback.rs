//! Asks the provider of a model, and when that fails, the next models of the fallback chain. A provider fails when it
//! cannot be reached, breaks the connection, refuses the gateway's key, or answers 429, 3xx or 5xx. Every other answer
//! is forwarded. Once an answer has begun, no other provider is asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use base::Clock;
use http::header::{HeaderMap, RETRY_AFTER};
use http::{Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use serde::Deserialize;
use store::model::ProviderKind;

use crate::error::Refusal;
use crate::log::record::shortened;
use crate::models::{Model, Table};
use crate::provider::{Answer, Providers, Route, Silent};
use crate::request::Asked;
use crate::ticket::{By, Ticket};

/// How much of a failure's body is read, and for how long.
const MOST_FAILURE: usize = 16 * 1024;
const FAILURE_PATIENCE: Duration = Duration::from_secs(1);
/// The longest wait: a provider that asks for more is asked again after this.
const MOST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);
/// `Retry-After` for the client when the provider names no time.
const SHORT_WAIT: Duration = Duration::from_secs(1);

/// The times until which providers asked for no requests (429 with `Retry-After`).
pub struct Waits {
    clock: Clock,
    zero: Instant,
    /// Milliseconds since `zero`, by kind of provider; 0 is no wait.
    until: [AtomicU64; ProviderKind::ALL.len()],
}

impl Waits {
    pub fn new(clock: Clock) -> Waits {
        Waits { zero: clock.instant(), clock, until: Default::default() }
    }

    fn of(&self, kind: ProviderKind) -> &AtomicU64 {
        &self.until[kind as usize]
    }

    /// How long no request may be sent to the provider.
    fn left(&self, kind: ProviderKind) -> Option<Duration> {
        let until = self.of(kind).load(Ordering::Relaxed);
        if until == 0 {
            return None;
        }
        let left = Duration::from_millis(until).saturating_sub(self.clock.since(self.zero));
        (!left.is_zero()).then_some(left)
    }

    fn wait(&self, kind: ProviderKind, wait: Duration) {
        let until = (self.clock.since(self.zero) + wait.min(MOST_WAIT)).as_millis();
        self.of(kind).fetch_max(u64::try_from(until).unwrap_or(u64::MAX).max(1), Ordering::Relaxed);
    }
}

/// One try of the chain: a model and the route to its provider.
pub struct Turn<'a> {
    pub model: Arc<Model>,
    pub route: Route<'a>,
}

impl Turn<'_> {
    pub fn by(&self, echo: &Arc<str>) -> By {
        let provider = if self.route.is_echo() { echo } else { &self.model.provider };
        By { model: self.model.clone(), provider: provider.clone() }
    }
}

/// The requested model, and the usable models after it in the chain.
pub fn turns<'a>(table: &Table, providers: &'a Providers, model: &str) -> Result<Vec<Turn<'a>>, Refusal> {
    let Some(first) = table.find(model) else { return Err(Refusal::unknown_model(model, "does not exist")) };
    if !first.enabled {
        return Err(Refusal::unknown_model(model, "is switched off"));
    }
    let usable = |model: &Arc<Model>| {
        let route = providers.route(model.kind).filter(|_| model.enabled)?;
        Some(Turn { model: model.clone(), route })
    };
    let Some(first) = usable(first) else {
        return Err(Refusal::unknown_model(model, "has no provider: its provider's key is not configured"));
    };
    let mut turns = vec![first];
    let rest: Vec<Turn<'a>> = table.after(&turns[0].model).filter_map(usable).collect();
    turns.extend(rest);
    Ok(turns)
}

/// Why one try failed.
struct Failure {
    /// For the client: which provider failed and how.
    message: String,
    /// For the operator only.
    detail: String,
    class: Class,
}

impl Failure {
    /// Whether the provider did not accept the request, and so bills nothing.
    fn is_refusal(&self) -> bool {
        !matches!(self.class, Class::Late | Class::Broken)
    }
}

enum Class {
    /// It asks to wait, for this time if it names one.
    Wait(Option<Duration>),
    Answered,
    /// It closed the connection without an answer.
    Broken,
    Unreachable,
    Late,
}

/// An answer that is forwarded, whatever its status.
pub struct Passed {
    pub response: Response<Answer>,
    pub by: By,
}

/// The request as the providers get it.
pub struct Question<'a> {
    pub asked: &'a Asked,
    pub headers: &'a HeaderMap,
    pub deadline: tokio::time::Instant,
    pub echo: &'a Arc<str>,
}

/// Asks one provider after the other. If all fail, returns the refusal for the client and a text with details for the
/// log.
pub async fn ask(
    providers: &Providers,
    waits: &Waits,
    turns: &[Turn<'_>],
    question: Question<'_>,
    ticket: &mut Ticket,
) -> Result<Passed, (Refusal, String)> {
    let mut failures: Vec<Failure> = vec![];
    for turn in turns {
        let by = turn.by(question.echo);
        if let Some(left) = waits.left(turn.route.kind) {
            let message = format!("{} at {} asked to wait", by.model.id, by.provider);
            failures.push(Failure { message, detail: String::new(), class: Class::Wait(Some(left)) });
            continue;
        }
        ticket.turns_to(by.clone());
        match once(providers, waits, turn, &question, &by).await {
            Ok(response) => return Ok(Passed { response, by }),
            Err(failure) => {
                if failure.is_refusal() {
                    ticket.is_refused();
                }
                tracing::warn!(message = failure.message, detail = failure.detail, "a provider failed");
                metrics::counter!("tidepool_gateway_fallbacks_total", "provider" => by.provider.to_string())
                    .increment(1);
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
    turn: &Turn<'_>,
    question: &Question<'_>,
    by: &By,
) -> Result<Response<Answer>, Failure> {
    let who = || format!("{} at {}", by.model.id, by.provider);
    let body = question.asked.body_for(&by.model.id);
    let asking = providers.ask(turn.route, body, question.headers);
    let response = match tokio::time::timeout_at(question.deadline, asking).await {
        Ok(Ok(response)) => response,
        Ok(Err(Silent::Connect(detail))) => {
            let message = format!("{} cannot be reached", who());
            return Err(Failure { message, detail, class: Class::Unreachable });
        }
        Ok(Err(Silent::Broken(detail))) => {
            let message = format!("{} closed the connection without an answer", who());
            return Err(Failure { message, detail, class: Class::Broken });
        }
        Err(_) => {
            let message = format!("{} did not begin to answer in time", who());
            return Err(Failure { message, detail: String::new(), class: Class::Late });
        }
    };
    match response.status() {
        StatusCode::TOO_MANY_REQUESTS => {
            let wait = retry_after(response.headers(), waits.clock.now());
            if let Some(wait) = wait {
                waits.wait(turn.route.kind, wait);
            }
            let (message, detail) = (format!("{} asks to wait (429)", who()), words(response).await);
            Err(Failure { message, detail, class: Class::Wait(wait) })
        }
        // The refused key is the gateway's, not the client's. The body is not read: it may show a part of that key.
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            let message = format!("{} refused the gateway's key ({})", who(), response.status().as_u16());
            Err(Failure { message, detail: String::new(), class: Class::Answered })
        }
        status if status.is_success() || status.is_client_error() => Ok(response),
        status => {
            let (message, detail) = (format!("{} answered {}", who(), status.as_u16()), words(response).await);
            Err(Failure { message, detail, class: Class::Answered })
        }
    }
}

/// The refusal when no provider answered: 429 if one asked to wait, else according to the last failure.
fn refusal(failures: &[Failure]) -> (Refusal, String) {
    let message: Vec<&str> = failures.iter().map(|f| f.message.as_str()).collect();
    let message = format!("no provider answered: {}", message.join("; "));
    let details: Vec<String> = failures
        .iter()
        .map(|f| if f.detail.is_empty() { f.message.clone() } else { format!("{}: {}", f.message, f.detail) })
        .collect();
    let waits = failures.iter().filter_map(|f| match f.class {
        Class::Wait(wait) => Some(wait.unwrap_or(SHORT_WAIT)),
        _ => None,
    });
    let refusal = match (waits.min(), failures.last().map(|f| &f.class)) {
        (Some(wait), _) => Refusal::rate_limited(message, wait),
        (None, Some(Class::Unreachable)) => Refusal::unreachable(message),
        (None, Some(Class::Late)) => Refusal::timed_out(message),
        (None, _) => Refusal::bad_gateway(message),
    };
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

/// The error message in a failure's body.
async fn words(response: Response<Answer>) -> String {
    let body = Limited::new(response.into_body(), MOST_FAILURE).collect();
    match tokio::time::timeout(FAILURE_PATIENCE, body).await {
        Ok(Ok(body)) => message(&body.to_bytes()),
        _ => String::new(),
    }
}

#[derive(Deserialize)]
struct ErrorBody {
    error: Message,
}

#[derive(Deserialize)]
struct Message {
    message: String,
}

/// The message of an error in OpenAI's format. Some providers put a list around it.
pub fn message(body: &[u8]) -> String {
    let one = || serde_json::from_slice::<ErrorBody>(body).ok();
    let listed = || serde_json::from_slice::<Vec<ErrorBody>>(body).ok().and_then(|mut all| all.pop());
    one().or_else(listed).map(|parsed| shortened(&parsed.error.message).to_owned()).unwrap_or_default()
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
    fn a_longer_wait_is_not_cut_by_a_shorter_one() {
        let clock = Clock::manual("2026-11-15T12:00:00Z".parse().unwrap());
        let waits = Waits::new(clock.clone());
        assert_eq!(waits.left(ProviderKind::Openai), None);
        waits.wait(ProviderKind::Openai, Duration::from_secs(30));
        waits.wait(ProviderKind::Openai, Duration::from_secs(1));
        assert_eq!(waits.left(ProviderKind::Openai), Some(Duration::from_secs(30)));
        assert_eq!(waits.left(ProviderKind::Google), None);
        waits.wait(ProviderKind::Google, Duration::MAX);
        assert_eq!(waits.left(ProviderKind::Google), Some(MOST_WAIT));
        clock.advance(jiff::SignedDuration::from_secs(29));
        assert_eq!(waits.left(ProviderKind::Openai), Some(Duration::from_secs(1)));
        clock.advance(jiff::SignedDuration::from_secs(1));
        assert_eq!(waits.left(ProviderKind::Openai), None);
    }

    #[test]
    fn the_words_of_a_failure_are_found() {
        assert_eq!(message(br#"{"error":{"message":"overloaded","code":7}}"#), "overloaded");
        assert_eq!(message(br#"[{"error":{"message":"bad model"}}]"#), "bad model");
        assert_eq!(message(b"<html>"), "");
    }
}
