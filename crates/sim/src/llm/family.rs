//! What one-api and new-api have in common: accounts, tokens, and a relay that charges them.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Json, body::Bytes};
use base::Secret;
use serde_json::{Value, json};

use super::tables::Tables;
use super::{Broken, Handled, Schema, Switches, echo, now, random_text};
use crate::with;

/// How such a gateway is set up.
#[derive(Clone, Debug)]
pub struct Options {
    pub database: Secret,
    /// A separate database for the log; the table in the main one then stays empty.
    pub log_database: Option<Secret>,
    pub schema: Schema,
    pub quota_per_unit: f64,
    /// The balance of root's account, in the gateway's units.
    pub balance: i64,
    /// The release, by new-api's numbers; release candidates of 1.0 are `(1, 0, n)`.
    pub version: (u32, u32, u32),
}

impl Options {
    pub fn new(database: Secret) -> Options {
        Options {
            database,
            log_database: None,
            schema: Schema::Current,
            quota_per_unit: 500_000.0,
            balance: 1_000_000_000,
            version: (1, 0, 21),
        }
    }
}

/// The differences between the two gateways.
pub struct Ways {
    pub error_type: &'static str,
    /// new-api refuses every invalid token with the same message.
    pub one_refusal: bool,
    pub soft_delete: bool,
    /// one-api counts nothing of a token without a limit.
    pub counts_unlimited: bool,
    pub log_row: fn(&Family, &Used) -> (String, Vec<super::tables::Arg>),
}

pub struct Family {
    pub ways: Ways,
    pub options: Options,
    pub tables: Tables,
    pub log: Tables,
    pub switches: Arc<Switches>,
    pub started: i64,
}

/// The only account, and the only channel.
pub const ROOT: i64 = 1;
pub const CHANNEL: i64 = 1;
/// The channel's models. One is listed twice, as can happen with one-api.
pub const MODELS: &[&str] = &["gpt-4o-mini", "gpt-4o", "gpt-4o-mini", "echo"];

/// A request that was answered, or failed.
pub struct Used {
    pub token: Token,
    pub request_id: String,
    pub model: String,
    pub is_stream: bool,
    pub prompt_tokens: i64,
    pub cached_tokens: i64,
    pub completion_tokens: i64,
    pub quota: i64,
    pub elapsed_ms: i64,
    /// The message of a failure.
    pub error: Option<&'static str>,
}

#[derive(Clone, Debug)]
pub struct Token {
    pub id: i64,
    pub user_id: i64,
    pub key: String,
    pub status: i64,
    pub name: String,
    pub created_time: i64,
    pub accessed_time: i64,
    pub expired_time: i64,
    pub remain_quota: i64,
    pub unlimited_quota: bool,
    pub used_quota: i64,
}

type Row = (i64, i64, String, i64, String, i64, i64, i64, i64, i64, i64);

impl From<Row> for Token {
    fn from(row: Row) -> Token {
        Token {
            id: row.0,
            user_id: row.1,
            key: row.2.trim_end().to_owned(),
            status: row.3,
            name: row.4,
            created_time: row.5,
            accessed_time: row.6,
            expired_time: row.7,
            remain_quota: row.8,
            unlimited_quota: row.9 != 0,
            used_quota: row.10,
        }
    }
}

pub fn success(data: Value) -> Response {
    Json(json!({"success": true, "message": "", "data": data})).into_response()
}

/// A refusal: its HTTP status is 200, as in the real gateways.
pub fn failure(message: impl Into<String>) -> Response {
    Json(json!({"success": false, "message": message.into()})).into_response()
}

/// The refusal of both gateways for a row that does not exist.
pub fn missing() -> Response {
    failure("record not found")
}

pub struct Scripts {
    pub sqlite: [&'static str; 2],
    pub postgres: [&'static str; 2],
    pub mysql: [&'static str; 2],
}

impl Family {
    pub async fn open(ways: Ways, options: Options, scripts: &Scripts, access_token: &Secret) -> sqlx::Result<Family> {
        let tables = Tables::open(&options.database).await?;
        let log = match &options.log_database {
            Some(url) => Tables::open(url).await?,
            None => tables.clone(),
        };
        let lay = async |tables: &Tables| {
            let [current, old] = tables.pick(scripts.sqlite, scripts.postgres, scripts.mysql);
            tables.script(current).await?;
            if options.schema == Schema::Old { tables.script(old).await } else { Ok(()) }
        };
        lay(&tables).await?;
        if options.log_database.is_some() {
            lay(&log).await?;
            // The real gateway creates only the log's table there.
            log.script("DROP TABLE tokens;\nDROP TABLE users;\n").await?;
        }
        let sql = "INSERT INTO users (username, password, role, access_token, quota) VALUES ('root', '-', 100, ?, ?)";
        tables.run(sql, with![access_token.expose(), options.balance]).await?;
        Ok(Family { ways, options, tables, log, switches: Arc::default(), started: now() })
    }

    /// Whether the management token is root's; `None` if the request has none. The two gateways refuse differently, so
    /// the caller does it.
    pub async fn knows(&self, headers: &HeaderMap) -> Result<Option<bool>, Broken> {
        let Some(token) = headers.get("authorization").and_then(|v| v.to_str().ok()).filter(|v| !v.is_empty()) else {
            return Ok(None);
        };
        let token = token.strip_prefix("Bearer ").unwrap_or(token);
        let count = self.tables.int("COUNT(*)");
        let sql = format!("SELECT {count} FROM users WHERE access_token = ?");
        Ok(Some(self.tables.number(&sql, with![token]).await? > 0))
    }

    fn columns(&self) -> String {
        let flag = self.tables.int("CASE WHEN unlimited_quota THEN 1 ELSE 0 END");
        format!(
            "id, user_id, {}, status, name, created_time, accessed_time, expired_time, remain_quota, {flag}, used_quota",
            self.tables.quoted("key")
        )
    }

    fn live(&self) -> &'static str {
        if self.ways.soft_delete { "deleted_at IS NULL" } else { "1 = 1" }
    }

    pub async fn tokens(&self, condition: &str, args: Vec<super::tables::Arg>) -> sqlx::Result<Vec<Token>> {
        let sql = format!("SELECT {} FROM tokens WHERE {} AND {condition}", self.columns(), self.live());
        Ok(self.tables.all::<Row>(&sql, args).await?.into_iter().map(Token::from).collect())
    }

    pub async fn token(&self, id: i64) -> sqlx::Result<Option<Token>> {
        Ok(self.tokens("id = ?", with![id]).await?.into_iter().next())
    }

    /// Newest first, as the lists are.
    pub async fn page(&self, offset: i64, size: i64) -> sqlx::Result<Vec<Token>> {
        self.tokens("user_id = ? ORDER BY id DESC LIMIT ? OFFSET ?", with![ROOT, size, offset]).await
    }

    pub async fn count(&self) -> sqlx::Result<i64> {
        let sql = format!("SELECT {} FROM tokens WHERE {}", self.tables.int("COUNT(*)"), self.live());
        self.tables.number(&sql, vec![]).await
    }

    /// Creates a token from a request's body. Missing fields are zero, and an expiry of zero becomes -1, the default.
    pub async fn insert(&self, body: &Value) -> sqlx::Result<Token> {
        let expired = body["expired_time"].as_i64().filter(|time| *time != 0).unwrap_or(-1);
        let sql = format!(
            "INSERT INTO tokens (user_id, {}, status, name, created_time, accessed_time, expired_time, remain_quota, \
             unlimited_quota, used_quota) VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?, 0) RETURNING {}",
            self.tables.quoted("key"),
            self.columns()
        );
        let args = with![
            ROOT,
            random_text(48),
            body["name"].as_str().unwrap_or_default(),
            now(),
            now(),
            expired,
            body["remain_quota"].as_i64().unwrap_or(0),
            body["unlimited_quota"].as_bool().unwrap_or(false),
        ];
        // One statement: another caller may delete the token as soon as it exists.
        let made = self.tables.first::<Row>(&sql, args).await?;
        made.map(Token::from).ok_or(sqlx::Error::RowNotFound)
    }

    /// `PUT /api/token/`: sets the status only, or every field, missing ones to zero.
    pub async fn update(&self, status_only: bool, body: &Value) -> Result<Result<Token, Response>, Broken> {
        let Some(token) = self.token(body["id"].as_i64().unwrap_or(0)).await? else { return Ok(Err(missing())) };
        let status = body["status"].as_i64().unwrap_or(0);
        if status == 1 && token.status == 4 && token.remain_quota <= 0 && !token.unlimited_quota {
            let refusal = "令牌可用额度已用尽，无法启用，请先修改令牌剩余额度，或者设置为无限额度";
            return Ok(Err(failure(refusal)));
        }
        if status_only {
            self.tables.run("UPDATE tokens SET status = ? WHERE id = ?", with![status, token.id]).await?;
        } else {
            let sql =
                "UPDATE tokens SET name = ?, expired_time = ?, remain_quota = ?, unlimited_quota = ? WHERE id = ?";
            let args = with![
                body["name"].as_str().unwrap_or_default(),
                body["expired_time"].as_i64().unwrap_or(0),
                body["remain_quota"].as_i64().unwrap_or(0),
                body["unlimited_quota"].as_bool().unwrap_or(false),
                token.id,
            ];
            self.tables.run(sql, args).await?;
        }
        Ok(self.token(token.id).await?.ok_or_else(missing))
    }

    pub async fn delete(&self, id: i64) -> Handled {
        if self.token(id).await?.is_none() {
            return Ok(missing());
        }
        let sql = match self.ways.soft_delete {
            true => "UPDATE tokens SET deleted_at = CURRENT_TIMESTAMP WHERE id = ?",
            false => "DELETE FROM tokens WHERE id = ?",
        };
        self.tables.run(sql, with![id]).await?;
        Ok(Json(json!({"success": true, "message": ""})).into_response())
    }

    pub async fn account(&self) -> Handled {
        let row: Option<(i64, i64, i64)> =
            self.tables.first("SELECT quota, used_quota, request_count FROM users WHERE id = ?", with![ROOT]).await?;
        let (quota, used, requests) = row.unwrap_or_default();
        Ok(success(json!({
            "id": ROOT, "username": "root", "role": 100, "status": 1, "group": "default",
            "quota": quota, "used_quota": used, "request_count": requests,
        })))
    }

    /// A refusal of the relay: a message, and a code if the real gateway sends one.
    pub fn relay_error(&self, status: StatusCode, message: &str, code: Option<&str>) -> Response {
        let message = format!("{message} (request id: {})", self.request_id());
        let mut error = json!({"message": message, "type": self.ways.error_type});
        if let (Some(code), Some(error)) = (code, error.as_object_mut()) {
            error.insert("code".to_owned(), code.into());
        }
        (status, Json(json!({"error": error}))).into_response()
    }

    fn request_id(&self) -> String {
        format!("{}{}", jiff::Timestamp::now().strftime("%Y%m%d%H%M%S%N"), &random_text(8))
    }

    /// The token of a request's key. The part after a `-` is ignored: it would select a channel.
    async fn key_owner(&self, headers: &HeaderMap) -> Result<Result<Token, Response>, Broken> {
        let key = headers.get("authorization").and_then(|v| v.to_str().ok()).unwrap_or_default();
        let key = key.strip_prefix("Bearer ").unwrap_or(key);
        let key = key.strip_prefix("sk-").unwrap_or(key).split('-').next().unwrap_or_default();
        let refuse = |text: &str| {
            let text = if self.ways.one_refusal { "无效的令牌" } else { text };
            let code = self.ways.one_refusal.then_some("");
            Ok(Err(self.relay_error(StatusCode::UNAUTHORIZED, text, code)))
        };
        if key.is_empty() {
            return refuse("未提供令牌");
        }
        let found = self.tokens(&format!("{} = ?", self.tables.quoted("key")), with![key]).await?;
        let Some(token) = found.into_iter().find(|token| token.key == key) else { return refuse("无效的令牌") };
        match token.status {
            4 => return refuse("令牌额度已用尽"),
            3 => return refuse("该令牌已过期"),
            1 => {}
            _ => return refuse("该令牌状态不可用"),
        }
        // The gateways notice this at the next use only, and store the new status then.
        let lapsed = if token.expired_time != -1 && token.expired_time < now() {
            Some((3i64, "该令牌已过期"))
        } else if !token.unlimited_quota && token.remain_quota <= 0 {
            Some((4, "该令牌额度已用尽"))
        } else {
            None
        };
        if let Some((status, text)) = lapsed {
            self.tables.run("UPDATE tokens SET status = ? WHERE id = ?", with![status, token.id]).await?;
            return refuse(text);
        }
        let banned = "SELECT status, quota FROM users WHERE id = ?";
        let owner: Option<(i64, i64)> = self.tables.first(banned, with![token.user_id]).await?;
        if owner.is_none_or(|(status, _)| status != 1) {
            return Ok(Err(self.relay_error(StatusCode::FORBIDDEN, "用户已被封禁", None)));
        }
        Ok(Ok(token))
    }

    pub async fn relay_models(&self, headers: &HeaderMap, extra: Value) -> Handled {
        if let Err(refusal) = self.key_owner(headers).await? {
            return Ok(refusal);
        }
        let list: Vec<_> = MODELS.iter().map(|id| json!({"id": id, "object": "model", "owned_by": "sim"})).collect();
        let mut answer = json!({"object": "list", "data": list});
        if let (Some(answer), Value::Object(extra)) = (answer.as_object_mut(), extra) {
            answer.extend(extra);
        }
        Ok(Json(answer).into_response())
    }

    pub async fn relay_chat(self: Arc<Family>, headers: HeaderMap, body: Bytes) -> Handled {
        let began = std::time::Instant::now();
        let token = match self.key_owner(&headers).await? {
            Ok(token) => token,
            Err(refusal) => return Ok(refusal),
        };
        let Ok(request) = serde_json::from_slice::<echo::Request>(&body) else {
            let refusal = self.relay_error(StatusCode::BAD_REQUEST, "invalid request", Some("invalid_text_request"));
            return Ok(refusal);
        };
        if !MODELS.contains(&request.model.as_str()) {
            let text = format!("当前分组 default 下对于模型 {} 无可用渠道", request.model);
            let code = self.ways.one_refusal.then_some("model_not_found");
            return Ok(self.relay_error(StatusCode::SERVICE_UNAVAILABLE, &text, code));
        }
        let request_id = self.request_id();
        let reply = echo::answer(&request, format!("chatcmpl-{request_id}"));
        let quota = price(&reply.model, reply.prompt_tokens, reply.completion_tokens);
        let left = self.tables.number("SELECT quota FROM users WHERE id = ?", with![token.user_id]).await?;
        if left < quota {
            let text = "用户额度不足";
            return Ok(self.relay_error(StatusCode::FORBIDDEN, text, Some("insufficient_user_quota")));
        }
        if !token.unlimited_quota && token.remain_quota < quota {
            let text = "令牌额度不足";
            return Ok(self.relay_error(StatusCode::FORBIDDEN, text, Some("pre_consume_token_quota_failed")));
        }
        let mut used = Used {
            token,
            request_id: request_id.clone(),
            model: reply.model.clone(),
            is_stream: reply.stream,
            prompt_tokens: reply.prompt_tokens,
            cached_tokens: reply.cached_tokens,
            completion_tokens: reply.completion_tokens,
            quota,
            elapsed_ms: began.elapsed().as_millis() as i64,
            error: None,
        };
        if self.switches.is(|s| &s.upstream_down) {
            let text = "do request failed";
            used =
                Used { prompt_tokens: 0, cached_tokens: 0, completion_tokens: 0, quota: 0, error: Some(text), ..used };
            if self.switches.is(|s| &s.log_errors) {
                self.write(used);
            }
            return Ok(self.relay_error(StatusCode::INTERNAL_SERVER_ERROR, text, Some("do_request_failed")));
        }
        if self.switches.is(|s| &s.upstream_unauthorized) {
            let error = json!({"message": "Incorrect API key provided", "type": "invalid_request_error", "param": null,
                "code": "invalid_api_key"});
            return Ok((StatusCode::UNAUTHORIZED, Json(json!({"error": error}))).into_response());
        }
        match self.switches.count_delay_ms.load(std::sync::atomic::Ordering::SeqCst) {
            0 => self.charge(used.token.id, used.token.unlimited_quota, used.quota).await?,
            delay => {
                let (family, token, quota) = (self.clone(), used.token.clone(), used.quota);
                let charge = async move { family.charge(token.id, token.unlimited_quota, quota).await };
                self.switches.after(std::time::Duration::from_millis(delay), charge);
            }
        }
        if !self.switches.is(|s| &s.log_nothing) {
            self.write(used);
        }
        Ok(([("x-oneapi-request-id", request_id)], reply).into_response())
    }

    async fn charge(&self, token: i64, unlimited: bool, quota: i64) -> sqlx::Result<()> {
        let counted = if unlimited && !self.ways.counts_unlimited { 0 } else { quota };
        let sql = "UPDATE tokens SET remain_quota = remain_quota - ?, used_quota = used_quota + ?, accessed_time = ? \
            WHERE id = ?";
        self.tables.run(sql, with![counted, counted, now(), token]).await?;
        let sql = "UPDATE users SET quota = quota - ?, used_quota = used_quota + ?, request_count = request_count + 1 \
            WHERE id = ?";
        self.tables.run(sql, with![quota, quota, ROOT]).await.map(drop)
    }

    fn write(self: &Arc<Family>, used: Used) {
        let family = self.clone();
        self.switches.later(async move {
            let (sql, args) = (family.ways.log_row)(&family, &used);
            family.log.run(&sql, args).await.map(drop)
        });
    }
}

/// The price of a request: ceil((prompt + completion × completion ratio) × ratio), at least 1 if it has any tokens.
pub fn price(model: &str, prompt: i64, completion: i64) -> i64 {
    let (ratio, completion_ratio) = match model {
        "gpt-4o-mini" => (0.075, 4.0),
        "gpt-4o" => (1.25, 4.0),
        _ => (30.0, 1.0),
    };
    if prompt + completion == 0 {
        return 0;
    }
    (((prompt as f64 + completion as f64 * completion_ratio) * ratio).ceil() as i64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_costs_what_it_did_on_the_real_one() {
        assert_eq!(price("gpt-4o-mini", 25, 20), 8);
        assert_eq!(price("echo", 1, 1), 60, "an unknown model is very expensive");
        assert_eq!(price("gpt-4o", 0, 0), 0);
    }
}
