//! A connection to PostgreSQL on which nothing is waited for without an end.
//!
//! A database that fails over, a firewall that forgets, a cable that is pulled: none of them closes a connection, and the kernel tries
//! for a quarter of an hour. So every answer has a limit on our side, and a connection that does not answer is discarded. sqlx would
//! give it back to its pool, and wait for its answer there: with the connection's place in the pool, for ever.

use std::io;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnection, PgPool};
use sqlx::{Connection as _, Postgres};
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use crate::{Error, Result};

/// How long an answer of PostgreSQL is waited for.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// A statement, a commit. Shorter than what makes a loop count as dead, and longer than what any statement needs; a transaction
    /// that needs longer says so (`Tx::set_limit`).
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
            statement: Duration::from_secs(30),
            ping: Duration::from_secs(3),
            release: Duration::from_secs(10),
            probe_every: Duration::from_secs(10),
            probe: Duration::from_secs(5),
        }
    }
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
}

impl Link {
    pub async fn take(pool: &PgPool, limits: Limits) -> Result<Link> {
        let connection = Some(pool.acquire().await?);
        Ok(Link { connection, limit: limits.statement, release: limits.release, in_transaction: false })
    }

    /// The connection itself, for a statement whose answer goes through `heard`.
    pub fn live(&mut self) -> Result<&mut PgConnection> {
        match &mut self.connection {
            Some(connection) => Ok(&mut *connection),
            None => Err(Error::Unreachable(silent(self.limit))),
        }
    }

    /// Takes an answer, or its absence: then the connection is discarded.
    pub fn heard<T>(&mut self, answer: std::result::Result<sqlx::Result<T>, Elapsed>) -> Result<T> {
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
        runtime.spawn(async move {
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
