//! LiteLLM's proxy. It stores only a hash of every key, and returns the value only when the key is created. It checks
//! that an alias is unique before the insert, so two processes can still create two. Amounts are in dollars.

use std::sync::Arc;
use std::time::{Duration, Instant};

use aws_lc_rs::digest;
use base::units::UNITS_PER_USD;
use base::{Error, Result, Secret};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use reqwest::header::AUTHORIZATION;
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::call::{Caller, Outcome, Trouble, bearer};
use super::duplicate::{self, Keyring, Names};
use super::pace::Lane;
use super::{AdminToken, Balance, Gateway, Health, KeyState, KeyStatus, Kind, NewKey, RemoteKey, Settings};

/// The id of a request in the log is not always the one of its answer.
pub static KIND: Kind = Kind {
    name: "litellm",
    name_limit: 255,
    logs_failures: true,
    row_delay: Duration::from_secs(15),
    charges_fractions: true,
    request_id_header: None,
    open,
};

const PAGE: usize = 100;
const PAGES: usize = 1_000;

struct LiteLlm {
    call: Caller,
    master: Secret,
    chat_url: String,
    names: Names,
}

fn open(settings: &Settings) -> Result<Arc<dyn Gateway>> {
    let call = Caller::new(&settings.url, "LiteLLM", None)?;
    let chat_url = call.url("/v1/chat/completions");
    Ok(Arc::new(LiteLlm { chat_url, call, master: settings.admin_token.clone(), names: Names::new() }))
}

/// A key as lists and `/key/info` show it.
#[derive(Deserialize)]
struct Row {
    /// The hash of the key. `/key/info` leaves it out, because the caller sent it.
    #[serde(default)]
    token: String,
    #[serde(default)]
    key_alias: Option<String>,
    #[serde(default)]
    spend: Option<f64>,
    max_budget: Option<f64>,
    blocked: Option<bool>,
    expires: Option<String>,
    created_at: Option<String>,
    /// Newer releases derive it: active, expired, revoked or deleted.
    status: Option<String>,
}

#[derive(Deserialize)]
struct Page {
    keys: Vec<Value>,
    #[serde(default)]
    total_pages: Option<usize>,
}

#[derive(Deserialize)]
struct Info {
    info: Row,
}

#[derive(Deserialize)]
struct Made {
    key: Secret,
    token_id: Option<String>,
}

#[derive(Deserialize)]
struct Ready {
    #[serde(default)]
    status: String,
    #[serde(default)]
    db: String,
    litellm_version: Option<String>,
}

#[derive(Deserialize)]
struct Spend {
    spend: Option<f64>,
    max_budget: Option<f64>,
}

/// Refusals: `{"error": {…}}`, or FastAPI's `{"detail": …}`.
#[derive(Default, Deserialize)]
struct Refusal {
    #[serde(default)]
    error: super::call::Fault,
    #[serde(default)]
    detail: Value,
}

impl LiteLlm {
    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<Value>,
    ) -> Outcome<T> {
        let lane = if method == Method::GET { Lane::Read } else { Lane::Change };
        self.ask_in(lane, method, path, query, body).await
    }

    async fn ask_in<T: DeserializeOwned>(
        &self,
        lane: Lane,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<Value>,
    ) -> Outcome<T> {
        let mut request = self.call.request(method, path).query(query).header(AUTHORIZATION, bearer(&self.master));
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = self.call.paced(lane, request).await?;
        if answer.status.is_success() {
            return self.call.read(&answer);
        }
        let refusal: Refusal = self.call.read(&answer).unwrap_or_default();
        let message = if refusal.detail.is_null() { refusal.error.message } else { refusal.detail.to_string() };
        // The type identifies the error; the code only repeats the status as a text.
        Err(self.call.refused(answer.status, &refusal.error.kind, &message))
    }

    fn error(&self, trouble: Trouble) -> Error {
        self.call.error(trouble)
    }

    /// All keys of the proxy, or those with an alias, oldest first.
    async fn list(&self, alias: Option<&str>) -> Result<Vec<RemoteKey>> {
        let size = PAGE.to_string();
        let mut rows: Vec<Row> = vec![];
        for number in 1..=PAGES {
            let page = number.to_string();
            let mut query = vec![("return_full_object", "true"), ("page", &page), ("size", &size)];
            query.extend(alias.map(|alias| ("key_alias", alias)));
            let page: Page = self.ask(Method::GET, "/key/list", &query, None).await.map_err(|t| self.error(t))?;
            // An entry that is not an object is a bare hash, which does not show its alias.
            rows.extend(page.keys.into_iter().filter_map(|key| serde_json::from_value(key).ok()));
            if page.total_pages.is_none_or(|total| number >= total) {
                break;
            }
        }
        rows.retain(|row| alias.is_none() || row.key_alias.as_deref() == alias);
        // Rows without a time sort first: they are older than the column.
        rows.sort_by_cached_key(|row| (row.created_at.as_deref().and_then(time), row.token.clone()));
        rows.dedup_by(|a, b| a.token == b.token);
        Ok(rows.into_iter().filter(|row| !row.token.is_empty()).map(remote_key).collect())
    }

    async fn block(&self, gateway_id: &str, blocked: bool) -> Result<()> {
        // Its refusal of such an id looks like that of any mistake.
        if !is_hash(gateway_id) {
            return Err(base::Kind::NotFound.into());
        }
        let path = if blocked { "/key/block" } else { "/key/unblock" };
        match self.ask::<Value>(Method::POST, path, &[], Some(json!({"key": gateway_id}))).await {
            Ok(_) => Ok(()),
            Err(Trouble::Refused { status: StatusCode::NOT_FOUND, .. }) => Err(base::Kind::NotFound.into()),
            Err(other) => Err(self.error(other)),
        }
    }

    async fn generate(&self, new: &NewKey, value: Option<&Secret>) -> Outcome<Made> {
        let mut body = json!({"key_alias": new.name, "max_budget": new.quota.map(usd)});
        if let (Some(value), Some(body)) = (value, body.as_object_mut()) {
            body.insert("key".to_owned(), Value::String(value.expose().to_owned()));
        }
        self.ask(Method::POST, "/key/generate", &[], Some(body)).await
    }

    async fn look(&self) -> Health {
        let began = Instant::now();
        let ready: Outcome<Ready> = self.ask_in(Lane::Probe, Method::GET, "/health/readiness", &[], None).await;
        let latency_ms = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
        let health = |ok, detail, version| Health { ok, detail, version, latency_ms, per_usd: None };
        match ready {
            // Without its database it accepts no key but the master key.
            Ok(ready) if ready.db != "connected" => {
                health(false, format!("its database is {}", ready.db.to_lowercase()), ready.litellm_version)
            }
            Ok(ready) if !matches!(ready.status.as_str(), "healthy" | "connected") => {
                health(false, ready.status, ready.litellm_version)
            }
            Ok(Ready { litellm_version: Some(version), .. }) => health(true, String::new(), Some(version)),
            Ok(_) => health(true, String::new(), self.version().await),
            Err(Trouble::Throttled(_)) => health(true, "throttled".to_owned(), None),
            Err(other) => health(false, self.error(other).to_string(), None),
        }
    }

    /// Newer releases say it only to those who have the master key.
    async fn version(&self) -> Option<String> {
        let path = "/health/readiness/details";
        self.ask_in::<Ready>(Lane::Probe, Method::GET, path, &[], None).await.ok()?.litellm_version
    }

    async fn read(&self, gateway_id: &str) -> Result<Option<RemoteKey>> {
        match self.ask::<Info>(Method::GET, "/key/info", &[("key", gateway_id)], None).await {
            // Newer releases still answer for a deleted key, from an archive.
            Ok(Info { info }) if info.status.as_deref() == Some("deleted") => Ok(None),
            Ok(Info { info }) => Ok(Some(remote_key(Row { token: gateway_id.to_owned(), ..info }))),
            Err(Trouble::Refused { status: StatusCode::NOT_FOUND, .. }) => Ok(None),
            Err(other) => Err(self.error(other)),
        }
    }
}

impl Keyring for LiteLlm {
    async fn named(&self, name: &str) -> Result<Vec<RemoteKey>> {
        self.list(Some(name)).await
    }

    async fn make(&self, new: &NewKey) -> Result<Option<(String, Secret)>> {
        let made = match self.generate(new, new.value.as_ref()).await {
            // An administrator can configure the proxy to refuse values that it did not generate.
            Err(Trouble::Refused { status: StatusCode::FORBIDDEN, .. }) if new.value.is_some() => {
                self.generate(new, None).await
            }
            other => other,
        };
        match made {
            Ok(made) => {
                let id = made.token_id.filter(|id| is_hash(id)).unwrap_or_else(|| hash(&made.key));
                Ok(Some((id, made.key)))
            }
            // Another process created the key first; the caller's next search finds it.
            Err(Trouble::Refused { status: StatusCode::BAD_REQUEST, .. })
                if !self.named(&new.name).await?.is_empty() =>
            {
                Ok(None)
            }
            Err(other) => Err(self.error(other)),
        }
    }

    async fn remove(&self, gateway_id: &str) -> Result<()> {
        match self.ask::<Value>(Method::POST, "/key/delete", &[], Some(json!({"keys": [gateway_id]}))).await {
            Ok(_) | Err(Trouble::Refused { status: StatusCode::NOT_FOUND, .. }) => Ok(()),
            Err(other) => Err(self.error(other)),
        }
    }

    /// The value that we sent, if this is the key that was created with it.
    async fn reveal(&self, key: &RemoteKey, new: &NewKey) -> Result<Option<Secret>> {
        Ok(new.value.clone().filter(|value| hash(value) == key.gateway_id))
    }
}

impl Gateway for LiteLlm {
    fn kind(&self) -> &'static Kind {
        &KIND
    }

    fn chat_url(&self) -> &str {
        &self.chat_url
    }

    fn health(&self) -> BoxFuture<'_, Health> {
        self.look().boxed()
    }

    /// The list of keys is the master key's alone.
    fn check_admin_token(&self) -> BoxFuture<'_, AdminToken> {
        async {
            let one = [("page", "1"), ("size", "1")];
            self.call.judge(self.ask_in::<Page>(Lane::Probe, Method::GET, "/key/list", &one, None).await)
        }
        .boxed()
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<String>>> {
        async {
            let models = self.call.models_with(&self.master).await;
            models.map_err(|state| self.error(self.call.odd(format_args!("/v1/models with the master key: {state:?}"))))
        }
        .boxed()
    }

    fn keys(&self) -> BoxFuture<'_, Result<Vec<RemoteKey>>> {
        self.list(None).boxed()
    }

    fn find_key<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<RemoteKey>>> {
        async { Ok(duplicate::settle(self.named(name).await?).map(|(kept, _)| kept)) }.boxed()
    }

    fn create_key<'a>(&'a self, new: &'a NewKey) -> BoxFuture<'a, Result<RemoteKey>> {
        async {
            KIND.check_name(&new.name)?;
            duplicate::create(self, &self.names, new).await
        }
        .boxed()
    }

    fn read_key<'a>(&'a self, gateway_id: &'a str) -> BoxFuture<'a, Result<Option<RemoteKey>>> {
        self.read(gateway_id).boxed()
    }

    fn set_enabled<'a>(&'a self, gateway_id: &'a str, enabled: bool) -> BoxFuture<'a, Result<()>> {
        self.block(gateway_id, !enabled).boxed()
    }

    fn delete_key<'a>(&'a self, gateway_id: &'a str) -> BoxFuture<'a, Result<()>> {
        self.remove(gateway_id).boxed()
    }

    fn check_key<'a>(&'a self, key: &'a Secret) -> BoxFuture<'a, KeyState> {
        async { self.call.models_with(key).await.map_or_else(|state| state, |_| KeyState::Valid) }.boxed()
    }

    /// The spend of the whole proxy over its last 30 days: there is no account of ours in it.
    fn balance(&self) -> BoxFuture<'_, Result<Balance>> {
        async {
            let spend: Spend = self.ask(Method::GET, "/global/spend", &[], None).await.map_err(|t| self.error(t))?;
            let used = units(spend.spend.unwrap_or_default());
            // A budget of 0 means that there is none.
            let remain = spend.max_budget.filter(|budget| *budget > 0.0).map(|budget| units(budget) - used);
            Ok(Balance { remain, used })
        }
        .boxed()
    }

    /// The spend of all keys. That of the whole proxy is a sum over the log.
    fn counted(&self) -> BoxFuture<'_, Result<i64>> {
        async { Ok(self.list(None).await?.iter().map(|key| key.used_quota).sum()) }.boxed()
    }
}

fn remote_key(row: Row) -> RemoteKey {
    let spend = row.spend.unwrap_or_default();
    let used_quota = units(spend);
    let quota = row.max_budget.map(units);
    let expired = row.expires.as_deref().and_then(time).is_some_and(|at| at < Timestamp::now());
    RemoteKey {
        gateway_id: row.token,
        name: row.key_alias.unwrap_or_default(),
        key: None,
        status: if row.blocked == Some(true) {
            KeyStatus::Disabled
        } else if expired {
            KeyStatus::Expired
        } else if row.max_budget.is_some_and(|budget| spend >= budget) {
            KeyStatus::Exhausted
        } else {
            KeyStatus::Enabled
        },
        quota,
        remain_quota: quota.map(|quota| quota - used_quota),
        used_quota,
        is_counted: true,
    }
}

/// Some of its times leave out their zone, which is UTC.
fn time(text: &str) -> Option<Timestamp> {
    let utc = |time: jiff::civil::DateTime| jiff::tz::TimeZone::UTC.to_timestamp(time).ok();
    text.parse().ok().or_else(|| text.parse().ok().and_then(utc))
}

fn units(usd: f64) -> i64 {
    (usd * UNITS_PER_USD as f64).round() as i64
}

fn usd(units: i64) -> f64 {
    units as f64 / UNITS_PER_USD as f64
}

/// The proxy stores the SHA-256 of a key.
fn hash(key: &Secret) -> String {
    let digest = digest::digest(&digest::SHA256, key.expose().as_bytes());
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn is_hash(id: &str) -> bool {
    id.len() == 64 && id.bytes().all(|b| b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(json: Value) -> RemoteKey {
        remote_key(serde_json::from_value(json).unwrap())
    }

    #[test]
    fn a_key_is_told_by_its_hash() {
        assert_eq!(hash(&Secret::new("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert!(is_hash(&hash(&Secret::new("x"))) && !is_hash("x"));
    }

    #[test]
    fn dollars_become_units_and_a_spent_budget_is_told() {
        let key = row(json!({"token": "t", "key_alias": "n", "spend": 0.0000163, "max_budget": 2.0, "blocked": null}));
        assert_eq!((key.used_quota, key.quota, key.remain_quota), (8, Some(1_000_000), Some(999_992)));
        assert!(key.enabled());
        let status = |json: Value| row(json).status;
        assert_eq!(status(json!({"token": "t", "spend": 1.0, "max_budget": 1.0})), KeyStatus::Exhausted);
        assert_eq!(status(json!({"token": "t", "blocked": true})), KeyStatus::Disabled);
        assert_eq!(status(json!({"token": "t", "expires": "2001-01-01T00:00:00Z"})), KeyStatus::Expired);
        assert_eq!(status(json!({"token": "t", "expires": "2001-01-01T00:00:00.123"})), KeyStatus::Expired);
        assert_eq!(status(json!({"token": "t", "expires": "2999-01-01T00:00:00+00:00"})), KeyStatus::Enabled);
        assert_eq!(status(json!({"token": "t"})), KeyStatus::Enabled);
    }
}
