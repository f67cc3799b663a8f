//! Reads of SQLite with a limit. A statement that takes too long, or that nobody waits for any more, is ended at the database itself:
//! a request that its client gave up must not keep a connection from the others. For PostgreSQL `link` does the same.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sqlx::pool::PoolConnection;
use sqlx::{Sqlite, SqliteConnection, SqlitePool};

/// Instructions of SQLite's machine between two looks at the clock: some ten microseconds.
const INSTRUCTIONS: i32 = 1000;

/// A connection of SQLite whose statement ends when this is dropped, or when its time is over.
pub(crate) struct SqliteReader {
    connection: PoolConnection<Sqlite>,
    ended: Arc<AtomicBool>,
}

pub(crate) async fn sqlite(pool: &SqlitePool, limit: Option<Duration>) -> sqlx::Result<SqliteReader> {
    let mut connection = pool.acquire().await?;
    let ended = Arc::new(AtomicBool::new(false));
    let (is_ended, until) = (ended.clone(), limit.map(|limit| Instant::now() + limit));
    let goes_on = move || !is_ended.load(Ordering::Relaxed) && until.is_none_or(|until| Instant::now() < until);
    let locked = connection.lock_handle().await;
    if let Err(error) = locked.map(|mut handle| handle.set_progress_handler(INSTRUCTIONS, goes_on)) {
        connection.close_on_drop();
        return Err(error);
    }
    Ok(SqliteReader { connection, ended })
}

impl Deref for SqliteReader {
    type Target = SqliteConnection;
    fn deref(&self) -> &SqliteConnection {
        &self.connection
    }
}

impl DerefMut for SqliteReader {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.connection
    }
}

impl Drop for SqliteReader {
    fn drop(&mut self) {
        // The pool takes the connection back once the statement has ended.
        self.ended.store(true, Ordering::Relaxed);
    }
}
