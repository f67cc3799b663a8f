//! A gateway in this process, on a database of its own, with people, instances and keys.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base::id::{InstanceId, KeyId, NewInstanceId, ServerId, UserId};
use base::{Clock, Page, Secret, Zone};
use fleet::App;
use gateway::Gateway;
use gateway::log::Log;
use llm::provider::{Access, Settings};
use llm::quota::Quotas;
use queue::audit::By;
use store::gateway_key::{self, GatewayKey, Status};
use store::notice::{Notice, Topic};
use store::request_log::{self, Asked, Request};
use store::seal::Sealer;
use store::{Db, migrate, quota_grant};
use tempfile::TempDir;
use testkit::{Database, panics, trace};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::provider::Provider;
use super::{Client, Wire};

/// What a test wants to be different.
pub struct Options {
    pub anthropic: Option<String>,
    pub openai: Option<String>,
    pub google: Option<String>,
    pub echo: bool,
    /// Whether records may name this machine.
    pub allow_local: bool,
    pub timing: gateway::Timing,
    pub log: gateway::log::Timing,
    pub clock: Clock,
}

/// The time at which every site begins: no day of Berlin ends while a test runs.
pub const NOON: &str = "2026-11-15T12:00:00Z";

impl Default for Options {
    fn default() -> Options {
        let mut options = Options {
            anthropic: None,
            openai: None,
            google: None,
            echo: false,
            allow_local: true,
            timing: gateway::Timing::default(),
            log: gateway::log::Timing::default(),
            clock: Clock::manual(NOON.parse().unwrap()),
        };
        // A busy machine takes longer than a user would wait; how long is not the subject of these tests.
        options.timing.keys.patience = testkit::LIMIT;
        options.timing.drain = testkit::LIMIT;
        options.log.patience = testkit::LIMIT;
        options
    }
}

impl Options {
    pub fn echo() -> Options {
        Options { echo: true, ..Options::default() }
    }
}

pub struct Site {
    pub app: Arc<App>,
    pub log: Arc<Log>,
    gateway: Arc<Gateway>,
    pub address: SocketAddr,
    pub root: PathBuf,
    pub url: Secret,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
    _folder: Arc<TempDir>,
    _database: Arc<Database>,
    _no_panic: panics::NoPanic,
}

/// A key of a provider that does not exist.
pub const PROVIDER_KEY: &str = "a-key-of-a-simulated-provider";

impl Site {
    pub async fn start(database: Database, options: Options) -> Site {
        trace::logs();
        let db = Db::open(&database.url).await.unwrap();
        migrate::run(&db).await.unwrap();
        store::model::fill(&db, options.clock.now()).await.unwrap();
        let master = Sealer::generate().unwrap();
        trace::used_secret(master.expose());
        let sealer = Arc::new(Sealer::new(&master).unwrap());
        let folder = Arc::new(tempfile::tempdir().unwrap());
        Site::open(db, sealer, Arc::new(database), folder, options).await
    }

    /// Another process of the same site: its own replica and listener, the same database and folder.
    pub async fn another(&self, options: Options) -> Site {
        let db = Db::open(&self.url).await.unwrap();
        Site::open(db, self.app.sealer.clone(), self._database.clone(), self._folder.clone(), options).await
    }

    async fn open(
        db: Db,
        sealer: Arc<Sealer>,
        database: Arc<Database>,
        folder: Arc<TempDir>,
        options: Options,
    ) -> Site {
        trace::used_secret(PROVIDER_KEY);
        let (clock, zone) = (options.clock, Zone::named("Europe/Berlin").unwrap());
        let root = folder.path().join("gateway");
        let log = Log::open(&root, db.clone(), clock.clone(), zone.clone(), options.log).unwrap();
        let engine = queue::App { zone, sealer, ..queue::App::for_tests(db, clock).unwrap() };
        let access = |url: Option<String>| url.map(|url| Access { url, key: Secret::new(PROVIDER_KEY) });
        let providers = Settings {
            anthropic: access(options.anthropic),
            openai: access(options.openai),
            google: access(options.google),
            file: vec![],
            echo: options.echo,
            allow_local: options.allow_local,
        };
        let of_llm = llm::App {
            quotas: Quotas::new(log.replica()),
            feed: log.clone(),
            providers,
            ..llm::App::for_tests(engine).unwrap()
        };
        let app = Arc::new(App::for_tests(people::App::for_tests(of_llm).unwrap()).unwrap());
        let gateway = Gateway::open(app.llm.clone(), log.clone(), options.timing).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = watch::channel(false);
        let serving = tokio::spawn(gateway.clone().serve(listener, stopped));
        let url = database.url.clone();
        let no_panic = panics::NoPanic::watch();
        Site {
            app,
            log,
            gateway,
            address,
            root,
            url,
            stop,
            serving,
            _folder: folder,
            _database: database,
            _no_panic: no_panic,
        }
    }

    pub fn client(&self, key: &str) -> Client {
        Client { address: self.address, key: key.to_owned(), wire: Wire::Chat }
    }

    /// A client with a key of its own that no limit binds.
    pub async fn free(&self) -> Client {
        self.client(&self.key("free", None, None).await)
    }

    /// Makes a key; answers it.
    pub async fn key(&self, name: &str, instance: Option<&str>, quota: Option<i64>) -> String {
        let secret = Secret::new(format!("sk-test{}", base::id::fresh().replace('-', "")));
        trace::used_secret(secret.expose());
        let (id, now) = (KeyId::fresh(), self.app.clock.now());
        let key = GatewayKey {
            secret: self.app.sealer.seal(gateway_key::place(&id), &secret).unwrap(),
            id,
            instance_id: instance.map(InstanceId::named),
            name: name.to_owned(),
            gateway_id: String::new(),
            status: Status::Active,
            user_revoked: false,
            quota_spent: false,
            quota,
            used_quota: 0,
            logged_quota: 0,
            carried_quota: 0,
            quota_from: 0,
            dirty: false,
            rotate: false,
            last_checked_at: None,
            created_at: now,
            updated_at: now,
        };
        let mut tx = self.app.db.begin().await.unwrap();
        gateway_key::insert(&mut tx, &key, &self.app.sealer.hash(&secret)).await.unwrap();
        tx.commit().await.unwrap();
        secret.expose().to_owned()
    }

    /// Changes a key, and says so or not.
    pub async fn change(&self, name: &str, tell: bool, change: impl FnOnce(&mut GatewayKey)) {
        let mut tx = self.app.db.begin().await.unwrap();
        let mut key = gateway_key::named(&mut tx, name).await.unwrap().unwrap();
        change(&mut key);
        gateway_key::update(&mut tx, &key).await.unwrap();
        if tell {
            tx.notify(Notice::new(Topic::Key, &key.id)).await.unwrap();
        }
        tx.commit().await.unwrap();
    }

    /// Gives a key another secret.
    pub async fn replace_secret(&self, name: &str, secret: &Secret) {
        trace::used_secret(secret.expose());
        let (sealer, mut tx) = (&self.app.sealer, self.app.db.begin().await.unwrap());
        let key = gateway_key::named(&mut tx, name).await.unwrap().unwrap();
        let sealed = sealer.seal(gateway_key::place(&key.id), secret).unwrap();
        let (hash, now) = (sealer.hash(secret), self.app.clock.now());
        gateway_key::set_secret(&mut tx, key.id.as_str(), &sealed, &hash, now).await.unwrap();
        tx.notify(Notice::new(Topic::Key, &key.id)).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Makes a user with an instance and its key; answers user, instance and key.
    pub async fn employee(&self, name: &str, quota_daily: i64) -> (UserId, String, String) {
        let by = By::system();
        let new = people::user::New {
            email: format!("{name}@example.com").parse().unwrap(),
            name: name.into(),
            department: String::new(),
            quota_daily,
            password: None,
        };
        let user = UserId::named(people::user::create(&self.app, &by, new).await.unwrap().id);
        let server = fleet::server::New {
            id: Some(format!("server-{name}")),
            name: name.into(),
            host: "192.0.2.1".into(),
            ssh_port: 22,
            ssh_user: "root".into(),
            ssh_key_path: String::new(),
            ssh_key: None,
            expected_host_key: None,
            base_dir: None,
            notes: String::new(),
        };
        let server = fleet::server::create(&self.app, &by, server).await.unwrap().id;
        let id = format!("assistant-{name}");
        let instance = fleet::instance::New {
            id: NewInstanceId::parse(&id).unwrap(),
            name: name.into(),
            server_id: ServerId::named(server),
            gateway_port: None,
            gateway_url: None,
            gateway_token: None,
            model: "gpt-4o".into(),
            config_json: "{}".into(),
            notes: String::new(),
            is_main: false,
            home: String::new(),
            unit: String::new(),
            container_id: String::new(),
            provision: false,
        };
        fleet::instance::create(&self.app, &by, instance).await.unwrap();
        fleet::instance::assign(&self.app, &by, &InstanceId::named(&id), Some(&user)).await.unwrap();
        let key = self.key(&id, Some(&id), None).await;
        (user, id, key)
    }

    /// All rows of the log, oldest first, those appended a moment ago included.
    pub async fn rows(&self) -> Vec<Request> {
        let as_of = self.app.feed.pull().await;
        assert!(!as_of.stale, "the log could not be loaded");
        let mut rows =
            request_log::list(&self.app.db, &Asked::default(), Page { offset: 0, limit: 100_000 }).await.unwrap();
        rows.reverse();
        rows
    }

    /// Waits until there are so many rows.
    pub async fn rows_until(&self, count: usize) -> Vec<Request> {
        testkit::until_ok(&format!("{count} rows of the log"), async || {
            let rows = self.rows().await;
            if rows.len() >= count { Ok(rows) } else { Err(rows) }
        })
        .await
    }

    /// Waits until the gateway has noticed that so many clients left, and reads on without them.
    pub async fn reads_on(&self, count: usize) {
        testkit::until_ok("the gateway reads on", async || match self.gateway.reading_on() {
            reading if reading == count => Ok(()),
            reading => Err(format!("{reading} of {count}")),
        })
        .await;
    }

    /// Requests in the files of this process, whether they are loaded or not.
    pub fn lines(&self) -> usize {
        let files = std::fs::read_dir(self.root.join(self.log.replica())).unwrap().map(|entry| entry.unwrap().path());
        let segments = files.filter(|path| path.extension().is_some_and(|end| end == "log"));
        segments
            .map(|path| std::fs::read_to_string(path).unwrap().lines().filter(|line| !line.is_empty()).count())
            .sum()
    }

    /// What all processes are granted and have not written into the log.
    pub async fn granted(&self, subject: &str) -> i64 {
        let mut tx = self.app.db.begin().await.unwrap();
        let granted = quota_grant::granted(&mut tx, subject).await.unwrap();
        tx.commit().await.unwrap();
        granted
    }

    /// Stops the gateway as SIGTERM does.
    pub async fn stop(self) -> Stopped {
        self.stop.send_replace(true);
        self.serving.await.unwrap();
        Stopped {
            app: self.app,
            root: self.root,
            _folder: self._folder,
            _database: self._database,
            _no_panic: self._no_panic,
        }
    }

    /// The process dies: nothing is finished, loaded or handed back.
    pub async fn die(self) -> Corpse {
        self.serving.abort();
        self.serving.await.ok();
        let sealer = self.app.sealer.clone();
        Corpse { url: self.url, sealer, folder: self._folder, database: self._database }
    }

    /// Stops, and looks whether everything agrees.
    pub async fn end(self) {
        self.stop().await.check().await;
    }
}

/// What is left when the process is gone.
pub struct Corpse {
    url: Secret,
    sealer: Arc<Sealer>,
    folder: Arc<TempDir>,
    database: Arc<Database>,
}

impl Corpse {
    /// The next process.
    pub async fn another(self, mut options: Options) -> Site {
        let db = Db::open(&self.url).await.unwrap();
        // Tasks of the dead one may hold its folder for a moment longer.
        options.log.inherit = Duration::from_millis(50);
        Site::open(db, self.sealer, self.database, self.folder, options).await
    }
}

/// What is left when the gateway is gone.
pub struct Stopped {
    pub app: Arc<App>,
    pub root: PathBuf,
    _folder: Arc<TempDir>,
    _database: Arc<Database>,
    _no_panic: panics::NoPanic,
}

store::record! { struct Sum { requests: i64, errors: i64, tokens: i64, cached: i64, quota: i64 } }
store::record! { struct Count { n: i64 } }

impl Stopped {
    pub async fn count(&self, table: &str) -> i64 {
        self.app.db.first::<Count>(&format!("SELECT COUNT(*) AS n FROM {table}"), vec![]).await.unwrap().unwrap().n
    }

    /// The sums are the rows', nothing is granted any more, nothing is left in files.
    pub async fn check(&self) {
        let of_rows = "SELECT CAST(COALESCE(SUM(CASE WHEN type = 2 THEN 1 ELSE 0 END), 0) AS BIGINT) AS requests, \
            CAST(COALESCE(SUM(CASE WHEN type = 2 THEN 0 ELSE 1 END), 0) AS BIGINT) AS errors, \
            CAST(COALESCE(SUM(CASE WHEN type = 2 THEN prompt_tokens + completion_tokens ELSE 0 END), 0) AS BIGINT) AS tokens, \
            CAST(COALESCE(SUM(CASE WHEN type = 2 THEN known_input_tokens + 2 * cache_read_tokens END), 0) AS BIGINT) AS cached, \
            CAST(COALESCE(SUM(CASE WHEN type = 2 THEN quota ELSE 0 END), 0) AS BIGINT) AS quota FROM request_log";
        let of_sums = "SELECT CAST(COALESCE(SUM(requests), 0) AS BIGINT) AS requests, CAST(COALESCE(SUM(errors), 0) AS BIGINT) AS errors, \
            CAST(COALESCE(SUM(prompt_tokens + completion_tokens), 0) AS BIGINT) AS tokens, \
            CAST(COALESCE(SUM(known_input_tokens + 2 * cache_read_tokens), 0) AS BIGINT) AS cached, \
            CAST(COALESCE(SUM(quota), 0) AS BIGINT) AS quota FROM ";
        let mut all = vec![];
        for sql in [of_rows.to_owned(), format!("{of_sums}usage_slot"), format!("{of_sums}usage_daily")] {
            let sum = self.app.db.first::<Sum>(&sql, vec![]).await.unwrap().unwrap();
            all.push((sum.requests, sum.errors, sum.tokens, sum.cached, sum.quota));
        }
        assert!(all.iter().all(|sum| *sum == all[0]), "rows, quarters and days differ: {all:?}");
        assert_eq!(self.count("quota_grant").await, 0, "something is still granted");
        assert_eq!(self.count("log_segment").await, 0, "a segment is not forgotten");
        let left: Vec<_> = std::fs::read_dir(&self.root).unwrap().map(|e| e.unwrap().path()).collect();
        assert!(left.is_empty(), "left behind: {left:?}");
        let doubled = "SELECT COUNT(*) AS n FROM (SELECT request_id FROM request_log GROUP BY request_id HAVING COUNT(*) > 1) AS d";
        let doubled: Count = self.app.db.first(doubled, vec![]).await.unwrap().unwrap();
        assert_eq!(doubled.n, 0, "a request is in the log twice");
    }
}

impl Options {
    /// One provider for each kind that is named.
    pub fn with(anthropic: Option<&Provider>, openai: Option<&Provider>, google: Option<&Provider>) -> Options {
        let url = |provider: Option<&Provider>| provider.map(Provider::url);
        Options { anthropic: url(anthropic), openai: url(openai), google: url(google), ..Options::default() }
    }
}
