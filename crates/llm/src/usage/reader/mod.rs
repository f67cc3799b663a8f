//! Copies the log of a foreign gateway into ours: every row once, whichever process dies and however many processes
//! read.
//!
//! A step reads some rows, then writes them and the new position in one transaction. The transaction succeeds only if
//! no other process has moved the position, so a step that was overtaken or killed has no effect. Missing ids are
//! queried again for a while (`counted`); logs that have only times are read with an overlap (`timed`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base::{Clock, Error, Heartbeats, Kind, PerUsd, Result, Secret, Zone};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use jiff::{SignedDuration, Timestamp};
use remote::llm::Gateway;
use store::Db;
use store::foreign::{ForeignLog, ForeignRow, LogKind, Position};
use store::request_log::{self, ExactRequest, NewRequest, RequestType};
use store::unlogged_request::{self, LoggedRow};
use store::usage_source::{self, Gap, Source};
use tokio::sync::OnceCell;

use super::{AsOf, Feed};

mod counted;
mod timed;

/// The shortest time between two pulls, however many callers ask.
const EVERY: Duration = Duration::from_secs(1);
/// How long a caller waits for a pull. The pull continues without it.
const PATIENCE: Duration = Duration::from_secs(2);
/// Rows per step: a few megabytes at most.
const BATCH: usize = 2_000;
/// How long the value of the gateway's units is cached.
const KEEP_WORTH: Duration = Duration::from_secs(300);
/// How often a reader without new rows still updates its timestamp.
const SIGN_OF_LIFE: SignedDuration = SignedDuration::from_secs(30);

pub struct Reader {
    inner: Arc<Inner>,
    flight: Mutex<Option<Flight>>,
    patience: Duration,
}

/// A pull that was started.
struct Flight {
    /// When it started, in real time: callers measure their wait by it.
    began: Instant,
    /// The same moment by the reader's clock. The next pull is due `EVERY` after it.
    due_from: Instant,
    done: Shared<BoxFuture<'static, ()>>,
}

/// Up to when the log was read, and why the last pull failed.
#[derive(Clone, Debug, Default)]
struct State {
    at: Option<Timestamp>,
    error: Option<String>,
}

/// Values that are fixed during one pull.
#[derive(Clone, Copy)]
struct Pull {
    began: Timestamp,
    worth: PerUsd,
}

struct Inner {
    db: Db,
    clock: Clock,
    zone: Zone,
    gateway: Arc<dyn Gateway>,
    kind: &'static LogKind,
    url: Secret,
    /// Opened at the first pull, so that the platform starts even if the log cannot be reached.
    log: OnceCell<ForeignLog>,
    worth: tokio::sync::Mutex<Option<(PerUsd, Instant)>>,
    counted: counted::Memory,
    timed: tokio::sync::Mutex<timed::Memory>,
    state: Mutex<State>,
}

impl Reader {
    /// A reader of the gateway's log. Nothing is opened yet.
    pub fn new(
        db: Db,
        clock: Clock,
        zone: Zone,
        gateway: Arc<dyn Gateway>,
        kind: &'static LogKind,
        url: Secret,
    ) -> Reader {
        let inner = Inner {
            db,
            clock,
            zone,
            gateway,
            kind,
            url,
            log: OnceCell::new(),
            worth: tokio::sync::Mutex::default(),
            counted: counted::Memory::default(),
            timed: tokio::sync::Mutex::default(),
            state: Mutex::default(),
        };
        Reader { inner: Arc::new(inner), flight: Mutex::new(None), patience: PATIENCE }
    }

    /// Changes how long a caller waits for a pull.
    pub fn with_patience(self, patience: Duration) -> Reader {
        Reader { patience, ..self }
    }

    /// The running pull, or a new one if it is due; `None` if the last pull is too recent.
    fn board(&self) -> Option<(Instant, Shared<BoxFuture<'static, ()>>)> {
        let mut flight = lock(&self.flight);
        if let Some(current) = flight.as_ref() {
            if current.done.peek().is_none() {
                return Some((current.began, current.done.clone()));
            }
            if self.inner.clock.since(current.due_from) < EVERY {
                return None;
            }
        }
        let inner = self.inner.clone();
        // Run it as a task of its own, so that it continues if the caller is dropped.
        let task = tokio::spawn(async move { inner.pull().await });
        let began = Instant::now();
        let done = task.map(drop).boxed().shared();
        *flight = Some(Flight { began, due_from: self.inner.clock.instant(), done: done.clone() });
        Some((began, done))
    }
}

impl Feed for Reader {
    fn pull(&self) -> BoxFuture<'_, AsOf> {
        async {
            let mut unfinished = false;
            if let Some((began, done)) = self.board() {
                // The wait counts from the start of the pull, so that not every caller waits for a long one, such as
                // the first read of a whole log.
                let left = self.patience.saturating_sub(began.elapsed());
                unfinished = tokio::time::timeout(left, done).await.is_err();
            }
            let state = lock(&self.inner.state).clone();
            let stale = unfinished || state.error.is_some() || state.at.is_none();
            AsOf { at: state.at.unwrap_or(Timestamp::UNIX_EPOCH), stale }
        }
        .boxed()
    }

    fn trouble(&self) -> Option<String> {
        lock(&self.inner.state).error.clone()
    }
}

impl Inner {
    async fn pull(&self) {
        let began = self.clock.now();
        let outcome = self.read(began).await;
        let mut state = lock(&self.state);
        match outcome {
            Ok(()) => {
                if state.error.take().is_some() {
                    tracing::info!(kind = self.kind.name, "the gateway's log is read again");
                }
                state.at = Some(began);
            }
            Err(error) => {
                let text = error.to_string();
                if state.error.as_ref() != Some(&text) {
                    tracing::warn!(kind = self.kind.name, %error, "the gateway's log cannot be read");
                }
                state.error = Some(text);
            }
        }
    }

    async fn read(&self, began: Timestamp) -> Result<()> {
        let known = lock(&self.state).at;
        if known.is_none() {
            // Until a pull succeeds, use the time that another process, or an earlier run, recorded.
            let before = usage_source::look(&self.db, self.kind.name).await?.map(|source| source.updated_at);
            lock(&self.state).at = before;
        }
        let log = self.log.get_or_try_init(|| ForeignLog::open(self.kind, &self.url)).await?;
        let pull = Pull { began, worth: self.worth(log).await? };
        let _turn = usage_source::turn(&self.db).await?;
        match log.counts() {
            true => counted::pull(self, log, pull).await,
            false => timed::pull(self, log, pull).await,
        }
    }

    /// The value of the gateway's units. Only the gateway knows it, and a guess would make every number wrong.
    async fn worth(&self, log: &ForeignLog) -> Result<PerUsd> {
        if !log.counts() {
            return Ok(PerUsd::USUAL);
        }
        let mut kept = self.worth.lock().await;
        if let Some((worth, at)) = *kept
            && self.clock.since(at) < KEEP_WORTH
        {
            return Ok(worth);
        }
        let health = self.gateway.health().await;
        let per_usd = match health.per_usd {
            Some(worth) => Some(worth),
            None if health.ok && health.detail.is_empty() => Some(PerUsd::USUAL),
            // The gateway does not respond: use the last known value.
            None => kept.map(|(worth, _)| worth),
        };
        let why = || Error::new(Kind::Unavailable, "the gateway does not say what its units are worth");
        let worth = per_usd.ok_or_else(|| why().with_operator(health.detail))?;
        *kept = Some((worth, self.clock.instant()));
        Ok(worth)
    }

    async fn source(&self, log: &ForeignLog) -> Result<Source> {
        Ok(usage_source::find(&self.db, self.kind.name, &log.start()).await?)
    }

    /// Writes one step: rows, position and gaps. `None` if another process moved the position first; then nothing is
    /// written.
    async fn step(
        &self,
        from: &Source,
        to: Position,
        rows: Vec<ForeignRow>,
        pull: Pull,
        (gone, new): (&[Gap], &[Gap]),
    ) -> Result<Option<Source>> {
        let later = from.updated_at + SignedDuration::from_millis(1);
        // Rows that became visible after the pull started may be missing.
        let to = Source { position: to, updated_at: pull.began.max(later) };
        let logged: Vec<LoggedRow> = rows.iter().filter_map(logged).collect();
        let requests: Vec<_> = rows.into_iter().map(|row| self.request(row, pull.worth)).collect();
        let mut tx = self.db.begin().await?;
        if !usage_source::step(&mut tx, self.kind.name, from, &to).await? {
            return Ok(None);
        }
        if !requests.is_empty() {
            unlogged_request::lock(&mut tx).await?;
            request_log::add_exact(&mut tx, &self.zone, &requests).await?;
            // In this transaction: an answer counts until its row does.
            unlogged_request::settle(&mut tx, &logged).await?;
            usage_source::set_moved(&mut tx, self.kind.name, to.updated_at).await?;
        }
        usage_source::change_gaps(&mut tx, self.kind.name, gone, new).await?;
        tx.commit().await?;
        Ok(Some(to))
    }

    /// Updates the timestamp although there is nothing new, so that after a restart it is known how old the numbers
    /// are.
    async fn sign(&self, from: &Source, pull: Pull) -> Result<Option<Source>> {
        if pull.began.duration_since(from.updated_at).abs() < SIGN_OF_LIFE {
            return Ok(None);
        }
        self.step(from, from.position.clone(), vec![], pull, (&[], &[])).await
    }

    fn request(&self, row: ForeignRow, worth: PerUsd) -> ExactRequest {
        let request_id = match (&row.position, row.request_id) {
            // Rows of old installations have no request id.
            (Position::Id(id), empty) if empty.is_empty() => format!("{}-{id}", self.kind.name),
            (_, request_id) => request_id,
        };
        let quota_rest = row.quota_rest;
        let request = NewRequest {
            request_id,
            token_name: row.token_name,
            model: row.model,
            provider: row.provider,
            kind: row.kind,
            is_stream: row.is_stream,
            prompt_tokens: row.prompt_tokens,
            completion_tokens: row.completion_tokens,
            quota: worth.to_ours(row.quota),
            duration_ms: row.duration_ms,
            error_message: row.error_message,
            estimated: false,
            detail: row.detail,
            created_at: row.created_at,
        };
        ExactRequest { request, quota_rest }
    }
}

/// What identifies the request of a row, if the row is a success.
fn logged(row: &ForeignRow) -> Option<LoggedRow> {
    (row.kind == RequestType::SUCCESS).then(|| LoggedRow {
        request_id: row.request_id.clone(),
        token_name: row.token_name.clone(),
        prompt_tokens: row.prompt_tokens,
        completion_tokens: row.completion_tokens,
        created_at: row.created_at,
    })
}

/// Pulls regularly until it is dropped, so that new rows soon count.
pub async fn follow(feed: &dyn Feed, beats: &Heartbeats) {
    loop {
        beats.beat("usage");
        feed.pull().await;
        tokio::time::sleep(EVERY).await;
    }
}

/// Ignores poisoning: a panic of another holder leaves no inconsistent state.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
