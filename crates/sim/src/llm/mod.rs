//! LLM gateways of other people, as far as a platform meets them: the management of keys, the relay with an echo for a
//! model, and their tables in a real database, with what is odd about each of them left in.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use base::Secret;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

mod echo;
mod family;
pub mod litellm;
pub mod new_api;
pub mod one_api;
pub mod tables;

use tables::Tables;

/// Which tables a gateway finds: those of its own release, or those that an old installation was left with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schema {
    #[default]
    Current,
    Old,
}

/// A gateway that answers.
pub struct Running {
    pub url: String,
    pub admin_token: Secret,
    /// Where its log is: the address for whoever reads it.
    pub log_url: Secret,
    /// Its database, and the one that holds its log: mostly the same.
    pub tables: Tables,
    pub log: Tables,
    pub switches: Arc<Switches>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl Running {
    /// Ends it, with everything that was begun; its tables stay.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        self.serving.await.ok();
        self.log.close().await;
        self.tables.close().await;
    }
}

/// What can be changed while it runs, and what it saw.
#[derive(Default)]
pub struct Switches {
    /// Every call of the management API is one too many: 429, with nothing in it.
    pub throttled: AtomicBool,
    /// The provider behind the gateway refuses connections.
    pub upstream_down: AtomicBool,
    /// new-api: failed attempts are logged.
    pub log_errors: AtomicBool,
    /// LiteLLM: the next key is made, and the answer about it is lost.
    pub lose_next_key: AtomicBool,
    /// The administrator turned the log off.
    pub log_nothing: AtomicBool,
    /// How long after the answer its row is written.
    pub log_delay_ms: AtomicU64,
    calls: Mutex<Vec<String>>,
    limits: Mutex<HashMap<&'static str, VecDeque<Instant>>>,
    /// Rows that are still to be written.
    unwritten: AtomicU64,
}

impl Switches {
    pub fn set(&self, switch: impl Fn(&Switches) -> &AtomicBool, on: bool) {
        switch(self).store(on, Ordering::SeqCst);
    }

    /// Every call so far, as `METHOD /path?query`.
    pub fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until every row of every answered request is written.
    pub async fn written(&self) {
        while self.unwritten.load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn is(&self, switch: impl Fn(&Switches) -> &AtomicBool) -> bool {
        switch(self).load(Ordering::SeqCst)
    }

    /// Takes one of so many calls per window; `false` when there is none left.
    fn take(&self, limit: &'static str, calls: usize, window: Duration) -> bool {
        let mut limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = limits.entry(limit).or_default();
        while taken.front().is_some_and(|at| at.elapsed() >= window) {
            taken.pop_front();
        }
        if taken.len() >= calls {
            return false;
        }
        taken.push_back(Instant::now());
        true
    }

    fn delay(&self) -> Duration {
        Duration::from_millis(self.log_delay_ms.load(Ordering::SeqCst))
    }

    /// Writes a row when its answer is out already, as the gateways do.
    fn later(self: &Arc<Switches>, write: impl Future<Output = sqlx::Result<()>> + Send + 'static) {
        self.unwritten.fetch_add(1, Ordering::SeqCst);
        let (switches, delay) = (self.clone(), self.delay());
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            // A gateway whose database gives way loses the row, and says so in its own log only.
            if let Err(lost) = write.await {
                eprintln!("simulated gateway: failed to record log: {lost}");
            }
            switches.unwritten.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

/// 429 without a word.
fn too_many() -> Response {
    StatusCode::TOO_MANY_REQUESTS.into_response()
}

/// A fault of the simulation, not of what it simulates.
struct Broken(sqlx::Error);

impl From<sqlx::Error> for Broken {
    fn from(error: sqlx::Error) -> Broken {
        Broken(error)
    }
}

impl IntoResponse for Broken {
    fn into_response(self) -> Response {
        // Our clients tell nothing of a body that they cannot read; the test's output does.
        eprintln!("simulated gateway: {}", self.0);
        (StatusCode::INTERNAL_SERVER_ERROR, format!("simulated gateway: {}", self.0)).into_response()
    }
}

type Handled = Result<Response, Broken>;

/// Serves a gateway on a free port.
async fn serve(
    router: Router,
    switches: Arc<Switches>,
    admin_token: Secret,
    (tables, log): (Tables, Tables),
    log_url: Secret,
) -> std::io::Result<Running> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let router = router.layer(middleware::from_fn_with_state(switches.clone(), note));
    let (stop, mut stopped) = watch::channel(false);
    let serving = tokio::spawn(async move {
        let end = async move { stopped.wait_for(|stopped| *stopped).await.map_or((), drop) };
        axum::serve(listener, router).with_graceful_shutdown(end).await.ok();
    });
    Ok(Running { url, admin_token, log_url, tables, log, switches, stop, serving })
}

async fn note(State(switches): State<Arc<Switches>>, request: Request, next: Next) -> Response {
    let call = format!("{} {}", request.method(), request.uri());
    switches.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    next.run(request).await
}

fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

/// Text that nobody has used yet: digits and letters only, as the gateways' keys are.
fn random_text(length: usize) -> String {
    let mut text = String::new();
    while text.len() < length {
        text += &base::id::fresh().replace('-', "").chars().rev().collect::<String>();
    }
    text.truncate(length);
    text
}
