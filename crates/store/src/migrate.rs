//! Brings the schema up to date: numbered steps, in one transaction, under a lock.
//!
//! A step that only adds begins with `-- oldest: N`: processes that know the schema up to N keep working with it, and
//! may start with it. So the replicas of an installation can be replaced one by one. `schema_step` stores N for
//! releases that do not know the step. Releases from before `schema_step` read only `schema_version` and refuse unknown
//! steps there, so a step that they can work with is not written there.

use jiff::{SignedDuration, Timestamp};

use crate::db::{Conn, Lock, Number};
use crate::link::LONGEST;
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
    (19, "usage_total", include_str!("../migrations/0019_usage_total.sql")),
    (20, "replica", include_str!("../migrations/0020_replica.sql")),
    (21, "queue", include_str!("../migrations/0021_queue.sql")),
    (22, "reconcile", include_str!("../migrations/0022_reconcile.sql")),
    (23, "chat_sender", include_str!("../migrations/0023_chat_sender.sql")),
    (24, "adopt", include_str!("../migrations/0024_adopt.sql")),
    (25, "runner", include_str!("../migrations/0025_runner.sql")),
    (26, "answer_owner", include_str!("../migrations/0026_answer_owner.sql")),
    (27, "upstream", include_str!("../migrations/0027_upstream.sql")),
    (28, "departments", include_str!("../migrations/0028_departments.sql")),
    (30, "provider", include_str!("../migrations/0030_provider.sql")),
    (29, "request_detail", include_str!("../migrations/0029_request_detail.sql")),
    (31, "model", include_str!("../migrations/0031_model.sql")),
];

/// What a step made useless, although older processes still use it. The first start a week after the step removes it: by
/// then a rolling upgrade is over. From then on older binaries refuse to start.
const REMOVALS: &[(i64, &str)] = &[(22, "DROP TABLE IF EXISTS debt")];
const ROLLING: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The schema version that this binary knows.
pub fn known() -> i64 {
    STEPS.last().map_or(0, |(version, _, _)| *version)
}

record! { struct Applied { version: i64, oldest: i64, applied_at: Timestamp } }

/// Every applied step, with the oldest version that works with it (by default its own).
const APPLIED: &str = "SELECT v.version AS version, COALESCE(s.oldest, v.version) AS oldest, \
    COALESCE(s.applied_at, v.applied_at) AS applied_at FROM schema_version v LEFT JOIN schema_step s ON s.version = v.version \
    UNION SELECT version, oldest, applied_at FROM schema_step";

/// How often a migration is tried that deadlocks with a process of an older release.
const TRIES: usize = 5;

/// Runs the missing steps; returns the versions that were applied. Several processes may run it at once.
pub async fn run(db: &Db) -> Result<Vec<i64>> {
    for _ in 1..TRIES {
        match run_once(db).await {
            Err(error @ Error::Contended(_)) => tracing::warn!(%error, "the migration is tried again"),
            other => return other,
        }
    }
    run_once(db).await
}

async fn run_once(db: &Db) -> Result<Vec<i64>> {
    if let Some(done) = applied(db).await? {
        refuse_newer(&done)?;
        if STEPS.iter().all(|(version, ..)| has(&done, *version)) && due_removals(&done).is_empty() {
            return Ok(vec![]);
        }
    }
    let mut tx = db.begin().await?;
    // A step may fill a column of a large table or build an index, and a second process waits for all steps.
    tx.may_take(LONGEST).await?;
    tx.lock(Lock::Migrate).await?;
    tx.script(
        "CREATE TABLE IF NOT EXISTS schema_version (version {int} NOT NULL PRIMARY KEY, name {text} NOT NULL, applied_at {int} NOT NULL);
         CREATE TABLE IF NOT EXISTS schema_step (version {int} NOT NULL PRIMARY KEY, name {text} NOT NULL, oldest {int} NOT NULL, applied_at {int} NOT NULL)",
    )
    .await?;
    let done: Vec<Applied> = tx.all(APPLIED, args![]).await?;
    refuse_newer(&done)?;
    let newest: Option<Number> =
        tx.first("SELECT MAX(version) AS n FROM schema_version HAVING COUNT(*) > 0", args![]).await?;
    let mut seen_by_all = newest.map_or(0, |newest| newest.n);
    let mut applied = vec![];
    for (version, name, sql) in STEPS {
        if has(&done, *version) {
            continue;
        }
        tx.script(sql).await?;
        let (oldest, now) = (oldest(*version, sql), Timestamp::now());
        let step = "INSERT INTO schema_step (version, name, oldest, applied_at) VALUES (?, ?, ?, ?)";
        tx.run(step, args![*version, *name, oldest, now]).await?;
        if oldest > seen_by_all {
            let step = "INSERT INTO schema_version (version, name, applied_at) VALUES (?, ?, ?)";
            tx.run(step, args![*version, *name, now]).await?;
            seen_by_all = *version;
        }
        applied.push(*version);
    }
    let is_new = done.is_empty();
    let done: Vec<Applied> = tx.all(APPLIED, args![]).await?;
    let removals = if is_new { REMOVALS.iter().collect() } else { due_removals(&done) };
    for (version, sql) in removals {
        tx.script(sql).await?;
        tx.run("UPDATE schema_step SET oldest = version WHERE version = ?", args![*version]).await?;
        // Where older binaries read the version.
        let step = "INSERT INTO schema_version (version, name, applied_at) SELECT version, name, applied_at FROM schema_step \
            WHERE version = ? ON CONFLICT (version) DO NOTHING";
        tx.run(step, args![*version]).await?;
    }
    tx.commit().await?;
    // Only after a change of an existing schema: a process that waited for another one's migration has changed nothing, and must not end
    // the sessions of those that start at the same time.
    if db.dialect() == Dialect::Postgres
        && !is_new
        && !applied.is_empty()
        && let Err(error) = end_idle_sessions(db).await
    {
        tracing::warn!(%error, "sessions of older processes go on: some of their statements may fail for a while");
    }
    Ok(applied)
}

/// How long to wait for busy sessions, and how often to check them.
const BUSY: std::time::Duration = std::time::Duration::from_secs(5);
const LOOK: std::time::Duration = std::time::Duration::from_millis(100);

/// Ends other processes' sessions: idle ones at once, busy ones when they become idle. PostgreSQL refuses statements
/// that were prepared before a table changed ("cached plan must not change result type"), and releases before this one
/// keep such sessions for half an hour. They notice the closed connection before they use it, and open another. A
/// session that listens or holds an advisory lock has no such statements, so it is left alone.
async fn end_idle_sessions(db: &Db) -> Result<()> {
    let changed = crate::clock::now(db).await?.as_millisecond();
    let sql = format!(
        "SELECT CAST(COALESCE(SUM(CASE WHEN a.state <> 'idle' THEN 1 WHEN pg_terminate_backend(a.pid) THEN 0 ELSE 0 END), 0) AS BIGINT) AS n \
         FROM pg_stat_activity a WHERE a.datname = current_database() AND a.usename = current_user AND a.application_name = 'tidepool' \
         AND a.pid <> pg_backend_pid() AND a.backend_start < to_timestamp({changed} / 1000.0) AND a.query NOT LIKE 'LISTEN%' \
         AND NOT EXISTS (SELECT 1 FROM pg_locks l WHERE l.pid = a.pid AND l.locktype = 'advisory')"
    );
    let until = tokio::time::Instant::now() + BUSY;
    loop {
        let busy: Number = Conn::from(db).one(&sql, args![]).await?;
        if busy.n == 0 || tokio::time::Instant::now() > until {
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// The newest applied version; `None` for a database without a schema. Fails for a version that this binary cannot work
/// with.
pub async fn version(db: &Db) -> Result<Option<i64>> {
    let Some(done) = applied(db).await? else { return Ok(None) };
    refuse_newer(&done)?;
    Ok(done.iter().map(|step| step.version).max())
}

async fn applied(db: &Db) -> Result<Option<Vec<Applied>>> {
    if !exists(db, "schema_version").await? {
        return Ok(None);
    }
    if exists(db, "schema_step").await? {
        return db.all(APPLIED, args![]).await.map(Some);
    }
    db.all("SELECT version, version AS oldest, applied_at FROM schema_version", args![]).await.map(Some)
}

async fn exists(db: &Db, table: &str) -> Result<bool> {
    let sql = match db.dialect() {
        Dialect::Sqlite => "SELECT COUNT(*) AS n FROM sqlite_master WHERE type = 'table' AND name = ?",
        Dialect::Postgres => {
            "SELECT COUNT(*) AS n FROM information_schema.tables WHERE table_schema = current_schema() AND table_name = ?"
        }
    };
    let found: Number = Conn::from(db).one(sql, args![table]).await?;
    Ok(found.n > 0)
}

/// The removals whose step was applied a week ago, and that were not made yet.
fn due_removals(done: &[Applied]) -> Vec<&'static (i64, &'static str)> {
    let is_due = |version: i64| {
        let step = done.iter().find(|step| step.version == version);
        step.is_some_and(|step| step.oldest < version && Timestamp::now().duration_since(step.applied_at) >= ROLLING)
    };
    REMOVALS.iter().filter(|(version, _)| is_due(*version)).collect()
}

fn has(done: &[Applied], version: i64) -> bool {
    done.iter().any(|step| step.version == version)
}

/// The oldest version that works with a step: its own, unless its first line names another.
fn oldest(version: i64, sql: &str) -> i64 {
    let first = sql.lines().next().and_then(|line| line.strip_prefix("-- oldest: "));
    first.and_then(|number| number.trim().parse().ok()).unwrap_or(version)
}

/// Fails if a newer binary applied a step that this one cannot work with.
fn refuse_newer(done: &[Applied]) -> Result<()> {
    let known = known();
    match done.iter().find(|step| step.version > known && step.oldest > known) {
        Some(step) => Err(Error::Newer { found: step.version, known }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_with_the_oldest_version_only_adds() {
        for (version, name, sql) in STEPS {
            let oldest = oldest(*version, sql);
            assert!(oldest <= *version, "{version} {name}");
            if oldest == *version {
                continue;
            }
            let bare: String =
                sql.lines().map(|line| line.split("--").next().unwrap_or_default()).collect::<Vec<_>>().join(" ");
            for statement in bare.split(';').map(str::trim).filter(|statement| !statement.is_empty()) {
                let allowed =
                    ["CREATE TABLE ", "CREATE INDEX ", "CREATE UNIQUE INDEX ", "ALTER TABLE ", "UPDATE ", "INSERT "];
                assert!(allowed.iter().any(|begin| statement.starts_with(begin)), "{version} {name}: {statement}");
                if statement.starts_with("ALTER TABLE ") {
                    assert!(statement.contains(" ADD COLUMN "), "{version} {name}: {statement}");
                    let filled = !statement.contains("NOT NULL") || statement.contains("DEFAULT");
                    assert!(filled, "{version} {name}: older processes do not name the column: {statement}");
                }
            }
        }
    }
}
