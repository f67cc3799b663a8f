//! Finishes what clients left: a provider bills a request that it accepted, whether anybody waits for the answer or not, so the
//! gateway reads on until the provider says what it billed.
//!
//! Reading on costs a connection and memory that no client holds any more. It is bounded in number (all together and by key), in
//! time and in bytes, and it ends when the gateway stops. Whatever ends it early, the request's ticket is dropped, and a ticket that
//! is dropped counts what was reserved. So nobody gains anything by using the readers up.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::Response;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::Gateway;
use crate::progress::Progress;
use crate::reply::Reply;

/// The bounds of reading on.
#[derive(Clone, Copy, Debug)]
pub struct ReadOn {
    /// For each request, since its client left.
    pub time: Duration,
    /// For what waits in buffers because a client that leaves in the middle read slowly.
    pub drain: Duration,
    /// What is read of a stream at most, since its client left. Nothing of it is kept.
    pub stream_bytes: usize,
    /// What an answer that is no stream may have at most: it is kept until its end.
    pub whole_bytes: usize,
    /// Requests at once.
    pub readers: usize,
    /// Requests of one sub key at once.
    pub per_key: usize,
}

impl Default for ReadOn {
    fn default() -> ReadOn {
        ReadOn {
            time: Duration::from_secs(120),
            drain: Duration::from_secs(2),
            stream_bytes: 64 * 1024 * 1024,
            whole_bytes: 4 * 1024 * 1024,
            readers: 128,
            per_key: 32,
        }
    }
}

/// Who reads on at present.
pub struct Readers {
    limits: ReadOn,
    all: Arc<Semaphore>,
    by_key: Mutex<HashMap<Arc<str>, usize>>,
    stop: watch::Sender<bool>,
}

impl Readers {
    pub fn new(limits: ReadOn) -> Arc<Readers> {
        let (all, stop) = (Arc::new(Semaphore::new(limits.readers)), watch::Sender::new(false));
        Arc::new(Readers { limits, all, by_key: Mutex::default(), stop })
    }

    fn by_key(&self) -> MutexGuard<'_, HashMap<Arc<str>, usize>> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(self: &Arc<Self>, key: &Arc<str>) -> Option<Slot> {
        let permit = self.all.clone().try_acquire_owned().ok()?;
        let mut by_key = self.by_key();
        let of_key = by_key.entry(key.clone()).or_default();
        if *of_key >= self.limits.per_key {
            return None;
        }
        *of_key += 1;
        drop(by_key);
        metrics::gauge!("tidepool_gateway_reading_on").increment(1.0);
        Some(Slot { readers: self.clone(), key: key.clone(), _permit: permit })
    }

    /// Goes on with the work of a request whose client left, for as long as the bounds allow; then drops it.
    pub fn take(self: &Arc<Self>, key: &Arc<str>, work: impl Future<Output = ()> + Send + 'static) {
        let (Some(slot), Ok(runtime)) = (self.slot(key), Handle::try_current()) else {
            return;
        };
        let (time, mut stopped) = (self.limits.time, self.stop.subscribe());
        runtime.spawn(async move {
            tokio::select! {
                () = work => {}
                () = tokio::time::sleep(time) => {}
                _ = stopped.wait_for(|stopped| *stopped) => {}
            }
            // The work is gone and its ticket is written down: only now is the slot free.
            drop(slot);
        });
    }

    /// Ends all reading on. When this returns, every request is in the log, and no further one is taken.
    pub async fn end(&self) {
        self.stop.send_replace(true);
        let readers = u32::try_from(self.limits.readers).unwrap_or(u32::MAX);
        if let Ok(all) = self.all.acquire_many(readers).await {
            all.forget();
        }
    }
}

/// One reader's place.
struct Slot {
    readers: Arc<Readers>,
    key: Arc<str>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut by_key = self.readers.by_key();
        if let Some(of_key) = by_key.get_mut(&self.key) {
            *of_key -= 1;
            if *of_key == 0 {
                by_key.remove(&self.key);
            }
        }
        metrics::gauge!("tidepool_gateway_reading_on").decrement(1.0);
    }
}

/// A request's way from its body to its answer, which goes on without its client once a provider was asked.
pub struct Attended<F: Future<Output = Response<Reply>> + Send + 'static> {
    gateway: Arc<Gateway>,
    key: Arc<str>,
    progress: Arc<Progress>,
    work: Option<Pin<Box<F>>>,
}

impl<F: Future<Output = Response<Reply>> + Send + 'static> Attended<F> {
    pub fn new(gateway: Arc<Gateway>, key: Arc<str>, progress: Arc<Progress>, work: F) -> Attended<F> {
        Attended { gateway, key, progress, work: Some(Box::pin(work)) }
    }
}

impl<F: Future<Output = Response<Reply>> + Send + 'static> Future for Attended<F> {
    type Output = Response<Reply>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response<Reply>> {
        let Some(work) = &mut self.work else { return Poll::Pending };
        let response = ready!(work.as_mut().poll(cx));
        self.work = None;
        Poll::Ready(response)
    }
}

impl<F: Future<Output = Response<Reply>> + Send + 'static> Drop for Attended<F> {
    fn drop(&mut self) {
        // Cut short by ourselves, or by a panic: the client did not leave.
        if std::thread::panicking() || self.gateway.is_stopping() {
            return;
        }
        let Some(work) = self.work.take() else { return };
        self.progress.leave();
        if !self.progress.is_asked() {
            return;
        }
        self.gateway.readers.take(&self.key, async move {
            if let Reply::Stream(relay) = work.await.into_body() {
                relay.read_on().await;
            }
        });
    }
}
