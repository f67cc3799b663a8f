//! What one-api and its descendant new-api share: the management API's envelope, tokens, units and account.
//!
//! A refusal comes as HTTP 200 with `success: false`, so the status alone says nothing.

use std::time::{Duration, Instant, SystemTime};

use base::{Error, PerUsd, Result, Secret};
use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::call::{Caller, Outcome, Trouble, hidden, once};
use super::pace::{Lane, Limit};
use super::{AdminToken, Balance, Health, KeyStatus, NewKey, RemoteKey};

/// How long the value of the gateway's units is cached: its administrator can change it.
const KEEP: Duration = Duration::from_secs(300);
/// The message of both gateways' database library for a missing row.
const MISSING: &str = "record not found";

pub struct Management {
    pub call: Caller,
    token: HeaderValue,
    /// The id of the token's account. new-api requires it in every call.
    account: Option<HeaderValue>,
    per_usd: Mutex<Option<(PerUsd, Instant)>>,
    /// Whether tokens without a limit are counted.
    counts_unlimited: bool,
}

#[derive(Deserialize)]
struct Envelope<T> {
    success: bool,
    #[serde(default)]
    message: String,
    data: Option<T>,
}

/// A token as both gateways list it, without the fields that only one of them has.
#[derive(Deserialize)]
pub struct Token {
    pub id: i64,
    #[serde(default)]
    pub name: String,
    #[serde(default = "no_key")]
    key: Secret,
    status: i64,
    #[serde(default = "never")]
    expired_time: i64,
    #[serde(default)]
    remain_quota: i64,
    #[serde(default)]
    unlimited_quota: bool,
    #[serde(default)]
    used_quota: i64,
}

fn no_key() -> Secret {
    Secret::new("")
}

fn never() -> i64 {
    -1
}

/// `/api/status`, which needs no token.
#[derive(Deserialize)]
pub struct Status {
    pub version: Option<String>,
    quota_per_unit: Option<f64>,
    /// Only new-api has these two fields; the second exists in older releases too.
    quota_display_type: Option<Value>,
    enable_data_export: Option<Value>,
}

impl Status {
    pub fn is_new_api(&self) -> bool {
        self.quota_display_type.is_some() || self.enable_data_export.is_some()
    }
}

#[derive(Deserialize)]
struct Account {
    quota: i64,
    #[serde(default)]
    used_quota: i64,
}

impl Management {
    pub fn new(
        url: &str,
        what: &'static str,
        (token, account): (&str, Option<&str>),
        limit: Limit,
        counts_unlimited: bool,
    ) -> Result<Management> {
        Ok(Management {
            counts_unlimited,
            call: Caller::new(url, what, Some(limit))?,
            token: hidden(token),
            account: account.map(hidden),
            per_usd: Mutex::new(None),
        })
    }

    /// One call; returns `data`, if the answer has any.
    pub async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<Value>,
    ) -> Outcome<Option<T>> {
        let lane = if method == Method::GET { Lane::Read } else { Lane::Change };
        self.ask_in(Some(lane), method, path, query, body).await
    }

    /// The same. Without a lane it has a limit of its own at the gateway, and is sent at once.
    pub async fn ask_in<T: DeserializeOwned>(
        &self,
        lane: Option<Lane>,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<Value>,
    ) -> Outcome<Option<T>> {
        let mut request = self.call.request(method, path).query(query).header(AUTHORIZATION, self.token.clone());
        if let Some(account) = &self.account {
            request = request.header("New-Api-User", account.clone());
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = match lane {
            Some(lane) => self.call.paced(lane, request).await?,
            None => self.call.send(request).await?,
        };
        let envelope: Envelope<T> = self.call.read(&answer)?;
        if !envelope.success || !answer.status.is_success() {
            return Err(self.call.refused(answer.status, "", &envelope.message));
        }
        Ok(envelope.data)
    }

    /// The same, but an answer without data is an error.
    pub async fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, &str)]) -> Outcome<T> {
        self.get_in(Lane::Read, path, query).await
    }

    async fn get_in<T: DeserializeOwned>(&self, lane: Lane, path: &str, query: &[(&str, &str)]) -> Outcome<T> {
        let data = self.ask_in(Some(lane), Method::GET, path, query, None).await?;
        data.ok_or_else(|| self.call.odd(format_args!("{path}: an answer without data")))
    }

    pub fn error(&self, trouble: Trouble) -> Error {
        self.call.error(trouble)
    }

    pub async fn health(&self, is_right: fn(&Status) -> std::result::Result<(), &'static str>) -> Health {
        let began = Instant::now();
        let status: Outcome<Status> = self.get_in(Lane::Probe, "/api/status", &[]).await;
        let latency_ms = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
        let health = |ok, detail| Health { ok, detail, version: None, latency_ms, per_usd: None };
        match status {
            Ok(status) => {
                let wrong = is_right(&status).err().unwrap_or_default();
                let per_usd = status.quota_per_unit.and_then(PerUsd::new);
                Health { per_usd, version: status.version, ..health(wrong.is_empty(), wrong.to_owned()) }
            }
            // A gateway that throttles us is up.
            Err(Trouble::Throttled(_)) => health(true, "throttled".to_owned()),
            Err(other) => health(false, self.error(other).to_string()),
        }
    }

    /// Asks for the account that the token is of.
    pub async fn check_admin_token(&self) -> AdminToken {
        self.call.judge(self.get_in::<Account>(Lane::Probe, "/api/user/self", &[]).await)
    }

    /// The account's own counter: every request of every token is in it, also of tokens without a limit.
    pub async fn counted(&self) -> Result<i64> {
        Ok(self.balance().await?.used)
    }

    pub async fn models(&self, path: &str) -> Result<Vec<String>> {
        let names: Option<Vec<String>> = self.ask(Method::GET, path, &[], None).await.map_err(|t| self.error(t))?;
        Ok(once(names.unwrap_or_default().into_iter()))
    }

    pub async fn balance(&self) -> Result<Balance> {
        let account: Account = self.get("/api/user/self", &[]).await.map_err(|t| self.error(t))?;
        let per_usd = self.per_usd().await?;
        Ok(Balance { remain: Some(per_usd.to_ours(account.quota)), used: per_usd.to_ours(account.used_quota) })
    }

    /// How many of the gateway's units are worth a dollar, cached. If the gateway does not answer, this fails: a guess
    /// would give wrong quotas.
    pub async fn per_usd(&self) -> Result<PerUsd> {
        let mut kept = self.per_usd.lock().await;
        if let Some((per_usd, at)) = *kept
            && at.elapsed() < KEEP
        {
            return Ok(per_usd);
        }
        let status: Status = self.get("/api/status", &[]).await.map_err(|t| self.error(t))?;
        let per_usd = match status.quota_per_unit {
            None => PerUsd::USUAL,
            Some(units) => PerUsd::new(units)
                .ok_or_else(|| self.error(self.call.odd(format_args!("quota_per_unit is {units}"))))?,
        };
        *kept = Some((per_usd, Instant::now()));
        Ok(per_usd)
    }

    /// The body that creates a token which never expires. Without `expired_time` it would be 0, which is in the past.
    pub async fn new_token(&self, new: &NewKey) -> Result<Value> {
        let per_usd = self.per_usd().await?;
        Ok(json!({
            "name": new.name,
            "expired_time": -1,
            "remain_quota": new.quota.map_or(0, |quota| per_usd.to_theirs(quota)),
            "unlimited_quota": new.quota.is_none(),
        }))
    }

    pub async fn read(&self, gateway_id: &str) -> Result<Option<RemoteKey>> {
        let Some(id) = token_id(gateway_id) else { return Ok(None) };
        match self.get::<Token>(&format!("/api/token/{id}"), &[]).await {
            Ok(token) => self.remote_key(token).await.map(Some),
            Err(trouble) if is_missing(&trouble) => Ok(None),
            Err(other) => Err(self.error(other)),
        }
    }

    /// Uses `status_only`: any other update resets the fields that the body does not name.
    pub async fn set_enabled(&self, gateway_id: &str, enabled: bool) -> Result<()> {
        let id = token_id(gateway_id).ok_or(base::Kind::NotFound)?;
        let body = json!({"id": id, "status": if enabled { 1 } else { 2 }});
        let answer: Outcome<Option<Value>> =
            self.ask(Method::PUT, "/api/token/", &[("status_only", "true")], Some(body)).await;
        match answer {
            Ok(_) => Ok(()),
            Err(trouble) if is_missing(&trouble) => Err(base::Kind::NotFound.into()),
            Err(other) => Err(self.error(other)),
        }
    }

    pub async fn delete(&self, gateway_id: &str) -> Result<()> {
        let Some(id) = token_id(gateway_id) else { return Ok(()) };
        let answer: Outcome<Option<Value>> = self.ask(Method::DELETE, &format!("/api/token/{id}"), &[], None).await;
        match answer {
            Ok(_) => Ok(()),
            Err(trouble) if is_missing(&trouble) => Ok(()),
            Err(other) => Err(self.error(other)),
        }
    }

    /// The tokens of exactly this name, oldest first: a search returns others too.
    pub async fn exactly(&self, name: &str, mut tokens: Vec<Token>) -> Result<Vec<RemoteKey>> {
        tokens.retain(|token| token.name == name);
        self.remote_keys(tokens).await
    }

    /// Sorts by age and removes duplicates: pages shift while they are read.
    pub async fn remote_keys(&self, mut tokens: Vec<Token>) -> Result<Vec<RemoteKey>> {
        tokens.sort_by_key(|token| token.id);
        tokens.dedup_by_key(|token| token.id);
        let mut keys = vec![];
        for token in tokens {
            keys.push(self.remote_key(token).await?);
        }
        Ok(keys)
    }

    async fn remote_key(&self, token: Token) -> Result<RemoteKey> {
        let per_usd = self.per_usd().await?;
        let limit = |units: i64| (!token.unlimited_quota).then(|| per_usd.to_ours(units));
        Ok(RemoteKey {
            gateway_id: token.id.to_string(),
            key: sub_key(&token.key),
            status: status(&token),
            quota: limit(token.remain_quota.saturating_add(token.used_quota)),
            remain_quota: limit(token.remain_quota),
            used_quota: per_usd.to_ours(token.used_quota),
            is_counted: self.counts_unlimited || !token.unlimited_quota,
            name: token.name,
        })
    }
}

pub fn token_id(gateway_id: &str) -> Option<i64> {
    gateway_id.parse().ok().filter(|id| *id > 0)
}

pub fn is_missing(trouble: &Trouble) -> bool {
    matches!(trouble, Trouble::Refused { status: StatusCode::OK | StatusCode::NOT_FOUND, message, .. } if message == MISSING)
}

/// The key as a caller sends it; it is stored without its prefix. A list may mask it. A `-` in a key separates the
/// number of a channel from it, so a key that contains one is unusable.
pub fn sub_key(stored: &Secret) -> Option<Secret> {
    let key = stored.expose().trim();
    let key = key.strip_prefix("sk-").unwrap_or(key);
    let usable = !key.is_empty() && !key.contains(['*', '-']);
    usable.then(|| Secret::new(format!("sk-{key}")))
}

/// The gateway updates the status of an expired or exhausted token only at its next use; we compute it at once.
fn status(token: &Token) -> KeyStatus {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs() as i64);
    match token.status {
        3 => KeyStatus::Expired,
        4 => KeyStatus::Exhausted,
        1 if token.expired_time != -1 && token.expired_time < now => KeyStatus::Expired,
        1 if !token.unlimited_quota && token.remain_quota <= 0 => KeyStatus::Exhausted,
        1 => KeyStatus::Enabled,
        _ => KeyStatus::Disabled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(json: Value) -> Token {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_masked_key_or_one_that_names_a_channel_is_none() {
        let exposed = |text: &str| sub_key(&Secret::new(text)).map(|k| k.expose().to_owned());
        assert_eq!(exposed("abcdef"), Some("sk-abcdef".into()));
        assert_eq!(exposed("sk-abcdef  "), Some("sk-abcdef".into()), "PostgreSQL pads with blanks");
        for none in ["", "abcd**********wxyz", "abcdef-3"] {
            assert_eq!(exposed(none), None, "{none}");
        }
    }

    #[test]
    fn a_spent_or_expired_token_is_told_before_the_gateway_notices() {
        let of = |changes: Value| {
            let mut json = json!({"id": 1, "status": 1, "expired_time": -1, "remain_quota": 5});
            json.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
            status(&token(json))
        };
        assert_eq!(of(json!({})), KeyStatus::Enabled);
        assert_eq!(of(json!({"remain_quota": 0})), KeyStatus::Exhausted);
        assert_eq!(of(json!({"remain_quota": -7, "unlimited_quota": true})), KeyStatus::Enabled);
        assert_eq!(of(json!({"expired_time": 1_700_000_000})), KeyStatus::Expired);
        assert_eq!(of(json!({"expired_time": 0})), KeyStatus::Expired, "0 is a time, and long past");
        assert_eq!(of(json!({"status": 2})), KeyStatus::Disabled);
        assert_eq!(of(json!({"status": 4})), KeyStatus::Exhausted);
    }

    #[test]
    fn ids_are_positive_numbers() {
        assert_eq!(token_id("17"), Some(17));
        for none in ["", "0", "-1", "1/../2", "x"] {
            assert_eq!(token_id(none), None);
        }
    }
}
