//! One handle over SQLite and PostgreSQL. Only this module knows that there are two.
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
use sqlx::{AssertSqlSafe, Connection as _, Sqlite, Transaction};
use tokio::sync::{broadcast, watch};

mod conn;

pub use self::conn::Conn;
pub use crate::advisory::Lock;
use crate::link::{self, Limits, Link};
use crate::notice::{CHANNEL, Notice};
pub use crate::row::{Column, Number, Record, Row, Value};
use crate::{Dialect, Error, Result, args};

/// The number of reading connections to SQLite, and of connections to PostgreSQL; searches have more of their own.
const SQLITE_READERS: u32 = 8;
const POSTGRES_CONNECTIONS: u32 = 20;
/// How many notices are buffered for a slow listener before it misses some.
const NOTICES: usize = 1024;
/// How long a request waits for a connection before it fails with 503.
const ACQUIRE: Duration = Duration::from_secs(10);
/// How many searches run at once. They read many rows, so they have their own connections and block no other request.
const SEARCHERS: u32 = 2;
/// How long a search waits for a connection. A user who is typing has sent another query by then.
const SEARCH_ACQUIRE: Duration = Duration::from_secs(3);
/// How long SQLite waits for another process that has locked the file.
const BUSY: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
pub struct Db {
    pool: Pool,
    pub(crate) notices: broadcast::Sender<Notice>,
    /// Whether `relay_notices` is connected.
    pub(crate) relaying: watch::Sender<bool>,
    /// How many transactions wait for SQLite's one writer.
    waiting: Arc<AtomicUsize>,
    /// The heartbeats of this process's loops that depend on this database.
    pub heartbeats: Heartbeats,
    /// The timeouts of statements.
    pub(crate) limits: Limits,
    /// Reads have no timeout and end early only when their future is dropped. For maintenance.
    may_take_long: bool,
    /// Whether the daily sums are still being rebuilt for the zone of this process.
    days_pending: Arc<AtomicBool>,
}

#[derive(Clone, Debug)]
enum Pool {
    Sqlite { read: SqlitePool, search: SqlitePool, write: SqlitePool, file: PathBuf },
    Postgres { pool: PgPool, search: PgPool },
}

impl Db {
    /// Opens `sqlite:…` (creates the file if it is missing) or `postgres://…`.
    pub async fn open(url: &Secret) -> Result<Db> {
        Db::open_with(url, Limits::default()).await
    }

    /// The same with other limits.
    pub async fn open_with(url: &Secret, limits: Limits) -> Result<Db> {
        let url = url.expose();
        let pool = match url.split_once(':').map(|(scheme, _)| scheme) {
            Some("sqlite") => {
                // By path: in a URL, sqlx would interpret `%` and `?`.
                let options = SqliteConnectOptions::new()
                    .filename(sqlite_path(url).ok_or(Error::Url)?)
                    .create_if_missing(true)
                    .foreign_keys(true)
                    .journal_mode(SqliteJournalMode::Wal)
                    .synchronous(SqliteSynchronous::Normal)
                    .busy_timeout(BUSY);
                let file = options.get_filename().to_owned();
                let pool = SqlitePoolOptions::new().acquire_timeout(ACQUIRE);
                // On a full disk SQLite ends a transaction by itself. sqlx does not notice: its connection still counts
                // as in a transaction and would refuse every later one, even once there is room again. So such a
                // connection is replaced.
                let writer = pool
                    .clone()
                    .max_connections(1)
                    .before_acquire(|connection, _| Box::pin(async move { Ok(!connection.is_in_transaction()) }));
                // The writer is opened first: it creates the file that the readers open.
                let write = open_sqlite(writer, options.clone()).await?;
                // `read::sqlite` talks to a reader before every use, so the pool need not test it as well.
                let (pool, options) = (pool.test_before_acquire(false), options.read_only(true));
                let read = open_sqlite(pool.clone().max_connections(SQLITE_READERS), options.clone()).await?;
                let search = pool.max_connections(SEARCHERS).acquire_timeout(SEARCH_ACQUIRE).connect_lazy_with(options);
                Pool::Sqlite { read, search, write, file }
            }
            Some("postgres" | "postgresql") => {
                let options = PgConnectOptions::from_str(url)?.application_name("tidepool");
                let pool = |limit: Duration| {
                    let settings = link::settings(limit);
                    PgPoolOptions::new()
                        // sqlx's own test has no timeout.
                        .test_before_acquire(false)
                        .before_acquire(move |connection, _| {
                            Box::pin(async move { link::ping(connection, limits.ping).await.map(|()| true) })
                        })
                        .after_connect(move |connection, _| {
                            let settings = AssertSqlSafe(settings.clone());
                            Box::pin(async move { sqlx::raw_sql(settings).execute(connection).await.map(drop) })
                        })
                };
                let search = pool(limits.search).max_connections(SEARCHERS).acquire_timeout(SEARCH_ACQUIRE);
                let search = search.idle_timeout(Duration::from_secs(60)).connect_lazy_with(options.clone());
                let pool = pool(limits.read).max_connections(POSTGRES_CONNECTIONS).acquire_timeout(ACQUIRE);
                Pool::Postgres { pool: pool.connect_with(options).await?, search }
            }
            _ => return Err(Error::Url),
        };
        Ok(Db::of(pool, NOTICES, limits))
    }

    /// The same database without a timeout for reads, for background work. They end early only when their future is
    /// dropped.
    pub fn without_limit(&self) -> Db {
        Db { may_take_long: true, ..self.clone() }
    }

    /// Opens a SQLite file that nobody writes to, read-only. It creates no side files and changes nothing.
    pub async fn look_into(file: &std::path::Path) -> Result<Db> {
        let options = SqliteConnectOptions::new().filename(file).read_only(true).immutable(true);
        let read = SqlitePoolOptions::new().max_connections(1).connect_with(options).await?;
        let pool = Pool::Sqlite { write: read.clone(), search: read.clone(), read, file: file.to_owned() };
        Ok(Db { may_take_long: true, ..Db::of(pool, 1, Limits::default()) })
    }

    fn of(pool: Pool, notices: usize, limits: Limits) -> Db {
        Db {
            pool,
            notices: broadcast::channel(notices).0,
            relaying: watch::Sender::new(false),
            waiting: Arc::default(),
            heartbeats: Heartbeats::default(),
            limits,
            may_take_long: false,
            days_pending: Arc::default(),
        }
    }

    /// Whether the daily sums are still those of another zone. Until they are rebuilt, queries use the sums by quarters
    /// of an hour.
    pub fn days_pending(&self) -> bool {
        self.days_pending.load(Ordering::Relaxed)
    }

    pub(crate) fn set_days_pending(&self, pending: bool) {
        self.days_pending.store(pending, Ordering::Relaxed);
    }

    pub fn dialect(&self) -> Dialect {
        match self.pool {
            Pool::Sqlite { .. } => Dialect::Sqlite,
            Pool::Postgres { .. } => Dialect::Postgres,
        }
    }

    /// The file of a SQLite database.
    pub fn file(&self) -> Option<&std::path::Path> {
        match &self.pool {
            Pool::Sqlite { file, .. } => Some(file),
            Pool::Postgres { .. } => None,
        }
    }

    /// Connections open and idle, for the metrics.
    pub fn connections(&self) -> (u32, usize) {
        match &self.pool {
            Pool::Sqlite { read, search, write, .. } => {
                (read.size() + search.size() + write.size(), read.num_idle() + search.num_idle() + write.num_idle())
            }
            Pool::Postgres { pool, search } => (pool.size() + search.size(), pool.num_idle() + search.num_idle()),
        }
    }

    /// Transactions that wait for SQLite's one writer, for the metrics; always 0 on PostgreSQL.
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
            Pool::Postgres { pool, .. } => {
                let mut link = Link::take(pool, self.limits).await?;
                link.begin().await?;
                On::Postgres(link)
            }
        };
        Ok(Tx { on, announced: vec![], notices: self.notices.clone(), days_pending: self.days_pending.clone() })
    }

    /// PostgreSQL's own pool, for listening.
    pub(crate) fn postgres(&self) -> Option<&PgPool> {
        match &self.pool {
            Pool::Sqlite { .. } => None,
            Pool::Postgres { pool, .. } => Some(pool),
        }
    }

    /// Waits until every connection is returned to its pool, and closes them.
    pub async fn close(&self) {
        match &self.pool {
            Pool::Sqlite { read, search, write, .. } => {
                read.close().await;
                search.close().await;
                write.close().await;
            }
            Pool::Postgres { pool, search } => {
                search.close().await;
                pool.close().await;
            }
        }
    }
}

/// Counts a transaction as waiting until this value is dropped.
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

/// Opens a pool on a SQLite file that other processes may be opening too. While one of them enables or recovers the
/// write-ahead log, the others fail with "locked" at once, despite the busy timeout. So we retry.
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

/// A transaction. It is rolled back if it is dropped without `commit`.
pub struct Tx {
    on: On,
    /// Notices to send within this process after the commit (SQLite only).
    announced: Vec<Notice>,
    notices: broadcast::Sender<Notice>,
    days_pending: Arc<AtomicBool>,
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

    /// Untyped rows, for callers that do not know the columns in advance.
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

    /// Sets another timeout for each further statement of this transaction, and for its commit. For work whose duration
    /// grows with the tables, or that waits for another process that does such work.
    pub async fn may_take(&mut self, limit: Duration) -> Result<()> {
        if let On::Postgres(link) = &mut self.on {
            link.limit = limit;
            let sql = "SELECT set_config('statement_timeout', ?, true)";
            self.run(sql, args![limit.as_millis().to_string()]).await?;
        }
        Ok(())
    }

    /// Lets this transaction be idle for this long, while the caller waits for something other than this database.
    pub async fn may_idle(&mut self, time: Duration) -> Result<()> {
        if self.dialect() == Dialect::Postgres {
            let time = format!("{}s", time.as_secs());
            let sql = "SELECT set_config('idle_in_transaction_session_timeout', ?, true)";
            self.run(sql, args![time]).await?;
        }
        Ok(())
    }

    /// Sends a notice to the listeners in every process, after this transaction is committed.
    pub async fn notify(&mut self, notice: Notice) -> Result<()> {
        match self.dialect() {
            Dialect::Sqlite => self.announced.push(notice),
            Dialect::Postgres => {
                self.run("SELECT pg_notify(?, ?)", args![CHANNEL, notice.to_text()]).await?;
            }
        }
        Ok(())
    }

    /// Undoes everything, and returns once its rows are unlocked. A transaction that is dropped is rolled back a moment
    /// later.
    pub async fn rollback(self) -> Result<()> {
        match self.on {
            On::Sqlite(t) => Ok(t.rollback().await?),
            On::Postgres(link) => link.rollback().await,
        }
    }

    pub async fn commit(self) -> Result<()> {
        match self.on {
            On::Sqlite(t) => t.commit().await?,
            On::Postgres(link) => link.commit().await?,
        }
        for notice in self.announced {
            // Sending fails only if there is no listener.
            self.notices.send(notice).ok();
        }
        Ok(())
    }
}

/// The file of a `sqlite:` URL: everything after `sqlite:` or `sqlite://`.
pub fn sqlite_path(url: &str) -> Option<&str> {
    let path = url.strip_prefix("sqlite://").or_else(|| url.strip_prefix("sqlite:"))?;
    Some(path).filter(|p| !p.is_empty() && !p.contains(":memory:"))
}
