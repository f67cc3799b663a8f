//! What processes were granted of quotas and have not yet written into the request log.
//!
//! A subject's use is what the log says plus what is granted. The loader of the log takes a row's use off its grant in
//! the transaction that writes the row, so nothing is counted twice and nothing is missed.

use jiff::Timestamp;

use crate::db::Number;
use crate::{Conn, Db, Result, Tx, args};

/// What all processes were granted of a subject.
pub async fn granted(conn: impl Into<Conn<'_>>, subject: &str) -> Result<i64> {
    let sql = "SELECT CAST(COALESCE(SUM(granted), 0) AS BIGINT) AS n FROM quota_grant WHERE subject = ?";
    let number: Number = conn.into().one(sql, args![subject]).await?;
    Ok(number.n)
}

/// Adds to (or, below 0, takes off) what a process was granted.
pub async fn add(tx: &mut Tx, subject: &str, replica: &str, amount: i64, at: Timestamp) -> Result<()> {
    let sql = "INSERT INTO quota_grant (subject, replica, granted, updated_at) VALUES (?, ?, ?, ?) ON CONFLICT (subject, replica) \
        DO UPDATE SET granted = quota_grant.granted + excluded.granted, updated_at = excluded.updated_at";
    tx.run(sql, args![subject, replica, amount, at]).await.map(drop)
}

/// Takes off what the log has taken in. Where there is no grant any more, none is made.
pub async fn take(tx: &mut Tx, subject: &str, replica: &str, used: i64, at: Timestamp) -> Result<()> {
    let sql = "UPDATE quota_grant SET granted = granted - ?, updated_at = ? WHERE subject = ? AND replica = ?";
    tx.run(sql, args![used, at, subject, replica]).await.map(drop)
}

/// Forgets all that a process was granted: it has begun anew, and its log is loaded.
pub async fn forget(db: &Db, replica: &str) -> Result<u64> {
    db.run("DELETE FROM quota_grant WHERE replica = ?", args![replica]).await
}

/// Forgets what was granted and not touched since.
pub async fn forget_before(db: &Db, before: Timestamp) -> Result<u64> {
    db.run("DELETE FROM quota_grant WHERE updated_at < ?", args![before]).await
}
