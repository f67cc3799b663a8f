//! An assistant's gateway: OpenClaw's WebSocket (protocol 4), its health endpoints, the page that is its own window, and the
//! listener for a bot's webhook. It answers every message by its own words, streamed, or asks a model for them.
//!
//! What it says and how it refuses was seen of OpenClaw 2026.9.6. A message `count N` is answered by N words, one after the other.

mod devices;
mod gateway;
mod memory;
mod model;
mod page;
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
pub use model::Model;
pub use webhook::Delivered;

/// What a gateway takes and says of itself.
pub const MAX_PAYLOAD: usize = 26_214_400;
pub const MAX_IMAGE: usize = 6_291_456;
pub const VERSION: &str = "2026.9.6";

/// A running gateway with listeners of its own. Dropped, it is gone without a word.
pub struct Assistant {
    address: Ipv4Addr,
    pub port: u16,
    path: &'static str,
    shared: Arc<Shared>,
    serving: Vec<JoinHandle<()>>,
    /// Its ports, while it is stopped.
    reserved: Vec<TcpSocket>,
}

/// A gateway without listeners: whoever has a stream hands it over. Clones are the same gateway, which lives as long as one of them,
/// or one of its conversations, does.
#[derive(Clone)]
pub struct Gateway(Arc<Shared>);

/// What a gateway remembers of conversations; the next one of the same home goes on with it.
#[derive(Clone, Debug, Default)]
pub struct Conversations(Arc<Mutex<Memory>>);

/// A gateway that may be gone.
#[derive(Clone, Default)]
pub struct WeakGateway(Weak<Shared>);

impl WeakGateway {
    pub fn upgrade(&self) -> Option<Gateway> {
        self.0.upgrade().map(Gateway)
    }
}

/// What of a gateway a stream leads to.
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

    /// Has this called with the session's name whenever an answer is begun.
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

    /// One request of a client on the same machine.
    pub async fn call(&self, method: &str, params: &Value) -> Result<Value, Value> {
        gateway::request(&self.0, method, params).await
    }

    pub fn conversations(&self) -> Conversations {
        Conversations(self.0.memory.clone())
    }

    /// Ends: what is being said breaks off, and everybody is told, or, when it was killed, nobody.
    pub fn end(&self, killed: bool) {
        if let Ok(mut memory) = self.0.memory.try_lock() {
            memory.break_off();
        }
        self.0.ending.send_replace(Some(if killed { KILLED } else { "gateway restarting" }));
    }
}

/// A reason that is told to nobody.
const KILLED: &str = "";

/// Told of every run, by its conversation.
type OnRun = Box<dyn Fn(&str) + Send + Sync>;

pub(crate) struct Shared {
    token: String,
    origins: Vec<String>,
    policies: Vec<String>,
    devices: Option<std::sync::Mutex<devices::Devices>>,
    pace: Duration,
    memory: Arc<Mutex<Memory>>,
    /// Events for every connection, without their numbers.
    events: broadcast::Sender<Arc<Value>>,
    /// Why connections are to end: a reason for the `shutdown` event.
    ending: watch::Sender<Option<&'static str>>,
    starting: AtomicBool,
    /// Answers do not go on while this is so.
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

/// How it is to be.
#[derive(Clone, Debug)]
pub struct Options {
    pub token: String,
    /// Where it listens: loopback, unless it is to be reached by another address of this machine.
    pub address: Ipv4Addr,
    /// 0 for any; the webhook listens four above it.
    pub port: u16,
    /// Below which everything of the gateway is, as behind a proxy: empty, or `/a`.
    pub path: &'static str,
    /// Between two words of an answer.
    pub pace: Duration,
    /// Of pages that may open the WebSocket.
    pub origins: Vec<String>,
    /// The Content-Security-Policy headers of its page.
    pub policies: Vec<String>,
    /// Whether a page's device has to be approved, as when it comes from another machine.
    pub pairing: bool,
    pub version: String,
    /// Who is asked for answers; without one it says them itself.
    pub model: Option<Model>,
    /// What was said before.
    pub conversations: Conversations,
    /// How many events may wait for a connection that takes none.
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
            version: VERSION.to_owned(),
            model: None,
            conversations: Conversations::default(),
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
            pace: options.pace,
            memory: options.conversations.0,
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

    /// Keeps the ports while nobody listens on them: no other program is given one of them by chance.
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

    /// Ends as on SIGUSR2: what is being said breaks off, everybody is told, and nobody is there.
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

    /// Comes back on the same port, with what it remembers.
    pub async fn resume(&mut self) -> std::io::Result<()> {
        self.listen().await
    }

    /// Says that it is starting to everybody who comes.
    pub fn set_starting(&self, starting: bool) {
        self.shared.starting.store(starting, Ordering::SeqCst);
    }

    /// Lets answers stand still in the middle, or go on.
    pub fn set_paused(&self, paused: bool) {
        self.shared.paused.send_replace(paused);
    }

    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// What everybody showed who connected: `{headers, params}`.
    pub fn connects(&self) -> Vec<Value> {
        self.shared.connects.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }

    /// How many answers were begun in all.
    pub async fn runs(&self) -> usize {
        self.shared.memory.lock().await.runs()
    }

    /// The secret that a bot's messages must come with.
    pub fn set_webhook_secret(&self, secret: &str) {
        *self.shared.webhook_secret.lock().unwrap_or_else(|e| e.into_inner()) = Some(secret.to_owned());
    }

    /// What came in by the bot's webhook.
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
