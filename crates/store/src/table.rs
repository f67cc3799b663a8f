//! The list of all tables, for `copy`, and of the columns with sealed secrets.

use crate::db::Number;
use crate::{Conn, Result, args};

/// Every table, parents before children.
pub const TABLES: &[&str] = &[
    "setting",
    "users",
    "user_department",
    "admin_users",
    "ended_token",
    "second_factor",
    "recovery_code",
    "password_reset",
    "throttle",
    "audit_log",
    "server",
    "server_metric",
    "container",
    "instance",
    "binding",
    "profession",
    "pool_entry",
    "chat_binding",
    "chat_sender",
    "task",
    "task_log",
    "marketplace_item",
    "marketplace_file",
    "install",
    "model",
    "provider",
    "provider_key",
    "provider_cooling",
    "provider_health",
    "model_alias",
    "model_offer",
    "model_price",
    "model_rate",
    "gateway_key",
    "request_log",
    "usage_slot",
    "usage_daily",
    "usage_total",
    "usage_source",
    "usage_gap",
    "log_segment",
    "quota_grant",
    "answer_owner",
    "unlogged_request",
    "gateway_state",
    "chat_message",
    "lease",
    "job",
    "job_run",
    "instance_health",
    "reconcile",
    "moved_from",
    "unix_user",
    "cell",
    "cell_limit",
    "heartbeat",
    "repair",
    "guardian_event",
    "guardian_check",
    "alert_rule",
    "alert",
    "spend_day",
    "ticket",
    "replica",
];

/// Tables with an auto-incrementing key.
pub const COUNTED: &[&str] =
    &["audit_log", "server_metric", "task_log", "request_log", "job_run", "repair", "guardian_event", "heartbeat"];

/// A column that holds a sealed secret, and the column that holds its keyed hash, if any.
pub struct Sealed {
    pub table: &'static str,
    pub id: &'static str,
    pub column: &'static str,
    pub hash: Option<&'static str>,
}

/// Every sealed column, for `rekey`.
pub const SEALED: &[Sealed] = &[
    Sealed { table: "second_factor", id: "account_id", column: "secret", hash: None },
    Sealed { table: "second_factor", id: "account_id", column: "pending_secret", hash: None },
    Sealed { table: "server", id: "id", column: "ssh_key", hash: None },
    Sealed { table: "instance", id: "id", column: "gateway_token", hash: None },
    Sealed { table: "chat_binding", id: "id", column: "bot_token", hash: Some("bot_token_hash") },
    Sealed { table: "chat_binding", id: "id", column: "webhook_secret", hash: None },
    Sealed { table: "gateway_key", id: "id", column: "secret", hash: Some("secret_hash") },
    Sealed { table: "provider", id: "id", column: "proxy", hash: None },
    Sealed { table: "provider_key", id: "id", column: "secret", hash: None },
    Sealed { table: "alert_rule", id: "id", column: "channel", hash: None },
    Sealed { table: "alert_rule", id: "id", column: "secret", hash: None },
];

/// How many rows one of `TABLES` has.
pub async fn count(conn: impl Into<Conn<'_>>, table: &'static str) -> Result<i64> {
    let number: Number = conn.into().one(&format!("SELECT COUNT(*) AS n FROM {table}"), args![]).await?;
    Ok(number.n)
}
