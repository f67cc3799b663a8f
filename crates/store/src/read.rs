//! Reads of SQLite with a timeout. SQLite itself ends a statement that takes too long or whose future was dropped, so
//! that an abandoned request does not occupy a connection. For PostgreSQL `link` does the same.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sqlx::pool::PoolConnection;
use sqlx::{Sqlite, SqliteConnection, SqlitePool};

/// Instructions of SQLite's virtual machine between two checks of the clock: some ten microseconds.
const INSTRUCTIONS: i32 = 1000;

/// A connection to SQLite whose statement ends when this is dropped, or at its timeout.
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
        // This ends the statement; the connection returns to the pool after that.
        self.ended.store(true, Ordering::Relaxed);
    }
}
