//! Grants: parts of quotas that processes may use and have not yet written to the request log.
//!
//! A subject's usage is the sum of its log rows and its grants. The loader of the log subtracts a row's usage from its
//! grant in the transaction that writes the row, so that nothing is counted twice or missed.

use jiff::Timestamp;

use crate::db::Number;
use crate::{Conn, Db, Result, Tx, args};

/// The sum of all processes' grants of a subject.
pub async fn granted(conn: impl Into<Conn<'_>>, subject: &str) -> Result<i64> {
    let sql = "SELECT CAST(COALESCE(SUM(granted), 0) AS BIGINT) AS n FROM quota_grant WHERE subject = ?";
    let number: Number = conn.into().one(sql, args![subject]).await?;
    Ok(number.n)
}

/// Adds `amount` to the grant of a process; a negative amount reduces it.
pub async fn add(tx: &mut Tx, subject: &str, replica: &str, amount: i64, at: Timestamp) -> Result<()> {
    let sql = "INSERT INTO quota_grant (subject, replica, granted, updated_at) VALUES (?, ?, ?, ?) ON CONFLICT (subject, replica) \
        DO UPDATE SET granted = quota_grant.granted + excluded.granted, updated_at = excluded.updated_at";
    tx.run(sql, args![subject, replica, amount, at]).await.map(drop)
}

/// Reduces a grant by what was written to the log. Does nothing if the grant no longer exists.
pub async fn take(tx: &mut Tx, subject: &str, replica: &str, used: i64, at: Timestamp) -> Result<()> {
    let sql = "UPDATE quota_grant SET granted = granted - ?, updated_at = ? WHERE subject = ? AND replica = ?";
    tx.run(sql, args![used, at, subject, replica]).await.map(drop)
}

/// Deletes the grants of a process that has ended or restarted and whose log is loaded.
pub async fn forget(db: &Db, replica: &str) -> Result<u64> {
    db.run("DELETE FROM quota_grant WHERE replica = ?", args![replica]).await
}

/// Deletes grants that were not changed since `before`.
pub async fn forget_before(db: &Db, before: Timestamp) -> Result<u64> {
    db.run("DELETE FROM quota_grant WHERE updated_at < ?", args![before]).await
}
