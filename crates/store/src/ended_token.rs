//! Tokens that were ended by a logout. They are kept until they would have expired anyway.

use jiff::Timestamp;

use crate::row::Number;
use crate::{Conn, Result, args};

pub async fn end(conn: impl Into<Conn<'_>>, jti: &str, expires_at: Timestamp) -> Result<()> {
    let sql = "INSERT INTO ended_token (jti, expires_at) VALUES (?, ?) ON CONFLICT (jti) DO NOTHING";
    conn.into().run(sql, args![jti, expires_at]).await.map(drop)
}

/// Deletes the tokens that have expired.
pub async fn forget_expired(conn: impl Into<Conn<'_>>, now: Timestamp) -> Result<u64> {
    conn.into().run("DELETE FROM ended_token WHERE expires_at < ?", args![now]).await
}

/// 1 if this token was ended.
pub async fn is_ended(conn: impl Into<Conn<'_>>, jti: &str) -> Result<i64> {
    let ended: Number = conn.into().one("SELECT COUNT(*) AS n FROM ended_token WHERE jti = ?", args![jti]).await?;
    Ok(ended.n)
}
