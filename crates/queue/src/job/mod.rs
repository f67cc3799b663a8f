//! Jobs: work that runs by the clock. `scheduler` starts jobs when they are due, `run` is one run. The crates above
//! list the jobs.
//!
//! A job takes no input: it compares desired with observed state and acts on the difference. A run that an
//! administrator starts is the same.

mod run;
mod scheduler;

use std::sync::Arc;
use std::time::Duration;

use base::{Kind, Listing, Page, Result, Sort, When};
use futures_util::future::BoxFuture;
use store::job_run;
pub use store::job_run::{JobRun, Status};
use store::notice::{Notice, Topic};

use crate::App;
use crate::audit::{self, Action, AuditEvent, By};
pub use run::run_now;
pub use scheduler::{Scheduler, Timing};

/// Does a job's work. It gets the job's name and returns a summary of one line.
pub type RunJob<A> = fn(Arc<A>, &'static str) -> BoxFuture<'static, Result<String>>;

/// One entry in the list of jobs.
pub struct Job<A: 'static> {
    pub name: &'static str,
    /// The name that people see.
    pub label: &'static str,
    pub when: When,
    /// Whether it is paused until an administrator switches it on.
    pub paused: bool,
    /// A run that takes longer is ended.
    pub limit: Duration,
    pub run: RunJob<A>,
}

impl<A> Clone for Job<A> {
    fn clone(&self) -> Job<A> {
        *self
    }
}

impl<A> Copy for Job<A> {}

impl<A> Job<A> {
    /// A job that is not paused, with a limit of 15 minutes for a run.
    pub const fn new(name: &'static str, label: &'static str, when: When, run: RunJob<A>) -> Job<A> {
        Job { name, label, when, paused: false, limit: Duration::from_secs(15 * 60), run }
    }
}

pub fn find<A>(jobs: &'static [Job<A>], name: &str) -> Result<&'static Job<A>> {
    Ok(jobs.iter().find(|job| job.name == name).ok_or(Kind::NotFound)?)
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
pub struct State<A: 'static> {
    pub job: &'static Job<A>,
    pub paused: bool,
    pub last: Option<JobRun>,
}

pub async fn states<A>(app: &App, jobs: &'static [Job<A>]) -> Result<Vec<State<A>>> {
    let mut states = vec![];
    for job in jobs {
        states.push(state(app, job).await?);
    }
    Ok(states)
}

async fn state<A>(app: &App, job: &'static Job<A>) -> Result<State<A>> {
    let paused = job_run::paused(&app.db, job.name).await?.unwrap_or(job.paused);
    Ok(State { job, paused, last: job_run::latest(&app.db, job.name).await? })
}

/// Pauses a job, or lets it run again when it is due.
pub async fn set_paused<A>(app: &App, jobs: &'static [Job<A>], by: &By, name: &str, paused: bool) -> Result<State<A>> {
    let job = find(jobs, name)?;
    let mut tx = app.db.begin().await?;
    job_run::set_paused(&mut tx, name, paused, app.clock.now()).await?;
    let detail = if paused { "job paused" } else { "job switched on" };
    audit::record(app, &mut tx, by, AuditEvent::info(Action::ConfigChange, name, detail)).await?;
    tx.notify(Notice::new(Topic::Job, name)).await?;
    tx.commit().await?;
    state(app, job).await
}
