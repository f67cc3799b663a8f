//! tidepool's own LLM gateway: the protocols of `protocol`, forwarded to a provider of the model that speaks them, with
//! sub keys, quotas, a fallback chain and a request log that survives a crash of the process.
//!
//! A request passes `server` (authentication, route) → `body` → `forward` (model, quotas) → `fallback` (one provider after
//! the other) → `relay` (a stream) or a whole answer → `ticket` (the line in the `log`, before the last byte is sent).
//! `read_on` finishes requests whose client disconnected. Only `keys`, `models`, `provider` and a quota near its limit read the
//! database. The loader of the log writes to it in the background.

mod body;
mod echo;
mod error;
mod fallback;
mod field;
mod forward;
mod header;
pub mod keys;
mod limit;
mod live;
pub mod log;
pub mod metrics;
mod model_list;
mod models;
mod owner;
mod patient;
mod progress;
mod protocol;
mod provider;
mod read_on;
mod relay;
mod reply;
mod request;
mod seen;
mod server;
mod sse;
mod sticky;
mod ticket;
mod tokens;
mod turn;
mod wait;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use base::Result;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use keys::Keys;
use live::Live;
use llm::App;
use log::Log;
use models::Models;
use owner::Owners;
use provider::Providers;
pub use read_on::ReadOn;
use read_on::Readers;
use sticky::{Pins, Sticky};
use wait::Waits;

/// Timeouts and limits of the gateway.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// For a client to send a request's head; an idle connection is closed after this time too.
    pub head: Duration,
    /// For a client to send a body, and its limit in bytes, also when it is unpacked.
    pub body: Duration,
    pub body_bytes: usize,
    /// For a client that does not read what is written to it.
    pub reader: Duration,
    /// For all providers together, until an answer begins.
    pub answer: Duration,
    /// How long a provider may send nothing in the middle of its answer.
    pub silence: Duration,
    /// For a whole streamed answer, and its limit in bytes: a stream that never ends would hold its quota for ever.
    pub stream: Duration,
    pub stream_bytes: usize,
    /// For answers under way when the gateway stops.
    pub drain: Duration,
    /// How far answers are read whose client disconnected.
    pub read_on: ReadOn,
    /// How often the table of models is read.
    pub models: Duration,
    /// How often providers are read without a notice, and what they answered is written.
    pub providers: Duration,
    pub keys: keys::Timing,
}

/// The usual limit of a body, and the largest that can be set: a body must find room beside others.
pub const DEFAULT_BODY: usize = 8 << 20;
pub const MOST_BODY: usize = 64 << 20;

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            head: Duration::from_secs(30),
            body: Duration::from_secs(30),
            body_bytes: DEFAULT_BODY,
            reader: Duration::from_secs(60),
            answer: Duration::from_secs(600),
            silence: Duration::from_secs(300),
            stream: Duration::from_secs(3600),
            stream_bytes: 256 << 20,
            drain: Duration::from_secs(6),
            read_on: ReadOn::default(),
            models: Duration::from_secs(2),
            providers: Duration::from_secs(10),
            keys: keys::Timing::default(),
        }
    }
}

pub struct Gateway {
    app: Arc<App>,
    log: Arc<Log>,
    keys: Arc<Keys>,
    models: Models,
    providers: Providers,
    waits: Waits,
    sticky: Sticky,
    pins: Pins,
    owners: Owners,
    live: Live,
    timing: Timing,
    ids: Ids,
    /// Permits for large bodies; see `body::ROOM`.
    room: Arc<Semaphore>,
    readers: Arc<Readers>,
    /// The name of the built-in provider `echo`, as the log shows it.
    echo: Arc<str>,
    stopping: AtomicBool,
}

impl Gateway {
    pub async fn open(app: Arc<App>, log: Arc<Log>, timing: Timing) -> Result<Arc<Gateway>> {
        let waits = Waits::new(app.clock.clone());
        Ok(Arc::new(Gateway {
            keys: Keys::new(app.db.clone(), app.clock.clone(), app.sealer.clone(), timing.keys),
            models: Models::open(app.db.clone()).await?,
            providers: Providers::open(app.clone(), &waits).await?,
            waits,
            sticky: Sticky::new(app.clock.clone()),
            pins: Pins::new(app.clock.clone()),
            owners: Owners::new(app.db.clone(), app.clock.clone()),
            live: Live::new(),
            ids: Ids::new(log.replica()),
            room: Arc::new(Semaphore::new(body::ROOM)),
            readers: Readers::new(timing.read_on),
            echo: "echo".into(),
            stopping: AtomicBool::new(false),
            timing,
            app,
            log,
        }))
    }

    /// How many requests are read on at present, after their clients disconnected.
    pub fn reading_on(&self) -> usize {
        self.readers.count()
    }

    /// Serves until `stop` is true. Then it finishes the answers under way, hands back unused quota and loads the rest
    /// of the log.
    pub async fn serve(self: Arc<Self>, listener: TcpListener, stop: watch::Receiver<bool>) {
        if let Err(error) = self.log.inherit().await {
            tracing::warn!(%error, "what others logged is not loaded yet");
        }
        let mut beside = JoinSet::new();
        let notices = self.app.db.listen();
        let gateway = self.clone();
        beside.spawn(async move { gateway.keys.keep(notices).await });
        let gateway = self.clone();
        beside.spawn(async move { gateway.models.keep(gateway.timing.models).await });
        let (gateway, notices) = (self.clone(), self.app.db.listen());
        beside.spawn(async move { gateway.providers.keep(&gateway.waits, notices, gateway.timing.providers).await });
        let gateway = self.clone();
        beside.spawn(async move { gateway.log.keep().await });
        let gateway = self.clone();
        beside.spawn(async move { gateway.app.quotas.keep(&gateway.app).await });
        let gateway = self.clone();
        beside.spawn(async move { gateway.owners.keep().await });
        server::serve(self.clone(), listener, stop).await;
        self.readers.end().await;
        beside.shutdown().await;
        if let Err(error) = self.providers.write().await {
            tracing::warn!(%error, "what providers answered last is not written");
        }
        if let Err(error) = self.app.quotas.hand_back(&self.app, true).await {
            tracing::warn!(%error, "quota was not handed back; the next start forgets it");
        }
        if let Err(error) = self.log.close().await {
            tracing::warn!(%error, "the log is not loaded to its end; the next start does it");
        }
    }

    /// Marks that the gateway itself cuts answers short from now on: their clients did not disconnect.
    fn cuts_short(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }
}

/// Ids of requests: a prefix that no other process has, and a number.
struct Ids {
    prefix: String,
    next: AtomicU64,
}

impl Ids {
    fn new(replica: &str) -> Ids {
        // The end of the replica's name is the random part of its UUID.
        let prefix = replica.rsplit('-').next().unwrap_or(replica).to_owned();
        Ids { prefix, next: AtomicU64::new(1) }
    }

    fn next(&self) -> Arc<str> {
        format!("req-{}-{:x}", self.prefix, self.next.fetch_add(1, Ordering::Relaxed)).into()
    }
}
