//! Counters per time window, shared by all replicas.

use jiff::{SignedDuration, Timestamp};

use crate::{Conn, Db, Result, args, record};

record! {
    #[derive(Clone, Copy, Debug)]
    pub struct Window {
        pub window_start: Timestamp,
        pub hits: i64,
    }
}

/// The current window of `name`, if there is one.
pub async fn window(db: &Db, name: &str, length: SignedDuration, now: Timestamp) -> Result<Option<Window>> {
    let sql = "SELECT window_start, hits FROM throttle WHERE name = ? AND window_start > ?";
    db.first(sql, args![name, now - length]).await
}

/// Counts one hit and returns its window. If the last window is over, a new one begins.
pub async fn hit(db: &Db, name: &str, length: SignedDuration, now: Timestamp) -> Result<Window> {
    let sql = "INSERT INTO throttle (name, window_start, hits) VALUES (?, ?, 1) \
        ON CONFLICT (name) DO UPDATE SET \
            hits = CASE WHEN throttle.window_start > ? THEN throttle.hits + 1 ELSE 1 END, \
            window_start = CASE WHEN throttle.window_start > ? THEN throttle.window_start ELSE excluded.window_start END \
        RETURNING window_start, hits";
    let over = now - length;
    let mut tx = db.begin().await?;
    let window = Conn::from(&mut tx).one(sql, args![name, now, over, over]).await?;
    tx.commit().await?;
    Ok(window)
}

pub async fn clear(conn: impl Into<Conn<'_>>, name: &str) -> Result<()> {
    conn.into().run("DELETE FROM throttle WHERE name = ?", args![name]).await.map(drop)
}

/// Deletes windows that began before `before`.
pub async fn forget(conn: impl Into<Conn<'_>>, before: Timestamp) -> Result<u64> {
    conn.into().run("DELETE FROM throttle WHERE window_start < ?", args![before]).await
}
