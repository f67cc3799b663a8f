//! Runs tasks. Any number of workers, in any number of processes, share the queue.
//!
//! A worker holds a task by a lease that it renews, never by an open transaction. If a worker dies, its lease runs out
//! and another worker retries the task; the lost attempt counts. A worker that could not renew in time abandons its
//! tasks before another worker may take them.

mod holding;
mod room;

use std::any::Any;
use std::ops::RangeInclusive;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::{Error, Result};
use futures_util::FutureExt as _;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use store::lease::{Now, Term};
use store::notice::{Notice, Topic};
use store::task::{self, Failure, Held, Status, Task};
use store::{server, task_log};
use tokio::sync::{broadcast, watch};
use tokio::task::JoinSet;

use crate::alert::{self, DeliverAlert, Rule};
use crate::audit::{self, Action, AuditEvent, By, Level};
use crate::task::{Context, Payload as _, Priority, TaskType, subject};
use crate::{App, lease_guard};
use holding::Holding;
use room::Room;

/// A task that failed this often is dead.
pub const MOST_ATTEMPTS: i64 = 5;

/// The longest wait that a failed attempt may ask for before the next.
const LONGEST_WAIT: Duration = Duration::from_secs(1800);

/// The wait before an outcome that could not be written is written again.
const WRITE_AGAIN: Duration = Duration::from_millis(500);

/// The name of a worker's heartbeat.
const LOOP: &str = "worker";

/// How a worker keeps time.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    pub lease: Duration,
    /// How often the queue is read when no notice says that it changed.
    pub poll: Duration,
    /// The wait after the first failure; it doubles with each further one.
    pub backoff: Duration,
    /// How many tasks may run at the same time.
    pub slots: usize,
    /// How long running tasks may go on after the worker must stop.
    pub drain: Duration,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            lease: Duration::from_secs(60),
            poll: Duration::from_secs(5),
            backoff: Duration::from_secs(5),
            slots: 16,
            drain: Duration::from_secs(5),
        }
    }
}

/// No valid lease is longer than this, or than four times the lease of this worker, whichever is longer. A longer one
/// was written by a clock that was ahead.
const LONGEST_LEASE: Duration = Duration::from_secs(600);

pub struct Worker<A: 'static> {
    app: Arc<A>,
    types: &'static [TaskType<A>],
    timing: Timing,
    name: String,
}

/// How a task ended, seen from its worker.
enum Outcome {
    Ran(Result<String>),
    /// The lease could not be renewed, so another worker may hold the task by now.
    LeaseLost,
}

/// A task that ended, and how.
type Ended = (Held, Outcome);

impl<A: AsRef<App> + Send + Sync> Worker<A> {
    pub fn new(app: Arc<A>, types: &'static [TaskType<A>], timing: Timing) -> Worker<A> {
        Worker { app, types, timing, name: base::id::fresh() }
    }

    /// This crate's part of the app.
    fn engine(&self) -> &App {
        (*self.app).as_ref()
    }

    /// Runs tasks until `stop` is set, then finishes or gives back what it holds.
    pub async fn run(self, mut stop: watch::Receiver<bool>) {
        let handled: Vec<&str> = self.types.iter().map(|t| t.name).collect();
        let mut notices = self.engine().db.listen();
        let (renewed, renewal) = watch::channel(Instant::now());
        let mut running: JoinSet<Ended> = JoinSet::new();
        let mut room = Room::new(self.timing.slots);
        let mut held = Holding::default();
        let mut unwritten: Vec<Ended> = vec![];
        let mut renew = tokio::time::interval(self.timing.lease / 3);
        let mut looked_after = Instant::now().checked_sub(self.timing.poll);
        self.engine().db.heartbeats.beat(LOOP);
        while !*stop.borrow() {
            if looked_after.is_none_or(|at| at.elapsed() >= self.timing.poll.min(self.timing.lease)) {
                looked_after = Some(Instant::now());
                if let Err(error) = self.take_up_abandoned(&held).await {
                    tracing::error!(%error, "abandoned tasks cannot be taken up");
                }
            }
            // Count the leases from before the request.
            let asked = Instant::now();
            room.hold(held.all().map(|hold| hold.priority));
            let claimed = match self.claim(&handled, &mut room).await {
                Ok(claimed) => {
                    self.engine().db.heartbeats.beat(LOOP);
                    claimed
                }
                Err(error) => {
                    tracing::error!(%error, "the task queue cannot be read");
                    vec![]
                }
            };
            let busy = !claimed.is_empty() && room.open().is_some();
            for (task, hold) in claimed {
                let run = running.spawn(self.start(task, hold.clone(), renewal.clone(), asked));
                held.add(hold, run);
            }
            if busy {
                // There was work, and slots are free: there may be more.
                continue;
            }
            let mut wait = self.until_next(&handled).await;
            if !unwritten.is_empty() {
                self.finished(&mut unwritten, &mut running, &mut held).await;
                wait = wait.min(WRITE_AGAIN);
            }
            tokio::select! {
                _ = tokio::time::sleep(wait) => {}
                () = noticed(&mut notices) => {}
                Some(ended) = running.join_next() => {
                    keep(ended, &mut unwritten, &mut held);
                    self.finished(&mut unwritten, &mut running, &mut held).await;
                }
                _ = renew.tick() => self.renew(&mut held, &renewed).await,
                () = told_to_stop(&mut stop) => {}
            }
        }
        self.engine().db.heartbeats.end(LOOP);
        self.wind_down(running, held, unwritten, &renewed, renew).await;
    }

    async fn wind_down(
        &self,
        mut running: JoinSet<Ended>,
        mut held: Holding,
        mut unwritten: Vec<Ended>,
        renewed: &watch::Sender<Instant>,
        mut renew: tokio::time::Interval,
    ) {
        let deadline = tokio::time::sleep(self.timing.drain);
        tokio::pin!(deadline);
        while !held.is_empty() {
            tokio::select! {
                Some(ended) = running.join_next() => {
                    keep(ended, &mut unwritten, &mut held);
                    self.finished(&mut unwritten, &mut running, &mut held).await;
                }
                _ = renew.tick() => self.renew(&mut held, renewed).await,
                () = tokio::time::sleep(WRITE_AGAIN), if !unwritten.is_empty() => {
                    self.finished(&mut unwritten, &mut running, &mut held).await;
                }
                () = &mut deadline => break,
            }
        }
        // Abort what still runs before another worker may take it. A task that ended but whose outcome could not be
        // written is not given back, because its work is done: its lease runs out.
        running.shutdown().await;
        for (hold, _) in unwritten {
            held.release(&hold);
        }
        for hold in held.all() {
            if let Err(error) = self.give_back(hold).await {
                tracing::warn!(%error, task = %hold.id, "not given back; its lease will run out");
            }
        }
    }

    /// Returns a started task to the queue for another worker. If a task with the same payload waits already, that one
    /// is enough, and this one is done.
    async fn give_back(&self, hold: &Held) -> store::Result<()> {
        let now = self.engine().clock.now();
        let mut tx = self.engine().db.begin().await?;
        match task::give_back(&mut tx, hold, now).await {
            Err(store::Error::Taken) => {
                // PostgreSQL accepts nothing more in a failed transaction.
                drop(tx);
                tx = self.engine().db.begin().await?;
                task::done(&mut tx, hold, "another task that does the same waits", now).await?;
            }
            other => drop(other?),
        }
        tx.notify(Notice::new(Topic::Task, &hold.id)).await?;
        tx.commit().await
    }

    /// Claims as many due tasks as there are free slots.
    async fn claim(&self, handled: &[&str], room: &mut Room) -> Result<Vec<(Task, Held)>> {
        let Some(priorities) = room.open().filter(|_| !handled.is_empty()) else { return Ok(vec![]) };
        let (before, limit) = (room.clone(), room.limit());
        match self.claim_some(handled, room, &priorities, limit).await {
            // Another worker started a task of the same instance at the same moment. Try again with one task.
            Err(store::Error::Taken) => {
                *room = before.clone();
                match self.claim_some(handled, room, &priorities, 1).await {
                    Err(store::Error::Taken) => {
                        *room = before;
                        Ok(vec![])
                    }
                    other => Ok(other?),
                }
            }
            other => Ok(other?),
        }
    }

    async fn claim_some(
        &self,
        handled: &[&str],
        room: &mut Room,
        priorities: &RangeInclusive<Priority>,
        limit: usize,
    ) -> store::Result<Vec<(Task, Held)>> {
        let now = self.engine().clock.now();
        let mut tx = self.engine().db.begin().await?;
        let asked = |full| task::Due { types: handled, priorities, full, limit };
        let mut due = task::lock_due(&mut tx, asked(&[]), now).await?;
        if due.iter().any(|task| task.server_id.is_some()) {
            let servers = server::count(&mut tx).await?;
            room.share(servers, task::running_by_server(&mut tx).await?);
            let full = room.full_servers();
            // Tasks of full servers use up the limit of the query, so query again without these servers.
            if due.iter().any(|task| task.server_id.as_ref().is_some_and(|server| full.contains(server))) {
                due = task::lock_due(&mut tx, asked(&full), now).await?;
            }
        }
        let mut claimed = vec![];
        for task in due {
            if room.take(task.priority, task.server_id.as_ref()) {
                let term = Term::of(&self.engine().clock, signed(self.timing.lease));
                let hold = task::begin(&mut tx, &task, &self.name, now, term).await?;
                claimed.push((task, hold));
            }
        }
        if !claimed.is_empty() {
            tx.commit().await?;
        }
        Ok(claimed)
    }

    /// Records a failure for tasks whose worker stopped renewing; they are retried or dead. Tasks that this worker
    /// holds are skipped: if a clock was set forward, a lease may look over although it is about to be renewed.
    async fn take_up_abandoned(&self, held: &Holding) -> Result<()> {
        let now = Now::of(&self.engine().clock);
        // Check without a write transaction first: there is almost never an abandoned task. A lease that is longer than
        // `longest` counts as abandoned too.
        let longest = signed(LONGEST_LEASE.max(self.timing.lease * 4));
        if !task::any_abandoned(&self.engine().db, now, longest).await? {
            return Ok(());
        }
        let mut tx = self.engine().db.begin().await?;
        for task in task::lock_abandoned(&mut tx, now, longest, 100).await? {
            let worker = task.worker.clone().unwrap_or_default();
            let hold = Held { id: task.id.clone(), worker, attempt: task.attempts, priority: task.priority };
            if held.has(&hold) {
                continue;
            }
            let silent = "its worker stopped answering";
            let failure = Failure { error: silent, client_message: silent };
            self.record_failure(&mut tx, &task, &hold, &failure, None).await?;
        }
        Ok(tx.commit().await?)
    }

    /// Runs one task, from its payload to its outcome. It is abandoned when its lease cannot be renewed.
    fn start(
        &self,
        task: Task,
        hold: Held,
        renewal: watch::Receiver<Instant>,
        claimed: Instant,
    ) -> impl Future<Output = Ended> + Send + 'static {
        let run = self.types.iter().find(|t| t.is_named(&task.r#type)).map(|t| t.run);
        let app = self.app.clone();
        let lease = self.timing.lease;
        async move {
            let payload = serde_json::from_str::<Value>(&task.payload).map_err(Error::internal);
            let context = Context { app, task, held: hold.clone() };
            let work = async move {
                match run {
                    Some(run) => run(payload?, context).await,
                    None => Err(Error::internal("nothing here runs this type")),
                }
            };
            // A panic fails only this attempt. Dropping the future ends the work.
            let work = AssertUnwindSafe(work).catch_unwind();
            match lease_guard::run(work, renewal, claimed, lease * 9 / 10).await {
                Some(Ok(ended)) => (hold, Outcome::Ran(ended)),
                Some(Err(panic)) => (hold, Outcome::Ran(Err(Error::internal(panic_text(&*panic))))),
                None => (hold, Outcome::LeaseLost),
            }
        }
    }

    /// Renews the leases of all held tasks. A task whose lease was lost is aborted: another worker has it, or soon
    /// will.
    async fn renew(&self, held: &mut Holding, renewed: &watch::Sender<Instant>) {
        // Count the lease from before the request, because the response may be slow.
        let asked = Instant::now();
        let term = Term::of(&self.engine().clock, signed(self.timing.lease));
        match task::renew(&self.engine().db, &self.name, held.all(), term).await {
            Ok(lost) => {
                for lost in &lost {
                    tracing::warn!(task = %lost.id, attempt = lost.attempt, "abandoned: another worker has it by now");
                    held.abandon(lost);
                }
                renewed.send_replace(asked);
            }
            Err(error) => tracing::warn!(%error, "leases could not be renewed"),
        }
    }

    /// Writes the outcomes of ended tasks in one transaction, or one by one if that fails. An outcome that cannot be
    /// written now stays held and is written later.
    async fn finished(&self, unwritten: &mut Vec<Ended>, running: &mut JoinSet<Ended>, held: &mut Holding) {
        while let Some(ended) = running.try_join_next() {
            keep(ended, unwritten, held);
        }
        let all = std::mem::take(unwritten);
        if self.write(&all).await.is_ok() {
            for (hold, _) in all {
                held.release(&hold);
            }
            return;
        }
        for one in all {
            match self.write(std::slice::from_ref(&one)).await {
                Ok(()) => held.release(&one.0),
                Err(error) => {
                    tracing::error!(%error, task = %one.0.id, "its outcome could not be written yet");
                    unwritten.push(one);
                }
            }
        }
    }

    async fn write(&self, ended: &[Ended]) -> Result<()> {
        let mut tx = self.engine().db.begin().await?;
        for (hold, outcome) in ended {
            match outcome {
                Outcome::Ran(Ok(result)) => {
                    if task::done(&mut tx, hold, result, self.engine().clock.now()).await? {
                        alert::resolve(self.engine(), &mut tx, Rule::TaskDead, &subject(&hold.id)).await?;
                        tx.notify(Notice::new(Topic::Task, &hold.id)).await?;
                    }
                }
                Outcome::Ran(Err(error)) => {
                    let id = hold.id.clone();
                    if let Some(task) = task::lock(&mut tx, &id).await? {
                        let failure = Failure { error: &error.to_string(), client_message: &error.client };
                        self.record_failure(&mut tx, &task, hold, &failure, error.retry_after).await?;
                    }
                }
                Outcome::LeaseLost => tracing::warn!(task = %hold.id, "abandoned: its lease could not be renewed"),
            }
        }
        Ok(tx.commit().await?)
    }

    /// The one place where an attempt fails: state, log line and audit entry together. `asked` is the wait that whoever
    /// refused has asked for.
    async fn record_failure(
        &self,
        tx: &mut store::Tx,
        task: &Task,
        hold: &Held,
        failure: &Failure<'_>,
        asked: Option<Duration>,
    ) -> Result<()> {
        let now = self.engine().clock.now();
        let status = if hold.attempt >= MOST_ATTEMPTS { Status::Dead } else { Status::Failed };
        let asked = asked.map_or(SignedDuration::ZERO, |asked| signed(asked.min(LONGEST_WAIT)));
        let next = now + self.backoff(hold.attempt).max(asked);
        if !task::failed(tx, hold, status, failure, next, now).await? {
            return Ok(());
        }
        task_log::write(&mut *tx, &task.id, hold.attempt, &format!("failed: {}", failure.client_message), now).await?;
        // A dead delivery must not raise an alert, because that would enqueue another delivery.
        let alerts = self.types.iter().find(|t| t.is_named(&task.r#type)).is_none_or(|t| t.alerts_when_dead);
        if status == Status::Dead && alerts && task.r#type != DeliverAlert::TYPE {
            let message = format!("task {} was given up: {}", task.r#type, failure.client_message);
            alert::raise(self.engine(), tx, Rule::TaskDead, &subject(&task.id), &message).await?;
        }
        let detail = format!("{} attempt {} of {MOST_ATTEMPTS}: {}", task.r#type, hold.attempt, failure.error);
        let event = AuditEvent { action: Action::TaskFailed, level: Level::Error, target: &task.id, detail: &detail };
        audit::record(self.engine(), tx, &By::system(), event).await?;
        Ok(tx.notify(Notice::new(Topic::Task, &task.id)).await?)
    }

    /// The wait doubles with each attempt, plus up to a quarter at random, so that tasks that failed together do not
    /// retry together.
    fn backoff(&self, attempt: i64) -> SignedDuration {
        let doubled = signed(self.timing.backoff) * (1 << (attempt - 1).clamp(0, 10));
        let jitter = base::secret::random_bytes::<1>().map_or(0, |b| i32::from(b[0]));
        doubled + doubled * jitter / 1024
    }

    /// How long until the next task is due, unless a notice comes first.
    async fn until_next(&self, handled: &[&str]) -> Duration {
        let now: Timestamp = self.engine().clock.now();
        match task::next_due(&self.engine().db, handled, now).await {
            Ok(Some(due)) => Duration::try_from(due.duration_since(now)).unwrap_or_default().min(self.timing.poll),
            _ => self.timing.poll,
        }
    }
}

/// Adds an ended task to those whose outcome must be written.
fn keep(ended: Result<Ended, tokio::task::JoinError>, unwritten: &mut Vec<Ended>, held: &mut Holding) {
    match ended {
        Ok(ended) => unwritten.push(ended),
        // This worker aborted it after it lost the lease, so it must not write an outcome.
        Err(error) if error.is_cancelled() => {}
        Err(error) => {
            tracing::error!(%error, "a task's keeper ended; its lease will run out");
            held.forget(error.id());
        }
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let said = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    format!("the task panicked: {said}")
}

/// Returns when the worker must stop, or when the sender of `stop` is gone.
async fn told_to_stop(stop: &mut watch::Receiver<bool>) {
    stop.wait_for(|stop| *stop).await.ok();
}

/// Returns when a notice says that the queue changed.
async fn noticed(notices: &mut broadcast::Receiver<Notice>) {
    loop {
        match notices.recv().await {
            Ok(notice) if matches!(notice.topic, Topic::Task | Topic::Anything) => return,
            Ok(_) => {}
            // Some notices were missed, and one of them may have been about the queue.
            Err(broadcast::error::RecvError::Lagged(_)) => return,
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}
