//! Runs of the scheduler's jobs. Two unique indexes allow one row per job and slot, and one running row per job.

use base::{Clock, Listing, Page, Sort};
use jiff::{SignedDuration, Timestamp};

use crate::conditions::Conditions;
use crate::db::{Number, Record as _};
use crate::lease::{Now, Term};
use crate::{Conn, Db, Error, Result, Tx, args, record, retention, word};

word! {
    pub enum Status {
        Running = "running",
        Success = "success",
        Failed = "failed",
        Skipped = "skipped",
    }
}

record! {
    #[derive(Clone, Debug)]
    pub struct JobRun {
        pub id: i64,
        pub job_name: String,
        pub slot: Option<Timestamp>,
        pub status: Status,
        pub duration_ms: i64,
        pub message: String,
        pub holder: String,
        pub lease_until: Timestamp,
        pub created_at: Timestamp,
    }
}

pub struct New<'a> {
    pub job_name: &'a str,
    pub slot: Option<Timestamp>,
    pub status: Status,
    pub message: &'a str,
    pub holder: &'a str,
    pub lease: Term,
    pub created_at: Timestamp,
}

/// Starts a run; `None` if the slot already has one, or another run of the job is active.
pub async fn begin(tx: &mut Tx, new: &New<'_>) -> Result<Option<i64>> {
    let sql = format!(
        "INSERT INTO job_run (job_name, slot, status, message, holder, lease_until, created_at, updated_at) \
         VALUES (?, ?, ?, ?, ?, {}, ?, ?) ON CONFLICT DO NOTHING RETURNING id AS n",
        new.lease.end(tx.dialect())
    );
    let args = args![new.job_name, new.slot, new.status, new.message, new.holder, new.created_at, new.created_at];
    match tx.first::<Number>(&sql, args).await {
        Ok(row) => Ok(row.map(|row| row.n)),
        Err(Error::Taken) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Renews the lease of a run. False if the run is no longer the holder's.
pub async fn renew(db: &Db, id: i64, holder: &str, term: Term) -> Result<bool> {
    let end = term.end(db.dialect());
    let sql = format!("UPDATE job_run SET lease_until = {end} WHERE id = ? AND holder = ? AND status = 'running'");
    Ok(db.run(&sql, args![id, holder]).await? == 1)
}

/// Writes how a run ended. False if the run is no longer the holder's.
pub async fn end(
    tx: &mut Tx,
    id: i64,
    holder: &str,
    status: Status,
    message: &str,
    ms: i64,
    at: Timestamp,
) -> Result<bool> {
    let sql = "UPDATE job_run SET status = ?, message = ?, duration_ms = ?, updated_at = ? \
        WHERE id = ? AND holder = ? AND status = 'running'";
    Ok(tx.run(sql, args![status, message, ms, at, id, holder]).await? == 1)
}

/// The active run of a job.
pub async fn running(conn: impl Into<Conn<'_>>, job: &str) -> Result<Option<JobRun>> {
    let sql = format!("SELECT {} FROM job_run WHERE job_name = ? AND status = 'running'", JobRun::COLUMNS);
    conn.into().first(&sql, args![job]).await
}

pub async fn find(db: &Db, id: i64) -> Result<Option<JobRun>> {
    db.first(&format!("SELECT {} FROM job_run WHERE id = ?", JobRun::COLUMNS), args![id]).await
}

/// The run of a slot.
pub async fn of_slot(conn: impl Into<Conn<'_>>, job: &str, slot: Timestamp) -> Result<Option<JobRun>> {
    let sql = format!("SELECT {} FROM job_run WHERE job_name = ? AND slot = ?", JobRun::COLUMNS);
    conn.into().first(&sql, args![job, slot]).await
}

/// Ends the runs whose lease has expired: their process is gone, or stops the run by itself.
///
/// A lease that ends later than any lease may was written by a clock that was ahead. It would block the job until then.
pub async fn abandon(db: &Db, clock: &Clock) -> Result<u64> {
    let now = Now::of(clock).sql(db.dialect());
    let sql = format!(
        "UPDATE job_run SET status = 'failed', message = 'the process that ran it is gone', \
         duration_ms = CASE WHEN lease_until > created_at THEN lease_until - created_at ELSE 0 END, updated_at = ? \
         WHERE status = 'running' AND (lease_until < {now} OR lease_until > {now} + ?)"
    );
    db.run(&sql, args![clock.now(), LONGEST_LEASE.as_millis() as i64]).await
}

const LONGEST_LEASE: SignedDuration = SignedDuration::from_mins(10);

/// The columns a list may be sorted by.
pub const SORTABLE: &[&str] = &["created_at", "job_name", "status", "duration_ms"];

pub async fn list(
    db: &Db,
    job: Option<&str>,
    status: Option<Status>,
    q: Option<&str>,
    sort: Sort,
    page: Page,
) -> Result<Listing<JobRun>> {
    let conditions = Conditions::of(db.dialect())
        .when("job_name = ?", job)
        .when("status = ?", status)
        .search(&["job_name", "message"], q);
    conditions.list(db, JobRun::COLUMNS, "job_run", sort, "id", page).await
}

/// The latest run of a job.
pub async fn latest(db: &Db, job: &str) -> Result<Option<JobRun>> {
    let sql =
        format!("SELECT {} FROM job_run WHERE job_name = ? ORDER BY created_at DESC, id DESC LIMIT 1", JobRun::COLUMNS);
    db.first(&sql, args![job]).await
}

/// Deletes ended runs that began before `before`; `only` limits it to one job.
pub async fn forget(db: &Db, before: Timestamp, only: Option<&str>) -> Result<u64> {
    let clause = "created_at < ? AND status <> 'running' AND (job_name = ? OR ? = '')";
    let only = only.unwrap_or("");
    retention::delete(db, "job_run", clause, args![before, only, only]).await
}

record! {
    struct Paused { paused: bool }
}

/// Whether an administrator paused the job; `None` if no administrator ever set it.
pub async fn paused(db: &Db, job: &str) -> Result<Option<bool>> {
    let row: Option<Paused> = db.first("SELECT paused FROM job WHERE name = ?", args![job]).await?;
    Ok(row.map(|row| row.paused))
}

pub async fn set_paused(tx: &mut Tx, job: &str, paused: bool, at: Timestamp) -> Result<()> {
    let sql = "INSERT INTO job (name, paused, updated_at) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE \
        SET paused = excluded.paused, updated_at = excluded.updated_at";
    tx.run(sql, args![job, paused, at]).await.map(drop)
}
