//! One handle over SQLite and PostgreSQL: the only file that knows there are two.
//!
//! SQL is written once, with `?` placeholders. Times are UTC milliseconds in integer columns.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use base::Secret;
use jiff::Timestamp;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions, PgRow};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteRow, SqliteSynchronous,
};
use sqlx::{AssertSqlSafe, Postgres, Row as _, SqlSafeStr as _, SqlStr, Sqlite, Transaction};

use tokio::sync::broadcast;

use crate::notice::{CHANNEL, Notice};
use crate::{Dialect, Error, Result};

/// How many connections may read SQLite at once, and how many PostgreSQL gets in all.
const SQLITE_READERS: u32 = 8;
const POSTGRES_CONNECTIONS: u32 = 20;
/// Notices that a slow listener may be behind before it misses some.
const NOTICES: usize = 1024;
/// How long a request waits for a connection before it is answered 503.
const ACQUIRE: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub struct Db {
    pool: Pool,
    pub(crate) notices: broadcast::Sender<Notice>,
}

#[derive(Clone, Debug)]
enum Pool {
    Sqlite { read: SqlitePool, write: SqlitePool, file: PathBuf },
    Postgres(PgPool),
}

impl Db {
    /// Opens `sqlite:…` (the file is made when it is missing) or `postgres://…`.
    pub async fn open(url: &Secret) -> Result<Db> {
        let url = url.expose();
        let pool = match url.split_once(':').map(|(scheme, _)| scheme) {
            Some("sqlite") => {
                let options = SqliteConnectOptions::from_str(url)?
                    .create_if_missing(true)
                    .foreign_keys(true)
                    .journal_mode(SqliteJournalMode::Wal)
                    .synchronous(SqliteSynchronous::Normal)
                    .busy_timeout(Duration::from_secs(30));
                let file = options.get_filename().to_owned();
                let pool = SqlitePoolOptions::new().acquire_timeout(ACQUIRE);
                // The writer comes first: it makes the file that the readers open.
                let write = pool.clone().max_connections(1).connect_with(options.clone()).await?;
                let read = pool.max_connections(SQLITE_READERS).connect_with(options.read_only(true)).await?;
                Pool::Sqlite { read, write, file }
            }
            Some("postgres" | "postgresql") => {
                let options = PgConnectOptions::from_str(url)?.application_name("tidepool");
                let pool = PgPoolOptions::new().acquire_timeout(ACQUIRE).max_connections(POSTGRES_CONNECTIONS);
                Pool::Postgres(pool.connect_with(options).await?)
            }
            _ => return Err(Error::Url),
        };
        Ok(Db { pool, notices: broadcast::channel(NOTICES).0 })
    }

    /// Opens a SQLite file that nobody writes, only to look at it: no side files, nothing changed.
    pub async fn look_into(file: &std::path::Path) -> Result<Db> {
        let options = SqliteConnectOptions::new().filename(file).read_only(true).immutable(true);
        let read = SqlitePoolOptions::new().max_connections(1).connect_with(options).await?;
        let pool = Pool::Sqlite { write: read.clone(), read, file: file.to_owned() };
        Ok(Db { pool, notices: broadcast::channel(1).0 })
    }

    pub fn dialect(&self) -> Dialect {
        match self.pool {
            Pool::Sqlite { .. } => Dialect::Sqlite,
            Pool::Postgres(_) => Dialect::Postgres,
        }
    }

    /// The file of a SQLite database.
    pub fn file(&self) -> Option<&std::path::Path> {
        match &self.pool {
            Pool::Sqlite { file, .. } => Some(file),
            Pool::Postgres(_) => None,
        }
    }

    /// Connections open and idle, for the metrics.
    pub fn connections(&self) -> (u32, usize) {
        match &self.pool {
            Pool::Sqlite { read, write, .. } => (read.size() + write.size(), read.num_idle() + write.num_idle()),
            Pool::Postgres(pool) => (pool.size(), pool.num_idle()),
        }
    }

    pub async fn all<T: Record>(&self, sql: &str, args: Vec<Value>) -> Result<Vec<T>> {
        Conn::from(self).all(sql, args).await
    }

    pub async fn first<T: Record>(&self, sql: &str, args: Vec<Value>) -> Result<Option<T>> {
        Conn::from(self).first(sql, args).await
    }

    pub async fn run(&self, sql: &str, args: Vec<Value>) -> Result<u64> {
        Conn::from(self).run(sql, args).await
    }

    pub async fn begin(&self) -> Result<Tx> {
        let on = match &self.pool {
            // A deferred transaction that later writes can fail with SQLITE_BUSY.
            Pool::Sqlite { write, .. } => On::Sqlite(write.begin_with("BEGIN IMMEDIATE").await?),
            Pool::Postgres(pool) => On::Postgres(pool.begin().await?),
        };
        Ok(Tx { on, told: vec![], notices: self.notices.clone() })
    }

    /// PostgreSQL's own pool, for listening.
    pub(crate) fn postgres(&self) -> Option<&PgPool> {
        match &self.pool {
            Pool::Sqlite { .. } => None,
            Pool::Postgres(pool) => Some(pool),
        }
    }

    /// Waits until every connection is given back and closes them.
    pub async fn close(&self) {
        match &self.pool {
            Pool::Sqlite { read, write, .. } => {
                read.close().await;
                write.close().await;
            }
            Pool::Postgres(pool) => pool.close().await,
        }
    }
}

/// A transaction. Dropped without `commit`, it never happened.
pub struct Tx {
    on: On,
    /// What is told to this process once the transaction is committed.
    told: Vec<Notice>,
    notices: broadcast::Sender<Notice>,
}

enum On {
    Sqlite(Transaction<'static, Sqlite>),
    Postgres(Transaction<'static, Postgres>),
}

impl Tx {
    pub fn dialect(&self) -> Dialect {
        match self.on {
            On::Sqlite(_) => Dialect::Sqlite,
            On::Postgres(_) => Dialect::Postgres,
        }
    }

    pub async fn all<T: Record>(&mut self, sql: &str, args: Vec<Value>) -> Result<Vec<T>> {
        Conn::from(self).all(sql, args).await
    }

    pub async fn first<T: Record>(&mut self, sql: &str, args: Vec<Value>) -> Result<Option<T>> {
        Conn::from(self).first(sql, args).await
    }

    pub async fn run(&mut self, sql: &str, args: Vec<Value>) -> Result<u64> {
        Conn::from(self).run(sql, args).await
    }

    /// Rows as they are, for what does not know its columns beforehand.
    pub(crate) async fn rows(&mut self, sql: &str, args: Vec<Value>) -> Result<Vec<Row>> {
        Conn::from(self).rows(sql, args).await
    }

    /// Runs several statements, separated by semicolons, without arguments.
    pub async fn script(&mut self, sql: &str) -> Result<()> {
        let text = AssertSqlSafe(self.dialect().types(sql));
        match &mut self.on {
            On::Sqlite(t) => sqlx::raw_sql(text).execute(&mut **t).await.map(drop)?,
            On::Postgres(t) => sqlx::raw_sql(text).execute(&mut **t).await.map(drop)?,
        }
        Ok(())
    }

    /// Waits until no other transaction holds `lock`, and holds it to the end of this one.
    /// SQLite's one writer is such a lock already.
    pub async fn lock(&mut self, lock: Lock) -> Result<()> {
        if self.dialect() == Dialect::Postgres {
            self.run("SELECT pg_advisory_xact_lock(?)", args![lock as i64]).await?;
        }
        Ok(())
    }

    /// Tells whoever listens, in every process, once this transaction is committed.
    pub async fn notify(&mut self, notice: Notice) -> Result<()> {
        match self.dialect() {
            Dialect::Sqlite => self.told.push(notice),
            Dialect::Postgres => {
                self.run("SELECT pg_notify(?, ?)", args![CHANNEL, notice.to_text()]).await?;
            }
        }
        Ok(())
    }

    pub async fn commit(self) -> Result<()> {
        match self.on {
            On::Sqlite(t) => t.commit().await?,
            On::Postgres(t) => t.commit().await?,
        }
        for notice in self.told {
            // Nobody listens: nobody needs to know.
            self.notices.send(notice).ok();
        }
        Ok(())
    }
}

/// What several processes must not do at once. The numbers are PostgreSQL advisory locks.
#[derive(Clone, Copy, Debug)]
#[repr(i64)]
pub enum Lock {
    Migrate = 0x7469_6465_0001,
    Bootstrap = 0x7469_6465_0002,
    Rekey = 0x7469_6465_0003,
}

/// Where a statement runs: on any connection, or inside a transaction.
pub enum Conn<'a> {
    Db(&'a Db),
    Tx(&'a mut Tx),
}

impl<'a> From<&'a Db> for Conn<'a> {
    fn from(db: &'a Db) -> Conn<'a> {
        Conn::Db(db)
    }
}

impl<'a> From<&'a mut Tx> for Conn<'a> {
    fn from(tx: &'a mut Tx) -> Conn<'a> {
        Conn::Tx(tx)
    }
}

/// Binds the arguments and calls `$call` on whichever executor the connection is.
macro_rules! execute {
    ($conn:expr, $sql:expr, $args:expr, $sqlite_pool:ident, $call:ident, $row:expr) => {{
        let sql = prepare($conn.dialect(), $sql);
        match $conn {
            Conn::Db(db) => match &db.pool {
                Pool::Sqlite { $sqlite_pool, .. } => $row(bound!(sql, $args).$call($sqlite_pool).await?.map_row()),
                Pool::Postgres(pool) => $row(bound!(sql, $args).$call(pool).await?.map_row()),
            },
            Conn::Tx(tx) => match &mut tx.on {
                On::Sqlite(t) => $row(bound!(sql, $args).$call(&mut **t).await?.map_row()),
                On::Postgres(t) => $row(bound!(sql, $args).$call(&mut **t).await?.map_row()),
            },
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

impl Conn<'_> {
    pub fn dialect(&self) -> Dialect {
        match self {
            Conn::Db(db) => db.dialect(),
            Conn::Tx(tx) => tx.dialect(),
        }
    }

    pub async fn all<T: Record>(self, sql: &str, args: Vec<Value>) -> Result<Vec<T>> {
        self.rows(sql, args).await?.iter().map(T::from_row).collect()
    }

    async fn rows(self, sql: &str, args: Vec<Value>) -> Result<Vec<Row>> {
        Ok(execute!(self, sql, args, read, fetch_all, |rows| rows))
    }

    pub async fn first<T: Record>(self, sql: &str, args: Vec<Value>) -> Result<Option<T>> {
        let row: Option<Row> = execute!(self, sql, args, read, fetch_optional, |row| row);
        row.as_ref().map(T::from_row).transpose()
    }

    /// The one row that must be there, such as a `COUNT`.
    pub async fn one<T: Record>(self, sql: &str, args: Vec<Value>) -> Result<T> {
        self.first(sql, args).await?.ok_or(Error::NotFound)
    }

    /// Runs a statement and returns how many rows it touched.
    pub async fn run(self, sql: &str, args: Vec<Value>) -> Result<u64> {
        Ok(execute!(self, sql, args, write, execute, |done| done))
    }
}

/// Turns what a driver answers into ours.
trait MapRow {
    type Ours;
    fn map_row(self) -> Self::Ours;
}
impl<R: Into<Row>> MapRow for Vec<R> {
    type Ours = Vec<Row>;
    fn map_row(self) -> Vec<Row> {
        self.into_iter().map(Into::into).collect()
    }
}
impl<R: Into<Row>> MapRow for Option<R> {
    type Ours = Option<Row>;
    fn map_row(self) -> Option<Row> {
        self.map(Into::into)
    }
}
impl MapRow for sqlx::sqlite::SqliteQueryResult {
    type Ours = u64;
    fn map_row(self) -> u64 {
        self.rows_affected()
    }
}
impl MapRow for sqlx::postgres::PgQueryResult {
    type Ours = u64;
    fn map_row(self) -> u64 {
        self.rows_affected()
    }
}

fn prepare(dialect: Dialect, sql: &str) -> SqlStr {
    AssertSqlSafe(dialect.placeholders(sql)).into_sql_str()
}

/// A bound argument. `None` keeps its type, which PostgreSQL asks for.
#[derive(Clone, Debug)]
pub enum Value {
    Int(Option<i64>),
    Real(Option<f64>),
    Text(Option<String>),
}

macro_rules! value_from {
    ($($t:ty => $variant:ident, $v:ident $conv:expr;)*) => {$(
        impl From<$t> for Value { fn from($v: $t) -> Self { Value::$variant(Some($conv)) } }
        impl From<Option<$t>> for Value { fn from(v: Option<$t>) -> Self { Value::$variant(v.map(|$v| $conv)) } }
    )*};
}
impl From<usize> for Value {
    fn from(n: usize) -> Value {
        Value::Int(Some(n as i64))
    }
}
value_from! {
    i64 => Int, v v;
    i32 => Int, v v.into();
    bool => Int, v v.into();
    f64 => Real, v v;
    String => Text, v v;
    &str => Text, v v.to_owned();
    &String => Text, v v.clone();
    Timestamp => Int, v v.as_millisecond();
}

#[macro_export]
macro_rules! args {
    ($($arg:expr),* $(,)?) => { vec![$($crate::db::Value::from($arg)),*] };
}
use args;

/// A row of whichever database answered.
pub enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

impl From<SqliteRow> for Row {
    fn from(row: SqliteRow) -> Row {
        Row::Sqlite(row)
    }
}
impl From<PgRow> for Row {
    fn from(row: PgRow) -> Row {
        Row::Postgres(row)
    }
}

impl Row {
    pub fn get<T: Column>(&self, name: &str) -> Result<T> {
        T::read(self, name)
    }
}

/// A Rust type a column can be read as.
pub trait Column: Sized {
    fn read(row: &Row, name: &str) -> Result<Self>;
}

macro_rules! native_column {
    ($($t:ty),*) => {$(
        impl Column for $t {
            fn read(row: &Row, name: &str) -> Result<Self> {
                Ok(match row {
                    Row::Sqlite(r) => r.try_get(name)?,
                    Row::Postgres(r) => r.try_get(name)?,
                })
            }
        }
    )*};
}
native_column!(i64, Option<i64>, f64, Option<f64>, String, Option<String>);

impl Column for bool {
    fn read(row: &Row, name: &str) -> Result<Self> {
        Ok(row.get::<i64>(name)? != 0)
    }
}
impl Column for Timestamp {
    fn read(row: &Row, name: &str) -> Result<Self> {
        Timestamp::from_millisecond(row.get(name)?).map_err(|e| Error::Column(name.into(), e.to_string()))
    }
}
impl Column for Option<Timestamp> {
    fn read(row: &Row, name: &str) -> Result<Self> {
        let at = row.get::<Option<i64>>(name)?.map(Timestamp::from_millisecond).transpose();
        at.map_err(|e| Error::Column(name.into(), e.to_string()))
    }
}

/// A column that holds one word of a closed set: `word!` gives the enum its words.
#[macro_export]
macro_rules! word {
    ($(#[$m:meta])* pub enum $name:ident { $($(#[$vm:meta])* $variant:ident = $text:literal),* $(,)? }) => {
        $(#[$m])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vm])* $variant),* }
        impl $name {
            pub const ALL: &[$name] = &[$($name::$variant),*];
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text),* }
            }
            pub fn parse(text: &str) -> Option<$name> {
                match text { $($text => Some($name::$variant),)* _ => None }
            }
        }
        impl $crate::db::Column for $name {
            fn read(row: &$crate::db::Row, name: &str) -> $crate::Result<Self> {
                let text: String = row.get(name)?;
                $name::parse(&text).ok_or_else(|| $crate::Error::Column(name.into(), format!("unknown word {text}")))
            }
        }
        impl From<$name> for $crate::db::Value {
            fn from(word: $name) -> Self { word.as_str().into() }
        }
    };
}

/// A struct read from a row, column by column.
pub trait Record: Sized {
    const COLUMNS: &'static str;
    fn from_row(row: &Row) -> Result<Self>;
}

#[macro_export]
macro_rules! record {
    ($(#[$m:meta])* $v:vis struct $name:ident { $($(#[$fm:meta])* $fv:vis $f:ident : $t:ty),* $(,)? }) => {
        $(#[$m])* $v struct $name { $($(#[$fm])* $fv $f: $t),* }
        impl $crate::db::Record for $name {
            const COLUMNS: &'static str = $crate::columns!($($f),*);
            fn from_row(row: &$crate::db::Row) -> $crate::Result<Self> {
                Ok($name { $($f: row.get($crate::db::plain(stringify!($f)))?),* })
            }
        }
    };
}
#[macro_export]
macro_rules! columns {
    ($first:ident $(, $rest:ident)*) => { concat!(stringify!($first) $(, ", ", stringify!($rest))*) };
}

record! {
    /// A single number, selected `AS n`.
    pub struct Number { pub n: i64 }
}

/// A field's name without Rust's mark for names that are keywords.
pub fn plain(name: &'static str) -> &'static str {
    name.strip_prefix("r#").unwrap_or(name)
}
