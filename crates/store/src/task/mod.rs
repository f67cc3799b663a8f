//! The task queue's table. Every state change is one statement that names the previous state, so that two processes
//! cannot make the same change.

mod due;

use base::id::{InstanceId, ServerId, TaskId, UserId};
use base::{Listing, Page, Sort};
use jiff::{SignedDuration, Timestamp};

use crate::conditions::Conditions;
use crate::db::{Column, Number, Record as _, Row, Value};
use crate::lease::{Now, Term};
use crate::{Conn, Db, Dialect, Error, Result, Tx, args, record, word};

word! {
    pub enum Status {
        Pending = "pending",
        Processing = "processing",
        Done = "done",
        /// It waits for its next attempt.
        Failed = "failed",
        Dead = "dead",
    }
}

/// Whom a task is for. Workers take tasks of a higher priority first, and lower priorities never occupy all slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Until it is done, somebody has an access that they must not have.
    Security = 0,
    /// A person waits for it.
    People = 1,
    /// Administrators' work on servers and instances.
    Fleet = 2,
    /// Work that may be done at any time.
    Background = 3,
}

impl Priority {
    pub const ALL: [Priority; 4] = [Priority::Security, Priority::People, Priority::Fleet, Priority::Background];
}

impl From<Priority> for Value {
    fn from(priority: Priority) -> Value {
        Value::from(priority as i64)
    }
}

impl Column for Priority {
    fn read(row: &Row, name: &str) -> Result<Priority> {
        let number: i64 = row.get(name)?;
        let found = Priority::ALL.into_iter().find(|priority| *priority as i64 == number);
        found.ok_or_else(|| Error::Column(name.into(), format!("unknown priority {number}")))
    }
}

pub use due::{
    Due, Load, Target, busy_among, busy_instances, is_busy, late, lock_due, next_due, open_of, running_by_server,
};

record! {
    #[derive(Clone, Debug)]
    pub struct Task {
        pub id: TaskId,
        pub r#type: String,
        pub payload: String,
        pub status: Status,
        pub attempts: i64,
        pub failures: i64,
        pub error: String,
        pub client_message: String,
        pub result: String,
        /// A label.
        pub source: String,
        /// Who asked for it, as the audit log names them.
        pub operator: String,
        pub instance_id: Option<InstanceId>,
        /// The server that it works on. If it has an instance, the server of the instance.
        pub server_id: Option<ServerId>,
        pub priority: Priority,
        /// At most one task with this key is pending.
        pub coalesce_key: Option<String>,
        /// It begins only after this task has ended.
        pub after_id: Option<TaskId>,
        pub user_id: Option<UserId>,
        pub worker: Option<String>,
        pub lease_until: Option<Timestamp>,
        pub next_attempt_at: Timestamp,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }
}

/// A task that a worker has claimed. The attempt number is a fencing token: a write with an older number has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub id: TaskId,
    pub worker: String,
    pub attempt: i64,
    pub priority: Priority,
}

/// Writes a new task; false if one with its `coalesce_key` is pending already.
pub async fn insert(tx: &mut Tx, task: &Task) -> Result<bool> {
    let sql = "INSERT INTO task (id, type, payload, status, source, operator, instance_id, server_id, priority, coalesce_key, user_id, \
        next_attempt_at, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, \
        COALESCE(?, (SELECT i.server_id FROM instance i WHERE i.id = ?)), ?, ?, ?, ?, ?, ?) \
        ON CONFLICT (coalesce_key) WHERE status = 'pending' DO NOTHING";
    let args = args![
        &task.id,
        &task.r#type,
        &task.payload,
        task.status,
        &task.source,
        &task.operator,
        task.instance_id.as_deref(),
        task.server_id.as_deref(),
        task.instance_id.as_deref(),
        task.priority,
        task.coalesce_key.as_deref(),
        task.user_id.as_deref(),
        task.next_attempt_at,
        task.created_at,
        task.updated_at
    ];
    Ok(tx.run(sql, args).await? == 1)
}

/// Lets a task begin only after another has ended: it is done, dead or deleted.
pub async fn set_after(tx: &mut Tx, id: &TaskId, after: &TaskId) -> Result<()> {
    tx.run("UPDATE task SET after_id = ? WHERE id = ?", args![after, id.as_str()]).await.map(drop)
}

pub async fn set_priority(tx: &mut Tx, id: &TaskId, priority: Priority) -> Result<()> {
    tx.run("UPDATE task SET priority = ? WHERE id = ?", args![priority, id.as_str()]).await.map(drop)
}

/// The pending task of a key, locked until the transaction ends. No worker begins it before that, so it sees what this
/// transaction writes.
pub async fn lock_waiting(tx: &mut Tx, coalesce_key: &str) -> Result<Option<Task>> {
    let lock = tx.dialect().for_update();
    let sql = format!("SELECT {} FROM task WHERE coalesce_key = ? AND status = 'pending'{lock}", columns());
    tx.first(&sql, args![coalesce_key]).await
}

pub async fn find(conn: impl Into<Conn<'_>>, id: &TaskId) -> Result<Option<Task>> {
    conn.into().first(&format!("SELECT {} FROM task WHERE id = ?", columns()), args![id.as_str()]).await
}

pub async fn lock(tx: &mut Tx, id: &TaskId) -> Result<Option<Task>> {
    let sql = format!("SELECT {} FROM task WHERE id = ?{}", columns(), tx.dialect().for_update());
    tx.first(&sql, args![id.as_str()]).await
}

/// Gives a due task to a worker. Fails with `Taken` if another task of its instance began at the same moment.
pub async fn begin(tx: &mut Tx, task: &Task, worker: &str, now: Timestamp, term: Term) -> Result<Held> {
    let sql = format!(
        "UPDATE task SET status = 'processing', worker = ?, lease_until = {}, attempts = attempts + 1, updated_at = ? \
         WHERE id = ? AND status IN ('pending', 'failed')",
        term.end(tx.dialect())
    );
    tx.run(&sql, args![worker, now, &task.id]).await?;
    Ok(Held { id: task.id.clone(), worker: worker.to_owned(), attempt: task.attempts + 1, priority: task.priority })
}

record! {
    struct Renewed { id: TaskId, attempts: i64 }
}

/// Renews the leases of the tasks that a worker holds, but not of others that still have its name. Returns the tasks
/// that it has lost: another worker has taken them, or may do so at any moment.
pub async fn renew(db: &Db, worker: &str, held: impl IntoIterator<Item = &Held>, term: Term) -> Result<Vec<Held>> {
    let mut lost: Vec<Held> = held.into_iter().cloned().collect();
    if lost.is_empty() {
        return Ok(lost);
    }
    let marks = vec!["?"; lost.len()].join(", ");
    let mut args = args![worker];
    args.extend(lost.iter().map(|held| Value::from(&held.id)));
    let mut tx = db.begin().await?;
    let sql = format!(
        "UPDATE task SET lease_until = {} WHERE worker = ? AND status = 'processing' AND id IN ({marks}) \
         RETURNING id, attempts",
        term.end(tx.dialect())
    );
    let renewed: Vec<Renewed> = tx.all(&sql, args).await?;
    tx.commit().await?;
    lost.retain(|held| !renewed.iter().any(|row| row.id == held.id && row.attempts == held.attempt));
    Ok(lost)
}

/// Processing → done. False if the task is no longer this worker's.
pub async fn done(tx: &mut Tx, held: &Held, result: &str, now: Timestamp) -> Result<bool> {
    let sql = "UPDATE task SET status = 'done', result = ?, error = '', told = '', worker = NULL, lease_until = NULL, updated_at = ? \
        WHERE id = ? AND worker = ? AND attempts = ? AND status = 'processing'";
    let args = args![result, now, &held.id, &held.worker, held.attempt];
    Ok(tx.run(sql, args).await? == 1)
}

/// Why an attempt failed: the whole error for administrators, and the message for the employee.
pub struct Failure<'a> {
    pub error: &'a str,
    pub client_message: &'a str,
}

/// Processing → failed, or dead. False if the task is no longer this worker's.
pub async fn failed(
    tx: &mut Tx,
    held: &Held,
    status: Status,
    error: &Failure<'_>,
    next_attempt_at: Timestamp,
    now: Timestamp,
) -> Result<bool> {
    let sql = "UPDATE task SET status = ?, error = ?, told = ?, failures = failures + 1, worker = NULL, lease_until = NULL, \
        next_attempt_at = ?, updated_at = ? WHERE id = ? AND worker = ? AND attempts = ? AND status = 'processing'";
    let args =
        args![status, error.error, error.client_message, next_attempt_at, now, &held.id, &held.worker, held.attempt];
    Ok(tx.run(sql, args).await? == 1)
}

/// Processing → pending, without counting the attempt: the worker stops. Fails with `Taken` if another task with its
/// `coalesce_key` is pending.
pub async fn give_back(tx: &mut Tx, held: &Held, now: Timestamp) -> Result<bool> {
    let sql = "UPDATE task SET status = 'pending', attempts = attempts - 1, worker = NULL, lease_until = NULL, \
        next_attempt_at = ?, updated_at = ? WHERE id = ? AND worker = ? AND attempts = ? AND status = 'processing'";
    Ok(tx.run(sql, args![now, now, &held.id, &held.worker, held.attempt]).await? == 1)
}

/// The SQL condition that a lease has expired, or would last longer than any lease does: a clock that was ahead wrote
/// it.
fn over(now: Now, longest: SignedDuration, dialect: Dialect) -> String {
    let now = now.sql(dialect);
    format!("(lease_until < {now} OR lease_until > {now} + {})", longest.as_millis())
}

/// Whether a running task's lease has expired. No lease is longer than `longest`.
pub async fn any_abandoned(db: &Db, now: Now, longest: SignedDuration) -> Result<bool> {
    let over = over(now, longest, db.dialect());
    let sql = format!("SELECT COUNT(*) AS n FROM task WHERE status = 'processing' AND {over}");
    let number: Number = Conn::from(db).one(&sql, args![]).await?;
    Ok(number.n > 0)
}

/// Running tasks whose lease has expired, locked until the transaction ends.
pub async fn lock_abandoned(tx: &mut Tx, now: Now, longest: SignedDuration, limit: usize) -> Result<Vec<Task>> {
    let sql = format!(
        "SELECT {} FROM task WHERE status = 'processing' AND {} ORDER BY lease_until LIMIT ?{}",
        columns(),
        over(now, longest, tx.dialect()),
        tx.dialect().skip_locked()
    );
    tx.all(&sql, args![limit]).await
}

/// Failed or dead → pending, with attempts counted from 0. Fails with `Taken` if another task with its `coalesce_key`
/// is pending.
pub async fn retry(tx: &mut Tx, id: &TaskId, now: Timestamp) -> Result<bool> {
    let sql = "UPDATE task SET status = 'pending', attempts = 0, next_attempt_at = ?, updated_at = ? \
        WHERE id = ? AND status IN ('failed', 'dead')";
    Ok(tx.run(sql, args![now, now, id.as_str()]).await? == 1)
}

/// Pending or failed → dead.
pub async fn cancel(tx: &mut Tx, id: &TaskId, why: &str, now: Timestamp) -> Result<bool> {
    let sql = "UPDATE task SET status = 'dead', error = ?, told = 'cancelled', updated_at = ? WHERE id = ? AND status IN ('pending', 'failed')";
    Ok(tx.run(sql, args![why, now, id.as_str()]).await? == 1)
}

/// Pending or failed → dead, for all tasks of an instance that is being deleted.
pub async fn cancel_all(tx: &mut Tx, instance: &InstanceId, why: &str, now: Timestamp) -> Result<u64> {
    let sql = "UPDATE task SET status = 'dead', error = ?, told = 'cancelled', updated_at = ? WHERE instance_id = ? AND status IN ('pending', 'failed')";
    tx.run(sql, args![why, now, instance.as_str()]).await
}

record! {
    struct Named { id: TaskId }
}

/// The dead tasks of an instance.
pub async fn dead_of(tx: &mut Tx, instance: &InstanceId) -> Result<Vec<TaskId>> {
    let rows: Vec<Named> =
        tx.all("SELECT id FROM task WHERE instance_id = ? AND status = 'dead'", args![instance.as_str()]).await?;
    Ok(rows.into_iter().map(|row| row.id).collect())
}

#[derive(Clone, Debug, Default)]
pub struct TaskFilter<'a> {
    pub q: Option<&'a str>,
    pub status: Option<Status>,
    pub types: Option<&'a str>,
    pub instance_id: Option<&'a str>,
}

/// The columns a list may be sorted by.
pub const SORTABLE: &[&str] = &["created_at", "updated_at", "type", "status", "attempts", "next_attempt_at"];

pub async fn list(db: &Db, filter: TaskFilter<'_>, sort: Sort, page: Page) -> Result<Listing<Task>> {
    let conditions = Conditions::of(db.dialect())
        .when("status = ?", filter.status)
        .when("type = ?", filter.types)
        .when("instance_id = ?", filter.instance_id)
        .search(&["id", "type", "payload", "error", "source"], filter.q);
    conditions.list(db, &columns(), "task", sort, "id", page).await
}

record! {
    #[derive(Clone, Debug)]
    pub struct Count {
        pub status: Status,
        pub n: i64,
    }
}

/// How many tasks are in each state.
pub async fn counts(db: &Db) -> Result<Vec<Count>> {
    db.all("SELECT status, COUNT(*) AS n FROM task GROUP BY status", args![]).await
}

/// How many tasks are deleted in one transaction, so that others can write in between.
const BATCH: usize = 500;

/// The SQL condition that a task `t` must be kept: the last cleaning of an instance, which proves that it is clean; a
/// dead cleaning, which blocks its instance; and the task of a marketplace item that is on an instance.
const NEEDED: &str = "(t.type = 'clean_instance' AND (t.status <> 'done' OR NOT EXISTS (SELECT 1 FROM task n WHERE n.instance_id = t.instance_id \
        AND n.type = t.type AND n.status = 'done' AND n.id > t.id))) \
    OR EXISTS (SELECT 1 FROM install i WHERE i.task_id = t.id AND i.removed_at IS NULL)";

/// Deletes tasks that have had this status since before `before`, with their logs, in small transactions; returns how
/// many.
pub async fn forget(db: &Db, status: Status, before: Timestamp) -> Result<u64> {
    let some = format!(
        "SELECT t.id AS id FROM task t WHERE t.status = ? AND t.updated_at < ? AND NOT ({NEEDED}) ORDER BY t.updated_at LIMIT ?{}",
        // The lock prevents a retry of a task that is being deleted.
        db.dialect().skip_locked_of("t")
    );
    let mut gone = 0;
    loop {
        let mut tx = db.begin().await?;
        let old: Vec<Named> = tx.all(&some, args![status, before, BATCH]).await?;
        if old.is_empty() {
            return Ok(gone);
        }
        let marks = vec!["?"; old.len()].join(", ");
        let ids = || old.iter().map(|task| Value::from(&task.id)).collect::<Vec<_>>();
        tx.run(&format!("DELETE FROM task_log WHERE task_id IN ({marks})"), ids()).await?;
        gone += tx.run(&format!("DELETE FROM task WHERE id IN ({marks})"), ids()).await?;
        tx.commit().await?;
    }
}

/// How many tasks of this type, payload and source were created since then.
pub async fn count_of(tx: &mut Tx, kind: &str, payload: &str, source: &str, since: Timestamp) -> Result<i64> {
    let sql = "SELECT COUNT(*) AS n FROM task WHERE type = ? AND payload = ? AND source = ? AND created_at > ?";
    let number: Number = Conn::from(tx).one(sql, args![kind, payload, source, since]).await?;
    Ok(number.n)
}

/// The column of `r#type` is `type`. The column of `client_message` has an older name.
fn columns() -> String {
    Task::COLUMNS.replace("r#", "").replace("client_message", "told AS client_message")
}
