//! How much of each segment file of the embedded gateway's log is loaded into the request log.

use jiff::Timestamp;

use crate::db::Number;
use crate::{Conn, Db, Result, Tx, args};

/// How many bytes of a segment are loaded.
pub async fn loaded(conn: impl Into<Conn<'_>>, id: &str) -> Result<i64> {
    let row: Option<Number> = conn.into().first("SELECT loaded AS n FROM log_segment WHERE id = ?", args![id]).await?;
    Ok(row.map_or(0, |r| r.n))
}

/// Records it in the transaction that writes the rows, so that each row is loaded once.
pub async fn set(tx: &mut Tx, id: &str, replica: &str, loaded: i64, at: Timestamp) -> Result<()> {
    let sql = "INSERT INTO log_segment (id, replica, loaded, updated_at) VALUES (?, ?, ?, ?) \
        ON CONFLICT (id) DO UPDATE SET loaded = excluded.loaded, updated_at = excluded.updated_at";
    tx.run(sql, args![id, replica, loaded, at]).await.map(drop)
}

/// Deletes the record of a segment whose file is removed.
pub async fn delete(db: &Db, id: &str) -> Result<()> {
    db.run("DELETE FROM log_segment WHERE id = ?", args![id]).await.map(drop)
}

/// Deletes the records of all segments of a process whose folder is removed.
pub async fn forget(db: &Db, replica: &str) -> Result<u64> {
    db.run("DELETE FROM log_segment WHERE replica = ?", args![replica]).await
}
