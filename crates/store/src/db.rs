//! One handle over SQLite and PostgreSQL: the only file that knows there are two.
//!
//! SQL is written once, with `?` placeholders. Times are UTC milliseconds in integer columns.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use base::{Heartbeats, Secret};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{AssertSqlSafe, Connection as _, SqlSafeStr as _, SqlStr, Sqlite, Transaction};
use tokio::sync::{broadcast, watch};

pub use crate::advisory::Lock;
use crate::link::{self, Limits, Link};
use crate::notice::{CHANNEL, Notice};
pub use crate::row::{Column, Number, Record, Row, Value};
use crate::{Dialect, Error, Result, args};

/// How many connections may read SQLite at once, and how many PostgreSQL gets in all.
const SQLITE_READERS: u32 = 8;
const POSTGRES_CONNECTIONS: u32 = 20;
/// Notices that a slow listener may be behind before it misses some.
const NOTICES: usize = 1024;
/// How long a request waits for a connection before it is answered 503.
const ACQUIRE: Duration = Duration::from_secs(10);
/// When PostgreSQL gives up one of our sessions that says nothing. A process that is frozen in the middle of a transaction
/// would hold its rows for as long as it is frozen, and every other replica with them; a machine that is gone would hold its
/// locks for two hours. Nobody here waits for anything but this database inside a transaction, so ten seconds are long.
/// Said once connected: a pooler would refuse them as options of the connection.
pub(crate) const POSTGRES_PATIENCE: &str = "SET idle_in_transaction_session_timeout = '10s'; \
    SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3";
/// How long SQLite waits for another process that holds the file.
const BUSY: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
pub struct Db {
    pool: Pool,
    pub(crate) notices: broadcast::Sender<Notice>,
    /// Whether `relay_notices` is connected.
    pub(crate) relaying: watch::Sender<bool>,
    /// How many transactions wait for SQLite's one writer.
    waiting: Arc<AtomicUsize>,
    /// The loops of this process that live by this database.
    pub heartbeats: Heartbeats,
    /// How long PostgreSQL is waited for.
    pub(crate) limits: Limits,
    /// Whether the days are still being rebuilt for the zone of this process.
    days_pending: Arc<AtomicBool>,
}

#[derive(Clone, Debug)]
enum Pool {
    Sqlite { read: SqlitePool, write: SqlitePool, file: PathBuf },
    Postgres(PgPool),
}

impl Db {
    /// Opens `sqlite:…` (the file is made when it is missing) or `postgres://…`.
    pub async fn open(url: &Secret) -> Result<Db> {
        Db::open_with(url, Limits::default()).await
    }

    /// The same with other limits.
    pub async fn open_with(url: &Secret, limits: Limits) -> Result<Db> {
        let url = url.expose();
        let pool = match url.split_once(':').map(|(scheme, _)| scheme) {
            Some("sqlite") => {
                // By its path, not by sqlx's reading of a URL, in which `%` and `?` mean something.
                let options = SqliteConnectOptions::new()
                    .filename(sqlite_path(url).ok_or(Error::Url)?)
                    .create_if_missing(true)
                    .foreign_keys(true)
                    .journal_mode(SqliteJournalMode::Wal)
                    .synchronous(SqliteSynchronous::Normal)
                    .busy_timeout(BUSY);
                let file = options.get_filename().to_owned();
                let pool = SqlitePoolOptions::new().acquire_timeout(ACQUIRE);
                // On a full disk SQLite ends a transaction by itself. The connection's count of transactions does not learn of it
                // and would refuse every later one, with room on the disk or without: such a connection is replaced.
                let writer = pool
                    .clone()
                    .max_connections(1)
                    .before_acquire(|connection, _| Box::pin(async move { Ok(!connection.is_in_transaction()) }));
                // The writer comes first: it makes the file that the readers open.
                let write = open_sqlite(writer, options.clone()).await?;
                let read = open_sqlite(pool.max_connections(SQLITE_READERS), options.read_only(true)).await?;
                Pool::Sqlite { read, write, file }
            }
            Some("postgres" | "postgresql") => {
                let options = PgConnectOptions::from_str(url)?.application_name("tidepool");
                let pool = PgPoolOptions::new()
                    .acquire_timeout(ACQUIRE)
                    .max_connections(POSTGRES_CONNECTIONS)
                    // sqlx's own test waits for an answer without an end.
                    .test_before_acquire(false)
                    .before_acquire(move |connection, _| {
                        Box::pin(async move { link::ping(connection, limits.ping).await.map(|()| true) })
                    })
                    .after_connect(|connection, _| {
                        Box::pin(async move { sqlx::raw_sql(POSTGRES_PATIENCE).execute(connection).await.map(drop) })
                    });
                Pool::Postgres(pool.connect_with(options).await?)
            }
            _ => return Err(Error::Url),
        };
        Ok(Db::of(pool, NOTICES, limits))
    }

    /// Opens a SQLite file that nobody writes, only to look at it: no side files, nothing changed.
    pub async fn look_into(file: &std::path::Path) -> Result<Db> {
        let options = SqliteConnectOptions::new().filename(file).read_only(true).immutable(true);
        let read = SqlitePoolOptions::new().max_connections(1).connect_with(options).await?;
        let pool = Pool::Sqlite { write: read.clone(), read, file: file.to_owned() };
        Ok(Db::of(pool, 1, Limits::default()))
    }

    fn of(pool: Pool, notices: usize, limits: Limits) -> Db {
        Db {
            pool,
            notices: broadcast::channel(notices).0,
            relaying: watch::Sender::new(false),
            waiting: Arc::default(),
            heartbeats: Heartbeats::default(),
            limits,
            days_pending: Arc::default(),
        }
    }

    /// Whether sums of days are still of another zone: the quarters of an hour answer in their place.
    pub fn days_pending(&self) -> bool {
        self.days_pending.load(Ordering::Relaxed)
    }

    pub(crate) fn set_days_pending(&self, pending: bool) {
        self.days_pending.store(pending, Ordering::Relaxed);
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

    /// Transactions that wait for SQLite's one writer, for the metrics; PostgreSQL has none of them.
    pub fn writers_waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
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
            Pool::Sqlite { write, .. } => {
                let _until_begun = Waits::count(&self.waiting);
                On::Sqlite(write.begin_with("BEGIN IMMEDIATE").await?)
            }
            Pool::Postgres(pool) => {
                let mut link = Link::take(pool, self.limits).await?;
                link.begin().await?;
                On::Postgres(link)
            }
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

/// Counts one transaction that waits to begin, until it is dropped.
struct Waits<'a>(&'a AtomicUsize);

impl Waits<'_> {
    fn count(waiting: &AtomicUsize) -> Waits<'_> {
        waiting.fetch_add(1, Ordering::SeqCst);
        Waits(waiting)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Opens a pool on a SQLite file that others may be opening too. Turning the write-ahead log on, and recovering it, say
/// "locked" at once to all but one of them, without regard to the busy time-out: so we ask again.
async fn open_sqlite(pool: SqlitePoolOptions, options: SqliteConnectOptions) -> Result<SqlitePool> {
    let until = tokio::time::Instant::now() + BUSY;
    loop {
        match pool.clone().connect_with(options.clone()).await {
            Err(sqlx::Error::Database(e)) if is_busy(&*e) && tokio::time::Instant::now() < until => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            other => return Ok(other?),
        }
    }
}

/// SQLITE_BUSY in any of its extended forms (the low byte is the code itself).
fn is_busy(error: &dyn sqlx::error::DatabaseError) -> bool {
    error.code().and_then(|c| c.parse::<u32>().ok()).is_some_and(|c| c & 0xff == 5)
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
    Postgres(Link),
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
            On::Postgres(link) => {
                let answer = tokio::time::timeout(link.limit, sqlx::raw_sql(text).execute(link.live()?)).await;
                link.heard(answer).map(drop)?;
            }
        }
        Ok(())
    }

    /// Gives each further statement of this transaction, and its commit, another limit than the usual.
    pub fn set_limit(&mut self, limit: Duration) {
        if let On::Postgres(link) = &mut self.on {
            link.limit = limit;
        }
    }

    /// Lets this transaction say nothing for so long, where its owner waits for something else meanwhile.
    pub async fn may_idle(&mut self, time: Duration) -> Result<()> {
        if self.dialect() == Dialect::Postgres {
            let time = format!("{}s", time.as_secs());
            let sql = "SELECT set_config('idle_in_transaction_session_timeout', ?, true)";
            self.run(sql, args![time]).await?;
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
            On::Postgres(link) => link.commit().await?,
        }
        for notice in self.told {
            // Nobody listens: nobody needs to know.
            self.notices.send(notice).ok();
        }
        Ok(())
    }
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
                Pool::Postgres(pool) => {
                    let mut link = Link::take(pool, db.limits).await?;
                    $row(limited!(link, bound!(sql, $args), $call).map_row())
                }
            },
            Conn::Tx(tx) => match &mut tx.on {
                On::Sqlite(t) => $row(bound!(sql, $args).$call(&mut **t).await?.map_row()),
                On::Postgres(link) => $row(limited!(link, bound!(sql, $args), $call).map_row()),
            },
        }
    }};
}

/// The answer to a query on this link, or the error of a link that does not answer.
macro_rules! limited {
    ($link:expr, $query:expr, $call:ident) => {{
        let answer = tokio::time::timeout($link.limit, $query.$call($link.live()?)).await;
        $link.heard(answer)?
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

/// The file that a `sqlite:` URL names: everything behind the colon.
pub fn sqlite_path(url: &str) -> Option<&str> {
    let path = url.strip_prefix("sqlite://").or_else(|| url.strip_prefix("sqlite:"))?;
    Some(path).filter(|p| !p.is_empty() && !p.contains(":memory:"))
}

fn prepare(dialect: Dialect, sql: &str) -> SqlStr {
    AssertSqlSafe(dialect.placeholders(sql)).into_sql_str()
}
