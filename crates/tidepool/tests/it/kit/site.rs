//! A whole site in this process: both sides on free ports, on a database of its own, with a clock that
//! the test may move.

use std::sync::Arc;
use std::time::Duration;

use api::state::Api;
use api::{PublicUrl, server};
use base::id::{InstanceId, KeyId};
use base::{Clock, Secret, Zone};
use fleet::App;
use fleet::bot::Bots;
use fleet::embed::{Embed, Origins};
use fleet::guardian::Webchat;
use fleet::relay::Sockets;
use gateway::log::Log;
use jiff::{SignedDuration, Timestamp};
use llm::gateway::Llm;
use llm::provider;
use llm::quota::Quotas;
use llm::usage::reader::Reader;
use llm::usage::{Feed, Local};
use people::hashing::Hasher;
use people::token::{Audience, TokenKey};
use people::{IdentityProxy, Newcomers, Side};
use remote::bot::Platform;
use remote::sso::{self, Provider};
use serde_json::{Value, json};
use store::foreign::LogKind;
use store::gateway_key::{self, GatewayKey};
use store::instance::Isolation;
use store::seal::Sealer;
use store::{Db, Dialect, migrate};
use tempfile::TempDir;
use testkit::{Database, panics, trace};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::PASSWORD;
use super::call::Origin;

/// What a test wants to be different.
#[derive(Default)]
pub struct Options {
    pub employee_sso: Option<sso::Config>,
    pub admin_sso: Option<sso::Config>,
    pub employee_newcomers: Option<Newcomers>,
    pub admin_newcomers: Option<Newcomers>,
    pub proxy: Option<IdentityProxy>,
    pub mfa: people::second_factor::Policy,
    pub zone: Option<&'static str>,
    /// When the site begins; as a rule, now. Its clock stands still until the test moves it.
    pub now: Option<Timestamp>,
    pub trust_loopback: bool,
    pub metrics_token: Option<&'static str>,
    pub public_path: &'static str,
    pub gateway: Gateway,
    pub assistants: fleet::assistant::Defaults,
    /// The machine itself may not be a server; many tests have their assistants on it.
    pub no_local_server: bool,
    pub bot_api_url: Option<String>,
    /// Our own address as the bot platform sees it.
    pub webhooks: Option<&'static str>,
    /// Another address of the employee side for guardian_webchat.
    pub employee_url: Option<String>,
    /// guardian_webchat sends a chat that is paid for.
    pub webchat_paid: bool,
    /// Keys that a daily quota binds are off while the log of a foreign gateway says nothing.
    pub keys_off_without_log: bool,
    /// The windows of all instances have one origin.
    pub share_window: bool,
    /// How long PostgreSQL is waited for.
    pub limits: store::Limits,
}

/// The LLM gateway of a site.
#[derive(Default)]
pub enum Gateway {
    /// Our own, at an address where nothing listens.
    #[default]
    Absent,
    /// Our own, at this address.
    Embedded(String),
    Foreign(Arc<dyn remote::llm::Gateway>),
    /// A gateway of another's, with the reader of its log at this address.
    Logged(Arc<dyn remote::llm::Gateway>, Secret),
    /// Our own, served beside the two sides with these providers.
    Served(provider::Settings),
}

pub struct Site {
    pub app: Arc<App>,
    pub employee: Origin,
    pub admin: Origin,
    /// The token of the first super_admin.
    pub root: String,
    pub master: Secret,
    pub database_url: Secret,
    /// The address of the LLM gateway that is served beside it.
    pub gateway: Option<String>,
    _stop: watch::Sender<bool>,
    _database: Database,
    _gateway_folder: TempDir,
    _no_panic: panics::NoPanic,
}

/// The first super_admin of every site.
pub const ROOT: &str = "root@example.com";

impl Site {
    pub async fn start(database: Database) -> Site {
        Site::with(database, Options::default()).await
    }

    pub async fn with(database: Database, options: Options) -> Site {
        trace::logs();
        let db = Db::open_with(&database.url, options.limits).await.unwrap();
        migrate::run(&db).await.unwrap();
        store::model::fill(&db, Clock::default().now()).await.unwrap();
        let listeners =
            [TcpListener::bind("127.0.0.1:0").await.unwrap(), TcpListener::bind("127.0.0.1:0").await.unwrap()];
        let embed_listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let embed_address = embed_listener.local_addr().unwrap();
        let (embed_url, origins) = match options.share_window {
            true => (format!("http://{embed_address}"), Origins::Shared),
            false => (format!("http://localhost:{}", embed_address.port()), Origins::PerInstance),
        };
        let urls = [0, 1].map(|i| format!("http://{}", listeners[i].local_addr().unwrap()));
        let callback = |config: Option<sso::Config>, url: &str| {
            config.map(|c| {
                let redirect_url = format!("{url}/api/v1/auth/sso/callback");
                trace::used_secret(c.client_secret.expose());
                Provider::new(sso::Config { redirect_url, ..c }).unwrap()
            })
        };
        let key = |name: &str| {
            let key = format!("{name}-{}", base::id::fresh());
            trace::used_secret(&key);
            Secret::new(key)
        };
        let master = Sealer::generate().unwrap();
        trace::used_secret(master.expose());
        trace::used_secret(PASSWORD);
        let welcome =
            |given: Option<Newcomers>, welcome| given.unwrap_or(Newcomers { welcome, ..Newcomers::default() });
        let clock = Clock::fixed(options.now.unwrap_or_else(|| Clock::default().now()));
        let sealer = Arc::new(Sealer::new(&master).unwrap());
        let zone = Zone::named(options.zone.unwrap_or("Europe/Berlin")).unwrap();
        let gateway_folder = tempfile::tempdir().unwrap();
        let mut feed: Arc<dyn Feed> = Arc::new(Local(clock.clone()));
        let (mut replica, mut served) = ("site".to_owned(), None);
        let mut providers = provider::Settings::default();
        let foreign = matches!(options.gateway, Gateway::Foreign(_) | Gateway::Logged(..));
        let llm = match options.gateway {
            Gateway::Absent => Llm::embedded(db.clone(), clock.clone(), sealer.clone(), "http://127.0.0.1:9").unwrap(),
            Gateway::Embedded(url) => Llm::embedded(db.clone(), clock.clone(), sealer.clone(), &url).unwrap(),
            Gateway::Foreign(gateway) => Llm::foreign(gateway).unwrap(),
            Gateway::Logged(gateway, log_url) => {
                let kind = LogKind::find(gateway.kind().name).unwrap();
                let (db, clock, zone) = (db.clone(), clock.clone(), zone.clone());
                let reader = Reader::new(db, clock, zone, gateway.clone(), kind, log_url);
                feed = Arc::new(reader.with_patience(testkit::LIMIT));
                Llm::foreign(gateway).unwrap().with_keys_off_without_log(options.keys_off_without_log)
            }
            Gateway::Served(of_gateway) => {
                providers = of_gateway;
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let url = format!("http://{}", listener.local_addr().unwrap());
                let timing = gateway::log::Timing::default();
                let log = Log::open(gateway_folder.path(), db.clone(), clock.clone(), zone.clone(), timing).unwrap();
                let llm = Llm::embedded(db.clone(), clock.clone(), sealer.clone(), &url).unwrap();
                (feed, replica) = (log.clone(), log.replica().to_owned());
                served = Some((listener, log, url));
                llm
            }
        };
        let engine = queue::App {
            zone,
            sealer,
            webhooks: remote::webhook::Webhooks { allow_private: true },
            ..queue::App::for_tests(db, clock.clone()).unwrap()
        };
        let of_llm = llm::App {
            engine: Arc::new(engine),
            upstream: llm,
            quotas: if foreign { Quotas::new(replica).asking_always() } else { Quotas::new(replica) },
            feed,
            providers,
        };
        let people = people::App {
            llm: Arc::new(of_llm),
            // A busy machine may hash one password in seconds: no login of a test is refused for that.
            hasher: Hasher::default().with_patience(testkit::LIMIT),
            employee: Side {
                tokens: TokenKey::new(&key("employee-jwt-key"), Audience::Employee, SignedDuration::from_hours(12)),
                sso: callback(options.employee_sso, &urls[0]),
                newcomers: welcome(options.employee_newcomers, true),
            },
            admin: Side {
                tokens: TokenKey::new(&key("admin-jwt-key"), Audience::Admin, SignedDuration::from_hours(8)),
                sso: callback(options.admin_sso, &urls[1]),
                newcomers: welcome(options.admin_newcomers, false),
            },
            proxy: options.proxy,
            mfa: options.mfa,
        };
        let app = Arc::new(App {
            people: Arc::new(people),
            hosts: remote::host::Hosts::new(),
            assistants: fleet::assistant::Defaults { local_server: !options.no_local_server, ..options.assistants },
            cells: Default::default(),
            // A socket that ends with its login or its binding does so by a notice, not by the look that comes without one.
            sockets: Sockets::default().looked_at_every(Duration::from_secs(3600)),
            embed: Embed {
                enabled: true,
                url: embed_url,
                origins,
                gateway_origin: format!("http://{embed_address}"),
                framed_by: urls[0].clone(),
            },
            bots: Bots {
                platform: Platform::new(options.bot_api_url.as_deref().unwrap_or("http://127.0.0.1:9")).unwrap(),
                webhooks: options.webhooks.map(str::to_owned),
            },
            webchat: Webchat {
                employee_url: options.employee_url.unwrap_or_else(|| urls[0].clone()),
                is_paid: options.webchat_paid,
            },
        });
        let (stop, stopped) = watch::channel(false);
        let gateway = match served {
            Some((listener, log, url)) => {
                let timing = gateway::Timing::default();
                let gateway = gateway::Gateway::open(app.llm.clone(), log, timing).await.unwrap();
                tokio::spawn(gateway.serve(listener, stopped.clone()));
                Some(url)
            }
            None => None,
        };
        let mut embed_listener = Some(embed_listener);
        let trusted = if options.trust_loopback { vec!["127.0.0.1/32".parse().unwrap()] } else { vec![] };
        for ((listener, url), side) in listeners.into_iter().zip(&urls).zip([Audience::Employee, Audience::Admin]) {
            let api = Arc::new(Api {
                app: app.clone(),
                side,
                version: "test",
                public_url: PublicUrl::parse(&format!("{url}{}", options.public_path)).unwrap(),
                assets: |_| None,
                trusted_proxies: trusted.clone().into(),
                metrics: Arc::new(|| "# no metrics here\n".into()),
                metrics_token: options.metrics_token.map(Secret::new),
            });
            if side == Audience::Employee
                && let Some(listener) = embed_listener.take()
            {
                tokio::spawn(server::serve(listener, api::embed::router(api.clone()), stopped.clone()));
            }
            tokio::spawn(server::serve(listener, server::router(api), stopped.clone()));
        }
        let (db, mut over) = (app.db.clone(), stopped.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = db.relay_notices() => {}
                _ = over.wait_for(|stop| *stop) => {}
            }
        });
        app.db.notices_relayed().await;
        let [employee, admin] = urls.map(Origin::new);
        let root_email = Some(ROOT.parse().unwrap());
        people::bootstrap::first_admin(&app, root_email, Some(Secret::new(PASSWORD))).await.unwrap();
        let mut site = Site {
            app,
            employee,
            admin,
            root: String::new(),
            master,
            database_url: database.url.clone(),
            gateway,
            _stop: stop,
            _database: database,
            _gateway_folder: gateway_folder,
            _no_panic: panics::NoPanic::watch(),
        };
        site.root = site.admin_login(ROOT).await;
        site
    }

    /// The `App` of another process on the same database, with connections of its own to the database and to the servers.
    /// They belong to the runtime on which this runs.
    pub fn another_process(&self) -> impl Future<Output = App> + Send + use<> {
        let (ours, url) = (self.app.clone(), self.database_url.clone());
        async move {
            let db = Db::open(&url).await.unwrap();
            let engine = queue::App::for_tests(db, ours.clock.clone()).unwrap();
            let engine = queue::App { zone: ours.zone.clone(), sealer: ours.sealer.clone(), ..engine };
            let people = people::App::for_tests(llm::App::for_tests(engine).unwrap()).unwrap();
            let (assistants, embed) = (ours.assistants.clone(), ours.embed.clone());
            App { assistants, embed, ..App::for_tests(people).unwrap() }
        }
    }

    pub async fn admin_login(&self, email: &str) -> String {
        login(&self.admin, email, PASSWORD).await
    }

    pub async fn employee_login(&self, email: &str) -> String {
        login(&self.employee, email, PASSWORD).await
    }

    /// Makes an employee; answers the record.
    pub async fn user(&self, email: &str) -> Value {
        let body = json!({"email": email, "name": "Somebody", "department": "Tests", "password": PASSWORD});
        self.admin.post("/users", body).token(&self.root).ok().await
    }

    /// Makes an employee and logs in; answers id and token.
    pub async fn employee(&self, email: &str) -> (String, String) {
        let user = self.user(email).await;
        (user["id"].as_str().unwrap().to_owned(), self.employee_login(email).await)
    }

    /// Makes an administrator and logs in; answers the token.
    pub async fn plain_admin(&self, email: &str, role: &str) -> String {
        let body = json!({"email": email, "name": "Admin", "role": role, "password": PASSWORD});
        self.admin.post("/admin-users", body).token(&self.root).ok().await;
        self.admin_login(email).await
    }

    /// Reads all tables: nothing may be out of line.
    pub async fn check(&self) {
        let broken = store::invariant::broken(&self.app.db).await.unwrap();
        assert!(broken.is_empty(), "out of line: {broken:#?}");
    }

    /// Adds a server; answers its id.
    pub async fn server(&self, id: &str) -> String {
        let body = json!({"id": id, "name": format!("Server {id}"), "host": "192.0.2.1"});
        self.admin.post("/servers", body).token(&self.root).ok().await["id"].as_str().unwrap().to_owned()
    }

    /// Makes instances `<prefix>0`, `<prefix>1`, … on a server of their own.
    pub async fn instances(&self, prefix: &str, count: usize) -> Vec<String> {
        let server = self.server(&format!("srv-{prefix}")).await;
        let mut ids = vec![];
        for i in 0..count {
            let body = json!({"id": format!("{prefix}{i}"), "name": format!("Assistant {prefix}{i}"), "server_id": server, "model": "gpt-4o"});
            let made = self.admin.post("/assistant-instances", body).token(&self.root).ok().await;
            ids.push(made["id"].as_str().unwrap().to_owned());
        }
        ids
    }

    /// Makes instances that can be claimed.
    pub async fn ready_instances(&self, prefix: &str, count: usize) -> Vec<String> {
        let ids = self.instances(prefix, count).await;
        self.installed(&ids).await;
        ids
    }

    /// Writes down that instances are on their server, each with a user of its own. Nothing is there.
    pub async fn installed(&self, ids: &[String]) {
        let mut tx = self.app.db.begin().await.unwrap();
        for id in ids {
            let (id, home) = (InstanceId::named(id), format!("/srv/assistants/{id}"));
            store::instance::set_home(&mut tx, &id, &home).await.unwrap();
            let user = format!("assistant-{id}");
            store::instance::set_isolation(&mut tx, &id, Isolation::Own, &user).await.unwrap();
        }
        tx.commit().await.unwrap();
    }

    /// Makes a profession with these instances in its pool; answers its id and those of the entries.
    pub async fn profession(&self, code: &str, instances: &[String]) -> (String, Vec<String>) {
        let body = json!({"name": format!("Profession {code}"), "code": code, "icon": "🦀", "tagline": "does things"});
        let made = self.admin.post("/professions", body).token(&self.root).ok().await;
        let id = made["id"].as_str().unwrap().to_owned();
        let mut entries = vec![];
        for instance in instances {
            let body = json!({"profession_id": id, "instance_id": instance});
            let entry = self.admin.post("/profession-pool", body).token(&self.root).ok().await;
            entries.push(entry["id"].as_str().unwrap().to_owned());
        }
        (id, entries)
    }

    /// An employee without a password's worth of hashing: made in the database, with a token of our own.
    pub async fn quick_employee(&self, email: &str) -> (String, String) {
        let by = queue::audit::By::system();
        let new = people::user::New {
            email: email.parse().unwrap(),
            name: String::new(),
            department: String::new(),
            quota_daily: 0,
            password: None,
        };
        let user = people::user::create(&self.app, &by, new).await.unwrap();
        let token = people::session::open_employee(&self.app, user.clone(), self.app.clock.now()).unwrap().token;
        (user.id.into(), token.expose().to_owned())
    }

    /// Makes a sub key of the LLM gateway; answers it.
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
            status: gateway_key::Status::Active,
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

    /// Begins a transaction that may lie idle for as long as the test needs: PostgreSQL would end it after ten seconds.
    pub async fn begin_patient(&self) -> store::Tx {
        let mut tx = self.app.db.begin().await.unwrap();
        if tx.dialect() == Dialect::Postgres {
            tx.run("SET LOCAL idle_in_transaction_session_timeout = 0", vec![]).await.unwrap();
        }
        tx
    }

    /// Waits until a transaction of somebody waits for one that the test has begun.
    pub async fn until_blocked(&self) {
        let waiting = "SELECT COUNT(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        testkit::until("a transaction waits for another", async || match self.app.db.dialect() {
            Dialect::Sqlite => self.app.db.writers_waiting() > 0,
            Dialect::Postgres => self.app.db.first::<Count>(waiting, vec![]).await.unwrap().unwrap().n > 0,
        })
        .await;
    }

    /// Runs a job now, and waits until it has ended well; answers what it says.
    pub async fn run_job(&self, token: &str, name: &str) -> String {
        let begun = self.admin.post(&format!("/job-runs/{name}/run"), json!({})).token(token).ok().await;
        let run = testkit::until_ok(&format!("{name} ends"), async || {
            let runs = self.admin.get(&format!("/job-runs?job_name={name}&limit=200")).token(token).ok().await;
            let run = runs["list"].as_array().unwrap().iter().find(|run| run["id"] == begun["id"]).cloned();
            run.filter(|run| run["status"] != "running").ok_or(runs)
        })
        .await;
        assert_eq!(run["status"], "success", "{run}");
        run["message"].as_str().unwrap().to_owned()
    }

    pub fn wait(&self, time: Duration) {
        self.app.clock.advance(SignedDuration::try_from(time).unwrap());
    }
}

store::record! {
    struct Count { n: i64 }
}

async fn login(origin: &Origin, email: &str, password: &str) -> String {
    let data = origin.post("/auth/login", json!({"email": email, "password": password})).ok().await;
    data["token"].as_str().unwrap().to_owned()
}
