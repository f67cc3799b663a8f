//! The log of a foreign LLM gateway: we only read it. One file per kind has its SELECTs. The existing columns are read
//! once, when the log is opened, because old installations lack some.

use std::ops::RangeInclusive;

use base::Secret;
use jiff::Timestamp;

use crate::request::{Detail, RequestType};
use crate::row::Value;
use crate::{Error, Result, args};

mod litellm;
mod new_api;
mod one_api;
mod position;
mod said;
mod source;

pub use position::Position;
pub use source::Server;
use source::Source;

/// A gateway whose log we can read.
pub struct LogKind {
    /// The kind's name in the setting.
    pub name: &'static str,
    pub servers: &'static [Server],
    /// Builds the statements for the existing columns; fails if this is not a log of this kind.
    statements: fn(Server, &Tables) -> Result<Statements>,
    /// Reads what a row says in JSON.
    said: said::Read,
    tables: &'static [&'static str],
}

pub const KINDS: &[LogKind] = &[one_api::KIND, new_api::KIND, litellm::KIND];

/// The SELECTs of a kind for one database. Those for rows have the columns that `source::read_row` reads, in that
/// order.
struct Statements {
    /// The newest row, in the order of positions.
    newest: String,
    /// Arguments: the position, then the number of rows.
    after: String,
    /// The SELECT of rows without its condition on ids; `None` if rows have no ascending ids.
    by_id: Option<String>,
    /// `{from}` and `{to}` stand for times. Columns: token name, requests, prompt tokens, completion tokens, quota.
    sums: String,
    /// Argument: the gateway's id of a token, or its name. Columns: name, used, remaining or NULL, the owner's
    /// remaining or NULL.
    token_by_id: Option<String>,
    token_by_name: Option<String>,
    /// The unit of the times in this log.
    time: Clockwork,
}

#[derive(Clone, Copy)]
enum Clockwork {
    Seconds,
    Milliseconds,
}

impl Clockwork {
    /// `at` in this unit, rounded up.
    fn tick(self, at: Timestamp) -> i64 {
        let ms = at.as_millisecond();
        match self {
            Clockwork::Seconds => ms.div_euclid(1000) + i64::from(ms.rem_euclid(1000) > 0),
            Clockwork::Milliseconds => ms,
        }
    }
}

/// A row of the foreign log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignRow {
    pub position: Position,
    /// Empty if the installation lacks the column. Several attempts of one request can share an id.
    pub request_id: String,
    pub token_name: String,
    pub model: String,
    /// `ch-<channel>`, or the provider's name; empty if the log has neither.
    pub provider: String,
    /// 2 is a success, 6 (new-api) a refund, 5 (new-api, litellm) a failure. Other rows are not requests.
    pub kind: RequestType,
    pub is_stream: bool,
    pub prompt_tokens: i64,
    pub completion_tokens: i64,
    /// In the gateway's units, which `base::PerUsd` converts. litellm has none, so its rows are in our units already.
    pub quota: i64,
    /// The exact cost less `quota`, in billionths of a dollar; 0 in logs that have whole units.
    pub quota_rest: i64,
    pub duration_ms: i64,
    /// Empty unless the request failed.
    pub error_message: String,
    /// What else the log says of it.
    pub detail: Detail,
    pub created_at: Timestamp,
}

/// A token's sums over a span of the log: successes, with refunds subtracted from the quota.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sums {
    pub token_name: String,
    pub requests: i64,
    pub prompt_tokens: i64,
    pub completion_tokens: i64,
    pub quota: i64,
}

/// The usage of a token as the gateway itself counts it, apart from its log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenUse {
    pub name: String,
    pub used_quota: i64,
    /// `None` means no limit.
    pub remain_quota: Option<i64>,
    /// The remaining quota of the account that owns the token; `None` if there is no account or no limit.
    pub owner_quota: Option<i64>,
}

/// How a token is looked up.
#[derive(Clone, Copy, Debug)]
pub enum Token<'a> {
    /// By the gateway's own id.
    Id(&'a str),
    Name(&'a str),
}

/// The columns of each table that a kind reads; empty for a table that does not exist.
struct Tables(Vec<(&'static str, Vec<String>)>);

impl Tables {
    fn has(&self, table: &str, column: &str) -> bool {
        self.0.iter().any(|(name, columns)| *name == table && columns.iter().any(|c| c == column))
    }

    fn exists(&self, table: &str) -> bool {
        self.0.iter().any(|(name, columns)| *name == table && !columns.is_empty())
    }

    /// The column, or `otherwise` if an old installation lacks it.
    fn or<'a>(&self, table: &str, column: &'a str, otherwise: &'a str) -> &'a str {
        if self.has(table, column) { column } else { otherwise }
    }
}

pub struct ForeignLog {
    kind: &'static LogKind,
    source: Source,
    statements: Statements,
}

impl std::fmt::Debug for ForeignLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} log on {:?}", self.kind.name, self.source.server())
    }
}

impl LogKind {
    pub fn find(name: &str) -> Option<&'static LogKind> {
        KINDS.iter().find(|kind| kind.name == name)
    }
}

impl ForeignLog {
    /// Opens the log of a gateway of this kind for reading. The URL is `sqlite:`, `mysql:`, `mariadb:` or `postgres:`.
    pub async fn open(kind: &'static LogKind, url: &Secret) -> Result<ForeignLog> {
        let source = Source::open(url, kind.name).await?;
        if !kind.servers.contains(&source.server()) {
            let names: Vec<_> = kind.servers.iter().map(|server| server.name()).collect();
            return Err(refused(kind, format_args!("keeps its log in {} only", names.join(", "))));
        }
        let mut tables = vec![];
        for table in kind.tables {
            tables.push((*table, source.columns(table).await?));
        }
        let statements = (kind.statements)(source.server(), &Tables(tables))?;
        Ok(ForeignLog { kind, source, statements })
    }

    pub fn kind(&self) -> &'static LogKind {
        self.kind
    }

    pub fn server(&self) -> Server {
        self.source.server()
    }

    /// Whether rows have ascending ids, so that missing ones can be detected and read later.
    pub fn counts(&self) -> bool {
        self.statements.by_id.is_some()
    }

    /// The position before the first row.
    pub fn start(&self) -> Position {
        if self.counts() {
            Position::Id(0)
        } else {
            Position::Time { at: Timestamp::UNIX_EPOCH, request_id: String::new() }
        }
    }

    /// The position of the newest row; `None` for an empty log.
    pub async fn newest(&self) -> Result<Option<Position>> {
        let rows = self.rows(&self.statements.newest, vec![]).await?;
        Ok(rows.into_iter().next().map(|row| row.position))
    }

    async fn rows(&self, sql: &str, args: Vec<Value>) -> Result<Vec<ForeignRow>> {
        self.source.rows(sql, args, self.kind.said).await
    }

    /// The rows after a position, in order.
    pub async fn after(&self, position: &Position, limit: usize) -> Result<Vec<ForeignRow>> {
        let mut args = match (position, self.counts()) {
            (Position::Id(id), true) => args![*id],
            (Position::Time { at, request_id }, false) => args![at.as_millisecond(), request_id],
            _ => return Err(refused(self.kind, format_args!("has no position {position}"))),
        };
        args.push(Value::from(limit));
        self.rows(&self.statements.after, args).await
    }

    /// The rows with these ids that exist now, in order.
    pub async fn between(&self, ids: &[RangeInclusive<i64>], limit: usize) -> Result<Vec<ForeignRow>> {
        let Some(by_id) = &self.statements.by_id else { return Ok(vec![]) };
        let mut found = vec![];
        // Every database allows a few hundred arguments per statement.
        for some in ids.chunks(100) {
            if found.len() >= limit {
                break;
            }
            let condition = vec!["id BETWEEN ? AND ?"; some.len()].join(" OR ");
            let sql = format!("{by_id} WHERE {condition} ORDER BY id LIMIT ?");
            let mut args: Vec<_> = some.iter().flat_map(|range| args![*range.start(), *range.end()]).collect();
            args.push(Value::from(limit - found.len()));
            found.extend(self.rows(&sql, args).await?);
        }
        Ok(found)
    }

    /// Plain sums per token over rows logged from `from` (inclusive) to `to` (exclusive), to compare with ours.
    pub async fn sums(&self, from: Timestamp, to: Timestamp) -> Result<Vec<Sums>> {
        let tick = |at| self.statements.time.tick(at).to_string();
        let sql = self.statements.sums.replace("{from}", &tick(from)).replace("{to}", &tick(to));
        self.source.sums(&sql, vec![]).await
    }

    /// The gateway's own count of a token. `None` if there is no such token, or the database has only the log.
    pub async fn token_used(&self, token: Token<'_>) -> Result<Option<TokenUse>> {
        let (sql, arg) = match token {
            Token::Id(id) => (&self.statements.token_by_id, id),
            Token::Name(name) => (&self.statements.token_by_name, name),
        };
        let Some(sql) = sql else { return Ok(None) };
        let arg = match (token, self.counts()) {
            // Gateways with numbered rows have numeric token ids, so no token has any other id.
            (Token::Id(id), true) => match id.parse::<i64>() {
                Ok(id) => args![id],
                Err(_) => return Ok(None),
            },
            _ => args![arg],
        };
        let found = self.source.tokens(sql, arg).await?;
        // MySQL ignores case and trailing blanks when it compares names; we do not.
        let mut found = found.into_iter().filter(|t| !matches!(token, Token::Name(name) if t.name != name));
        Ok(found.next())
    }

    pub async fn close(&self) {
        self.source.close().await;
    }
}

fn refused(kind: &LogKind, why: impl std::fmt::Display) -> Error {
    Error::Refused(format!("gateway_log_url: {} {why}", kind.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_seconds_begins_at_the_next_whole_one() {
        let at = |ms| Clockwork::Seconds.tick(Timestamp::from_millisecond(ms).unwrap());
        assert_eq!((at(0), at(1), at(1000), at(-1), at(-1000)), (0, 1, 1, 0, -1));
    }
}
