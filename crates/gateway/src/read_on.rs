//! Finishes requests whose client disconnected. A provider bills a request that it accepted even if nobody waits for
//! the answer, so the gateway reads on until the provider reports the usage.
//!
//! Reading on costs a connection and memory. It is limited in number (in total and by key), in time and in bytes, and
//! it ends when the gateway stops. If it ends early, the request's ticket is dropped, and a dropped ticket counts the
//! reserved amount. So a client gains nothing by using up the readers.

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

/// The limits of reading on.
#[derive(Clone, Copy, Debug)]
pub struct ReadOn {
    /// For each request, since its client disconnected.
    pub time: Duration,
    /// For reading the buffers of a stream whose slow client disconnected in the middle.
    pub drain: Duration,
    /// Limit for a stream, since its client disconnected. Nothing of it is kept.
    pub stream_bytes: usize,
    /// Limit for an answer that is not streamed: it is kept in memory until its end.
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

/// The requests that are read on at present.
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

    /// How many requests are read on at present.
    pub fn count(&self) -> usize {
        self.limits.readers - self.all.available_permits()
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

    /// Continues the work of a request whose client disconnected, and drops it when a limit is reached.
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
            // Free the slot only now, when the work is dropped and its ticket is logged: `end` waits for that.
            drop(slot);
        });
    }

    /// Ends all reading on. When this returns, all of these requests are logged, and no further one is taken.
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

/// The future from a request's body to its answer. If the client disconnects after a provider was asked, the future is
/// dropped, and its work continues in the background.
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
        // After a panic, or when the gateway stops, it is not the client that disconnected.
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
