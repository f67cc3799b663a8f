//! One run of a job. Its row is written before the run starts and held by a lease during it; only the holder writes the
//! end.

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

/// A run whose lease is not renewed for this long counts as failed.
const LEASE: SignedDuration = SignedDuration::from_secs(30);
const RENEW: Duration = Duration::from_secs(10);
/// A process that could not renew for this long stops its run, before another process may start the next one.
const HELD: Duration = Duration::from_secs(27);
/// The longest message of a run that is stored, in characters.
const LONGEST: usize = 2000;

/// A run that this process has started and must finish.
pub(super) struct Begun<A: 'static> {
    job: &'static Job<A>,
    pub id: i64,
    holder: String,
    /// When the lease began.
    at: Instant,
}

/// Starts a run. `None` if the slot has a run already, or another run of the job is going on.
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

/// Publishes an event about the job. Jobs that run every few seconds publish none.
async fn tell<A>(tx: &mut store::Tx, job: &Job<A>) -> Result<()> {
    if matches!(job.when, When::Seconds(_)) {
        return Ok(());
    }
    Ok(tx.notify(Notice::new(Topic::Job, job.name)).await?)
}

/// Records that a slot is skipped because the run before it was still going on. False if the slot has a row already.
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

/// Does the work and writes how it ended. If the lease cannot be renewed, it stops at once and writes nothing: the
/// scheduler marks the run as failed.
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

/// Renews the lease; returns when this process has lost the run.
async fn lost<A>(app: &App, begun: &Begun<A>, renewed: &watch::Sender<Instant>) {
    let mut failing = 0;
    loop {
        tokio::time::sleep(RENEW).await;
        // Count the lease from before the request, because the response may be slow.
        let asked = Instant::now();
        match job_run::renew(&app.db, begun.id, &begun.holder, Term::of(&app.clock, LEASE)).await {
            Ok(true) => {
                failing = 0;
                renewed.send_replace(asked);
            }
            Ok(false) => return,
            // After two failures in a row the lease is nearly over.
            Err(_) if failing > 0 => return,
            Err(_) => failing += 1,
        }
    }
}

/// Starts a run in this process at once. Refused while another run of the job is going on.
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
