//! The processes that serve this database. Each has a row with a lease, and all live ones have the same zone of days.

use jiff::Timestamp;

use crate::clock::MOST_SKEW;
use crate::db::Lock;
use crate::lease::{Now, Term};
use crate::{Db, Error, Result, Tx, args, record};

/// A process that serves.
#[derive(Clone, Copy, Debug)]
pub struct Replica<'a> {
    pub name: &'a str,
    pub zone: &'a str,
    pub version: &'a str,
    pub started_at: Timestamp,
}

record! { struct Other { zone: String } }

record! { struct Release { version: String } }

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

/// The version of a live process that does not know a step of the schema: it has another version than this one, or began
/// before the step was applied. Clocks may differ by as much as is not reported.
pub async fn without_step(tx: &mut Tx, version: &str, step: i64, now: Now) -> Result<Option<String>> {
    let (now, skew) = (now.sql(tx.dialect()), MOST_SKEW.as_millis());
    let sql = format!(
        "SELECT version FROM replica WHERE lease_until >= {now} AND (version <> ? \
         OR started_at < (SELECT applied_at FROM schema_step WHERE version = ?) - {skew}) ORDER BY version LIMIT 1"
    );
    let found: Option<Release> = tx.first(&sql, args![version, step]).await?;
    Ok(found.map(|found| found.version))
}
