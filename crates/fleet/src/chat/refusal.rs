//! What the LLM gateway refuses, as an error for the employee: whose failure it is, and what to do. A sub key that the
//! gateway does not know any more is made again at once.

use std::time::Duration;

use base::{Error, Kind, Secret};
use llm::key;
use remote::llm::{KeyState, KeyStatus};
use reqwest::{Response, StatusCode, header};
use serde_json::Value;
use store::gateway_key::GatewayKey;

use super::{Failure, Turn, forward};
use crate::key_check;

/// Maximum size of a refusal, in bytes.
const LONGEST: usize = 64 << 10;
/// How long the employee waits for a key to be made again.
const PATIENCE: Duration = Duration::from_secs(20);

pub const UNCOUNTED: &str = "daily quotas cannot be counted at present, because the LLM gateway's log says nothing: \
    your assistant pauses until it does. This failure is not yours: tell an administrator";
const ACCOUNT: &str = "the LLM gateway's account balance is used up. This failure is not yours: tell an administrator";
const PROVIDER_ACCOUNT: &str = "the balance of the gateway's account at the model provider is used up. This failure is not yours: tell an administrator";
const PROVIDER_KEY: &str =
    "the model provider refuses the LLM gateway's key. This failure is not yours: tell an administrator";
const BLOCKED: &str = "the LLM gateway blocks the account of this assistant's key, or this server's address. This failure is \
    not yours: tell an administrator";
const KEY_QUOTA: &str = "the quota of this assistant's key is used up: ask an administrator for more";
const SUB_KEY: &str = "the LLM gateway refuses this instance's key";
const KEY_OFF: &str = "this assistant's key is switched off: ask an administrator";
const DAY_SPENT: &str = "daily quota used up";

/// Translates a refusal into an error for the employee, which says whose failure it is. Its kind follows from status and code, never from the message:
/// foreign gateways word their messages differently.
pub async fn translate(response: Response, embedded: bool) -> Failure {
    let status = response.status();
    let after = response.headers().get(header::RETRY_AFTER).and_then(|v| v.to_str().ok()).and_then(|v| v.parse().ok());
    let body = forward::read(response, LONGEST).await.unwrap_or_default();
    let said: Value = serde_json::from_slice(&body).unwrap_or_default();
    let (code, kind) = (text(&said["error"]["code"]), text(&said["error"]["type"]));
    let message = text(&said["error"]["message"]);
    let names = |one: &str| code == one || kind == one;
    let mut of_key = false;
    let error = if embedded && names("insufficient_quota") {
        // Our own gateway says it of the employee's quota, or the key's, with its numbers.
        Error::new(Kind::QuotaUsedUp, or(message.clone(), DAY_SPENT))
    } else if names("insufficient_user_quota") {
        Error::new(Kind::Gateway, ACCOUNT)
    } else if names("insufficient_quota") {
        Error::new(Kind::Gateway, PROVIDER_ACCOUNT)
    } else if names("pre_consume_token_quota_failed") || names("budget_exceeded") {
        Error::new(Kind::QuotaUsedUp, KEY_QUOTA)
    } else {
        match status {
            StatusCode::TOO_MANY_REQUESTS => Error::new(Kind::TooManyRequests, "the model is busy: try again later"),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                of_key = true;
                Error::new(Kind::Gateway, SUB_KEY)
            }
            StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNPROCESSABLE_ENTITY => {
                Error::new(Kind::BadRequest, or(message.clone(), "the LLM gateway refuses the request"))
            }
            StatusCode::NOT_FOUND => Error::field("model", "the LLM gateway does not offer it"),
            StatusCode::GATEWAY_TIMEOUT | StatusCode::REQUEST_TIMEOUT => {
                Error::new(Kind::TimedOut, "the model took too long")
            }
            _ => Error::from(Kind::Gateway),
        }
    };
    let error = error.with_operator(format_args!("the LLM gateway answered {status} {code} {}", short(&message)));
    let error = match after {
        Some(seconds) => error.retry_after(Duration::from_secs(seconds)),
        None => error,
    };
    Failure { error, answered: true, of_key }
}

/// Finds out whose key a gateway refused, after it answered 401 or 403: a provider's refusal is passed on by some
/// gateways as it is. Returns the key to try again with, if it was ours and could be made again.
pub async fn of_key(turn: &Turn, failure: Failure, key: &Secret) -> Result<Secret, Failure> {
    let llm = &turn.app.upstream;
    if !failure.of_key || llm.embedded {
        return Err(failure);
    }
    let because = |kind: Kind, text: &'static str| {
        let operator = failure.error.operator.clone().unwrap_or_default();
        Err(Failure { error: Error::new(kind, text).with_operator(operator), answered: true, of_key: false })
    };
    match llm.gateway.check_key(key).await {
        KeyState::Valid => return because(Kind::Gateway, PROVIDER_KEY),
        KeyState::Exhausted => return because(Kind::QuotaUsedUp, KEY_QUOTA),
        KeyState::Denied => return because(Kind::Gateway, BLOCKED),
        KeyState::Throttled | KeyState::Unreachable(_) => return Err(failure),
        KeyState::Invalid => {}
    }
    let restored = tokio::time::timeout(PATIENCE, restore(turn, key)).await;
    match restored.unwrap_or_else(|_| Err(Kind::TimedOut.into())) {
        Ok(Restored::Key(key)) => Ok(key),
        Ok(Restored::Off(key)) if key.quota_spent => because(Kind::QuotaUsedUp, DAY_SPENT),
        Ok(Restored::Off(_)) => because(Kind::Gateway, KEY_OFF),
        Ok(Restored::Exhausted) => because(Kind::QuotaUsedUp, KEY_QUOTA),
        Ok(Restored::No) => Err(failure),
        Err(error) => {
            tracing::warn!(%error, instance = turn.instance.as_str(), "a refused sub key could not be put right");
            Err(failure)
        }
    }
}

enum Restored {
    Key(Secret),
    /// Our record wants it off.
    Off(Box<GatewayKey>),
    /// Its own quota is used up, which the gateway does not say.
    Exhausted,
    /// It was tried too often.
    No,
}

/// Makes the gateway agree with our record of the instance's key.
async fn restore(turn: &Turn, refused: &Secret) -> base::Result<Restored> {
    let app = &turn.app;
    let record = key::of_instance(app, &turn.instance).await?;
    let stored = record.key(&app.sealer)?;
    if stored.expose() != refused.expose() {
        // Another request had it made again already.
        return Ok(Restored::Key(stored));
    }
    if !record.enabled() {
        return Ok(Restored::Off(Box::new(record)));
    }
    let found = app.upstream.gateway.read_key(&record.gateway_id).await?;
    if found.is_some_and(|found| found.status == KeyStatus::Exhausted) {
        return Ok(Restored::Exhausted);
    }
    if !record.dirty && !key_check::heal(app, &record).await? {
        return Ok(Restored::No);
    }
    key::agree(app, &record.id).await?;
    Ok(Restored::Key(key::of_instance(app, &turn.instance).await?.key(&app.sealer)?))
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn or(text: String, otherwise: &str) -> String {
    if text.is_empty() { otherwise.to_owned() } else { short(&text) }
}

fn short(text: &str) -> String {
    text.chars().take(500).collect()
}
