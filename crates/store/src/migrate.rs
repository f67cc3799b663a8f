//! Brings the schema up to date: numbered steps, in one transaction, under a lock.

use crate::db::{Conn, Lock, Number};
use crate::{Db, Dialect, Error, Result, args, record};

/// Every step, in order. A step that was released is never changed.
pub const STEPS: &[(i64, &str, &str)] = &[
    (1, "account", include_str!("../migrations/0001_account.sql")),
    (2, "fleet", include_str!("../migrations/0002_fleet.sql")),
    (3, "marketplace", include_str!("../migrations/0003_marketplace.sql")),
    (4, "llm", include_str!("../migrations/0004_llm.sql")),
    (5, "host", include_str!("../migrations/0005_host.sql")),
    (6, "talk", include_str!("../migrations/0006_talk.sql")),
    (7, "clock", include_str!("../migrations/0007_clock.sql")),
    (8, "ends", include_str!("../migrations/0008_ends.sql")),
    (9, "quota", include_str!("../migrations/0009_quota.sql")),
    (10, "debt", include_str!("../migrations/0010_debt.sql")),
    (11, "touched", include_str!("../migrations/0011_touched.sql")),
    (12, "unix_user", include_str!("../migrations/0012_unix_user.sql")),
    (13, "pinned", include_str!("../migrations/0013_pinned.sql")),
    (14, "host_trust", include_str!("../migrations/0014_host_trust.sql")),
    (15, "cell", include_str!("../migrations/0015_cell.sql")),
    (16, "roles", include_str!("../migrations/0016_roles.sql")),
    (17, "second_factor", include_str!("../migrations/0017_second_factor.sql")),
    (18, "cell_written", include_str!("../migrations/0018_cell_written.sql")),
    (21, "queue", include_str!("../migrations/0021_queue.sql")),
];

/// The schema version that this binary knows.
pub fn known() -> i64 {
    STEPS.last().map_or(0, |(version, _, _)| *version)
}

record! { pub struct Applied { pub version: i64 } }

/// Runs what is missing; returns the versions that were applied. Safe to run by several processes at once.
pub async fn run(db: &Db) -> Result<Vec<i64>> {
    if version(db).await? == Some(known()) {
        return Ok(vec![]);
    }
    let mut tx = db.begin().await?;
    tx.lock(Lock::Migrate).await?;
    tx.script("CREATE TABLE IF NOT EXISTS schema_version (version {int} NOT NULL PRIMARY KEY, name {text} NOT NULL, applied_at {int} NOT NULL)")
        .await?;
    let done: Vec<Applied> = tx.all("SELECT version FROM schema_version", args![]).await?;
    refuse_newer(done.iter().map(|a| a.version).max())?;
    let mut applied = vec![];
    for (version, name, sql) in STEPS {
        if done.iter().any(|a| a.version == *version) {
            continue;
        }
        tx.script(sql).await?;
        let sql = "INSERT INTO schema_version (version, name, applied_at) VALUES (?, ?, ?)";
        tx.run(sql, args![*version, *name, jiff::Timestamp::now()]).await?;
        applied.push(*version);
    }
    tx.commit().await?;
    Ok(applied)
}

/// The newest applied version; `None` for a database that has no schema yet.
pub async fn version(db: &Db) -> Result<Option<i64>> {
    let exists = match db.dialect() {
        Dialect::Sqlite => "SELECT COUNT(*) AS n FROM sqlite_master WHERE type = 'table' AND name = 'schema_version'",
        Dialect::Postgres => {
            "SELECT COUNT(*) AS n FROM information_schema.tables WHERE table_schema = current_schema() AND table_name = 'schema_version'"
        }
    };
    let exists: Number = Conn::from(db).one(exists, args![]).await?;
    if exists.n == 0 {
        return Ok(None);
    }
    let newest: Option<Applied> =
        db.first("SELECT version FROM schema_version ORDER BY version DESC LIMIT 1", args![]).await?;
    let newest = newest.map(|a| a.version);
    refuse_newer(newest)?;
    Ok(newest)
}

fn refuse_newer(found: Option<i64>) -> Result<()> {
    match found {
        Some(found) if found > known() => Err(Error::Newer { found, known: known() }),
        _ => Ok(()),
    }
}
