//! audit cleanup: what is older than it is to be kept is deleted, of every kind of record that grows by itself.

use std::sync::Arc;

use base::Result;
use jiff::SignedDuration;
use store::{alert, guardian, heartbeat, job_run, repair, server_metric, task};

use crate::alert::DeliverAlert;
use crate::repair::RepairInstance;
use crate::task::Payload as _;
use crate::{App, audit, usage};

const DAY: i64 = 24;
/// Days that are kept: of the queue's runs, of all others, of what servers measured.
const QUEUE_RUNS: i64 = 7;
const RUNS: i64 = 30;
const METRICS: i64 = 31;
const REPAIRS: i64 = 365;
const BEATS: i64 = 1;

pub(super) async fn run(app: Arc<App>) -> Result<String> {
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
    // What the platform makes for itself, day by day; how a repair ended stands in its ledger.
    for kind in [DeliverAlert::TYPE, RepairInstance::TYPE] {
        task::forget(&app.db, kind, before(RUNS)).await?;
    }
    Ok(format!("deleted {entries} audit entries, {requests} requests, {runs} job runs, {metrics} measurements"))
}
