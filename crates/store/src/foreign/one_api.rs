//! One API's table `logs`, in SQLite, MySQL or PostgreSQL. Every column but the id can be NULL.
//!
//! one-api does not log failures. Type 5 is a test of a channel, without a token.

use super::{Clockwork, LogKind, Result, Server, Statements, Tables, refused, said};

pub const KIND: LogKind = LogKind {
    name: "one-api",
    servers: &[Server::Sqlite, Server::MySql, Server::Postgres],
    statements,
    said: said::nothing,
    tables: &["logs", "tokens", "users"],
};

fn statements(server: Server, tables: &Tables) -> Result<Statements> {
    if !tables.has("logs", "token_name") {
        return Err(refused(&KIND, "has a table logs, this database has none"));
    }
    if tables.has("logs", "use_time") {
        return Err(refused(&KIND, "has no column logs.use_time: this is the log of a new-api"));
    }
    let log = Log {
        server,
        tables,
        // In milliseconds; releases before 0.6.11 have no duration.
        duration_ms: tables.or("logs", "elapsed_time", "0"),
        error_message: "''",
        said: "''",
        quota_of_sums: "COALESCE(quota, 0)",
        types_of_sums: "type = 2",
        live_tokens: "1 = 1",
    };
    Ok(log.statements())
}

/// The differences between the tables of one-api and new-api.
pub struct Log<'a> {
    pub server: Server,
    pub tables: &'a Tables,
    pub duration_ms: &'a str,
    pub error_message: &'a str,
    /// What a row says in JSON.
    pub said: &'a str,
    pub quota_of_sums: &'a str,
    pub types_of_sums: &'a str,
    pub live_tokens: &'a str,
}

impl Log<'_> {
    pub fn statements(&self) -> Statements {
        let rows = self.rows();
        let token = |condition: &str| self.tables.exists("tokens").then(|| self.token(condition));
        Statements {
            newest: format!("{rows} ORDER BY id DESC LIMIT 1"),
            after: format!("{rows} WHERE id > ? ORDER BY id LIMIT ?"),
            by_id: Some(rows),
            sums: self.sums(),
            token_by_id: token("t.id = ?"),
            token_by_name: token("t.name = ?"),
            time: Clockwork::Seconds,
        }
    }

    fn rows(&self) -> String {
        let int = |column: &str| self.server.int(&format!("COALESCE({column}, 0)"));
        let flag = |column: &str| self.server.int(&format!("CASE WHEN {column} THEN 1 ELSE 0 END"));
        let columns = [
            "id".to_owned(),
            // These rows have ids, so their position has no time.
            self.server.int("0"),
            format!("COALESCE({}, '')", self.tables.or("logs", "request_id", "''")),
            "COALESCE(token_name, '')".to_owned(),
            "COALESCE(model_name, '')".to_owned(),
            int("channel_id"),
            "''".to_owned(),
            int("type"),
            flag(self.tables.or("logs", "is_stream", "1 = 0")),
            int("prompt_tokens"),
            int("completion_tokens"),
            int("quota"),
            int(self.duration_ms),
            self.error_message.to_owned(),
            self.server.int("COALESCE(created_at, 0) * 1000"),
            // The gateway charges whole units.
            self.server.int("0"),
            self.said.to_owned(),
            // The path of a call and the time of the first byte are in the JSON, where they are known.
            "''".to_owned(),
            self.server.int("NULL"),
        ];
        format!("SELECT {} FROM logs", columns.join(", "))
    }

    fn sums(&self) -> String {
        let sum = |column: &str| self.server.int(&format!("COALESCE(SUM({column}), 0)"));
        let success = |column: &str| sum(&format!("CASE WHEN type = 2 THEN COALESCE({column}, 0) ELSE 0 END"));
        // MySQL ignores case and trailing blanks when it groups by name; as bytes the names stay distinct.
        let name = match self.server {
            Server::MySql => "CAST(COALESCE(token_name, '') AS BINARY)",
            Server::Sqlite | Server::Postgres => "COALESCE(token_name, '')",
        };
        format!(
            "SELECT MAX(COALESCE(token_name, '')), {requests}, {prompt}, {completion}, {quota} FROM logs \
             WHERE {types} AND created_at >= {{from}} AND created_at < {{to}} GROUP BY {name}",
            requests = sum("CASE WHEN type = 2 THEN 1 ELSE 0 END"),
            prompt = success("prompt_tokens"),
            completion = success("completion_tokens"),
            quota = sum(self.quota_of_sums),
            types = self.types_of_sums,
        )
    }

    fn token(&self, condition: &str) -> String {
        let int = |column: &str| self.server.int(column);
        let (owner, join) = if self.tables.exists("users") {
            (int("u.quota"), "LEFT JOIN users u ON u.id = t.user_id")
        } else {
            (int("NULL"), "")
        };
        format!(
            "SELECT COALESCE(t.name, ''), {used}, {remain}, {owner} FROM tokens t {join} \
             WHERE {condition} AND {live} ORDER BY t.id LIMIT 100",
            used = int("COALESCE(t.used_quota, 0)"),
            remain = int("CASE WHEN t.unlimited_quota THEN NULL ELSE COALESCE(t.remain_quota, 0) END"),
            live = self.live_tokens,
        )
    }
}
