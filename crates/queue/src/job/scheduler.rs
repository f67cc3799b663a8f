//! Starts jobs when they are due. Every process with the role `scheduler` has one, and a lease decides which of them
//! leads. If two processes both believe that they lead, the unique row of (job, slot) still lets only one of them start
//! a run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::Result;
use jiff::{SignedDuration, Timestamp};
use store::job_run::{self, JobRun};
use store::lease::{self, Term};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{Job, run};
use crate::App;

const NAME: &str = "scheduler";

#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// How often the scheduler checks for due jobs.
    pub look: Duration,
    /// How long a leader keeps the lead without renewing it.
    pub lease: Duration,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing { look: Duration::from_secs(1), lease: Duration::from_secs(15) }
    }
}

pub struct Scheduler<A: 'static> {
    app: Arc<A>,
    jobs: &'static [Job<A>],
    timing: Timing,
    holder: String,
    /// The last slot of each job that is known to have its row.
    done: Mutex<HashMap<&'static str, Timestamp>>,
    /// Slots that wait for a run of another process.
    waiting: Mutex<HashMap<&'static str, Waiting>>,
    runs: Mutex<JoinSet<()>>,
    leads: watch::Sender<bool>,
}

/// The run that blocked a slot, as it was when first seen.
struct Waiting {
    slot: Timestamp,
    run: i64,
    lease_until: Timestamp,
}

impl<A: AsRef<App> + Send + Sync> Scheduler<A> {
    pub fn new(app: Arc<A>, jobs: &'static [Job<A>], timing: Timing) -> Scheduler<A> {
        let holder = base::id::fresh();
        Scheduler {
            app,
            jobs,
            timing,
            holder,
            done: Mutex::default(),
            waiting: Mutex::default(),
            runs: Mutex::default(),
            leads: watch::Sender::new(false),
        }
    }

    /// This crate's part of the app.
    fn engine(&self) -> &App {
        (*self.app).as_ref()
    }

    /// Whether this process leads, for other work that only one replica does.
    pub fn leads(&self) -> watch::Receiver<bool> {
        self.leads.subscribe()
    }

    pub async fn run(self, mut stop: watch::Receiver<bool>) {
        self.engine().db.heartbeats.beat(NAME);
        loop {
            match self.tick().await {
                Ok(_) => self.engine().db.heartbeats.beat(NAME),
                Err(error) => tracing::error!(%error, "the scheduler cannot look what is due"),
            }
            tokio::select! {
                () = tokio::time::sleep(self.timing.look) => {}
                _ = stop.wait_for(|stop| *stop) => break,
            }
        }
        self.engine().db.heartbeats.end(NAME);
        // Runs get 4 s to end. One that still runs then ends with the process, and is marked as failed when its lease
        // runs out.
        let mut runs = std::mem::take(&mut *self.runs.lock().unwrap_or_else(PoisonError::into_inner));
        let ended = async { while runs.join_next().await.is_some() {} };
        tokio::time::timeout(Duration::from_secs(4), ended).await.ok();
        if let Err(error) = lease::release(&self.engine().db, NAME, &self.holder).await {
            tracing::warn!(%error, "the scheduler's lease is not given back; it will run out");
        }
    }

    /// Checks for due jobs once. Returns how many runs it started; `None` if another process leads.
    pub async fn tick(&self) -> Result<Option<usize>> {
        let now = self.engine().clock.now();
        let ttl = SignedDuration::try_from(self.timing.lease).unwrap_or(SignedDuration::from_secs(15));
        let leads = lease::hold(&self.engine().db, NAME, &self.holder, Term::of(&self.engine().clock, ttl)).await?;
        if self.leads.send_replace(leads) != leads {
            let message = if leads { "this process leads: it lets jobs run" } else { "another process leads" };
            tracing::info!(holder = self.holder, "{message}");
        }
        if !leads {
            return Ok(None);
        }
        job_run::abandon(&self.engine().db, &self.engine().clock).await?;
        let mut begun = 0;
        for job in self.jobs {
            let slot = job.when.slot(&self.engine().zone, now);
            if self.is_done(job, slot) {
                continue;
            }
            if job_run::paused(&self.engine().db, job.name).await?.unwrap_or(job.paused) {
                continue;
            }
            begun += usize::from(self.start(job, slot).await?);
        }
        tracing::debug!(holder = self.holder, at = now.as_millisecond(), begun, "looked for due jobs");
        Ok(Some(begun))
    }

    /// Starts the run of the latest slot. However many slots were missed, there is one run.
    async fn start(&self, job: &'static Job<A>, slot: Timestamp) -> Result<bool> {
        let app = self.engine();
        self.give_up_waiting(job, slot).await?;
        if job_run::of_slot(&app.db, job.name, slot).await?.is_some() {
            self.set_done(job, slot);
            return Ok(false);
        }
        if let Some(begun) = run::begin(app, job, Some(slot), &self.holder).await? {
            self.set_done(job, slot);
            let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
            while runs.try_join_next().is_some() {}
            runs.spawn(run::finish(self.app.clone(), begun));
            return Ok(true);
        }
        // A run of another slot is going on, or one that an administrator started.
        if let Some(run) = job_run::running(&app.db, job.name).await?.filter(|run| run.slot != Some(slot))
            && (run.holder == self.holder || self.is_alive(job, slot, &run))
        {
            run::skip(app, job, slot, &self.holder).await?;
            self.set_done(job, slot);
        }
        Ok(false)
    }

    /// Whether another process's run is known to be alive: its lease was renewed since it was first seen to block the
    /// slot. If that process is dead, the lease runs out and the slot gets its run.
    fn is_alive(&self, job: &Job<A>, slot: Timestamp, run: &JobRun) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let first = waiting.entry(job.name).or_insert(Waiting { slot, run: run.id, lease_until: run.lease_until });
        if (first.slot, first.run) != (slot, run.id) {
            *first = Waiting { slot, run: run.id, lease_until: run.lease_until };
        }
        run.lease_until > first.lease_until
    }

    /// Records a slot as skipped if it still waited when the next slot came.
    async fn give_up_waiting(&self, job: &Job<A>, slot: Timestamp) -> Result<()> {
        let passed = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            match waiting.get(job.name) {
                Some(first) if first.slot < slot => waiting.remove(job.name),
                _ => None,
            }
        };
        if let Some(passed) = passed {
            run::skip(self.engine(), job, passed.slot, &self.holder).await?;
        }
        Ok(())
    }

    fn is_done(&self, job: &Job<A>, slot: Timestamp) -> bool {
        // Compare for equality, not for "at or after": if the clock was ahead and is corrected, every job would stop
        // until the clock is there again. If the clock is set back, no slot runs twice, because its row exists.
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.get(job.name) == Some(&slot)
    }

    fn set_done(&self, job: &Job<A>, slot: Timestamp) {
        // The slot has its row, so it does not wait any more.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(job.name);
        self.done.lock().unwrap_or_else(PoisonError::into_inner).insert(job.name, slot);
    }

    /// Waits until all runs that it started have ended.
    pub async fn settled(&self) {
        let mut runs = std::mem::take(&mut *self.runs.lock().unwrap_or_else(PoisonError::into_inner));
        while runs.join_next().await.is_some() {}
    }
}
