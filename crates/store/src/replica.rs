//! The processes that serve this database. Each has a row with a lease, and all live ones have the same zone of days.

use std::cmp::Ordering;

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

record! {
    /// A live process, and when a step of the schema was applied.
    struct Live { version: String, started_at: Timestamp, applied_at: Option<Timestamp> }
}

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

/// The version of a live process that does not know a step of the schema, which this one knows: it is of an older release,
/// or of this one and began before the step was applied. Clocks may differ by as much as is not reported.
pub async fn without_step(tx: &mut Tx, version: &str, step: i64, now: Now) -> Result<Option<String>> {
    let sql = format!(
        "SELECT r.version AS version, r.started_at AS started_at, s.applied_at AS applied_at FROM replica r \
         LEFT JOIN schema_step s ON s.version = ? WHERE r.lease_until >= {} ORDER BY r.version",
        now.sql(tx.dialect())
    );
    let live: Vec<Live> = tx.all(&sql, args![step]).await?;
    let is_without = |live: &Live| match parts(&live.version).cmp(&parts(version)) {
        Ordering::Less => true,
        Ordering::Equal => live.applied_at.is_some_and(|applied_at| live.started_at < applied_at - MOST_SKEW),
        Ordering::Greater => false,
    };
    Ok(live.into_iter().find(is_without).map(|live| live.version))
}

/// The parts of a version in the order in which they count: a release comes after what was published before it. One that
/// cannot be read is older than any other.
fn parts(version: &str) -> Option<(Vec<u64>, bool, &str)> {
    let (version, _) = version.split_once('+').unwrap_or((version, ""));
    let (numbers, before) = version.split_once('-').unwrap_or((version, ""));
    let numbers = numbers.split('.').map(|number| number.parse().ok()).collect::<Option<Vec<u64>>>()?;
    Some((numbers, before.is_empty(), before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let ordered = ["dev", "0.0.9", "0.9.0", "0.10.0-rc.1", "0.10.0-rc.2", "0.10.0", "0.10.1", "1.0.0"];
        for (older, newer) in ordered.iter().zip(&ordered[1..]) {
            assert_eq!(parts(older).cmp(&parts(newer)), Ordering::Less, "{older} {newer}");
            assert_eq!(parts(newer).cmp(&parts(older)), Ordering::Greater, "{older} {newer}");
        }
        assert_eq!(parts("0.10.0+a").cmp(&parts("0.10.0+b")), Ordering::Equal);
        assert_eq!(parts(""), None);
    }
}
