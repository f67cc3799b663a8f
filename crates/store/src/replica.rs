//! The processes that serve this database. Each holds its row by a lease, and all that do have the same zone of days.

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

/// Joins the others, or stays among them. `OtherZone` where one of them that lives has another zone.
pub async fn join(db: &Db, replica: &Replica<'_>, term: Term) -> Result<()> {
    let mut tx = db.begin().await?;
    tx.lock(Lock::Replicas).await?;
    let (now, end) = (term.from.sql(tx.dialect()), term.end(tx.dialect()));
    // A lease that has four times as long to go as it may was written by a clock that was ahead, and binds nobody.
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

/// Leaves, so that nobody waits until its lease is over.
pub async fn leave(db: &Db, name: &str) -> Result<()> {
    db.run("DELETE FROM replica WHERE name = ?", args![name]).await.map(drop)
}
