//! LiteLLM's proxy 1.106 on PostgreSQL: keys are stored as hashes, aliases are checked before the insert but not
//! atomically, deleted keys are still found in an archive, and spend is written in batches.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use aws_lc_rs::digest;
use axum::body::Bytes;
use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base::Secret;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::tables::{Arg, Tables};
use super::{Broken, Handled, Running, Schema, Switches, echo, random_text, serve, too_many};
use crate::with;

const CURRENT: &str = include_str!("../../sql/litellm.postgres.sql");
const OLD: &str = include_str!("../../sql/litellm_old.postgres.sql");
const MODELS: &[&str] = &["gpt-4o-mini", "gpt-4o", "echo"];
const PROVIDER: &str = "openai";

#[derive(Clone, Debug)]
pub struct Options {
    pub database: Secret,
    pub schema: Schema,
    /// How often spend is written: every 10 s by the real proxy.
    pub flush_every: Duration,
    /// The budget of the whole proxy in dollars; 0 is none.
    pub max_budget: f64,
    /// The pause between the check for an alias and its insertion, so that two callers can race.
    pub hesitation: Duration,
    /// Whether a caller may choose the value of a key.
    pub custom_keys: bool,
}

impl Options {
    pub fn new(database: Secret) -> Options {
        Options {
            database,
            schema: Schema::Current,
            flush_every: Duration::from_secs(10),
            max_budget: 0.0,
            hesitation: Duration::ZERO,
            custom_keys: true,
        }
    }
}

struct Proxy {
    options: Options,
    tables: Tables,
    switches: Arc<Switches>,
    master: Secret,
    spent: Mutex<Vec<Spent>>,
}

/// A request whose row is not written yet.
struct Spent {
    request_id: String,
    hash: String,
    alias: Option<String>,
    spend: f64,
    prompt_tokens: i64,
    cached_tokens: i64,
    completion_tokens: i64,
    began: Timestamp,
    first_token: Timestamp,
    ended: Timestamp,
    model: String,
    error: Option<&'static str>,
}

struct Key {
    hash: String,
    alias: Option<String>,
    spend: f64,
    max_budget: Option<f64>,
    blocked: bool,
    created_ms: i64,
}

type Row = (String, Option<String>, f64, Option<f64>, i64, i64);

impl From<Row> for Key {
    fn from((hash, alias, spend, max_budget, blocked, created_ms): Row) -> Key {
        Key { hash, alias, spend, max_budget, blocked: blocked != 0, created_ms }
    }
}

type Lite = Arc<Proxy>;

pub async fn start(options: Options) -> Result<Running, Box<dyn std::error::Error + Send + Sync>> {
    let tables = Tables::open(&options.database).await?;
    tables.script(CURRENT).await?;
    if options.schema == Schema::Old {
        tables.script(OLD).await?;
    }
    let master = Secret::new(format!("sk-{}", random_text(32)));
    let log_url = options.database.clone();
    let switches: Arc<Switches> = Arc::default();
    let lite = Arc::new(Proxy { options, tables, switches, master: master.clone(), spent: Mutex::default() });
    tokio::spawn(flush(Arc::downgrade(&lite), lite.options.flush_every));
    let managed = Router::new()
        .route("/key/generate", post(generate))
        .route("/key/delete", post(delete))
        .route("/key/block", post(block))
        .route("/key/unblock", post(unblock))
        .route("/key/info", get(info))
        .route("/key/list", get(list))
        .route("/global/spend", get(spend))
        .route("/health/readiness/details", get(ready_in_detail))
        .route_layer(middleware::from_fn_with_state(lite.clone(), authorized));
    let router = Router::new()
        .route("/health/liveliness", get(alive))
        .route("/health/liveness", get(alive))
        .route("/health/readiness", get(ready))
        .merge(managed)
        .route("/v1/models", get(models))
        .route("/v1/chat/completions", post(chat))
        .with_state(lite.clone());
    let tables = (lite.tables.clone(), lite.tables.clone());
    Ok(serve(router, lite.switches.clone(), master, tables, log_url).await?)
}

/// The hash under which the proxy stores a key.
pub fn hash(key: &str) -> String {
    let digest = digest::digest(&digest::SHA256, key.as_bytes());
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hash_if_needed(key: &str) -> String {
    if key.starts_with("sk-") { hash(key) } else { key.to_owned() }
}

fn error(status: StatusCode, kind: &str, message: impl Into<String>) -> Response {
    // The code is the status, as a string.
    let body = json!({"message": message.into(), "type": kind, "param": null, "code": status.as_u16().to_string()});
    (status, Json(json!({"error": body}))).into_response()
}

fn given(headers: &HeaderMap) -> String {
    let value = headers.get("authorization").and_then(|v| v.to_str().ok()).unwrap_or_default();
    value.strip_prefix("Bearer ").unwrap_or(value).to_owned()
}

fn unknown(key: &str) -> Response {
    let tail: String = key.chars().skip(key.chars().count().saturating_sub(4)).collect();
    let message = format!(
        "Authentication Error, Invalid proxy server token passed. Received API Key = sk-...{tail}, Key Hash (Token) \
         ={}. Unable to find token in cache or `LiteLLM_VerificationTokenTable`",
        hash(key)
    );
    error(StatusCode::UNAUTHORIZED, "token_not_found_in_db", message)
}

async fn authorized(State(lite): State<Lite>, headers: HeaderMap, request: Request, next: Next) -> Response {
    if lite.switches.is(|s| &s.throttled) {
        return too_many();
    }
    let key = given(&headers);
    if key == lite.master.expose() { next.run(request).await } else { unknown(&key) }
}

async fn alive() -> Json<&'static str> {
    Json("I'm alive!")
}

async fn ready() -> Response {
    Json(json!({"status": "healthy", "db": "connected"})).into_response()
}

async fn ready_in_detail() -> Response {
    Json(json!({"status": "healthy", "db": "connected", "litellm_version": "1.106.2"})).into_response()
}

impl Proxy {
    async fn keys(&self, condition: &str, args: Vec<Arg>) -> sqlx::Result<Vec<Key>> {
        let sql = format!(
            "SELECT token, key_alias, spend, max_budget, CAST(CASE WHEN blocked THEN 1 ELSE 0 END AS BIGINT), \
             CAST(ROUND(EXTRACT(EPOCH FROM created_at) * 1000) AS BIGINT) FROM \"LiteLLM_VerificationToken\" {condition}"
        );
        Ok(self.tables.all::<Row>(&sql, args).await?.into_iter().map(Key::from).collect())
    }

    async fn key(&self, hash: &str) -> sqlx::Result<Option<Key>> {
        Ok(self.keys("WHERE token = ?", with![hash]).await?.into_iter().next())
    }

    /// The key of a caller; `None` for the master key.
    async fn caller(&self, headers: &HeaderMap) -> Result<Result<Option<Key>, Response>, Broken> {
        let given = given(headers);
        if given == self.master.expose() {
            return Ok(Ok(None));
        }
        let Some(key) = self.key(&hash(&given)).await? else { return Ok(Err(unknown(&given))) };
        if key.blocked {
            let message = "Authentication Error, Key is blocked. Update via `/key/unblock` if you're an admin.";
            return Ok(Err(error(StatusCode::UNAUTHORIZED, "auth_error", message)));
        }
        if key.max_budget.is_some_and(|budget| key.spend >= budget) {
            let message = format!("Budget has been exceeded! Current cost: {}", key.spend);
            return Ok(Err(error(StatusCode::UNPROCESSABLE_ENTITY, "budget_exceeded", message)));
        }
        Ok(Ok(Some(key)))
    }

    async fn set_blocked(&self, body: &Value, blocked: bool) -> Handled {
        let hash = hash_if_needed(body["key"].as_str().unwrap_or_default());
        if hash.len() != 64 || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(error(StatusCode::BAD_REQUEST, "bad_request_error", "Invalid key format."));
        }
        let sql = "UPDATE \"LiteLLM_VerificationToken\" SET blocked = ? WHERE token = ?";
        if self.tables.run(sql, with![blocked, hash.as_str()]).await? == 0 {
            return Ok(error(StatusCode::NOT_FOUND, "not_found_error", "Key not found."));
        }
        Ok(Json(json!({"token": hash, "blocked": blocked})).into_response())
    }

    async fn write(&self, spent: Spent) -> sqlx::Result<()> {
        let at = "TIMESTAMP '1970-01-01' + CAST(? AS BIGINT) * INTERVAL '1 millisecond'";
        // Of a failure there is no usage, and no count of tries in old releases.
        let metadata = match spent.error {
            Some(error) => json!({"user_api_key_alias": spent.alias, "additional_usage_values": {},
                "error_information": {"error_message": error, "error_code": "500"}}),
            None => json!({"user_api_key_alias": spent.alias, "additional_usage_values": {
                "prompt_tokens_details": {"cached_tokens": spent.cached_tokens, "audio_tokens": null},
                "completion_tokens_details": {"reasoning_tokens": 0}},
                "attempted_retries": if self.options.schema == Schema::Current { json!(0) } else { Value::Null }}),
        };
        let (late, marks) = match self.options.schema {
            Schema::Current => (", status, request_duration_ms", ", ?, CAST(? AS INTEGER)"),
            Schema::Old => ("", ""),
        };
        let sql = format!(
            "INSERT INTO \"LiteLLM_SpendLogs\" (request_id, call_type, api_key, spend, total_tokens, prompt_tokens, \
             completion_tokens, \"startTime\", \"endTime\", \"completionStartTime\", model, model_group, \
             custom_llm_provider, metadata{late}) VALUES (?, 'acompletion', ?, ?, CAST(? AS INTEGER), \
             CAST(? AS INTEGER), CAST(? AS INTEGER), {at}, {at}, {at}, ?, ?, ?, CAST(? AS JSONB){marks})"
        );
        let mut args = with![
            spent.request_id,
            spent.hash.as_str(),
            spent.spend,
            spent.prompt_tokens + spent.completion_tokens,
            spent.prompt_tokens,
            spent.completion_tokens,
            spent.began.as_millisecond(),
            spent.ended.as_millisecond(),
            spent.first_token.as_millisecond(),
            format!("{PROVIDER}/{}", spent.model),
            spent.model,
            PROVIDER,
            metadata.to_string(),
        ];
        if self.options.schema == Schema::Current {
            let took = spent.ended.as_millisecond() - spent.began.as_millisecond();
            args.extend(with![if spent.error.is_some() { "failure" } else { "success" }, took]);
        }
        self.tables.run(&sql, args).await?;
        let total = if self.options.schema == Schema::Current { ", total_spend = total_spend + ?" } else { "" };
        let sql = format!("UPDATE \"LiteLLM_VerificationToken\" SET spend = spend + ?{total} WHERE token = ?");
        let mut args = with![spent.spend];
        args.extend((!total.is_empty()).then(|| Arg::from(spent.spend)));
        args.push(Arg::from(spent.hash));
        self.tables.run(&sql, args).await.map(drop)
    }
}

async fn flush(lite: Weak<Proxy>, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        let Some(lite) = lite.upgrade() else { break };
        let batch = std::mem::take(&mut *lite.spent.lock().unwrap_or_else(PoisonError::into_inner));
        for spent in batch {
            if let Err(lost) = lite.write(spent).await {
                eprintln!("simulated gateway: spend was lost: {lost}");
            }
            lite.switches.unwritten.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

fn shown(key: &Key) -> Value {
    let created_at = Timestamp::from_millisecond(key.created_ms).unwrap_or_default().to_string();
    json!({
        "token": key.hash, "key_alias": key.alias, "spend": key.spend, "max_budget": key.max_budget,
        "blocked": if key.blocked { Value::Bool(true) } else { Value::Null }, "expires": null, "models": [],
        "metadata": {}, "created_at": created_at,
    })
}

async fn generate(State(lite): State<Lite>, Json(body): Json<Value>) -> Handled {
    let alias = body["key_alias"].as_str();
    if alias.is_some_and(|alias| alias.contains("..") || alias.chars().any(char::is_control)) {
        return Ok(error(StatusCode::BAD_REQUEST, "bad_request_error", "Invalid key_alias"));
    }
    if let Some(alias) = alias
        && !lite.keys("WHERE key_alias = ?", with![alias]).await?.is_empty()
    {
        let message =
            format!("Key with alias '{alias}' already exists. Unique key aliases across all keys are required.");
        return Ok(error(StatusCode::BAD_REQUEST, "bad_request_error", message));
    }
    tokio::time::sleep(lite.options.hesitation).await;
    let key = match body["key"].as_str() {
        Some(_) if !lite.options.custom_keys => {
            let message = "Custom API key values are disabled by your administrator.";
            return Ok((StatusCode::FORBIDDEN, Json(json!({"detail": {"error": message}}))).into_response());
        }
        Some(key) if !key.starts_with("sk-") => {
            let message = "Invalid key format. LiteLLM Virtual Key must start with 'sk-'.";
            return Ok((StatusCode::BAD_REQUEST, Json(json!({"detail": {"error": message}}))).into_response());
        }
        Some(key) => key.to_owned(),
        None => format!("sk-{}", random_text(22)),
    };
    let sql = "INSERT INTO \"LiteLLM_VerificationToken\" (token, key_name, key_alias, max_budget, models, created_at) \
        VALUES (?, ?, ?, ?, '{}', TIMESTAMP '1970-01-01' + CAST(? AS BIGINT) * INTERVAL '1 millisecond') \
        ON CONFLICT (token) DO NOTHING";
    let name = format!("sk-...{}", &key[key.len().saturating_sub(4)..]);
    let now = Timestamp::now();
    let args = with![hash(&key), name.as_str(), alias, body["max_budget"].as_f64(), now.as_millisecond()];
    lite.tables.run(sql, args).await?;
    if lite.switches.lose_next_key.swap(false, Ordering::SeqCst) {
        return Ok(StatusCode::GATEWAY_TIMEOUT.into_response());
    }
    Ok(Json(json!({
        "key": key, "token": hash(&key), "token_id": hash(&key), "key_name": name, "key_alias": alias,
        "expires": null, "max_budget": body["max_budget"], "created_at": now.to_string(),
    }))
    .into_response())
}

async fn delete(State(lite): State<Lite>, Json(body): Json<Value>) -> Handled {
    let keys = body["keys"].as_array().cloned().unwrap_or_default();
    let mut deleted = vec![];
    for key in keys.iter().filter_map(Value::as_str) {
        let hash = hash_if_needed(key);
        let Some(found) = lite.key(&hash).await? else { continue };
        let sql = "INSERT INTO \"LiteLLM_DeletedVerificationToken\" (id, token, key_alias, spend, max_budget) \
            VALUES (?, ?, ?, ?, ?)";
        let args = with![random_text(32), found.hash, found.alias, found.spend, found.max_budget];
        lite.tables.run(sql, args).await?;
        lite.tables.run("DELETE FROM \"LiteLLM_VerificationToken\" WHERE token = ?", with![hash]).await?;
        deleted.push(key);
    }
    if deleted.is_empty() {
        let detail = json!({"detail": {"error": "No keys found"}});
        return Ok((StatusCode::NOT_FOUND, Json(detail)).into_response());
    }
    Ok(Json(json!({"deleted_keys": deleted})).into_response())
}

async fn block(State(lite): State<Lite>, Json(body): Json<Value>) -> Handled {
    lite.set_blocked(&body, true).await
}

async fn unblock(State(lite): State<Lite>, Json(body): Json<Value>) -> Handled {
    lite.set_blocked(&body, false).await
}

#[derive(Deserialize)]
struct InfoQuery {
    #[serde(default)]
    key: String,
}

async fn info(State(lite): State<Lite>, Query(query): Query<InfoQuery>) -> Handled {
    let hash = hash_if_needed(&query.key);
    let answer = |mut info: Value, status: &str| {
        if let Some(info) = info.as_object_mut() {
            info.remove("token");
            info.insert("status".to_owned(), status.into());
        }
        Json(json!({"key": query.key, "info": info})).into_response()
    };
    if let Some(key) = lite.key(&hash).await? {
        return Ok(answer(shown(&key), if key.blocked { "revoked" } else { "active" }));
    }
    // A deleted key is still found in the archive.
    let sql = "SELECT key_alias, spend, max_budget FROM \"LiteLLM_DeletedVerificationToken\" WHERE token = ? LIMIT 1";
    let archived: Option<(Option<String>, f64, Option<f64>)> = lite.tables.first(sql, with![hash]).await?;
    Ok(match archived {
        Some((alias, spend, max_budget)) => {
            answer(json!({"key_alias": alias, "spend": spend, "max_budget": max_budget, "blocked": null}), "deleted")
        }
        None => error(StatusCode::NOT_FOUND, "not_found_error", "Key not found in database"),
    })
}

#[derive(Deserialize)]
struct ListQuery {
    page: Option<i64>,
    size: Option<i64>,
    key_alias: Option<String>,
    #[serde(default)]
    return_full_object: bool,
}

async fn list(State(lite): State<Lite>, Query(query): Query<ListQuery>) -> Handled {
    let (page, size) = (query.page.unwrap_or(1).max(1), query.size.unwrap_or(10).clamp(1, 100));
    let keys = match &query.key_alias {
        Some(alias) => lite.keys("WHERE key_alias = ? ORDER BY created_at DESC", with![alias.as_str()]).await?,
        None => lite.keys("ORDER BY created_at DESC, token", vec![]).await?,
    };
    let total = keys.len() as i64;
    let full = query.return_full_object;
    let some = keys.iter().skip(((page - 1) * size) as usize).take(size as usize);
    let some: Vec<Value> = some.map(|key| if full { shown(key) } else { json!(key.hash) }).collect();
    let pages = (total + size - 1) / size;
    Ok(Json(json!({"keys": some, "total_count": total, "current_page": page, "total_pages": pages})).into_response())
}

async fn spend(State(lite): State<Lite>) -> Handled {
    let sql = "SELECT SUM(spend) FROM \"LiteLLM_SpendLogs\"";
    let spent: Option<(Option<f64>,)> = lite.tables.first(sql, vec![]).await?;
    let spent = spent.and_then(|(sum,)| sum);
    Ok(Json(json!({"spend": spent, "max_budget": lite.options.max_budget})).into_response())
}

async fn models(State(lite): State<Lite>, headers: HeaderMap) -> Handled {
    if let Err(refusal) = lite.caller(&headers).await? {
        return Ok(refusal);
    }
    let list: Vec<_> = MODELS.iter().map(|id| json!({"id": id, "object": "model", "owned_by": "openai"})).collect();
    Ok(Json(json!({"data": list, "object": "list"})).into_response())
}

async fn chat(State(lite): State<Lite>, headers: HeaderMap, body: Bytes) -> Handled {
    let began = Timestamp::now();
    let key = match lite.caller(&headers).await? {
        Ok(key) => key,
        Err(refusal) => return Ok(refusal),
    };
    let Ok(request) = serde_json::from_slice::<echo::Request>(&body) else {
        return Ok(error(StatusCode::BAD_REQUEST, "invalid_request_error", "invalid request"));
    };
    if !MODELS.contains(&request.model.as_str()) {
        let message = format!("/chat/completions: Invalid model name passed in model={}", request.model);
        return Ok(error(StatusCode::BAD_REQUEST, "invalid_request_error", message));
    }
    let reply = echo::answer(&request, format!("chatcmpl-{}", random_text(24)));
    let failed = lite.switches.is(|s| &s.upstream_down);
    let count = |tokens: i64| if failed { 0 } else { tokens };
    let (input, output) = if reply.model == "gpt-4o-mini" { (0.15e-6, 0.6e-6) } else { (2.5e-6, 10e-6) };
    let (prompt_tokens, completion_tokens) = (count(reply.prompt_tokens), count(reply.completion_tokens));
    let ended = Timestamp::now();
    let spent = Spent {
        request_id: reply.id.clone(),
        hash: key.as_ref().map_or_else(|| hash(lite.master.expose()), |key| key.hash.clone()),
        alias: key.and_then(|key| key.alias),
        spend: prompt_tokens as f64 * input + completion_tokens as f64 * output,
        prompt_tokens,
        cached_tokens: count(reply.cached_tokens),
        completion_tokens,
        began,
        // The first token of a stream comes before its end; other answers come at once.
        first_token: if reply.stream { began } else { ended },
        ended: if reply.stream { ended + Duration::from_millis(5) } else { ended },
        model: reply.model.clone(),
        error: failed.then_some("Connection error."),
    };
    lite.switches.unwritten.fetch_add(1, Ordering::SeqCst);
    lite.spent.lock().unwrap_or_else(PoisonError::into_inner).push(spent);
    if failed {
        return Ok(error(StatusCode::INTERNAL_SERVER_ERROR, "api_connection_error", "Connection error."));
    }
    Ok(reply.into_response())
}
