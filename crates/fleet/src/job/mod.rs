//! What the scheduler runs, one file for each job: it says when the job is due, and does it. To add one, write its file and
//! add its two lines here.

mod auto_recovery;
mod health_check;
mod key_balance_alert;
mod key_validity_check;
mod llm_self_heal;
mod log_scan;
mod queue_worker;
mod reconcile;
mod retention;
mod server_metrics;
mod spend_comparison;
mod sync_llm_spend;
mod token_usage_sync;

use crate::App;

pub type Job = queue::job::Job<App>;

/// Every job but the guardian's dimensions, which are jobs too: `registry::JOBS` has all.
pub(crate) const JOBS: &[Job] = &[
    queue_worker::JOB,
    health_check::JOB,
    auto_recovery::JOB,
    log_scan::JOB,
    reconcile::JOB,
    server_metrics::JOB,
    token_usage_sync::JOB,
    key_validity_check::JOB,
    key_balance_alert::JOB,
    llm_self_heal::JOB,
    sync_llm_spend::JOB,
    spend_comparison::JOB,
    retention::JOB,
];
