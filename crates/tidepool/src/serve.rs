//! Runs the configured roles until the process is asked to stop.

use std::sync::Arc;
use std::time::{Duration, Instant};

use api::state::Api;
use base::{Error, Result};
use fleet::App;
use fleet::registry::{JOBS, TYPES};
use gateway::Gateway;
use gateway::log::Log;
use people::bootstrap;
use people::token::Audience;
use queue::job::{Scheduler, Timing};
use queue::worker::Worker;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::config::{Config, Role};
use crate::open::{self, Opened};
use crate::{telemetry, web};

/// How long running requests get after SIGTERM; the process ends within ten seconds.
const DRAIN: Duration = Duration::from_secs(8);
/// How much longer than the two APIs the embedded gateway runs: their last requests are still on their way to it.
const HEAD_START: Duration = Duration::from_secs(1);
/// How long open sockets get to close. Until then they need the connections to their servers.
const GOODBYE: Duration = Duration::from_secs(2);

pub async fn run(config: &Config) -> Result<()> {
    let began = Instant::now();
    // Listen first, so that a signal during the start also leads to a clean stop.
    let end = End::listen()?;
    allow_many_files();
    let opened = open::serving(config).await?;
    if !opened.applied.is_empty() {
        tracing::info!(versions = ?opened.applied, "schema brought up to date");
    }
    if let Some(made) =
        bootstrap::first_admin(&opened.app, config.bootstrap_email.clone(), config.bootstrap_password.clone()).await?
        && let Some(password) = made.generated
    {
        // Print it, do not log it: logs are kept and read by others.
        println!("first administrator: {} with password {} (shown only now)", made.email, password.expose());
    }
    let running = Running::start(config, opened).await?;
    let urls = running.urls.join(", ");
    tracing::info!(version = env!("CARGO_PKG_VERSION"), ms = began.elapsed().as_millis() as u64, urls, "ready");
    end.requested().await;
    tracing::info!("stopping");
    running.stop().await;
    tracing::info!("stopped");
    Ok(())
}

/// The running parts of the process.
pub struct Running {
    pub app: Arc<App>,
    pub urls: Vec<String>,
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
    gateway: JoinSet<()>,
    stop_gateway: watch::Sender<bool>,
    /// With a foreign gateway: the task that maintains the quotas.
    quotas: JoinSet<()>,
    stop_quotas: watch::Sender<bool>,
    // Its lock marks the database as in use.
    _opened: Opened,
}

impl Running {
    pub async fn start(config: &Config, mut opened: Opened) -> Result<Running> {
        let metrics = telemetry::metrics()?;
        let (stop, stopped) = watch::channel(false);
        let (stop_gateway, gateway_stopped) = watch::channel(false);
        let (stop_quotas, quotas_stopped) = watch::channel(false);
        let log = opened.log.clone();
        let serves_gateway = log.is_some() && config.gateway.foreign.is_none();
        let replica = opened.replica.take();
        let mut running = Running {
            app: opened.app.clone(),
            urls: vec![],
            tasks: JoinSet::new(),
            stop,
            gateway: JoinSet::new(),
            stop_gateway,
            quotas: JoinSet::new(),
            stop_quotas,
            _opened: opened,
        };
        if let Some(replica) = replica {
            let (app, mut stopped) = (running.app.clone(), stopped.clone());
            running.tasks.spawn(async move {
                tokio::select! {
                    () = replica.keep(&app.engine) => {}
                    _ = stopped.wait_for(|stop| *stop) => {}
                }
                if let Err(error) = replica.leave(&app).await {
                    tracing::warn!(%error, "this process is still listed; its lease will run out");
                }
            });
        }
        // Before the APIs start: an older release may have pooled instances that this one does not offer, and nobody
        // may claim them.
        fleet::assistant::isolation::withdraw(&running.app).await?;
        // Before the APIs start: a client that sees them ready finds the gateway running.
        if let Some(log) = log.clone().filter(|_| config.gateway.foreign.is_some()) {
            running.quotas.spawn(keep_quotas(running.app.clone(), log, quotas_stopped));
        } else if let Some(log) = log {
            let settings = &config.gateway;
            let timing = gateway::Timing { body_bytes: settings.body_bytes, ..gateway::Timing::default() };
            let gateway = Gateway::open(running.app.llm.clone(), log, timing).await?;
            let listener = TcpListener::bind(settings.listen).await.map_err(|e| {
                Error::internal(format_args!("cannot listen on {} for the LLM gateway: {e}", settings.listen))
            })?;
            running.urls.push(settings.url.clone());
            running.gateway.spawn(gateway.serve(listener, gateway_stopped));
        }
        let sides = [
            (Role::Employee, Audience::Employee, &config.employee, web::employee as api::Assets),
            (Role::Admin, Audience::Admin, &config.admin, web::admin as api::Assets),
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
            let api = Arc::new(api);
            if let Some(problem) = config.embed.problem.filter(|_| side == Audience::Employee) {
                tracing::error!("{problem}");
            }
            if side == Audience::Employee && config.embed.enabled {
                let listen = config.embed.listen;
                let listener = TcpListener::bind(listen).await.map_err(|e| {
                    Error::internal(format_args!("cannot listen on {listen} for the embedded window: {e}"))
                })?;
                let (router, stopped) = (api::embed::router(api.clone()), stopped.clone());
                running.tasks.spawn(api::server::serve(listener, router, stopped));
            }
            running.urls.push(of.public_url.join("/"));
            running.tasks.spawn(api::server::serve(listener, api::server::router(api), stopped.clone()));
        }
        if config.runs(Role::Worker) {
            let worker = Worker::new(running.app.clone(), TYPES, config.task_timing);
            running.tasks.spawn(worker.run(stopped.clone()));
        }
        if config.runs(Role::Scheduler) {
            let scheduler = Scheduler::new(running.app.clone(), &JOBS, Timing::default());
            let leads = scheduler.leads();
            running.tasks.spawn(scheduler.run(stopped.clone()));
            let (app, mut stopped) = (running.app.clone(), stopped.clone());
            running.tasks.spawn(async move {
                tokio::select! {
                    () = llm::usage::reader::follow(&*app.feed, &app.db.heartbeats) => {}
                    () = llm::watch::watch_quotas(&app, leads) => {}
                    _ = stopped.wait_for(|stop| *stop) => {}
                }
            });
        }
        let listens = [Role::Worker, Role::Employee, Role::Admin].into_iter().any(|role| config.runs(role));
        if listens || serves_gateway {
            let (db, mut stopped) = (running.app.db.clone(), stopped.clone());
            running.tasks.spawn(async move {
                // Receives the notices of other processes.
                tokio::select! {
                    () = db.relay_notices() => {}
                    _ = stopped.wait_for(|stop| *stop) => {}
                }
            });
        }
        Ok(running)
    }

    /// Accepts nothing new, finishes running work, and gives up what takes too long.
    pub async fn stop(mut self) {
        self.stop.send(true).ok();
        // Clients with open sockets are asked to reconnect.
        self.app.sockets.close();
        let (app, tasks, gateway) = (self.app.clone(), &mut self.tasks, &mut self.gateway);
        let stop_gateway = &self.stop_gateway;
        let drained = async {
            let gone_on = tokio::time::Instant::now() + HEAD_START;
            while let Ok(Some(_)) = tokio::time::timeout_at(gone_on, tasks.join_next()).await {}
            stop_gateway.send(true).ok();
            let sides = async { while tasks.join_next().await.is_some() {} };
            let gateway = async { while gateway.join_next().await.is_some() {} };
            tokio::join!(sides, gateway);
        };
        let left = tokio::time::timeout(GOODBYE, app.sockets.emptied());
        let (drained, left) = tokio::join!(tokio::time::timeout(DRAIN, drained), left);
        if left.is_err() {
            tracing::warn!(sockets = app.sockets.count(), "some sockets did not end in time");
        }
        if drained.is_err() {
            tracing::warn!("some requests were still running");
            self.tasks.abort_all();
            self.gateway.abort_all();
        }
        // Nothing is reserved any more, so this hands back all remaining quota.
        self.stop_quotas.send(true).ok();
        let quotas = async { while self.quotas.join_next().await.is_some() {} };
        let quotas = tokio::time::timeout(Duration::from_secs(1), quotas);
        let hosts = tokio::time::timeout(Duration::from_secs(1), self.app.hosts.close());
        if tokio::join!(quotas, hosts).0.is_err() {
            tracing::warn!("quota was not handed back in time; the next start forgets it");
        }
        tokio::time::timeout(Duration::from_secs(1), self.app.db.close()).await.ok();
    }
}

/// With a foreign gateway the employee API reserves quotas. This task removes the grants of dead processes, hands back
/// idle quota, and hands back all of it at the end.
async fn keep_quotas(app: Arc<App>, log: Arc<Log>, mut stopped: watch::Receiver<bool>) {
    if let Err(error) = log.inherit().await {
        tracing::warn!(%error, "grants of processes that are gone are not forgotten yet");
    }
    tokio::select! {
        () = log.keep() => {}
        () = app.quotas.keep(&app) => {}
        _ = stopped.wait_for(|stop| *stop) => {}
    }
    if let Err(error) = app.quotas.hand_back(&app, true).await {
        tracing::warn!(%error, "quota was not handed back; the next start forgets it");
    }
    if let Err(error) = log.close().await {
        tracing::warn!(%error, "the folder of this process stays; the next start removes it");
    }
}

/// Raises the limit of open files: every connection is one, and the usual soft limit is too low for a server.
pub fn allow_many_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::warn!(%error, ?current, "the limit of open files stays as it is");
    }
}

/// SIGTERM or Ctrl-C, received from `listen` on.
pub struct End {
    terminate: Signal,
    interrupt: Signal,
}

impl End {
    pub fn listen() -> Result<End> {
        let listen = |kind| signal(kind).map_err(Error::internal);
        Ok(End { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }

    pub async fn requested(mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
