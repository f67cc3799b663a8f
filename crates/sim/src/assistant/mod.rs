//! A simulated gateway of an assistant: OpenClaw's WebSocket (protocol 4), its health endpoints, its page, and the
//! listener for a bot's webhook. It streams an answer to every message: its own, or one of a model.
//!
//! Its answers and refusals are those observed in OpenClaw 2026.9.6. It answers a message `count N` with N words.

mod devices;
mod gateway;
mod memory;
mod model;
mod page;
mod senders;
mod webhook;

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use axum::Router;
use axum::routing::{any, get, post};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{Mutex, broadcast, watch};
use tokio::task::JoinHandle;

use memory::Memory;
pub use memory::Stranded;
pub use model::Model;
pub use senders::{Reply, Senders};
pub use webhook::Delivered;

/// The limits and the version that a gateway reports.
pub const MAX_PAYLOAD: usize = 26_214_400;
pub const MAX_IMAGE: usize = 6_291_456;
pub const VERSION: &str = "2026.9.6";

/// A running gateway with its own listeners. Dropping it ends the listeners without notifying clients.
pub struct Assistant {
    address: Ipv4Addr,
    pub port: u16,
    path: &'static str,
    shared: Arc<Shared>,
    serving: Vec<JoinHandle<()>>,
    /// The ports that it keeps bound while it is stopped.
    reserved: Vec<TcpSocket>,
}

/// A gateway without listeners: the caller passes it streams. All clones are the same gateway. It lives as long as one
/// of them, or one of its connections or running answers.
#[derive(Clone)]
pub struct Gateway(Arc<Shared>);

/// The stored conversations of a gateway; the next gateway of the same home continues with them.
#[derive(Clone, Debug, Default)]
pub struct Conversations(Arc<Mutex<Memory>>);

impl Conversations {
    /// Adds a session that is listed as running since `at`, in milliseconds since 1970.
    pub async fn strand(&self, session: &str, stranded: Stranded, at: i64) {
        self.0.lock().await.strand(session, stranded, at);
    }
}

/// A weak reference to a gateway.
#[derive(Clone, Default)]
pub struct WeakGateway(Weak<Shared>);

impl WeakGateway {
    pub fn upgrade(&self) -> Option<Gateway> {
        self.0.upgrade().map(Gateway)
    }
}

/// Which port of a gateway a stream is connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    Gateway,
    Webhook,
}

impl Gateway {
    pub fn new(options: Options) -> Gateway {
        Gateway(Arc::new(Shared::new(options)))
    }

    pub fn downgrade(&self) -> WeakGateway {
        WeakGateway(Arc::downgrade(&self.0))
    }

    /// Sets the callback that is called with the session's key whenever an answer begins.
    pub fn on_run(&self, called: impl Fn(&str) + Send + Sync + 'static) {
        self.0.on_run.set(Box::new(called)).ok();
    }

    /// Serves one connection.
    pub async fn serve(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, door: Door) {
        let router = match door {
            Door::Gateway => router(&self.0),
            Door::Webhook => bot_router(&self.0),
        };
        let mut ending = self.0.ending.subscribe();
        let serving = http1::Builder::new()
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
            .with_upgrades();
        tokio::select! {
            _ = serving => {}
            _ = ending.wait_for(Option::is_some) => {}
        }
    }

    /// Makes one request as a client on the same machine.
    pub async fn call(&self, method: &str, params: &Value) -> Result<Value, Value> {
        gateway::request(&self.0, method, params).await
    }

    pub fn conversations(&self) -> Conversations {
        Conversations(self.0.memory.clone())
    }

    /// Ends the gateway: running answers break off. Clients are notified, unless it was killed.
    pub fn end(&self, killed: bool) {
        if let Ok(mut memory) = self.0.memory.try_lock() {
            memory.break_off();
        }
        self.0.ending.send_replace(Some(if killed { KILLED } else { "gateway restarting" }));
    }
}

/// The reason of a killed gateway: clients get no `shutdown` event.
const KILLED: &str = "";

/// A callback for every run, with the session's key.
type OnRun = Box<dyn Fn(&str) + Send + Sync>;

pub(crate) struct Shared {
    token: String,
    origins: Vec<String>,
    policies: Vec<String>,
    devices: Option<std::sync::Mutex<devices::Devices>>,
    grants_nothing: bool,
    fails_calls: bool,
    pace: Duration,
    memory: Arc<Mutex<Memory>>,
    senders: Senders,
    /// Events for every connection, without their sequence numbers.
    events: broadcast::Sender<Arc<Value>>,
    /// Set when connections must end: the reason for the `shutdown` event.
    ending: watch::Sender<Option<&'static str>>,
    starting: AtomicBool,
    /// While true, answers pause.
    paused: watch::Sender<bool>,
    connections: AtomicUsize,
    /// The parameters of every `connect`, and the request's headers.
    connects: std::sync::Mutex<Vec<Value>>,
    version: String,
    model: Option<Model>,
    on_run: OnceLock<OnRun>,
    webhook_secret: std::sync::Mutex<Option<String>>,
    delivered: std::sync::Mutex<Vec<Delivered>>,
}

/// How a gateway is set up.
#[derive(Clone, Debug)]
pub struct Options {
    pub token: String,
    /// The address that it listens on: loopback by default, or another address of this machine.
    pub address: Ipv4Addr,
    /// 0 for any free port; the webhook's port is 4 higher.
    pub port: u16,
    /// The prefix of all paths, as behind a proxy: empty, or such as `/a`.
    pub path: &'static str,
    /// The pause between two words of an answer.
    pub pace: Duration,
    /// Origins of pages that may open the WebSocket.
    pub origins: Vec<String>,
    /// The Content-Security-Policy headers of its page.
    pub policies: Vec<String>,
    /// Whether a page's device must be approved, as for a page from another machine.
    pub pairing: bool,
    /// Whether backends get no scopes, as those from another machine.
    pub grants_nothing: bool,
    /// Whether every call after the handshake is refused, as by a gateway that cannot read its own files.
    pub fails_calls: bool,
    pub version: String,
    /// The model that is asked for answers; without one the gateway makes its own.
    pub model: Option<Model>,
    /// Conversations of an earlier gateway.
    pub conversations: Conversations,
    /// Who may write to its bot, and who waits for that.
    pub senders: Senders,
    /// How many events may wait for a slow connection; beyond that it loses the oldest.
    pub backlog: usize,
}

impl Options {
    pub fn new(token: &str) -> Options {
        Options {
            token: token.to_owned(),
            address: Ipv4Addr::LOCALHOST,
            port: 0,
            path: "",
            pace: Duration::from_millis(15),
            origins: vec![],
            policies: vec![page::POLICY.to_owned()],
            pairing: false,
            grants_nothing: false,
            fails_calls: false,
            version: VERSION.to_owned(),
            model: None,
            conversations: Conversations::default(),
            senders: Senders::default(),
            backlog: 4096,
        }
    }
}

impl Shared {
    fn new(options: Options) -> Shared {
        Shared {
            token: options.token,
            origins: options.origins,
            policies: options.policies,
            devices: options.pairing.then(std::sync::Mutex::default),
            grants_nothing: options.grants_nothing,
            fails_calls: options.fails_calls,
            pace: options.pace,
            memory: options.conversations.0,
            senders: options.senders,
            events: broadcast::channel(options.backlog).0,
            ending: watch::channel(None).0,
            starting: AtomicBool::new(false),
            paused: watch::channel(false).0,
            connections: AtomicUsize::new(0),
            connects: std::sync::Mutex::default(),
            version: options.version,
            model: options.model,
            on_run: OnceLock::new(),
            webhook_secret: std::sync::Mutex::default(),
            delivered: std::sync::Mutex::default(),
        }
    }
}

fn router(shared: &Arc<Shared>) -> Router {
    Router::new()
        .route("/", any(gateway::root))
        .route("/healthz", get(|| async { axum::Json(json!({"ok": true, "status": "live"})) }))
        .route("/readyz", get(gateway::ready))
        .route("/startupz", get(gateway::started))
        .route("/tools/invoke", post(|| async { axum::Json(json!({"ok": true, "result": "a tool was run"})) }))
        .fallback(page::serve)
        .with_state(shared.clone())
}

fn bot_router(shared: &Arc<Shared>) -> Router {
    Router::new()
        .route("/telegram-webhook", post(webhook::take))
        .route("/healthz", get(|| async { "ok" }))
        .with_state(shared.clone())
}

impl Assistant {
    pub async fn start(options: Options) -> std::io::Result<Assistant> {
        let (address, port, path) = (options.address, options.port, options.path);
        let shared = Arc::new(Shared::new(options));
        let mut assistant = Assistant { address, port, path, shared, serving: vec![], reserved: vec![] };
        assistant.listen().await?;
        Ok(assistant)
    }

    async fn listen(&mut self) -> std::io::Result<()> {
        // The port four above must be free as well.
        let (listener, webhook) = loop {
            let listener = TcpListener::bind((self.address, self.port)).await?;
            let port = listener.local_addr()?.port();
            match TcpListener::bind((self.address, port.saturating_add(4))).await {
                Ok(webhook) => break (listener, webhook),
                Err(error) if self.port != 0 => return Err(error),
                Err(_) => {}
            }
        };
        self.port = listener.local_addr()?.port();
        let gateway = router(&self.shared);
        let gateway = if self.path.is_empty() { gateway } else { Router::new().nest(self.path, gateway) };
        let bot = bot_router(&self.shared);
        self.serving = vec![
            tokio::spawn(async move { axum::serve(listener, gateway).await.unwrap_or_default() }),
            tokio::spawn(async move { axum::serve(webhook, bot).await.unwrap_or_default() }),
        ];
        self.reserved.clear();
        Ok(())
    }

    /// Keeps the ports bound while nothing listens, so that no other program gets one of them.
    fn reserve(&mut self) {
        let ports = [self.port, self.port.saturating_add(4)];
        self.reserved = ports.into_iter().filter_map(|port| self.bound(port).ok()).collect();
    }

    fn bound(&self, port: u16) -> std::io::Result<TcpSocket> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind((self.address, port).into())?;
        Ok(socket)
    }

    /// Stops as on SIGUSR2: running answers break off, clients are notified, and nothing listens any more.
    pub async fn stop(&mut self) {
        self.shared.memory.lock().await.break_off();
        for serving in self.serving.drain(..) {
            serving.abort();
            serving.await.ok();
        }
        self.reserve();
        self.shared.ending.send_replace(Some("gateway restarting"));
        while self.connections() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.shared.ending.send_replace(None);
    }

    /// Listens again on the same port, with its conversations.
    pub async fn resume(&mut self) -> std::io::Result<()> {
        self.listen().await
    }

    /// While set, every `connect` is refused and /readyz answers 503.
    pub fn set_starting(&self, starting: bool) {
        self.shared.starting.store(starting, Ordering::SeqCst);
    }

    /// Pauses answers in the middle, or continues them.
    pub fn set_paused(&self, paused: bool) {
        self.shared.paused.send_replace(paused);
    }

    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// The headers and parameters of every `connect`: `{headers, params}`.
    pub fn connects(&self) -> Vec<Value> {
        self.shared.connects.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }

    /// How many answers were started in total.
    pub async fn runs(&self) -> usize {
        self.shared.memory.lock().await.runs()
    }

    /// Sets the secret that webhook calls must have.
    pub fn set_webhook_secret(&self, secret: &str) {
        *self.shared.webhook_secret.lock().unwrap_or_else(|e| e.into_inner()) = Some(secret.to_owned());
    }

    /// The messages that the webhook received.
    pub fn delivered(&self) -> Vec<Delivered> {
        self.shared.delivered.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }
}

impl Drop for Assistant {
    fn drop(&mut self) {
        for serving in &self.serving {
            serving.abort();
        }
    }
}
