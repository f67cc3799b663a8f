//! The gateway's request log. A finished request is appended to a segment file with one write, before the last byte of
//! its answer is sent. A loader moves the lines into the database, where all readers find them. Another process loads
//! the segments of a process that was killed.

mod loader;
pub mod record;
mod replica;
mod segment;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base::{Clock, Result, Zone};
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use store::Db;

use llm::usage::{AsOf, Feed};
use loader::{Loader, Of, Progress};
pub use record::Record;
use replica::Replica;
use segment::Writer;

/// Intervals and limits of the log.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// How often new lines are loaded.
    pub load: Duration,
    /// How often segments of dead processes are looked for.
    pub inherit: Duration,
    /// A segment is rotated when it is this large or this old.
    pub rotate_bytes: u64,
    pub rotate_after: Duration,
    /// How long `pull` waits for new lines to be loaded.
    pub patience: Duration,
    /// How long after a failed write the next one is tried.
    pub retry: Duration,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            load: Duration::from_millis(150),
            inherit: Duration::from_secs(5),
            rotate_bytes: 8 * 1024 * 1024,
            rotate_after: Duration::from_secs(60),
            patience: Duration::from_secs(3),
            retry: Duration::from_millis(100),
        }
    }
}

pub struct Log {
    root: PathBuf,
    /// The folder of this process, until the log is closed.
    replica: Mutex<Option<Replica>>,
    name: String,
    folder: PathBuf,
    timing: Timing,
    clock: Clock,
    loader: Loader,
    writer: Mutex<Writer>,
    /// Lines appended by this process, and how many of them are loaded.
    appended: AtomicU64,
    loaded: AtomicU64,
    reading: tokio::sync::Mutex<Vec<Progress>>,
    /// When a load last succeeded: `as_of` while the log cannot be loaded.
    known: Mutex<Timestamp>,
    /// Whether the last write failed, and when a write may be tried again.
    failing: AtomicBool,
    retry_at: Mutex<Instant>,
}

impl Log {
    /// Claims a folder below `root` for this process.
    pub fn open(root: &Path, db: Db, clock: Clock, zone: Zone, timing: Timing) -> io::Result<Arc<Log>> {
        let replica = Replica::claim(root)?;
        let writer = Writer::open(&replica.folder)?;
        let loader = Loader { db, clock: clock.clone(), zone, rejected: root.join("rejected.txt") };
        Ok(Arc::new(Log {
            root: root.to_owned(),
            name: replica.name.clone(),
            folder: replica.folder.clone(),
            replica: Mutex::new(Some(replica)),
            timing,
            known: Mutex::new(clock.now()),
            retry_at: Mutex::new(clock.instant()),
            clock,
            loader,
            reading: tokio::sync::Mutex::new(vec![Progress { part: writer.now(), loaded: Some(0) }]),
            writer: Mutex::new(writer),
            appended: AtomicU64::new(0),
            loaded: AtomicU64::new(0),
            failing: AtomicBool::new(false),
        }))
    }

    /// The name of this process among all that share the database.
    pub fn replica(&self) -> &str {
        &self.name
    }

    /// Appends a request. Once this returns, a crash of the process does not lose it.
    pub fn append(&self, record: &Record<'_>) -> io::Result<()> {
        thread_local! {
            static LINE: std::cell::RefCell<Vec<u8>> = const { std::cell::RefCell::new(Vec::new()) };
        }
        let written = LINE.with_borrow_mut(|line| {
            record.encode(line)?;
            let mut writer = lock(&self.writer);
            writer.append(line)?;
            self.appended.fetch_add(1, Ordering::Release);
            Ok(())
        });
        match &written {
            Ok(()) => self.failing.store(false, Ordering::Relaxed),
            Err(error) => self.failed(error),
        }
        written
    }

    fn failed(&self, error: &io::Error) {
        metrics::counter!("tidepool_gateway_log_failures_total").increment(1);
        if !self.failing.swap(true, Ordering::Relaxed) {
            tracing::error!(%error, "the gateway's log cannot be written: requests are refused until it can");
        }
        *lock(&self.retry_at) = self.clock.instant() + self.timing.retry;
    }

    /// Whether a request may begin: a request that cannot be logged must not be answered.
    pub fn is_writable(&self) -> bool {
        if !self.failing.load(Ordering::Relaxed) {
            return true;
        }
        let mut retry_at = lock(&self.retry_at);
        let now = self.clock.instant();
        if now < *retry_at {
            return false;
        }
        *retry_at = now + self.timing.retry;
        drop(retry_at);
        // Test with a blank line: the loader skips it.
        match lock(&self.writer).append(b"\n") {
            Ok(()) => {
                tracing::info!("the gateway's log can be written again");
                self.failing.store(false, Ordering::Relaxed);
                true
            }
            Err(_) => false,
        }
    }

    /// Loads everything that was appended before the call.
    pub async fn load(&self) -> Result<()> {
        let target = self.appended.load(Ordering::Acquire);
        let mut reading = self.reading.lock().await;
        if self.loaded.load(Ordering::Acquire) >= target && reading.len() == 1 {
            // Another caller loaded them while this one waited for the lock.
            self.note_loaded(target);
            return Ok(());
        }
        let appended = {
            let mut writer = lock(&self.writer);
            if let Err(error) = writer.rotate_if_due(self.timing.rotate_bytes, self.timing.rotate_after) {
                tracing::warn!(%error, "the gateway's log goes on in the same file");
            }
            for closed in writer.take_closed() {
                match reading.iter_mut().find(|p| p.part.number == closed.number) {
                    Some(progress) => progress.part = closed,
                    None => reading.push(Progress::new(closed)),
                }
            }
            let now = writer.now();
            match reading.iter_mut().find(|p| p.part.number == now.number) {
                Some(progress) => progress.part = now,
                None => reading.push(Progress { part: now, loaded: Some(0) }),
            }
            self.appended.load(Ordering::Acquire)
        };
        let of = Of { replica: &self.name, folder: &self.folder };
        while reading.len() > 1 {
            self.loader.finish(of, &mut reading[0]).await?;
            reading.remove(0);
        }
        if let Some(now) = reading.first_mut() {
            self.loader.load(of, now).await?;
        }
        self.note_loaded(appended);
        Ok(())
    }

    fn note_loaded(&self, lines: u64) {
        self.loaded.fetch_max(lines, Ordering::Release);
        *lock(&self.known) = self.clock.now();
    }

    /// Loads the segments of processes that have ended; returns how many processes there were.
    pub async fn inherit(&self) -> Result<usize> {
        let dead = Replica::dead(&self.root).map_err(base::Error::internal)?;
        let count = dead.len();
        for replica in dead {
            let of = Of { replica: &replica.name, folder: &replica.folder };
            self.loader.inherit(of).await?;
            tracing::info!(replica = replica.name, "loaded what a process that is gone had logged");
            replica.remove().map_err(base::Error::internal)?;
        }
        Ok(count)
    }

    /// Loads new lines and the segments of dead processes. Never returns.
    pub async fn keep(&self) {
        let mut inherited = Instant::now();
        let mut failed = false;
        let beats = &self.loader.db.heartbeats;
        beats.beat(loader::LOOP);
        loop {
            tokio::time::sleep(self.timing.load).await;
            let loaded = self.load().await;
            if loaded.is_ok() {
                beats.beat(loader::LOOP);
            }
            if let Err(error) = &loaded
                && !failed
            {
                tracing::warn!(%error, "the gateway's log is not loaded: it is kept in files until the database takes it");
            }
            failed = loaded.is_err();
            if inherited.elapsed() >= self.timing.inherit {
                inherited = Instant::now();
                if let Err(error) = self.inherit().await {
                    tracing::warn!(%error, "what others logged is not loaded");
                }
            }
        }
    }

    /// Loads the rest and removes the folder. If that fails, the next start loads it.
    pub async fn close(&self) -> Result<()> {
        lock(&self.writer).close();
        self.load().await?;
        let of = Of { replica: &self.name, folder: &self.folder };
        self.loader.inherit(of).await?;
        let replica = lock(&self.replica).take();
        replica.map_or(Ok(()), Replica::remove).map_err(base::Error::internal)
    }
}

impl Feed for Log {
    /// Lines that were appended before the call are in the database when it returns, or the result is marked stale.
    fn pull(&self) -> BoxFuture<'_, AsOf> {
        Box::pin(async {
            let target = self.appended.load(Ordering::Acquire);
            if self.loaded.load(Ordering::Acquire) >= target {
                return AsOf { at: self.clock.now(), stale: false };
            }
            match tokio::time::timeout(self.timing.patience, self.load()).await {
                Ok(Ok(())) => AsOf { at: self.clock.now(), stale: false },
                Ok(Err(error)) => {
                    tracing::warn!(%error, "the gateway's log is not loaded");
                    AsOf { at: *lock(&self.known), stale: true }
                }
                Err(_) => AsOf { at: *lock(&self.known), stale: true },
            }
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
