//! One run of a job: written down before it begins, held by a lease while it goes on, its end written by whoever holds it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::{Error, Result, When};
use futures_util::FutureExt as _;
use jiff::{SignedDuration, Timestamp};
use store::job_run::{self, JobRun, New, Status};
use store::lease::Term;
use store::notice::{Notice, Topic};
use tokio::sync::watch;

use super::{Job, find};
use crate::audit::{self, Action, AuditEvent, By};
use crate::{App, lease_guard};

/// A run whose process says nothing for so long is given up.
const LEASE: SignedDuration = SignedDuration::from_secs(30);
const RENEW: Duration = Duration::from_secs(10);
/// Whoever could not renew for so long stops, before anybody else may take it for gone.
const HELD: Duration = Duration::from_secs(27);
/// The most that is kept of what a run says.
const LONGEST: usize = 2000;

/// A run that was begun, and is now its holder's to finish.
pub(super) struct Begun<A: 'static> {
    job: &'static Job<A>,
    pub id: i64,
    holder: String,
    /// From when on the lease counts.
    at: Instant,
}

/// Begins a run; `None` where the slot has one, or another run of the job goes on.
pub(super) async fn begin<A>(
    app: &App,
    job: &'static Job<A>,
    slot: Option<Timestamp>,
    holder: &str,
) -> Result<Option<Begun<A>>> {
    let (now, at) = (app.clock.now(), Instant::now());
    let new = New {
        job_name: job.name,
        slot,
        status: Status::Running,
        message: "",
        holder,
        lease: Term::of(&app.clock, LEASE),
        created_at: now,
    };
    let mut tx = app.db.begin().await?;
    let Some(id) = job_run::begin(&mut tx, &new).await? else { return Ok(None) };
    tell(&mut tx, job).await?;
    tx.commit().await?;
    Ok(Some(Begun { job, id, holder: holder.to_owned(), at }))
}

/// What runs every few seconds is no news.
async fn tell<A>(tx: &mut store::Tx, job: &Job<A>) -> Result<()> {
    if matches!(job.when, When::Seconds(_)) {
        return Ok(());
    }
    Ok(tx.notify(Notice::new(Topic::Job, job.name)).await?)
}

/// Writes down that a slot passed while the run before it was still going on. False where the slot has its row.
pub(super) async fn skip<A>(app: &App, job: &Job<A>, slot: Timestamp, holder: &str) -> Result<bool> {
    let now = app.clock.now();
    let new = New {
        job_name: job.name,
        slot: Some(slot),
        status: Status::Skipped,
        message: "the run before was still going on",
        holder,
        lease: Term::of(&app.clock, SignedDuration::ZERO),
        created_at: now,
    };
    let mut tx = app.db.begin().await?;
    let written = job_run::begin(&mut tx, &new).await?.is_some();
    tx.commit().await?;
    Ok(written)
}

/// Does the work and writes how it ended. Whoever cannot renew stops at once, and leaves the end to others.
pub(super) async fn finish<A: AsRef<App> + Send + Sync>(given: Arc<A>, begun: Begun<A>) {
    let app: &App = (*given).as_ref();
    let began = Instant::now();
    let (renewed, renewal) = watch::channel(begun.at);
    let ran = tokio::select! {
        ran = lease_guard::run(work(given.clone(), begun.job), renewal, begun.at, HELD) => ran,
        () = lost(app, &begun, &renewed) => None,
    };
    let Some(ran) = ran else {
        tracing::warn!(job = begun.job.name, "its run was given up: the lease could not be renewed");
        return;
    };
    let (status, message) = match ran {
        Ok(message) => (Status::Success, message),
        Err(error) => {
            tracing::warn!(job = begun.job.name, %error, "a job failed");
            (Status::Failed, error.to_string())
        }
    };
    let message: String = message.chars().take(LONGEST).collect();
    let ms = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
    let written = async {
        let mut tx = app.db.begin().await?;
        job_run::end(&mut tx, begun.id, &begun.holder, status, &message, ms, app.clock.now()).await?;
        tell(&mut tx, begun.job).await?;
        Ok::<_, Error>(tx.commit().await?)
    };
    if let Err(error) = written.await {
        tracing::error!(job = begun.job.name, %error, "how a job's run ended is not written down; its lease will run out");
    }
}

async fn work<A>(app: Arc<A>, job: &'static Job<A>) -> Result<String> {
    let limited = tokio::time::timeout(job.limit, AssertUnwindSafe((job.run)(app, job.name)).catch_unwind());
    match limited.await {
        Ok(Ok(ran)) => ran,
        Ok(Err(_)) => Err(Error::internal("the job panicked")),
        Err(_) => Err(Error::internal(format_args!("ended after {} s", job.limit.as_secs()))),
    }
}

/// Renews; returns when the run is not ours any more.
async fn lost<A>(app: &App, begun: &Begun<A>, renewed: &watch::Sender<Instant>) {
    let mut failing = 0;
    loop {
        tokio::time::sleep(RENEW).await;
        // The lease counts from before the question: the answer may take its time.
        let asked = Instant::now();
        match job_run::renew(&app.db, begun.id, &begun.holder, Term::of(&app.clock, LEASE)).await {
            Ok(true) => {
                failing = 0;
                renewed.send_replace(asked);
            }
            Ok(false) => return,
            // Two in a row, and the lease is nearly over.
            Err(_) if failing > 0 => return,
            Err(_) => failing += 1,
        }
    }
}

/// Begins a run in this process, at once. One that goes on already is refused.
pub async fn run_now<A: AsRef<App> + Send + Sync>(
    given: &Arc<A>,
    jobs: &'static [Job<A>],
    by: &By,
    name: &str,
) -> Result<JobRun> {
    let app: &App = (**given).as_ref();
    let job = find(jobs, name)?;
    job_run::abandon(&app.db, &app.clock).await?;
    let begun = begin(app, job, None, &base::id::fresh()).await?;
    let begun = begun.ok_or_else(|| Error::conflict("a run of this job is going on"))?;
    audit::record_alone(app, by, AuditEvent::info(Action::ConfigChange, name, "job run by hand")).await?;
    let id = begun.id;
    tokio::spawn(finish(given.clone(), begun));
    job_run::find(&app.db, id).await?.ok_or_else(|| Error::internal("a run that was just begun is gone"))
}
