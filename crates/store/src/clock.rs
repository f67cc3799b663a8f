//! The database's clock, and the skew of ours. Leases use only the database's clock, because the clocks of machines
//! differ.

use base::Clock;
use jiff::{SignedDuration, Timestamp};

use crate::{Conn, Db, Dialect, Result, args, record};

/// A larger skew is reported: what one machine writes as past is in the future for another.
pub const MOST_SKEW: SignedDuration = SignedDuration::from_secs(5);

record! {
    struct Now { now: Timestamp }
}

/// The database's current time.
pub async fn now(conn: impl Into<Conn<'_>>) -> Result<Timestamp> {
    let conn = conn.into();
    let sql = format!("SELECT {} AS now", conn.dialect().now_ms());
    let row: Now = conn.one(&sql, args![]).await?;
    Ok(row.now)
}

/// How far this machine's clock is ahead of the database's; negative if it is behind. Always zero on SQLite, which uses
/// this machine's clock.
pub async fn skew(db: &Db, clock: &Clock) -> Result<SignedDuration> {
    if db.dialect() == Dialect::Sqlite {
        return Ok(SignedDuration::ZERO);
    }
    let before = clock.now();
    let there = now(db).await?;
    let took = clock.now().duration_since(before);
    Ok((before + took / 2).duration_since(there))
}

/// A message if the skew is too large.
pub fn excess(skew: SignedDuration) -> Option<String> {
    let (seconds, side) = (skew.abs().as_secs(), if skew.is_negative() { "behind" } else { "ahead of" });
    (skew.abs() > MOST_SKEW).then(|| format!("this machine's clock is {seconds} s {side} the database's"))
}
