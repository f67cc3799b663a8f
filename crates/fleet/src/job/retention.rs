//! audit_cleanup: deletes records that are older than their retention, for every kind of record that grows by itself.

use std::sync::Arc;

use base::{Result, When};
use jiff::SignedDuration;
use llm::usage;
use queue::audit;
use store::task::{self, Status};
use store::{alert, guardian, heartbeat, job_run, repair, server_metric};

use super::Job;
use crate::App;

pub(super) const JOB: Job =
    Job::new("audit_cleanup", "Audit cleanup", When::Daily { hour: 0, minute: 10 }, |app, _| Box::pin(run(app)));

const DAY: i64 = 24;
/// Retention in days: of the queue's job runs, of all other runs and guardian events, of server metrics, of repairs and
/// alerts, of heartbeats.
const QUEUE_RUNS: i64 = 7;
const RUNS: i64 = 30;
const METRICS: i64 = 31;
const REPAIRS: i64 = 365;
const BEATS: i64 = 1;
/// Retention in days of tasks that are done, with their logs; and of dead tasks, which may still need attention.
const TASKS: i64 = 30;
const DEAD_TASKS: i64 = 365;

async fn run(app: Arc<App>) -> Result<String> {
    let before = |days: i64| app.clock.now() - SignedDuration::from_hours(days * DAY);
    let entries = audit::clean(&app).await?;
    let requests = usage::forget_old(&app).await?;
    let mut runs = job_run::forget(&app.db, before(QUEUE_RUNS), Some("queueWorker")).await?;
    runs += job_run::forget(&app.db, before(RUNS), None).await?;
    let metrics = server_metric::forget(&app.db, before(METRICS)).await?;
    guardian::forget(&app.db, before(RUNS)).await?;
    heartbeat::forget(&app.db, before(BEATS)).await?;
    repair::forget(&app.db, before(REPAIRS)).await?;
    alert::forget(&app.db, before(REPAIRS)).await?;
    let mut tasks = task::forget(&app.db, Status::Done, before(TASKS)).await?;
    tasks += task::forget(&app.db, Status::Dead, before(DEAD_TASKS)).await?;
    Ok(format!(
        "deleted {entries} audit entries, {requests} requests, {runs} job runs, {metrics} measurements, {tasks} tasks"
    ))
}
