//! How far what our records want of an instance has come on its server: which generation is there, which step was begun
//! and not finished, what differed at the last comparison, and until when an administrator wants it left alone.

use base::id::{InstanceId, TaskId};
use jiff::Timestamp;

use crate::db::Record as _;
use crate::{Conn, Db, Result, args, record, word};

word! {
    /// A step that was begun. A task records it before it writes the configuration or stops the assistant, and clears it
    /// when that is finished. If the worker dies in between, the next task finishes the step.
    pub enum Pending {
        Nothing = "",
        /// Its configuration was written, and the running assistant has not confirmed a reload yet.
        Reload = "reload",
        /// It must be restarted, or was stopped for a restart.
        Restart = "restart",
        /// It must be running; it may be down, or a start was requested whose result is not known.
        Start = "start",
    }
}

impl Pending {
    /// Whether it must be running and may be down.
    pub fn is_start(self) -> bool {
        matches!(self, Pending::Restart | Pending::Start)
    }
}

record! {
    #[derive(Clone, Debug)]
    pub struct Reconcile {
        pub instance_id: InstanceId,
        /// Raised by every request that changes what our records want.
        pub generation: i64,
        /// The generation that is on the server as a whole.
        pub applied: i64,
        pub pending: Pending,
        pub log_size: i64,
        /// The hash of the configuration before it was written.
        pub previous: String,
        pub unrecorded: String,
        pub operation: Option<TaskId>,
        pub failures: i64,
        pub failed_state: String,
        pub error: String,
        pub differs: String,
        pub differs_since: Option<Timestamp>,
        pub compared_at: Option<Timestamp>,
        /// The release of the platform that compared or wrote it last.
        pub release: String,
        pub held_until: Option<Timestamp>,
        pub held_reason: String,
        pub held_by: String,
    }
}

impl Reconcile {
    /// The state of an instance of which nothing was recorded yet.
    pub fn unknown(id: &InstanceId) -> Reconcile {
        Reconcile {
            instance_id: id.clone(),
            generation: 0,
            applied: 0,
            pending: Pending::Nothing,
            log_size: 0,
            previous: String::new(),
            unrecorded: String::new(),
            operation: None,
            failures: 0,
            failed_state: String::new(),
            error: String::new(),
            differs: String::new(),
            differs_since: None,
            compared_at: None,
            release: String::new(),
            held_until: None,
            held_reason: String::new(),
            held_by: String::new(),
        }
    }

    /// Whether a change of our records, or a step that was begun, has not come to its end on the server.
    pub fn is_behind(&self) -> bool {
        self.applied < self.generation || self.pending != Pending::Nothing || !self.unrecorded.is_empty()
    }

    pub fn is_held(&self, now: Timestamp) -> bool {
        self.held_until.is_some_and(|until| until > now)
    }
}

/// What is about to be written, recorded before it is.
#[derive(Clone, Debug)]
pub struct Writing {
    pub pending: Pending,
    pub log_size: i64,
    pub previous: String,
    pub unrecorded: String,
}

pub async fn find(conn: impl Into<Conn<'_>>, id: &InstanceId) -> Result<Reconcile> {
    let sql = format!("SELECT {} FROM reconcile WHERE instance_id = ?", Reconcile::COLUMNS);
    Ok(conn.into().first(&sql, args![id]).await?.unwrap_or_else(|| Reconcile::unknown(id)))
}

/// Of all instances that are not deleted and of which something was recorded.
pub async fn all_live(db: &Db) -> Result<Vec<Reconcile>> {
    let sql = format!(
        "SELECT {} FROM reconcile WHERE instance_id IN (SELECT id FROM instance WHERE deleted_at IS NULL)",
        Reconcile::COLUMNS
    );
    db.all(&sql, args![]).await
}

/// What our records want of the instance has changed.
pub async fn raise(conn: impl Into<Conn<'_>>, id: &InstanceId) -> Result<()> {
    let sql = "INSERT INTO reconcile (instance_id, generation) SELECT id, 1 FROM instance WHERE id = ? ON CONFLICT (instance_id) \
        DO UPDATE SET generation = reconcile.generation + 1";
    conn.into().run(sql, args![id]).await.map(drop)
}

/// The whole of a generation is on the server, as this release of the platform wants it. What the last comparison found
/// stays until the next one.
pub async fn set_applied(conn: impl Into<Conn<'_>>, id: &InstanceId, generation: i64, release: &str) -> Result<()> {
    let sql = "INSERT INTO reconcile (instance_id, generation, applied, release) VALUES (?, ?, ?, ?) ON CONFLICT (instance_id) \
        DO UPDATE SET applied = excluded.applied, release = excluded.release, failures = 0, failed_state = '', error = ''";
    conn.into().run(sql, args![id, generation, generation, release]).await.map(drop)
}

pub async fn set_pending(conn: impl Into<Conn<'_>>, id: &InstanceId, pending: Pending) -> Result<()> {
    let sql = "INSERT INTO reconcile (instance_id, pending) VALUES (?, ?) ON CONFLICT (instance_id) \
        DO UPDATE SET pending = excluded.pending";
    conn.into().run(sql, args![id, pending]).await.map(drop)
}

pub async fn set_writing(conn: impl Into<Conn<'_>>, id: &InstanceId, writing: &Writing) -> Result<()> {
    let sql = "INSERT INTO reconcile (instance_id, pending, log_size, previous, unrecorded) VALUES (?, ?, ?, ?, ?) ON CONFLICT (instance_id) \
        DO UPDATE SET pending = excluded.pending, log_size = excluded.log_size, previous = excluded.previous, unrecorded = excluded.unrecorded";
    let args = args![id, writing.pending, writing.log_size, &writing.previous, &writing.unrecorded];
    conn.into().run(sql, args).await.map(drop)
}

/// The audit entry of what was written is written too.
pub async fn set_recorded(conn: impl Into<Conn<'_>>, id: &InstanceId) -> Result<()> {
    conn.into().run("UPDATE reconcile SET unrecorded = '' WHERE instance_id = ?", args![id]).await.map(drop)
}

/// The task that stops the instance and may put an older state of it back. While it is not finished, only tasks that
/// lose nothing by that run.
pub async fn set_operation(conn: impl Into<Conn<'_>>, id: &InstanceId, task: Option<&TaskId>) -> Result<()> {
    let sql = "INSERT INTO reconcile (instance_id, operation) VALUES (?, ?) ON CONFLICT (instance_id) \
        DO UPDATE SET operation = excluded.operation";
    conn.into().run(sql, args![id, task.map(TaskId::as_str)]).await.map(drop)
}

/// Counts a failure. A failure about another state than the last one begins a new count.
pub async fn add_failure(conn: impl Into<Conn<'_>>, id: &InstanceId, state: &str, error: &str) -> Result<()> {
    let sql = "INSERT INTO reconcile (instance_id, failures, failed_state, error) VALUES (?, 1, ?, ?) ON CONFLICT (instance_id) \
        DO UPDATE SET failures = CASE WHEN reconcile.failed_state = excluded.failed_state THEN reconcile.failures + 1 ELSE 1 END, \
        failed_state = excluded.failed_state, error = excluded.error";
    conn.into().run(sql, args![id, state, error]).await.map(drop)
}

/// A person wants it to be tried again.
pub async fn forget_failures(conn: impl Into<Conn<'_>>, id: &InstanceId) -> Result<()> {
    let sql = "UPDATE reconcile SET failures = 0, failed_state = '' WHERE instance_id = ?";
    conn.into().run(sql, args![id]).await.map(drop)
}

/// The result of a comparison by this release of the platform. A difference keeps its time until it is over.
pub async fn set_compared(
    conn: impl Into<Conn<'_>>,
    id: &InstanceId,
    differs: &str,
    release: &str,
    now: Timestamp,
) -> Result<()> {
    let since = (!differs.is_empty()).then_some(now);
    let sql = "INSERT INTO reconcile (instance_id, differs, differs_since, compared_at, release) VALUES (?, ?, ?, ?, ?) ON CONFLICT (instance_id) \
        DO UPDATE SET differs = excluded.differs, compared_at = excluded.compared_at, release = excluded.release, \
        differs_since = CASE WHEN excluded.differs = '' THEN NULL ELSE COALESCE(reconcile.differs_since, excluded.differs_since) END";
    conn.into().run(sql, args![id, differs, since, now, release]).await.map(drop)
}

pub async fn hold(conn: impl Into<Conn<'_>>, id: &InstanceId, until: Timestamp, reason: &str, by: &str) -> Result<()> {
    let sql = "INSERT INTO reconcile (instance_id, held_until, held_reason, held_by) VALUES (?, ?, ?, ?) ON CONFLICT (instance_id) \
        DO UPDATE SET held_until = excluded.held_until, held_reason = excluded.held_reason, held_by = excluded.held_by";
    conn.into().run(sql, args![id, until, reason, by]).await.map(drop)
}

pub async fn end_hold(conn: impl Into<Conn<'_>>, id: &InstanceId) -> Result<()> {
    let sql = "UPDATE reconcile SET held_until = NULL, held_reason = '', held_by = '' WHERE instance_id = ?";
    conn.into().run(sql, args![id]).await.map(drop)
}

/// Deletes the holds that are over.
pub async fn end_past_holds(db: &Db, now: Timestamp) -> Result<()> {
    let sql = "UPDATE reconcile SET held_until = NULL, held_reason = '', held_by = '' WHERE held_until <= ?";
    db.run(sql, args![now]).await.map(drop)
}
