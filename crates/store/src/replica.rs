//! The processes that serve this database. Each has a row with a lease, and all live ones have the same zone of days.

use jiff::Timestamp;

use crate::db::Lock;
use crate::lease::Term;
use crate::{Db, Error, Result, args, record};

/// A process that serves.
#[derive(Clone, Copy, Debug)]
pub struct Replica<'a> {
    pub name: &'a str,
    pub zone: &'a str,
    pub version: &'a str,
    pub started_at: Timestamp,
}

record! { struct Other { zone: String } }

/// Registers a process or renews its lease. Fails with `OtherZone` if a live process has another zone.
pub async fn join(db: &Db, replica: &Replica<'_>, term: Term) -> Result<()> {
    let mut tx = db.begin().await?;
    tx.lock(Lock::Replicas).await?;
    let (now, end) = (term.from.sql(tx.dialect()), term.end(tx.dialect()));
    // A lease that would last four times its length was written by a clock that was ahead, and is ignored.
    let lives = format!("lease_until BETWEEN {now} AND {now} + {}", 4 * term.length.as_millis());
    let others = format!("SELECT zone FROM replica WHERE zone <> ? AND name <> ? AND {lives} LIMIT 1");
    if let Some(Other { zone }) = tx.first(&others, args![replica.zone, replica.name]).await? {
        return Err(Error::OtherZone { ours: replica.zone.to_owned(), theirs: zone });
    }
    tx.run(&format!("DELETE FROM replica WHERE NOT ({lives})"), args![]).await?;
    let sql = format!(
        "INSERT INTO replica (name, zone, version, started_at, lease_until) VALUES (?, ?, ?, ?, {end}) \
         ON CONFLICT (name) DO UPDATE SET lease_until = excluded.lease_until"
    );
    tx.run(&sql, args![replica.name, replica.zone, replica.version, replica.started_at]).await?;
    tx.commit().await
}

/// Removes a process, so that others need not wait until its lease expires.
pub async fn leave(db: &Db, name: &str) -> Result<()> {
    db.run("DELETE FROM replica WHERE name = ?", args![name]).await.map(drop)
}
