//! What happens by itself: the jobs, when each is due (`JOBS`), who lets them run (`scheduler`), and one run (`run`).
//!
//! A job takes no input: it reads the world and brings it to where it should be. Asked for by hand, it is the same run.

mod auto_recovery;
mod health_check;
mod key_balance_alert;
mod key_validity_check;
mod llm_self_heal;
mod log_scan;
mod queue_worker;
mod retention;
mod run;
mod scheduler;
mod server_metrics;
mod spend_comparison;
mod sync_llm_spend;
mod token_usage_sync;

use std::sync::Arc;
use std::time::Duration;

use base::{Kind, Listing, Page, Result, Sort, When};
use futures_util::future::BoxFuture;
use store::job_run;
pub use store::job_run::{JobRun, Status};
use store::notice::{Notice, Topic};

use crate::App;
use crate::audit::{self, Action, AuditEvent, By};
use crate::guardian::{self, DIMENSIONS};
pub use run::run_now;
pub use scheduler::{Scheduler, Timing};

/// One line of the list of jobs.
pub struct Job {
    pub name: &'static str,
    /// For people.
    pub label: &'static str,
    pub when: When,
    /// Whether it waits until somebody switches it on.
    pub paused: bool,
    /// A run that takes longer is ended.
    pub limit: Duration,
    /// Answers what was done, in one line.
    pub(crate) run: fn(Arc<App>) -> BoxFuture<'static, Result<String>>,
}

const MINUTE: Duration = Duration::from_secs(60);

const fn job(
    name: &'static str,
    label: &'static str,
    when: When,
    run: fn(Arc<App>) -> BoxFuture<'static, Result<String>>,
) -> Job {
    Job { name, label, when, paused: false, limit: Duration::from_secs(15 * 60), run }
}

/// A dimension of the guardian, as a job.
macro_rules! guard {
    ($number:literal) => {
        job(DIMENSIONS[$number].name, DIMENSIONS[$number].label, DIMENSIONS[$number].when, |app| {
            Box::pin(guardian::run(app, &DIMENSIONS[$number]))
        })
    };
}

/// Every job there is: those of the spec, and the guardian's dimensions.
pub const JOBS: &[Job] = &[
    Job { limit: MINUTE, ..job("queueWorker", "Task queue", When::Seconds(5), |app| Box::pin(queue_worker::run(app))) },
    job("health_check", "Health check", When::minutes(5), |app| Box::pin(health_check::run(app))),
    job("auto_recovery", "Auto recovery", When::minutes(10), |app| Box::pin(auto_recovery::run(app))),
    job("log_scan", "Log scan", When::minutes(5), |app| Box::pin(log_scan::run(app))),
    job("server_metrics", "Server metrics", When::minutes(5), |app| Box::pin(server_metrics::run(app))),
    job("token_usage_sync", "Token usage", When::minutes(15), |app| Box::pin(token_usage_sync::run(app))),
    job("key_validity_check", "Key validity", When::minutes(30), |app| Box::pin(key_validity_check::run(app))),
    Job {
        paused: true,
        ..job("key_balance_alert", "Key balance", When::hourly(0), |app| Box::pin(key_balance_alert::run(app)))
    },
    job("llm_self_heal", "LLM self-heal", When::minutes(5), |app| Box::pin(llm_self_heal::run(app))),
    job("sync_llm_spend", "LLM spend", When::minutes(10), |app| Box::pin(sync_llm_spend::run(app))),
    job("spend_comparison", "Spend comparison", When::Daily { hour: 3, minute: 20 }, |app| {
        Box::pin(spend_comparison::run(app))
    }),
    job("audit_cleanup", "Audit cleanup", When::Daily { hour: 0, minute: 10 }, |app| Box::pin(retention::run(app))),
    guard!(0),
    guard!(1),
    guard!(2),
    guard!(3),
    guard!(4),
    guard!(5),
    guard!(6),
    guard!(7),
    guard!(8),
    guard!(9),
];

pub fn find(name: &str) -> Result<&'static Job> {
    Ok(JOBS.iter().find(|job| job.name == name).ok_or(Kind::NotFound)?)
}

pub struct JobRunFilter<'a> {
    pub job_name: Option<&'a str>,
    pub status: Option<Status>,
    pub q: Option<&'a str>,
}

pub async fn runs(app: &App, filter: JobRunFilter<'_>, sort: Sort, page: Page) -> Result<Listing<JobRun>> {
    Ok(job_run::list(&app.db, filter.job_name, filter.status, filter.q, sort, page).await?)
}

/// A job as it is now.
pub struct State {
    pub job: &'static Job,
    pub paused: bool,
    pub last: Option<JobRun>,
}

pub async fn states(app: &App) -> Result<Vec<State>> {
    let mut states = vec![];
    for job in JOBS {
        states.push(state(app, job).await?);
    }
    Ok(states)
}

async fn state(app: &App, job: &'static Job) -> Result<State> {
    let paused = job_run::paused(&app.db, job.name).await?.unwrap_or(job.paused);
    Ok(State { job, paused, last: job_run::latest(&app.db, job.name).await? })
}

/// Lets a job wait, or run again when it is due.
pub async fn set_paused(app: &App, by: &By, name: &str, paused: bool) -> Result<State> {
    let job = find(name)?;
    let mut tx = app.db.begin().await?;
    job_run::set_paused(&mut tx, name, paused, app.clock.now()).await?;
    let detail = if paused { "job paused" } else { "job switched on" };
    audit::record(app, &mut tx, by, AuditEvent::info(Action::ConfigChange, name, detail)).await?;
    tx.notify(Notice::new(Topic::Job, name)).await?;
    tx.commit().await?;
    state(app, job).await
}
