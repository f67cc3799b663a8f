//! A connection to PostgreSQL on which every wait has a timeout, and abandoned statements are cancelled.
//!
//! A failover, a firewall that drops its state, or a pulled cable closes no connection, and the kernel retries for a
//! quarter of an hour. So every response has a timeout on our side, and a connection that does not respond is
//! discarded. sqlx would return it to its pool and wait there for the response without a timeout, so that its place in
//! the pool would be lost. A statement whose request was abandoned is ended at the database, so that other requests can
//! use the connection.

use std::io;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnection, PgPool};
use sqlx::{Connection as _, Postgres};
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use crate::{Error, Result};

/// Timeouts of statements and of PostgreSQL's responses, and how much a search reads.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// After this time the database itself ends a statement (PostgreSQL, including writes and waits for locks) or a
    /// read (SQLite).
    pub read: Duration,
    /// The same for a text search.
    pub search: Duration,
    /// Rows of a log that a text search reads; each has some hundred bytes.
    pub log_rows: i64,
    /// Messages that a text search reads; each has some kilobytes. That covers all of a user on one instance, where
    /// 5,000 are kept.
    pub message_rows: i64,
    /// For the response to a statement or a commit. It is shorter than the time after which a loop counts as dead, and
    /// longer than `read`. A transaction that needs longer calls `Tx::may_take`.
    pub statement: Duration,
    /// For testing a connection of the pool before its use: an idle one may be dead.
    pub ping: Duration,
    /// For returning a connection to the pool, including a rollback.
    pub release: Duration,
    /// How often a probe is sent to our own LISTEN, and how long it may take: without one, a dead connection looks like
    /// a quiet one.
    pub probe_every: Duration,
    pub probe: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            read: Duration::from_secs(20),
            search: Duration::from_secs(5),
            log_rows: 200_000,
            message_rows: 20_000,
            statement: Duration::from_secs(30),
            ping: Duration::from_secs(3),
            release: Duration::from_secs(10),
            probe_every: Duration::from_secs(10),
            probe: Duration::from_secs(5),
        }
    }
}

/// The timeout for maintenance whose duration grows with the tables.
pub(crate) const LONGEST: Duration = Duration::from_secs(3600);

/// When PostgreSQL ends one of our sessions that is silent. A process frozen within a transaction would keep its rows
/// locked and block every other replica; a machine that is gone would keep its locks for two hours. Within a
/// transaction we wait only for this database, so ten seconds are plenty. Set after connecting, because a pooler would
/// refuse these as connection options.
pub(crate) const PATIENCE: &str = "SET idle_in_transaction_session_timeout = '10s'; \
    SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3";

/// The settings of every connection of a pool. The server also checks once a second whether the client of a running
/// statement is still connected. PostgreSQL before 14 lacks that setting and relies on the timeout alone.
pub(crate) fn settings(limit: Duration) -> String {
    format!(
        "{PATIENCE}; SET statement_timeout = {}; SELECT set_config(name, '1s', false) FROM pg_settings \
         WHERE name = 'client_connection_check_interval'",
        limit.as_millis()
    )
}

/// Tests a connection, with a timeout.
pub(crate) async fn ping(connection: &mut PgConnection, limit: Duration) -> sqlx::Result<()> {
    timeout(limit, connection.ping()).await.unwrap_or_else(|_| Err(silent(limit)))
}

/// The error of a connection that did not respond.
pub(crate) fn silent(limit: Duration) -> sqlx::Error {
    let said = format!("no answer within {} s: the connection is discarded", limit.as_secs_f32());
    sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, said))
}

/// A connection of the pool, for one statement or one transaction.
pub(crate) struct Link {
    /// `None` once it was discarded.
    connection: Option<PoolConnection<Postgres>>,
    /// The timeout for each response.
    pub limit: Duration,
    release: Duration,
    in_transaction: bool,
    /// A statement was sent whose response has not arrived.
    is_busy: bool,
    /// For cancelling an abandoned search: its server process, and a pool to send the cancellation on.
    cancel: Option<(i32, PgPool)>,
}

impl Link {
    pub async fn take(pool: &PgPool, limits: Limits) -> Result<Link> {
        let connection = Some(pool.acquire().await?);
        let (limit, release) = (limits.statement, limits.release);
        Ok(Link { connection, limit, release, in_transaction: false, is_busy: false, cancel: None })
    }

    /// For a search. Many are abandoned, so this reads the id of its server process; a connection of `others` can then
    /// cancel it at once.
    pub async fn for_search(pool: &PgPool, others: &PgPool, limits: Limits) -> Result<Link> {
        let mut link = Link::take(pool, limits).await?;
        let asked = sqlx::query_scalar("SELECT pg_backend_pid()");
        let answer = timeout(link.limit, asked.fetch_one(link.live()?)).await;
        link.cancel = Some((link.heard(answer)?, others.clone()));
        Ok(link)
    }

    /// For a read that may take long.
    pub async fn without_limit(pool: &PgPool, limits: Limits) -> Result<Link> {
        let mut link = Link::take(pool, limits).await?;
        link.begin().await?;
        link.say("SET LOCAL statement_timeout = 0").await?;
        link.limit = LONGEST;
        Ok(link)
    }

    /// The connection itself, for a statement whose response is passed to `heard`.
    pub fn live(&mut self) -> Result<&mut PgConnection> {
        self.is_busy = true;
        match &mut self.connection {
            Some(connection) => Ok(&mut *connection),
            None => Err(Error::Unreachable(silent(self.limit))),
        }
    }

    /// Takes the response, or the timeout; after a timeout the connection is discarded.
    pub fn heard<T>(&mut self, answer: std::result::Result<sqlx::Result<T>, Elapsed>) -> Result<T> {
        self.is_busy = false;
        match answer {
            Ok(Err(error)) if is_stale_plan(&error) => {
                // Every statement that was prepared before the table changed would fail on this connection.
                self.discard();
                Err(Error::Contended(error))
            }
            Ok(answer) => Ok(answer?),
            Err(_) => {
                tracing::warn!(limit = ?self.limit, "PostgreSQL did not answer: the connection is discarded");
                self.discard();
                Err(Error::Unreachable(silent(self.limit)))
            }
        }
    }

    pub async fn begin(&mut self) -> Result<()> {
        // Set before the response arrives, so that a transaction whose response was lost is rolled back too.
        self.in_transaction = true;
        self.say("BEGIN").await
    }

    pub async fn commit(mut self) -> Result<()> {
        self.say("COMMIT").await?;
        self.in_transaction = false;
        Ok(())
    }

    pub async fn rollback(mut self) -> Result<()> {
        self.say("ROLLBACK").await?;
        self.in_transaction = false;
        Ok(())
    }

    async fn say(&mut self, sql: &'static str) -> Result<()> {
        let answer = timeout(self.limit, sqlx::raw_sql(sql).execute(self.live()?)).await;
        self.heard(answer).map(drop)
    }

    /// Closes the connection without notifying the server. Its place in the pool is free at once.
    fn discard(&mut self) {
        drop(self.connection.take().map(PoolConnection::detach));
    }
}

/// Whether a newer release has changed a table while this statement selects its columns with `*`.
fn is_stale_plan(error: &sqlx::Error) -> bool {
    let database = error.as_database_error();
    database.is_some_and(|e| e.code().as_deref() == Some("0A000") && e.message().contains("cached plan"))
}

impl Drop for Link {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            drop(connection.detach());
            return;
        };
        let (in_transaction, limit) = (self.in_transaction, self.release);
        let (is_busy, cancel) = (self.is_busy, self.cancel.take());
        runtime.spawn(async move {
            if is_busy && !end(&mut connection, cancel).await {
                // In the pool it would be busy until the statement ends. The server notices that the client is gone and
                // ends it.
                drop(connection.detach());
                return;
            }
            if in_transaction {
                let taken_back = timeout(limit, sqlx::raw_sql("ROLLBACK").execute(&mut *connection)).await;
                if !matches!(taken_back, Ok(Ok(_))) {
                    drop(connection.detach());
                    return;
                }
            }
            // This future owns the connection and its place in the pool; both are free after the timeout.
            timeout(limit, connection.return_to_pool()).await.ok();
        });
    }
}

/// How long an abandoned statement may take to end, by itself or once it is cancelled.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Ends an abandoned statement; returns whether its connection responds again. Until then the connection counts as in
/// use, so that abandoned statements cannot exceed the size of the pool.
async fn end(connection: &mut PgConnection, cancel: Option<(i32, PgPool)>) -> bool {
    if let Some((process, others)) = cancel {
        let cancelled = sqlx::query("SELECT pg_cancel_backend($1)").bind(process).execute(&others);
        timeout(LAST_WORDS, cancelled).await.ok();
    }
    matches!(timeout(LAST_WORDS, connection.ping()).await, Ok(Ok(())))
}
