//! A simulated gateway's own tables, in SQLite, MySQL or PostgreSQL. They are not the platform's, so `store` does not
//! have them.

use std::str::FromStr as _;
use std::time::Duration;

use base::Secret;
use sqlx::mysql::{MySqlConnectOptions, MySqlPool, MySqlPoolOptions, MySqlRow};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions, PgRow};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions, SqliteRow};
use sqlx::{AssertSqlSafe, FromRow, SqlSafeStr as _, SqlStr};

#[derive(Clone, Debug)]
pub struct Tables(Pool);

#[derive(Clone, Debug)]
enum Pool {
    Sqlite(SqlitePool),
    MySql(MySqlPool),
    Postgres(PgPool),
}

/// A bound argument.
#[derive(Clone, Debug)]
pub enum Arg {
    Int(Option<i64>),
    Real(Option<f64>),
    Flag(Option<bool>),
    Text(Option<String>),
}

macro_rules! arg_from {
    ($($t:ty => $variant:ident),*) => {$(
        impl From<$t> for Arg { fn from(v: $t) -> Arg { Arg::$variant(Some(v.into())) } }
        impl From<Option<$t>> for Arg { fn from(v: Option<$t>) -> Arg { Arg::$variant(v.map(Into::into)) } }
    )*};
}
arg_from!(i64 => Int, f64 => Real, bool => Flag, String => Text, &str => Text);

#[macro_export]
macro_rules! with {
    ($($arg:expr),* $(,)?) => { vec![$($crate::llm::tables::Arg::from($arg)),*] };
}

/// A type that a row of any of the three databases can be read as: mostly tuples.
pub trait Out:
    for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, MySqlRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin
{
}
impl<T> Out for T where
    T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, MySqlRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin
{
}

macro_rules! bound {
    ($query:expr, $args:expr) => {{
        let mut query = $query;
        for arg in $args {
            query = match arg {
                Arg::Int(v) => query.bind(v),
                Arg::Real(v) => query.bind(v),
                Arg::Flag(v) => query.bind(v),
                Arg::Text(v) => query.bind(v),
            };
        }
        query
    }};
}

impl Tables {
    /// Opens `sqlite:` (the file is created), `mysql:` or `postgres:`.
    pub async fn open(url: &Secret) -> sqlx::Result<Tables> {
        let url = url.expose();
        Ok(Tables(if let Some(file) = url.strip_prefix("sqlite:") {
            // As the real gateways open it: no write-ahead log, and a busy timeout of three seconds.
            let options = SqliteConnectOptions::new().filename(file).create_if_missing(true);
            let options = options.busy_timeout(Duration::from_secs(3));
            Pool::Sqlite(SqlitePoolOptions::new().max_connections(1).connect_with(options).await?)
        } else if url.starts_with("postgres") {
            let options = PgConnectOptions::from_str(url)?;
            Pool::Postgres(PgPoolOptions::new().max_connections(4).connect_with(options).await?)
        } else {
            let options = MySqlConnectOptions::from_str(url)?;
            Pool::MySql(MySqlPoolOptions::new().max_connections(4).connect_with(options).await?)
        }))
    }

    /// The value for this database: SQLite's, PostgreSQL's or MySQL's.
    pub fn pick<T>(&self, sqlite: T, postgres: T, mysql: T) -> T {
        match self.0 {
            Pool::Sqlite(_) => sqlite,
            Pool::Postgres(_) => postgres,
            Pool::MySql(_) => mysql,
        }
    }

    /// Quotes a name that is a reserved word in one of the databases.
    pub fn quoted(&self, name: &str) -> String {
        self.pick(format!("`{name}`"), format!("\"{name}\""), format!("`{name}`"))
    }

    /// An expression as a 64-bit integer.
    pub fn int(&self, expression: &str) -> String {
        format!("CAST({expression} AS {})", self.pick("INTEGER", "BIGINT", "SIGNED"))
    }

    /// Runs several statements.
    pub async fn script(&self, sql: &str) -> sqlx::Result<()> {
        for statement in sql.split(";\n").filter(|s| !s.trim().is_empty()) {
            self.run(statement, vec![]).await?;
        }
        Ok(())
    }

    pub async fn run(&self, sql: &str, args: Vec<Arg>) -> sqlx::Result<u64> {
        let sql = self.placeholders(sql);
        Ok(match &self.0 {
            Pool::Sqlite(pool) => bound!(sqlx::query(sql), args).execute(pool).await?.rows_affected(),
            Pool::MySql(pool) => bound!(sqlx::query(sql), args).execute(pool).await?.rows_affected(),
            Pool::Postgres(pool) => bound!(sqlx::query(sql), args).execute(pool).await?.rows_affected(),
        })
    }

    pub async fn all<T: Out>(&self, sql: &str, args: Vec<Arg>) -> sqlx::Result<Vec<T>> {
        let sql = self.placeholders(sql);
        match &self.0 {
            Pool::Sqlite(pool) => bound!(sqlx::query_as(sql), args).fetch_all(pool).await,
            Pool::MySql(pool) => bound!(sqlx::query_as(sql), args).fetch_all(pool).await,
            Pool::Postgres(pool) => bound!(sqlx::query_as(sql), args).fetch_all(pool).await,
        }
    }

    pub async fn first<T: Out>(&self, sql: &str, args: Vec<Arg>) -> sqlx::Result<Option<T>> {
        Ok(self.all(sql, args).await?.into_iter().next())
    }

    /// A single number.
    pub async fn number(&self, sql: &str, args: Vec<Arg>) -> sqlx::Result<i64> {
        let row: Option<(i64,)> = self.first(sql, args).await?;
        row.map(|(n,)| n).ok_or(sqlx::Error::RowNotFound)
    }

    pub async fn close(&self) {
        match &self.0 {
            Pool::Sqlite(pool) => pool.close().await,
            Pool::MySql(pool) => pool.close().await,
            Pool::Postgres(pool) => pool.close().await,
        }
    }

    /// `?` everywhere, `$1, $2, …` for PostgreSQL. None of these texts has a `?` in quotes.
    fn placeholders(&self, sql: &str) -> SqlStr {
        let text = match self.0 {
            Pool::Sqlite(_) | Pool::MySql(_) => sql.to_owned(),
            Pool::Postgres(_) => sql.split('?').enumerate().fold(String::new(), |text, (i, part)| match i {
                0 => part.to_owned(),
                i => format!("{text}${i}{part}"),
            }),
        };
        AssertSqlSafe(text).into_sql_str()
    }
}
