//! The ledger of automatic repairs. A unique index allows one running repair per instance.

use base::id::{InstanceId, TaskId};
use base::{Listing, Page, Sort};
use jiff::Timestamp;

use crate::conditions::Conditions;
use crate::db::{Number, Record as _};
use crate::{Conn, Db, Error, Result, Tx, args, record, retention, word};

word! {
    pub enum Status {
        Running = "running",
        Success = "success",
        Failed = "failed",
        /// No automatic action is allowed; an alert was raised.
        Alert = "alert",
    }
}

record! {
    #[derive(Clone, Debug)]
    pub struct Repair {
        pub id: i64,
        pub rule: String,
        pub instance_id: InstanceId,
        pub status: Status,
        pub before: String,
        pub action: String,
        pub after: String,
        pub task_id: Option<TaskId>,
        pub took_ms: i64,
        pub created_at: Timestamp,
    }
}

pub struct New<'a> {
    pub rule: &'a str,
    pub instance_id: &'a InstanceId,
    pub status: Status,
    pub before: &'a str,
    pub action: &'a str,
    pub after: &'a str,
    pub created_at: Timestamp,
}

/// Writes a repair; `None` if another is running for the instance.
pub async fn insert(tx: &mut Tx, new: &New<'_>) -> Result<Option<i64>> {
    let sql = "INSERT INTO repair (rule, instance_id, status, before, action, after, created_at, updated_at) \
        VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING id AS n";
    let args =
        args![new.rule, new.instance_id, new.status, new.before, new.action, new.after, new.created_at, new.created_at];
    match tx.first::<Number>(sql, args).await {
        Ok(row) => Ok(row.map(|row| row.n)),
        Err(Error::Taken) => Ok(None),
        Err(error) => Err(error),
    }
}

pub async fn set_task(tx: &mut Tx, id: i64, task: &TaskId) -> Result<()> {
    tx.run("UPDATE repair SET task_id = ? WHERE id = ?", args![task, id]).await.map(drop)
}

pub async fn set_took(tx: &mut Tx, id: i64, ms: i64) -> Result<()> {
    tx.run("UPDATE repair SET took_ms = ? WHERE id = ?", args![ms, id]).await.map(drop)
}

/// Writes the result of a repair. False if it had ended before.
pub async fn end(
    tx: &mut Tx,
    id: i64,
    status: Status,
    action: &str,
    after: &str,
    took_ms: i64,
    at: Timestamp,
) -> Result<bool> {
    let sql = "UPDATE repair SET status = ?, action = ?, after = ?, took_ms = ?, updated_at = ? \
        WHERE id = ? AND status = 'running'";
    Ok(tx.run(sql, args![status, action, after, took_ms, at, id]).await? == 1)
}

pub async fn find(conn: impl Into<Conn<'_>>, id: i64) -> Result<Option<Repair>> {
    conn.into().first(&format!("SELECT {} FROM repair WHERE id = ?", Repair::COLUMNS), args![id]).await
}

/// How many repairs of a rule were begun on an instance since then.
pub async fn count(tx: &mut Tx, instance: &InstanceId, rule: &str, since: Timestamp) -> Result<i64> {
    let sql =
        "SELECT COUNT(*) AS n FROM repair WHERE instance_id = ? AND rule = ? AND created_at > ? AND status <> 'alert'";
    let number: Number = Conn::from(tx).one(sql, args![instance, rule, since]).await?;
    Ok(number.n)
}

/// Whether the rule raised an alert for the instance since then.
pub async fn was_alerted(tx: &mut Tx, instance: &InstanceId, rule: &str, since: Timestamp) -> Result<bool> {
    let sql =
        "SELECT COUNT(*) AS n FROM repair WHERE instance_id = ? AND rule = ? AND created_at > ? AND status = 'alert'";
    let number: Number = Conn::from(tx).one(sql, args![instance, rule, since]).await?;
    Ok(number.n > 0)
}

/// Ends repairs whose task ended without writing a result: it was cancelled, or is dead.
pub async fn abandon(db: &Db, now: Timestamp) -> Result<u64> {
    let sql = "UPDATE repair SET status = 'failed', after = 'its task was given up', updated_at = ? WHERE status = 'running' \
        AND NOT EXISTS (SELECT 1 FROM task WHERE task.id = repair.task_id AND task.status IN ('pending', 'processing', 'failed'))";
    db.run(sql, args![now]).await
}

#[derive(Clone, Debug, Default)]
pub struct RepairFilter<'a> {
    pub q: Option<&'a str>,
    pub rule: Option<&'a str>,
    pub instance_id: Option<&'a str>,
    pub status: Option<Status>,
    pub since: Option<Timestamp>,
}

pub const SORTABLE: &[&str] = &["created_at", "rule", "instance_id", "status", "took_ms"];

pub async fn list(db: &Db, filter: RepairFilter<'_>, sort: Sort, page: Page) -> Result<Listing<Repair>> {
    let conditions = Conditions::of(db.dialect())
        .when("rule = ?", filter.rule)
        .when("instance_id = ?", filter.instance_id)
        .when("status = ?", filter.status)
        .when("created_at >= ?", filter.since)
        .search(&["instance_id", "rule", "before", "action", "after"], filter.q);
    conditions.list(db, Repair::COLUMNS, "repair", sort, "id", page).await
}

record! {
    /// The results of a rule's repairs.
    #[derive(Clone, Debug)]
    pub struct Tally {
        pub rule: String,
        pub success: i64,
        pub failed: i64,
        pub mean_ms: Option<f64>,
    }
}

/// By rule, over all stored repairs. Alerts and running repairs are not counted.
pub async fn tallies(db: &Db) -> Result<Vec<Tally>> {
    let sql = "SELECT rule, CAST(SUM(CASE WHEN status = 'success' THEN 1 ELSE 0 END) AS BIGINT) AS success, \
        CAST(SUM(CASE WHEN status = 'failed' THEN 1 ELSE 0 END) AS BIGINT) AS failed, \
        CAST(AVG(CASE WHEN status = 'success' THEN took_ms END) AS DOUBLE PRECISION) AS mean_ms \
        FROM repair WHERE status IN ('success', 'failed') GROUP BY rule ORDER BY rule";
    db.all(sql, args![]).await
}

pub async fn forget(db: &Db, before: Timestamp) -> Result<u64> {
    retention::delete(db, "repair", "created_at < ? AND status <> 'running'", args![before]).await
}
