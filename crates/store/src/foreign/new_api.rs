//! new-api's table `logs`: like one-api's, with more columns, other types of rows and soft-deleted tokens.
//!
//! Type 5 is a failed attempt (attempts of one request share its id). Type 6 is a refund: its quota is positive and is
//! subtracted.

use super::one_api::Log;
use super::{LogKind, Result, Server, Statements, Tables, refused, said};

pub const KIND: LogKind = LogKind {
    name: "new-api",
    servers: &[Server::Sqlite, Server::MySql, Server::Postgres],
    statements,
    said: said::new_api,
    tables: &["logs", "tokens", "users"],
};

fn statements(server: Server, tables: &Tables) -> Result<Statements> {
    if !tables.has("logs", "token_name") {
        return Err(refused(&KIND, "has a table logs, this database has none"));
    }
    if !tables.has("logs", "use_time") {
        return Err(refused(&KIND, "has a column logs.use_time: this is the log of a one-api"));
    }
    let log = Log {
        server,
        tables,
        // In whole seconds: a request of less than a second has 0.
        duration_ms: "use_time * 1000",
        error_message: "CASE WHEN type = 5 THEN SUBSTR(COALESCE(content, ''), 1, 1000) ELSE '' END",
        said: if tables.has("logs", "other") { "COALESCE(other, '')" } else { "''" },
        quota_of_sums: "CASE WHEN type = 6 THEN -COALESCE(quota, 0) ELSE COALESCE(quota, 0) END",
        types_of_sums: "type IN (2, 6)",
        live_tokens: if tables.has("tokens", "deleted_at") { "t.deleted_at IS NULL" } else { "1 = 1" },
    };
    Ok(log.statements())
}
