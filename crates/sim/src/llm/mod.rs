//! Simulated foreign LLM gateways, as far as the platform uses them: the management of keys, the relay with an echo as
//! the model, and their tables in a real database. The oddities of each kind are simulated too.

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

/// Which tables a gateway has: those of its own release, or those of an old installation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schema {
    #[default]
    Current,
    Old,
}

/// A running gateway.
pub struct Running {
    pub url: String,
    pub admin_token: Secret,
    /// The address of the database with its log, for the reader of the log.
    pub log_url: Secret,
    /// Its database, and the database of its log: usually the same.
    pub tables: Tables,
    pub log: Tables,
    pub switches: Arc<Switches>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl Running {
    /// A gateway that runs outside of this process: the real one, for the tests that compare.
    pub fn elsewhere(url: String, admin_token: Secret, log_url: Secret, tables: Tables) -> Running {
        let (stop, _) = watch::channel(false);
        let serving = tokio::spawn(async {});
        Running { url, admin_token, log_url, log: tables.clone(), tables, switches: Arc::default(), stop, serving }
    }

    /// Stops it after the requests under way; its tables stay.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        self.serving.await.ok();
        self.log.close().await;
        self.tables.close().await;
    }
}

/// Behaviour that a test can switch while the gateway runs, and the calls that it received.
#[derive(Default)]
pub struct Switches {
    /// Every call of the management API is answered with 429 and an empty body.
    pub throttled: AtomicBool,
    /// The provider behind the gateway refuses connections.
    pub upstream_down: AtomicBool,
    /// The provider behind the gateway refuses the gateway's own key. Its 401 is passed on.
    pub upstream_unauthorized: AtomicBool,
    /// new-api: failed attempts are logged.
    pub log_errors: AtomicBool,
    /// LiteLLM: the next key is created, but the answer is lost (504).
    pub lose_next_key: AtomicBool,
    /// The administrator turned the log off.
    pub log_nothing: AtomicBool,
    /// How long after the answer its row is written.
    pub log_delay_ms: AtomicU64,
    /// new-api: how long after the answer its counters have it.
    pub count_delay_ms: AtomicU64,
    /// A limit of calls to the management API in the place of the real one: calls, and the window in milliseconds.
    pub api_limit: Mutex<Option<(usize, u64)>>,
    refused: AtomicU64,
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

    /// How many calls of the management API were refused because of its limit.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::SeqCst)
    }

    /// Counts a call against the limit of the management API, or against the one that the test has set.
    fn take_api(&self, calls: usize, window: Duration) -> bool {
        let set = *self.api_limit.lock().unwrap_or_else(PoisonError::into_inner);
        let (calls, window) = set.map_or((calls, window), |(calls, ms)| (calls, Duration::from_millis(ms)));
        let taken = !self.is(|s| &s.throttled) && self.take("api", calls, window);
        self.refused.fetch_add(u64::from(!taken), Ordering::SeqCst);
        taken
    }

    fn is(&self, switch: impl Fn(&Switches) -> &AtomicBool) -> bool {
        switch(self).load(Ordering::SeqCst)
    }

    /// Counts a call against a limit per window; `false` if the limit is reached.
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

    /// Writes a row after the answer was sent, as the real gateways do.
    fn later(self: &Arc<Switches>, write: impl Future<Output = sqlx::Result<()>> + Send + 'static) {
        self.after(self.delay(), write);
    }

    fn after(self: &Arc<Switches>, delay: Duration, write: impl Future<Output = sqlx::Result<()>> + Send + 'static) {
        self.unwritten.fetch_add(1, Ordering::SeqCst);
        let switches = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            // A gateway whose database fails loses the row, and reports it in its own log only.
            if let Err(lost) = write.await {
                eprintln!("simulated gateway: failed to record log: {lost}");
            }
            switches.unwritten.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

/// 429 with an empty body.
fn too_many() -> Response {
    StatusCode::TOO_MANY_REQUESTS.into_response()
}

/// An error of the simulation itself, not a simulated one.
struct Broken(sqlx::Error);

impl From<sqlx::Error> for Broken {
    fn from(error: sqlx::Error) -> Broken {
        Broken(error)
    }
}

impl IntoResponse for Broken {
    fn into_response(self) -> Response {
        // The platform's clients do not report a body that they cannot parse, so print it in the test's output.
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

/// A fresh random text of digits and letters, like the gateways' keys.
fn random_text(length: usize) -> String {
    let mut text = String::new();
    while text.len() < length {
        text += &base::id::fresh().replace('-', "").chars().rev().collect::<String>();
    }
    text.truncate(length);
    text
}
