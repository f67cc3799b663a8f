//! The database's clock, and how far ours is from it. Leases of several machines are measured by the database's alone.

use base::Clock;
use jiff::{SignedDuration, Timestamp};

use crate::{Conn, Db, Dialect, Result, args, record};

/// A clock that is farther off than this is reported: what one machine writes as past is future for another.
pub const MOST_SKEW: SignedDuration = SignedDuration::from_secs(5);

record! {
    struct Now { now: Timestamp }
}

/// The time by the database.
pub async fn now(conn: impl Into<Conn<'_>>) -> Result<Timestamp> {
    let conn = conn.into();
    let sql = format!("SELECT {} AS now", conn.dialect().now_ms());
    let row: Now = conn.one(&sql, args![]).await?;
    Ok(row.now)
}

/// How far this machine's clock is ahead of the database's; negative where it is behind. SQLite has no clock but this machine's.
pub async fn skew(db: &Db, clock: &Clock) -> Result<SignedDuration> {
    if db.dialect() == Dialect::Sqlite {
        return Ok(SignedDuration::ZERO);
    }
    let before = clock.now();
    let there = now(db).await?;
    let took = clock.now().duration_since(before);
    Ok((before + took / 2).duration_since(there))
}

/// Says how far off the clock is, where that is too far.
pub fn excess(skew: SignedDuration) -> Option<String> {
    let (seconds, side) = (skew.abs().as_secs(), if skew.is_negative() { "behind" } else { "ahead of" });
    (skew.abs() > MOST_SKEW).then(|| format!("this machine's clock is {seconds} s {side} the database's"))
}
