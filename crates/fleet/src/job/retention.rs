//! audit cleanup: what is older than it is to be kept is deleted, of every kind of record that grows by itself.

use std::sync::Arc;

use base::Result;
use jiff::SignedDuration;
use llm::usage;
use queue::audit;
use store::task::{self, Status};
use store::{alert, guardian, heartbeat, job_run, repair, server_metric};

use crate::App;

const DAY: i64 = 24;
/// Days that are kept: of the queue's runs, of all others, of what servers measured.
const QUEUE_RUNS: i64 = 7;
const RUNS: i64 = 30;
const METRICS: i64 = 31;
const REPAIRS: i64 = 365;
const BEATS: i64 = 1;
/// Tasks that are done, with their logs; and those that were given up, which somebody may still look after.
const TASKS: i64 = 30;
const DEAD_TASKS: i64 = 365;

pub async fn run(app: Arc<App>) -> Result<String> {
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
