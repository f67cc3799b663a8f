//! Our own gateway, served in this process, as one more kind that keeps the contract.

use std::sync::Arc;

use base::{Clock, Secret, Zone};
use gateway::log::Log;
use llm::App;
use llm::gateway::Llm;
use llm::provider::Settings;
use llm::quota::Quotas;
use remote::llm::Gateway;
use store::seal::Sealer;
use store::{Db, migrate};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch;

pub struct Embedded {
    pub url: String,
    pub gateway: Arc<dyn Gateway>,
    /// The same, from another process of ours.
    pub twin: Arc<dyn Gateway>,
    pub app: Arc<App>,
    _stop: watch::Sender<bool>,
    _folder: TempDir,
}

impl Embedded {
    /// Serves it with the echo for a provider.
    pub async fn start(database: &Secret) -> Embedded {
        let db = Db::open(database).await.unwrap();
        migrate::run(&db).await.unwrap();
        let (clock, zone) = (Clock::default(), Zone::UTC);
        store::model::fill(&db, clock.now()).await.unwrap();
        let sealer = Arc::new(Sealer::new(&Sealer::generate().unwrap()).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let timing = gateway::log::Timing::default();
        let log = Log::open(folder.path(), db.clone(), clock.clone(), zone.clone(), timing).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let open = |db: Db| Llm::embedded(db, clock.clone(), sealer.clone(), &url).unwrap();
        let (llm, twin) = (open(db.clone()), open(Db::open(database).await.unwrap()));
        let gateway = llm.gateway.clone();
        let engine = queue::App { zone, sealer, ..queue::App::for_tests(db, clock).unwrap() };
        let app = Arc::new(App {
            upstream: llm,
            quotas: Quotas::new(log.replica()),
            feed: log.clone(),
            providers: Settings { echo: true, ..Settings::default() },
            ..App::for_tests(engine).unwrap()
        });
        let mut timing = gateway::Timing::default();
        // A busy machine takes longer than a user would wait.
        timing.keys.patience = testkit::LIMIT;
        let served = gateway::Gateway::open(app.clone(), log, timing).await.unwrap();
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(served.serve(listener, stopped));
        let listening = app.db.clone();
        tokio::spawn(async move { listening.relay_notices().await });
        app.db.notices_relayed().await;
        Embedded { url, gateway, twin: twin.gateway, app, _stop: stop, _folder: folder }
    }
}
