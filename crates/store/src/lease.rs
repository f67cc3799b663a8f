//! Named leases: who may do what only one process does. A lease that is not renewed is anybody's once it has run out.

use jiff::Timestamp;

use crate::{Db, Result, args};

/// Takes or renews a lease. True while `holder` has it. One that has four times as long to go as it may was written by a clock that
/// was ahead, and binds nobody.
pub async fn hold(db: &Db, name: &str, holder: &str, now: Timestamp, until: Timestamp) -> Result<bool> {
    let sql = "INSERT INTO lease (name, holder, until) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE \
        SET holder = excluded.holder, until = excluded.until \
        WHERE lease.holder = excluded.holder OR lease.until < ? OR lease.until > ?";
    let longest = now + until.duration_since(now) * 4;
    Ok(db.run(sql, args![name, holder, until, now, longest]).await? == 1)
}

/// Gives a lease back, so that the next need not wait until it has run out.
pub async fn release(db: &Db, name: &str, holder: &str) -> Result<()> {
    db.run("DELETE FROM lease WHERE name = ? AND holder = ?", args![name, holder]).await.map(drop)
}
