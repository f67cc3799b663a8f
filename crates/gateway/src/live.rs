//! The list of requests that are under way.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use metrics::Gauge;
use serde::Serialize;

/// The state of a request that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// No provider has begun to answer.
    Asking = 0,
    /// The answer is being forwarded to the client.
    Answering = 1,
}

/// One request under way.
pub struct Entry {
    number: u64,
    id: Arc<str>,
    token_name: Arc<str>,
    protocol: &'static str,
    stream: bool,
    started_at: Timestamp,
    by: Mutex<(Arc<str>, Arc<str>)>,
    bytes: AtomicU64,
    state: AtomicU8,
}

impl Entry {
    /// Sets the model and the provider that are asked now.
    pub fn set_by(&self, model: &Arc<str>, provider: &Arc<str>) {
        *self.by.lock().unwrap_or_else(PoisonError::into_inner) = (model.clone(), provider.clone());
    }

    pub fn answering(&self) {
        self.state.store(State::Answering as u8, Ordering::Relaxed);
    }

    pub fn passed(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// A request as the list shows it.
#[derive(Debug, Serialize)]
pub struct Shown {
    pub id: String,
    pub token_name: String,
    pub model: String,
    pub provider: String,
    pub protocol: &'static str,
    pub stream: bool,
    pub started_at: String,
    pub bytes: u64,
    pub state: &'static str,
}

pub struct Live {
    entries: Mutex<HashMap<u64, Arc<Entry>>>,
    next: AtomicU64,
    gauge: Gauge,
}

impl Live {
    pub fn new() -> Live {
        let gauge = metrics::gauge!("tidepool_gateway_live");
        Live { entries: Mutex::default(), next: AtomicU64::new(0), gauge }
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<u64, Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn begin(
        &self,
        id: Arc<str>,
        token_name: Arc<str>,
        model: Arc<str>,
        protocol: &'static str,
        stream: bool,
        at: Timestamp,
    ) -> Arc<Entry> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let entry = Arc::new(Entry {
            number,
            id,
            token_name,
            protocol,
            stream,
            started_at: at,
            by: Mutex::new((model, "".into())),
            bytes: AtomicU64::new(0),
            state: AtomicU8::new(State::Asking as u8),
        });
        self.entries().insert(number, entry.clone());
        self.gauge.increment(1.0);
        entry
    }

    pub fn end(&self, entry: &Entry) {
        if self.entries().remove(&entry.number).is_some() {
            self.gauge.decrement(1.0);
        }
    }

    /// All requests under way, oldest first.
    pub fn list(&self, show: impl Fn(Timestamp) -> String) -> Vec<Shown> {
        let mut all: Vec<Arc<Entry>> = self.entries().values().cloned().collect();
        all.sort_by_key(|entry| entry.number);
        let shown = |entry: &Arc<Entry>| {
            let (model, provider) = entry.by.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let answering = entry.state.load(Ordering::Relaxed) == State::Answering as u8;
            Shown {
                id: entry.id.to_string(),
                token_name: entry.token_name.to_string(),
                model: model.to_string(),
                provider: provider.to_string(),
                protocol: entry.protocol,
                stream: entry.stream,
                started_at: show(entry.started_at),
                bytes: entry.bytes.load(Ordering::Relaxed),
                state: if answering { "answering" } else { "asking" },
            }
        };
        all.iter().map(shown).collect()
    }
}
