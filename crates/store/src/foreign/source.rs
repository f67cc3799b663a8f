//! A foreign database (SQLite, MySQL, MariaDB or PostgreSQL), opened read-only.

use std::future::Future;
use std::str::FromStr;
use std::time::Duration;

use base::Secret;
use jiff::Timestamp;
use sqlx::mysql::{MySqlConnectOptions, MySqlPool, MySqlPoolOptions};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, ColumnIndex, Decode, Executor as _, SqlSafeStr as _, SqlStr, Type};

use super::said::{Read, Said};
use super::{ForeignRow, Position, Sums, TokenUse};
use crate::db::sqlite_path;
use crate::request::RequestType;
use crate::row::Value;
use crate::{Dialect, Error, Result, args};

/// Few, because the gateway needs its database's connections itself.
const CONNECTIONS: u32 = 2;
/// Idle connections are closed after this time: the gateway's database may allow few.
const IDLE: Duration = Duration::from_secs(60);
const ACQUIRE: Duration = Duration::from_secs(5);
/// How long SQLite waits while the gateway has locked its file.
const BUSY: Duration = Duration::from_secs(5);
/// The timeout of a statement.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    Sqlite,
    MySql,
    Postgres,
}

impl Server {
    pub fn name(self) -> &'static str {
        match self {
            Server::Sqlite => "SQLite",
            Server::MySql => "MySQL",
            Server::Postgres => "PostgreSQL",
        }
    }

    /// An expression as a 64-bit integer.
    pub(super) fn int(self, expression: &str) -> String {
        let integer = match self {
            Server::Sqlite => "INTEGER",
            Server::MySql => "SIGNED",
            Server::Postgres => "BIGINT",
        };
        format!("CAST({expression} AS {integer})")
    }

    fn placeholders(self, sql: &str) -> SqlStr {
        let sql = match self {
            Server::Postgres => Dialect::Postgres.placeholders(sql),
            Server::Sqlite | Server::MySql => sql.to_owned(),
        };
        AssertSqlSafe(sql).into_sql_str()
    }
}

pub struct Source(Pool);

enum Pool {
    Sqlite(SqlitePool),
    MySql(MySqlPool),
    Postgres(PgPool),
}

/// Runs a SELECT on the source's pool and reads each row with `$read`.
macro_rules! select {
    ($source:expr, $sql:expr, $args:expr, $read:expr) => {{
        let sql = $source.server().placeholders($sql);
        match &$source.0 {
            Pool::Sqlite(pool) => {
                patiently(bound!(sql, $args).fetch_all(pool)).await?.iter().map($read).collect::<Result<Vec<_>>>()
            }
            Pool::MySql(pool) => {
                patiently(bound!(sql, $args).fetch_all(pool)).await?.iter().map($read).collect::<Result<Vec<_>>>()
            }
            Pool::Postgres(pool) => {
                patiently(bound!(sql, $args).fetch_all(pool)).await?.iter().map($read).collect::<Result<Vec<_>>>()
            }
        }
    }};
}

macro_rules! bound {
    ($sql:expr, $args:expr) => {{
        let mut query = sqlx::query($sql);
        for arg in $args {
            query = match arg {
                Value::Int(v) => query.bind(v),
                Value::Real(v) => query.bind(v),
                Value::Text(v) => query.bind(v),
            };
        }
        query
    }};
}

impl Source {
    pub async fn open(url: &Secret, kind: &str) -> Result<Source> {
        let url = url.expose();
        let pool = match url.split_once(':').map(|(scheme, _)| scheme) {
            Some("sqlite") => {
                let file = sqlite_path(url).ok_or_else(bad_url)?;
                // We set no journal mode: the gateway chose it.
                let options = SqliteConnectOptions::new().filename(file).read_only(true).busy_timeout(BUSY);
                let pool = SqlitePoolOptions::new().max_connections(CONNECTIONS).acquire_timeout(ACQUIRE);
                Pool::Sqlite(patiently(pool.idle_timeout(IDLE).connect_with(options)).await?)
            }
            Some("mysql" | "mariadb") => {
                let options = MySqlConnectOptions::from_str(url).map_err(|_| bad_url())?;
                let pool = MySqlPoolOptions::new().max_connections(CONNECTIONS).acquire_timeout(ACQUIRE);
                let pool = pool.idle_timeout(IDLE).after_connect(|connection, _| {
                    Box::pin(async move { connection.execute("SET SESSION TRANSACTION READ ONLY").await.map(drop) })
                });
                Pool::MySql(patiently(pool.connect_with(options)).await?)
            }
            Some("postgres" | "postgresql") => {
                let options = PgConnectOptions::from_str(url).map_err(|_| bad_url())?;
                let options = options.application_name("tidepool log reader");
                let pool = PgPoolOptions::new().max_connections(CONNECTIONS).acquire_timeout(ACQUIRE);
                // Set after connecting, because some poolers refuse options at the start of a session.
                let pool = pool.idle_timeout(IDLE).after_connect(|connection, _| {
                    Box::pin(
                        async move { connection.execute("SET default_transaction_read_only = on").await.map(drop) },
                    )
                });
                Pool::Postgres(patiently(pool.connect_with(options)).await?)
            }
            Some("clickhouse") => {
                return Err(Error::Refused(format!("gateway_log_url: a {kind} log in ClickHouse cannot be read")));
            }
            _ => return Err(bad_url()),
        };
        Ok(Source(pool))
    }

    pub fn server(&self) -> Server {
        match self.0 {
            Pool::Sqlite(_) => Server::Sqlite,
            Pool::MySql(_) => Server::MySql,
            Pool::Postgres(_) => Server::Postgres,
        }
    }

    /// The columns of a table; empty if there is no such table.
    pub async fn columns(&self, table: &str) -> Result<Vec<String>> {
        let sql = match self.server() {
            Server::Sqlite => "SELECT name FROM pragma_table_info(?)",
            // The catalogue's own columns have a type that is not read as text.
            Server::MySql => {
                "SELECT CONVERT(column_name USING utf8mb4) FROM information_schema.columns \
                 WHERE table_schema = DATABASE() AND table_name = ?"
            }
            Server::Postgres => {
                "SELECT CAST(column_name AS TEXT) FROM information_schema.columns \
                 WHERE table_schema = ANY (current_schemas(FALSE)) AND table_name = ?"
            }
        };
        select!(self, sql, args![table], read_name)
    }

    pub async fn rows(&self, sql: &str, args: Vec<Value>, said: Read) -> Result<Vec<ForeignRow>> {
        select!(self, sql, args, |row| read_row(row, said))
    }

    pub async fn sums(&self, sql: &str, args: Vec<Value>) -> Result<Vec<Sums>> {
        select!(self, sql, args, read_sums)
    }

    pub async fn tokens(&self, sql: &str, args: Vec<Value>) -> Result<Vec<TokenUse>> {
        select!(self, sql, args, read_token)
    }

    pub async fn close(&self) {
        match &self.0 {
            Pool::Sqlite(pool) => pool.close().await,
            Pool::MySql(pool) => pool.close().await,
            Pool::Postgres(pool) => pool.close().await,
        }
    }
}

/// The error does not repeat the URL, which may contain a password.
fn bad_url() -> Error {
    Error::Refused(
        "gateway_log_url: must be the address of a database, for example sqlite:/srv/one-api/one-api.db, \
         mysql://reader:password@host/oneapi or postgres://reader:password@host/oneapi"
            .to_owned(),
    )
}

/// Adds a timeout: a database that hangs must not block the caller.
async fn patiently<T>(work: impl Future<Output = sqlx::Result<T>>) -> Result<T> {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(Error::Unreachable(sqlx::Error::PoolTimedOut)),
    }
}

/// Reads columns from the row types of all three databases.
trait Readable<'r>: sqlx::Row {
    fn int(&'r self, column: usize) -> Result<i64>;
    fn maybe_int(&'r self, column: usize) -> Result<Option<i64>>;
    fn text(&'r self, column: usize) -> Result<String>;
}

impl<'r, R: sqlx::Row> Readable<'r> for R
where
    usize: ColumnIndex<R>,
    i64: Decode<'r, R::Database> + Type<R::Database>,
    String: Decode<'r, R::Database> + Type<R::Database>,
{
    fn int(&'r self, column: usize) -> Result<i64> {
        Ok(self.try_get(column)?)
    }

    fn maybe_int(&'r self, column: usize) -> Result<Option<i64>> {
        Ok(self.try_get(column)?)
    }

    fn text(&'r self, column: usize) -> Result<String> {
        Ok(self.try_get(column)?)
    }
}

fn read_name<'r, R: Readable<'r>>(row: &'r R) -> Result<String> {
    row.text(0)
}

fn read_row<'r, R: Readable<'r>>(row: &'r R, said: Read) -> Result<ForeignRow> {
    let (id, at, request_id) = (row.int(0)?, row.int(1)?, row.text(2)?);
    let (channel, provider) = (row.int(5)?, row.text(6)?);
    let prompt_tokens = row.int(9)?;
    let (json, call) = (row.text(16)?, row.text(17)?);
    let detail = said(Said { json: &json, prompt_tokens, call: &call, first_byte_ms: row.maybe_int(18)? });
    Ok(ForeignRow {
        position: match id {
            0 => Position::Time { at: time(at), request_id: request_id.clone() },
            id => Position::Id(id),
        },
        request_id,
        token_name: row.text(3)?,
        model: row.text(4)?,
        provider: if channel > 0 { format!("ch-{channel}") } else { provider },
        kind: RequestType::new(row.int(7)?),
        is_stream: row.int(8)? != 0,
        prompt_tokens,
        completion_tokens: row.int(10)?,
        quota: row.int(11)?,
        duration_ms: row.int(12)?,
        error_message: row.text(13)?,
        detail,
        created_at: time(row.int(14)?),
        quota_rest: row.int(15)?,
    })
}

fn read_sums<'r, R: Readable<'r>>(row: &'r R) -> Result<Sums> {
    Ok(Sums {
        token_name: row.text(0)?,
        requests: row.int(1)?,
        prompt_tokens: row.int(2)?,
        completion_tokens: row.int(3)?,
        quota: row.int(4)?,
    })
}

fn read_token<'r, R: Readable<'r>>(row: &'r R) -> Result<TokenUse> {
    Ok(TokenUse {
        name: row.text(0)?,
        used_quota: row.int(1)?,
        remain_quota: row.maybe_int(2)?,
        owner_quota: row.maybe_int(3)?,
    })
}

/// An invalid time becomes 1970, so that one odd row does not stop the reader.
fn time(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(ms).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that a statement cannot write.
    async fn refuses_to_write(url: &str) {
        let source = Source::open(&Secret::new(url), "test").await.unwrap();
        assert!(source.columns("written_by_us").await.unwrap().is_empty());
        let name = format!("written_by_us_{}", std::process::id());
        let refusal = source
            .rows(&format!("CREATE TABLE {name} (id INTEGER)"), vec![], super::super::said::nothing)
            .await
            .unwrap_err()
            .to_string();
        assert!(refusal.to_lowercase().replace(['-', ' '], "").contains("readonly"), "{refusal}");
        assert!(source.columns(&name).await.unwrap().is_empty());
        source.close().await;
    }

    #[tokio::test]
    async fn a_file_is_only_read() {
        let file = std::env::temp_dir().join(format!("tidepool-foreign-{}.db", std::process::id()));
        let made = SqliteConnectOptions::new().filename(&file).create_if_missing(true);
        SqlitePoolOptions::new().connect_with(made).await.unwrap().close().await;
        refuses_to_write(&format!("sqlite:{}", file.display())).await;
        std::fs::remove_file(file).unwrap();
    }

    #[tokio::test]
    async fn a_server_is_only_read() {
        // The contract suite reports which of these are missing.
        for variable in ["TIDEPOOL_TEST_PG_URL", "TIDEPOOL_TEST_MARIADB_URL"] {
            if let Ok(url) = std::env::var(variable) {
                refuses_to_write(&url).await;
            }
        }
    }
}
