//! A connection to PostgreSQL on which nothing is waited for without an end, and on which nothing runs that nobody waits for.
//!
//! A database that fails over, a firewall that forgets, a cable that is pulled: none of them closes a connection, and the kernel tries
//! for a quarter of an hour. So every answer has a limit on our side, and a connection that does not answer is discarded. sqlx would
//! give it back to its pool, and wait for its answer there: with the connection's place in the pool, for ever. A statement whose request
//! was given up is ended at the database, so that it does not keep the connection from the others.

use std::io;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnection, PgPool};
use sqlx::{Connection as _, Postgres};
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use crate::{Error, Result};

/// How long a statement may take, and how long an answer of PostgreSQL is waited for.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// After this the database itself ends a statement, a write and a wait for a lock included (PostgreSQL), or a read (SQLite).
    pub read: Duration,
    /// The same for a text search.
    pub search: Duration,
    /// Rows of a log that a text search looks through: some hundred bytes each.
    pub log_rows: i64,
    /// Messages that a text search looks through: some kilobytes each. Of one instance that is all, since 5,000 are kept.
    pub message_rows: i64,
    /// The answer to a statement or a commit. Shorter than what makes a loop count as dead, and longer than what the database lets any
    /// statement take; a transaction that needs longer says so (`Tx::may_take`).
    pub statement: Duration,
    /// A connection from the pool, before it is used: one that lay idle may be dead.
    pub ping: Duration,
    /// A connection that is given back, in the middle of whatever its user left.
    pub release: Duration,
    /// How often a notice is sent to ourselves, and how long it may take: a LISTEN that hears nothing looks like one that is dead.
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

/// For maintenance that is as long as the tables are.
pub(crate) const LONGEST: Duration = Duration::from_secs(3600);

/// When PostgreSQL gives up one of our sessions that says nothing. A process that is frozen in the middle of a transaction
/// would hold its rows for as long as it is frozen, and every other replica with them; a machine that is gone would hold its
/// locks for two hours. Nobody here waits for anything but this database inside a transaction, so ten seconds are long.
/// Said once connected: a pooler would refuse them as options of the connection.
pub(crate) const PATIENCE: &str = "SET idle_in_transaction_session_timeout = '10s'; \
    SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3";

/// The settings of every connection of a pool. The server also looks once a second whether the client of a
/// running statement is still there; releases before 14 do not know that setting and end it by the time limit alone.
pub(crate) fn settings(limit: Duration) -> String {
    format!(
        "{PATIENCE}; SET statement_timeout = {}; SELECT set_config(name, '1s', false) FROM pg_settings \
         WHERE name = 'client_connection_check_interval'",
        limit.as_millis()
    )
}

/// Answers within the limit, or not at all.
pub(crate) async fn ping(connection: &mut PgConnection, limit: Duration) -> sqlx::Result<()> {
    timeout(limit, connection.ping()).await.unwrap_or_else(|_| Err(silent(limit)))
}

/// The error of a connection that did not answer.
pub(crate) fn silent(limit: Duration) -> sqlx::Error {
    let said = format!("no answer within {} s: the connection is discarded", limit.as_secs_f32());
    sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, said))
}

/// A connection of the pool, for one statement or one transaction.
pub(crate) struct Link {
    /// `None` once it was discarded.
    connection: Option<PoolConnection<Postgres>>,
    /// For each answer.
    pub limit: Duration,
    release: Duration,
    in_transaction: bool,
    /// A statement was begun whose answer has not come.
    is_busy: bool,
    /// How an abandoned search is ended: its server process, and connections on which to say so.
    cancel: Option<(i32, PgPool)>,
}

impl Link {
    pub async fn take(pool: &PgPool, limits: Limits) -> Result<Link> {
        let connection = Some(pool.acquire().await?);
        let (limit, release) = (limits.statement, limits.release);
        Ok(Link { connection, limit, release, in_transaction: false, is_busy: false, cancel: None })
    }

    /// For a search, of which many are given up. The number of its process is asked for, so that `others` can end it at once.
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

    /// The connection itself, for a statement whose answer goes through `heard`.
    pub fn live(&mut self) -> Result<&mut PgConnection> {
        self.is_busy = true;
        match &mut self.connection {
            Some(connection) => Ok(&mut *connection),
            None => Err(Error::Unreachable(silent(self.limit))),
        }
    }

    /// Takes an answer, or its absence: then the connection is discarded.
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
        // Said before it is known: a transaction that was begun without our hearing of it is taken back, too.
        self.in_transaction = true;
        self.say("BEGIN").await
    }

    pub async fn commit(mut self) -> Result<()> {
        self.say("COMMIT").await?;
        self.in_transaction = false;
        Ok(())
    }

    async fn say(&mut self, sql: &'static str) -> Result<()> {
        let answer = timeout(self.limit, sqlx::raw_sql(sql).execute(self.live()?)).await;
        self.heard(answer).map(drop)
    }

    /// Closes the connection without a word to its other end. Its place in the pool is free at once.
    fn discard(&mut self) {
        drop(self.connection.take().map(PoolConnection::detach));
    }
}

/// A newer release has changed a table whose columns this statement names with a star.
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
                // Given back as it is, it would be busy until the statement has run to its end. The server looks for clients that are gone.
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
            // This future owns the connection and its place: both are free when its time is over.
            timeout(limit, connection.return_to_pool()).await.ok();
        });
    }
}

/// How long an abandoned statement may take to end by itself, or once it is cancelled.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Ends an abandoned statement; whether its connection answers again. Until then it counts as in use, so that however many are abandoned,
/// no more run.
async fn end(connection: &mut PgConnection, cancel: Option<(i32, PgPool)>) -> bool {
    if let Some((process, others)) = cancel {
        let cancelled = sqlx::query("SELECT pg_cancel_backend($1)").bind(process).execute(&others);
        timeout(LAST_WORDS, cancelled).await.ok();
    }
    matches!(timeout(LAST_WORDS, connection.ping()).await, Ok(Ok(())))
}
