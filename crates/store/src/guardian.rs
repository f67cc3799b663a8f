//! The guardian's events, and the result of the last run of each dimension.

use base::{Listing, Page, Sort};
use jiff::Timestamp;

use crate::conditions::Conditions;
use crate::db::Record as _;
use crate::{Db, Result, Tx, args, record, retention, word};

word! {
    pub enum Status {
        Success = "success",
        Failed = "failed",
    }
}

word! {
    /// The state of a dimension.
    pub enum State {
        Healthy = "healthy",
        /// There were failures, and all were repaired.
        Warning = "warning",
        /// Failures remain.
        Abnormal = "abnormal",
        /// It never ran.
        Unknown = "unknown",
    }
}

record! {
    #[derive(Clone, Debug)]
    pub struct Event {
        pub id: i64,
        pub dimension: String,
        pub target_id: String,
        pub status: Status,
        pub problem: String,
        pub action_taken: String,
        /// JSON.
        pub extra: String,
        pub created_at: Timestamp,
    }
}

pub async fn write(tx: &mut Tx, event: &Event) -> Result<()> {
    let sql = "INSERT INTO guardian_event (dimension, target_id, status, problem, action_taken, extra, created_at) \
        VALUES (?, ?, ?, ?, ?, ?, ?)";
    let args = args![
        &event.dimension,
        &event.target_id,
        event.status,
        &event.problem,
        &event.action_taken,
        &event.extra,
        event.created_at
    ];
    tx.run(sql, args).await.map(drop)
}

#[derive(Clone, Debug, Default)]
pub struct EventFilter<'a> {
    pub dimension: Option<&'a str>,
    pub status: Option<Status>,
    pub target_id: Option<&'a str>,
    pub q: Option<&'a str>,
}

pub const SORTABLE: &[&str] = &["created_at", "dimension", "target_id", "status"];

pub async fn list(db: &Db, filter: EventFilter<'_>, sort: Sort, page: Page) -> Result<Listing<Event>> {
    let conditions = Conditions::of(db.dialect())
        .when("dimension = ?", filter.dimension)
        .when("status = ?", filter.status)
        .when("target_id = ?", filter.target_id)
        .search(&["target_id", "problem", "action_taken"], filter.q);
    conditions.list(db, Event::COLUMNS, "guardian_event", sort, "id", page).await
}

record! {
    #[derive(Clone, Debug)]
    pub struct Count {
        pub dimension: String,
        pub status: Status,
        pub n: i64,
    }
}

/// The number of events since then, by dimension and status.
pub async fn counts(db: &Db, since: Timestamp) -> Result<Vec<Count>> {
    let sql =
        "SELECT dimension, status, COUNT(*) AS n FROM guardian_event WHERE created_at >= ? GROUP BY dimension, status";
    db.all(sql, args![since]).await
}

record! {
    #[derive(Clone, Debug)]
    pub struct Check {
        pub dimension: String,
        pub status: State,
        pub checked_at: Timestamp,
    }
}

pub async fn checks(db: &Db) -> Result<Vec<Check>> {
    db.all(&format!("SELECT {} FROM guardian_check", Check::COLUMNS), args![]).await
}

pub async fn set_check(tx: &mut Tx, check: &Check) -> Result<()> {
    let sql = "INSERT INTO guardian_check (dimension, status, checked_at) VALUES (?, ?, ?) ON CONFLICT (dimension) \
        DO UPDATE SET status = excluded.status, checked_at = excluded.checked_at";
    tx.run(sql, args![&check.dimension, check.status, check.checked_at]).await.map(drop)
}

pub async fn forget(db: &Db, before: Timestamp) -> Result<u64> {
    retention::delete(db, "guardian_event", "created_at < ?", args![before]).await
}
