//! new-api in a given release: since 0.9 pages count from 1, since 0.11 searches are limited and names may have 50
//! bytes, since 0.11.5 keys are masked, since 1.0 rc 22 the header with the user's number is not needed.

use std::sync::Arc;
use std::time::Duration;

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
    sqlite: [include_str!("../../sql/new_api.sqlite.sql"), include_str!("../../sql/new_api_old.sqlite.sql")],
    postgres: [include_str!("../../sql/new_api.postgres.sql"), include_str!("../../sql/new_api_old.postgres.sql")],
    mysql: [include_str!("../../sql/new_api.mysql.sql"), include_str!("../../sql/new_api_old.mysql.sql")],
};

/// Calls per window: of the whole API, of the search, and of the endpoint that reveals a key.
const CALLS: (usize, Duration) = (360, Duration::from_secs(180));
const SEARCHES: (usize, Duration) = (10, Duration::from_secs(60));
const REVEALS: (usize, Duration) = (20, Duration::from_secs(1200));
const MAX_TOKENS: i64 = 1000;

type New = Arc<Family>;

pub async fn start(options: Options) -> Result<Running, Box<dyn std::error::Error + Send + Sync>> {
    let access_token = Secret::new(random_text(32));
    let log_url = options.log_database.clone().unwrap_or_else(|| options.database.clone());
    let ways =
        Ways { error_type: "new_api_error", one_refusal: true, soft_delete: true, counts_unlimited: true, log_row };
    let new = Arc::new(Family::open(ways, options, &SCRIPTS, &access_token).await?);
    let managed = Router::new()
        .route("/api/user/self", get(account))
        .route("/api/user/models", get(models))
        .route("/api/token/", get(list).post(create).put(update))
        .route("/api/token/search", get(search))
        .route("/api/token/{id}", get(read).delete(delete))
        .route("/api/token/{id}/key", post(reveal))
        .route_layer(middleware::from_fn_with_state(new.clone(), authorized));
    let router = Router::new()
        .route("/api/status", get(status))
        .merge(managed)
        .route_layer(middleware::from_fn_with_state(new.clone(), limited))
        .route("/v1/models", get(relay_models))
        .route("/v1/chat/completions", post(relay_chat))
        .fallback(web_page)
        .with_state(new.clone());
    let tables = (new.tables.clone(), new.log.clone());
    Ok(serve(router, new.switches.clone(), access_token, tables, log_url).await?)
}

impl Family {
    fn since(&self, version: (u32, u32, u32)) -> bool {
        self.options.version >= version
    }

    fn masks(&self) -> bool {
        self.since((0, 11, 5))
    }

    fn name_limit(&self) -> usize {
        if self.since((0, 11, 0)) { 50 } else { 30 }
    }
}

fn log_row(new: &Family, used: &Used) -> (String, Vec<Arg>) {
    let mut columns = vec!["user_id", "created_at", "type", "content", "username", "token_name", "model_name", "quota"];
    columns.extend(["prompt_tokens", "completion_tokens", "channel_id", "use_time", "is_stream", "token_id", "other"]);
    let first_byte = if used.is_stream { used.elapsed_ms as f64 } else { -1000.0 };
    let mut other = json!({
        "model_ratio": 0.075, "frt": first_byte, "upstream_model_name": used.model,
        "request_path": "/v1/chat/completions", "admin_info": {"use_channel": [CHANNEL.to_string()]},
    });
    if let (None, Some(other)) = (used.error, other.as_object_mut()) {
        // There in every row of a chat that was answered, whatever the provider said.
        other.insert("cache_tokens".to_owned(), used.cached_tokens.into());
        other.insert("cache_ratio".to_owned(), json!(1.0));
    }
    let mut args = with![
        ROOT,
        now(),
        if used.error.is_some() { 5i64 } else { 2 },
        used.error.unwrap_or("模型倍率 0.07"),
        "root",
        used.token.name.as_str(),
        used.model.as_str(),
        used.quota,
        used.prompt_tokens,
        used.completion_tokens,
        CHANNEL,
        // Whole seconds.
        used.elapsed_ms / 1000,
        used.is_stream,
        used.token.id,
        other.to_string(),
    ];
    if new.options.schema == Schema::Current {
        columns.push("request_id");
        args.extend(with![used.request_id.as_str()]);
    }
    let marks = vec!["?"; columns.len()].join(", ");
    (format!("INSERT INTO logs ({}) VALUES ({marks})", columns.join(", ")), args)
}

fn shown(new: &Family, token: &Token) -> Value {
    let key = match new.masks() {
        true => format!("{}**********{}", &token.key[..4], &token.key[token.key.len() - 4..]),
        false => token.key.clone(),
    };
    json!({
        "id": token.id, "user_id": token.user_id, "key": key, "status": token.status, "name": token.name,
        "created_time": token.created_time, "accessed_time": token.accessed_time, "expired_time": token.expired_time,
        "remain_quota": token.remain_quota, "unlimited_quota": token.unlimited_quota, "used_quota": token.used_quota,
        "model_limits_enabled": false, "model_limits": "", "allow_ips": "", "group": "", "DeletedAt": null,
    })
}

async fn limited(State(new): State<New>, request: Request, next: Next) -> Response {
    if !new.switches.take_api(CALLS.0, CALLS.1) {
        return too_many();
    }
    next.run(request).await
}

async fn authorized(State(new): State<New>, headers: HeaderMap, request: Request, next: Next) -> Handled {
    let refuse = |status: StatusCode, message: &str| {
        let code = if new.since((1, 0, 22)) { json!("AUTH_INVALID") } else { Value::Null };
        (status, Json(json!({"success": false, "message": message, "code": code}))).into_response()
    };
    Ok(match new.knows(&headers).await? {
        None => refuse(StatusCode::UNAUTHORIZED, "无权进行此操作，未登录且未提供 access token"),
        Some(false) if new.since((1, 0, 22)) => refuse(StatusCode::UNAUTHORIZED, "无权进行此操作，access token 无效"),
        Some(false) => refuse(StatusCode::OK, "无权进行此操作，access token 无效"),
        Some(true) => {
            let user = headers.get("new-api-user").and_then(|v| v.to_str().ok());
            if new.since((1, 0, 22)) || user.and_then(|u| u.parse().ok()) == Some(ROOT) {
                next.run(request).await
            } else {
                refuse(StatusCode::UNAUTHORIZED, "无权进行此操作，未提供 New-Api-User")
            }
        }
    })
}

async fn status(State(new): State<New>) -> Response {
    let (major, minor, patch) = new.options.version;
    let mut data = json!({
        "version": format!("v{major}.{minor}.{patch}"), "start_time": new.started, "system_name": "New API",
        "quota_per_unit": new.options.quota_per_unit, "display_in_currency": true, "enable_data_export": true,
    });
    if let (true, Some(data)) = (new.since((0, 9, 0)), data.as_object_mut()) {
        data.insert("quota_display_type".to_owned(), json!("USD"));
    }
    success(data)
}

async fn account(State(new): State<New>) -> Handled {
    new.account().await
}

async fn models() -> Response {
    success(json!(MODELS))
}

#[derive(Deserialize)]
struct ListQuery {
    #[serde(default)]
    p: i64,
    page_size: Option<i64>,
    size: Option<i64>,
    #[serde(default)]
    keyword: String,
}

async fn list(State(new): State<New>, Query(query): Query<ListQuery>) -> Handled {
    if !new.since((0, 9, 0)) {
        let size = query.size.unwrap_or(10).clamp(1, 100);
        let tokens = new.page(query.p.max(0) * size, size).await?;
        return Ok(success(tokens.iter().map(|t| shown(&new, t)).collect()));
    }
    let size = query.page_size.or(query.size).unwrap_or(10).clamp(1, 100);
    let page = query.p.max(1);
    let tokens = new.page((page - 1) * size, size).await?;
    let items: Vec<_> = tokens.iter().map(|t| shown(&new, t)).collect();
    Ok(success(json!({"page": page, "page_size": size, "total": new.count().await?, "items": items})))
}

/// Before 0.11 it finds names that contain the keyword, without pages. Since then it finds the exact name, unless the
/// keyword has a `%`.
async fn search(State(new): State<New>, Query(query): Query<ListQuery>) -> Handled {
    if !new.since((0, 11, 0)) {
        let found = new.tokens("user_id = ? AND name LIKE ?", with![ROOT, format!("%{}%", query.keyword)]).await?;
        return Ok(success(found.iter().map(|t| shown(&new, t)).collect()));
    }
    if !new.switches.take("search", SEARCHES.0, SEARCHES.1) {
        return Ok(too_many());
    }
    let wild = query.keyword.matches('%').count();
    if query.keyword.contains("%%") || wild > 2 || (wild > 0 && query.keyword.len() - wild < 2) {
        return Ok(failure("搜索模式中最多允许包含 2 个 % 通配符"));
    }
    let pattern = query.keyword.replace('!', "!!").replace('_', "!_");
    let condition = "user_id = ? AND name LIKE ? ESCAPE '!' ORDER BY id DESC";
    let found = new.tokens(condition, with![ROOT, pattern]).await?;
    let size = query.page_size.unwrap_or(10).clamp(1, 100);
    let page = query.p.max(1);
    let items: Vec<_> =
        found.iter().skip(((page - 1) * size) as usize).take(size as usize).map(|t| shown(&new, t)).collect();
    Ok(success(json!({"page": page, "page_size": size, "total": found.len(), "items": items})))
}

async fn create(State(new): State<New>, Json(body): Json<Value>) -> Handled {
    if body["name"].as_str().unwrap_or_default().len() > new.name_limit() {
        return Ok(failure("令牌名称过长"));
    }
    if new.count().await? >= MAX_TOKENS {
        return Ok(failure(format!("已达到最大令牌数量限制 ({MAX_TOKENS})")));
    }
    new.insert(&body).await?;
    // The real answer has neither the number nor the key.
    Ok(Json(json!({"success": true, "message": ""})).into_response())
}

#[derive(Deserialize)]
struct UpdateQuery {
    #[serde(default)]
    status_only: String,
}

async fn update(State(new): State<New>, Query(query): Query<UpdateQuery>, Json(body): Json<Value>) -> Handled {
    let updated = new.update(!query.status_only.is_empty(), &body).await?;
    Ok(updated.map_or_else(|refusal| refusal, |token| success(shown(&new, &token))))
}

async fn read(State(new): State<New>, Path(id): Path<String>) -> Handled {
    let Ok(id) = id.parse() else { return Ok(failure("strconv.Atoi: invalid syntax")) };
    Ok(new.token(id).await?.map_or_else(missing, |token| success(shown(&new, &token))))
}

async fn delete(State(new): State<New>, Path(id): Path<String>) -> Handled {
    new.delete(id.parse().unwrap_or(0)).await
}

async fn reveal(State(new): State<New>, Path(id): Path<String>) -> Handled {
    if !new.masks() {
        return Ok(StatusCode::NOT_FOUND.into_response());
    }
    if !new.switches.take("reveal", REVEALS.0, REVEALS.1) {
        return Ok(([("retry-after", "1200")], too_many()).into_response());
    }
    let token = new.token(id.parse().unwrap_or(0)).await?;
    Ok(token.map_or_else(missing, |token| success(json!({"key": token.key}))))
}

async fn relay_models(State(new): State<New>, headers: HeaderMap) -> Handled {
    new.relay_models(&headers, json!({"success": true})).await
}

async fn relay_chat(State(new): State<New>, headers: HeaderMap, body: Bytes) -> Handled {
    new.relay_chat(headers, body).await
}

/// An unknown path is answered with the web page and 200.
async fn web_page() -> Response {
    axum::response::Html("<!doctype html><title>New API</title>").into_response()
}
