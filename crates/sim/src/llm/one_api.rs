//! One API 0.6.11: names of up to 30 bytes, pages of ten that count from 0, a search by prefix, keys that are not
//! masked.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base::Secret;
use serde::Deserialize;
use serde_json::{Value, json};

pub use super::family::Options;
use super::family::{CHANNEL, Family, MODELS, ROOT, Scripts, Token, Used, Ways, failure, missing, success};
use super::tables::Arg;
use super::{Handled, Running, Schema, now, random_text, serve, too_many};
use crate::with;

const SCRIPTS: Scripts = Scripts {
    sqlite: [include_str!("../../sql/one_api.sqlite.sql"), include_str!("../../sql/one_api_old.sqlite.sql")],
    postgres: [include_str!("../../sql/one_api.postgres.sql"), include_str!("../../sql/one_api_old.postgres.sql")],
    mysql: [include_str!("../../sql/one_api.mysql.sql"), include_str!("../../sql/one_api_old.mysql.sql")],
};

const NAME_LIMIT: usize = 30;
const PAGE: i64 = 10;
/// Limit of calls from one address in three minutes.
const CALLS: usize = 480;
const WINDOW: std::time::Duration = std::time::Duration::from_secs(180);

type One = Arc<Family>;

pub async fn start(options: Options) -> Result<Running, Box<dyn std::error::Error + Send + Sync>> {
    let access_token = Secret::new(random_text(32));
    let log_url = options.log_database.clone().unwrap_or_else(|| options.database.clone());
    let ways =
        Ways { error_type: "one_api_error", one_refusal: false, soft_delete: false, counts_unlimited: false, log_row };
    let one = Arc::new(Family::open(ways, options, &SCRIPTS, &access_token).await?);
    let managed = Router::new()
        .route("/api/user/self", get(account))
        .route("/api/user/available_models", get(models))
        .route("/api/token/", get(list).post(create).put(update))
        .route("/api/token/search", get(search))
        .route("/api/token/{id}", get(read).delete(delete))
        .route_layer(middleware::from_fn_with_state(one.clone(), authorized));
    let router = Router::new()
        .route("/api/status", get(status))
        .merge(managed)
        .route_layer(middleware::from_fn_with_state(one.clone(), limited))
        .route("/v1/models", get(relay_models))
        .route("/v1/models/{id}", get(relay_model))
        .route("/v1/chat/completions", post(relay_chat))
        .fallback(web_page)
        .with_state(one.clone());
    let tables = (one.tables.clone(), one.log.clone());
    Ok(serve(router, one.switches.clone(), access_token, tables, log_url).await?)
}

fn log_row(one: &Family, used: &Used) -> (String, Vec<Arg>) {
    let mut columns = vec!["user_id", "created_at", "type", "content", "username", "token_name", "model_name", "quota"];
    columns.extend(["prompt_tokens", "completion_tokens", "channel_id"]);
    let content = "倍率：0.07 × 1.00 × 4.00";
    let mut args = with![
        ROOT,
        now(),
        2i64,
        content,
        "root",
        used.token.name.as_str(),
        used.model.as_str(),
        used.quota,
        used.prompt_tokens,
        used.completion_tokens,
        CHANNEL,
    ];
    if one.options.schema == Schema::Current {
        columns.extend(["request_id", "elapsed_time", "is_stream"]);
        args.extend(with![used.request_id.as_str(), used.elapsed_ms, used.is_stream]);
    }
    let marks = vec!["?"; columns.len()].join(", ");
    (format!("INSERT INTO logs ({}) VALUES ({marks})", columns.join(", ")), args)
}

fn shown(token: &Token) -> Value {
    json!({
        "id": token.id, "user_id": token.user_id, "key": token.key, "status": token.status, "name": token.name,
        "created_time": token.created_time, "accessed_time": token.accessed_time, "expired_time": token.expired_time,
        "remain_quota": token.remain_quota, "unlimited_quota": token.unlimited_quota, "used_quota": token.used_quota,
        "models": null, "subnet": "",
    })
}

fn all_shown(tokens: &[Token]) -> Response {
    success(tokens.iter().map(shown).collect())
}

async fn limited(State(one): State<One>, request: Request, next: Next) -> Response {
    if !one.switches.take_api(CALLS, WINDOW) {
        return too_many();
    }
    next.run(request).await
}

async fn authorized(State(one): State<One>, headers: HeaderMap, request: Request, next: Next) -> Handled {
    Ok(match one.knows(&headers).await? {
        Some(true) => next.run(request).await,
        Some(false) => failure("无权进行此操作，access token 无效"),
        None => {
            let body = json!({"success": false, "message": "无权进行此操作，未登录且未提供 access token"});
            (StatusCode::UNAUTHORIZED, Json(body)).into_response()
        }
    })
}

async fn status(State(one): State<One>) -> Response {
    success(json!({
        "version": "v0.6.11-alpha.22", "start_time": one.started, "system_name": "One API",
        "quota_per_unit": one.options.quota_per_unit, "display_in_currency": true,
    }))
}

async fn account(State(one): State<One>) -> Handled {
    one.account().await
}

async fn models() -> Response {
    success(json!(MODELS))
}

#[derive(Deserialize)]
struct ListQuery {
    p: Option<i64>,
}

async fn list(State(one): State<One>, Query(query): Query<ListQuery>) -> Handled {
    let page = query.p.unwrap_or(0).max(0);
    Ok(all_shown(&one.page(page * PAGE, PAGE).await?))
}

#[derive(Deserialize)]
struct SearchQuery {
    #[serde(default)]
    keyword: String,
}

/// Finds names that begin with the keyword, by the rules of the database's LIKE.
async fn search(State(one): State<One>, Query(query): Query<SearchQuery>) -> Handled {
    let found = one.tokens("user_id = ? AND name LIKE ?", with![ROOT, format!("{}%", query.keyword)]).await?;
    Ok(all_shown(&found))
}

async fn create(State(one): State<One>, Json(body): Json<Value>) -> Handled {
    if body["name"].as_str().unwrap_or_default().len() > NAME_LIMIT {
        return Ok(failure("参数错误：令牌名称过长"));
    }
    Ok(success(shown(&one.insert(&body).await?)))
}

#[derive(Deserialize)]
struct UpdateQuery {
    #[serde(default)]
    status_only: String,
}

async fn update(State(one): State<One>, Query(query): Query<UpdateQuery>, Json(body): Json<Value>) -> Handled {
    if body["name"].as_str().unwrap_or_default().len() > NAME_LIMIT {
        return Ok(failure("参数错误：令牌名称过长"));
    }
    Ok(one.update(!query.status_only.is_empty(), &body).await?.map_or_else(|refusal| refusal, |t| success(shown(&t))))
}

async fn read(State(one): State<One>, Path(id): Path<String>) -> Handled {
    let Ok(id) = id.parse() else { return Ok(failure("strconv.Atoi: invalid syntax")) };
    Ok(one.token(id).await?.map_or_else(missing, |token| success(shown(&token))))
}

async fn delete(State(one): State<One>, Path(id): Path<String>) -> Handled {
    one.delete(id.parse().unwrap_or(0)).await
}

async fn relay_models(State(one): State<One>, headers: HeaderMap) -> Handled {
    one.relay_models(&headers, json!({})).await
}

/// Answers 200 even for an unknown model, as the real gateway does.
async fn relay_model(Path(id): Path<String>) -> Response {
    if MODELS.contains(&id.as_str()) {
        return Json(json!({"id": id, "object": "model"})).into_response();
    }
    let message = format!("The model '{id}' does not exist");
    let error =
        json!({"message": message, "type": "invalid_request_error", "param": "model", "code": "model_not_found"});
    Json(json!({"error": error})).into_response()
}

async fn relay_chat(State(one): State<One>, headers: HeaderMap, body: Bytes) -> Handled {
    one.relay_chat(headers, body).await
}

/// An unknown path is answered with the web page and 200.
async fn web_page() -> Response {
    axum::response::Html("<!doctype html><title>One API</title>").into_response()
}
