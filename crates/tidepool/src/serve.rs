//! Runs what the roles name until the process is told to stop.

use std::sync::Arc;
use std::time::{Duration, Instant};

use api::state::Api;
use base::{Error, Result};
use domain::task::{TYPES, Worker};
use domain::token::Audience;
use domain::{App, bootstrap};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::config::{Config, Role};
use crate::open::Opened;
use crate::{open, telemetry, web};

/// Requests under way get this long after SIGTERM; the process ends within ten seconds.
const DRAIN: Duration = Duration::from_secs(8);

pub async fn run(config: &Config) -> Result<()> {
    let began = Instant::now();
    allow_many_files();
    let opened = open::open(config).await?;
    if !opened.applied.is_empty() {
        tracing::info!(versions = ?opened.applied, "schema brought up to date");
    }
    if let Some(made) =
        bootstrap::first_admin(&opened.app, config.bootstrap_email.clone(), config.bootstrap_password.clone()).await?
        && let Some(password) = made.generated
    {
        // Printed, not logged: logs are kept and read by others.
        println!("first administrator: {} with password {} (shown only now)", made.email, password.expose());
    }
    let running = Running::start(config, opened).await?;
    let urls = running.urls.join(", ");
    tracing::info!(version = env!("CARGO_PKG_VERSION"), ms = began.elapsed().as_millis() as u64, urls, "ready");
    told_to_stop().await?;
    tracing::info!("stopping");
    running.stop().await;
    tracing::info!("stopped");
    Ok(())
}

/// What was started.
pub struct Running {
    pub app: Arc<App>,
    pub urls: Vec<String>,
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
    // Its lock says that the database is in use.
    _opened: Opened,
}

impl Running {
    pub async fn start(config: &Config, opened: Opened) -> Result<Running> {
        let metrics = telemetry::metrics()?;
        let (stop, stopped) = watch::channel(false);
        let mut running =
            Running { app: opened.app.clone(), urls: vec![], tasks: JoinSet::new(), stop, _opened: opened };
        let sides = [
            (Role::Employee, Audience::Employee, &config.employee, web::employee as api::web::Assets),
            (Role::Admin, Audience::Admin, &config.admin, web::admin as api::web::Assets),
        ];
        for (role, side, of, assets) in sides {
            if !config.runs(role) {
                continue;
            }
            let api = Api {
                app: running.app.clone(),
                side,
                version: env!("CARGO_PKG_VERSION"),
                public_url: of.public_url.clone(),
                assets,
                trusted_proxies: config.trusted_proxies.clone().into(),
                metrics: metrics.clone(),
                metrics_token: config.metrics_token.clone(),
            };
            let listener = TcpListener::bind(of.listen).await.map_err(|e| {
                Error::internal(format_args!("cannot listen on {} for the {} API: {e}", of.listen, side.as_str()))
            })?;
            let router = api::server::router(Arc::new(api));
            let stopped = stopped.clone();
            running.urls.push(of.public_url.join("/"));
            running.tasks.spawn(async move {
                if let Err(error) = api::server::serve(listener, router, stopped).await {
                    tracing::error!(%error, "listener ended");
                }
            });
        }
        if config.runs(Role::Worker) {
            let db = running.app.db.clone();
            let worker = Worker::new(running.app.clone(), TYPES, config.task_timing);
            let stopped = stopped.clone();
            running.tasks.spawn(async move {
                // Hears what other processes enqueue, for as long as the worker works.
                tokio::select! {
                    () = db.relay_notices() => {}
                    () = worker.run(stopped) => {}
                }
            });
        }
        Ok(running)
    }

    /// Takes nothing new, finishes what was begun, and gives up on what takes too long.
    pub async fn stop(mut self) {
        self.stop.send(true).ok();
        let drained = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(DRAIN, drained).await.is_err() {
            tracing::warn!("some requests were still running");
            self.tasks.abort_all();
        }
        tokio::time::timeout(Duration::from_secs(1), self.app.hosts.close()).await.ok();
        tokio::time::timeout(Duration::from_secs(1), self.app.db.close()).await.ok();
    }
}

/// Every connection is an open file, and the usual soft limit is for programs with a handful.
fn allow_many_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::warn!(%error, ?current, "the limit of open files stays as it is");
    }
}

/// Waits for SIGTERM or Ctrl-C.
pub async fn told_to_stop() -> Result<()> {
    let mut terminate = signal(SignalKind::terminate()).map_err(Error::internal)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Error::internal)?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
