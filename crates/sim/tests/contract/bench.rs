//! What a case stands on: a gateway of some kind and release on some database, two of our processes that talk to it, and
//! its log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::{Kind as Fault, Secret};
use remote::llm::{Gateway, Kind, NewKey, RemoteKey, Settings};
use serde_json::{Value, json};
pub use sim::llm::Schema;
use sim::llm::tables::Tables;
use sim::llm::{Running, litellm, new_api, one_api};
use sim::with;
use store::foreign::{ForeignLog, ForeignRow, LogKind};
use tempfile::TempDir;
use testkit::trace;

use crate::embedded::Embedded;
use crate::real::LiteLlm;

/// The real LiteLLM writes what it has in batches, a second apart.
const BATCHES: Duration = Duration::from_secs(3);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    Sqlite,
    Mariadb,
    Postgres,
}

/// Which gateway a case runs against.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub kind: &'static str,
    pub server: Server,
    pub schema: Schema,
    /// Of new-api.
    pub version: (u32, u32, u32),
    pub quota_per_unit: f64,
    pub separate_log: bool,
    /// litellm: how long it hesitates before it takes an alias, in milliseconds.
    pub hesitation: u64,
}

pub const fn setup(kind: &'static str, server: Server) -> Setup {
    Setup {
        kind,
        server,
        schema: Schema::Current,
        version: (1, 0, 21),
        quota_per_unit: 500_000.0,
        separate_log: false,
        hesitation: 0,
    }
}

pub struct Bench {
    pub setup: Setup,
    pub gateway: Arc<dyn Gateway>,
    /// The same gateway, from another process of ours.
    pub twin: Arc<dyn Gateway>,
    /// A gateway of somebody else, and its log.
    foreign: Option<(Running, ForeignLog)>,
    /// Or our own.
    embedded: Option<Embedded>,
    /// The foreign one is the real LiteLLM.
    real: Option<LiteLlm>,
    answered: AtomicU64,
    pub http: reqwest::Client,
    pub database: Secret,
    _folders: Vec<TempDir>,
}

/// A database of its own; `None` (a counted skip) where there is no such server.
pub async fn database(server: Server, case: &str) -> Option<(Secret, Option<TempDir>)> {
    if server == Server::Sqlite {
        let folder = tempfile::tempdir().unwrap();
        let url = Secret::new(format!("sqlite:{}", folder.path().join("one-api.db").display()));
        return Some((url, Some(folder)));
    }
    let (variable, more) = match server {
        Server::Postgres => ("TIDEPOOL_TEST_PG_URL", ""),
        _ => ("TIDEPOOL_TEST_MARIADB_URL", " CHARACTER SET utf8mb4"),
    };
    let Ok(url) = std::env::var(variable) else {
        trace::skip(case, &format!("no {server:?}: {variable} is not set"));
        return None;
    };
    let name = format!("t_{}", base::id::fresh().replace('-', ""));
    let tables = Tables::open(&Secret::new(&url)).await.unwrap();
    tables.run(&format!("CREATE DATABASE {name}{more}"), vec![]).await.unwrap();
    tables.close().await;
    let (server, _) = url.rsplit_once('/').unwrap();
    Some((Secret::new(format!("{server}/{name}")), None))
}

impl Bench {
    /// `case` is the test's name; of the runner's names the crate is no part.
    pub async fn start(setup: Setup, case: &str) -> Option<Bench> {
        let case = case.strip_prefix("contract::").unwrap_or(case);
        let (url, folder) = database(setup.server, case).await?;
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        if setup.kind == "embedded" {
            let own = Embedded::start(&url).await;
            return Some(Bench {
                setup,
                gateway: own.gateway.clone(),
                twin: own.twin.clone(),
                foreign: None,
                embedded: Some(own),
                real: None,
                answered: AtomicU64::new(0),
                http,
                database: url,
                _folders: folder.into_iter().collect(),
            });
        }
        let log_database = match setup.separate_log {
            true => Some(database(setup.server, case).await?),
            false => None,
        };
        let options = one_api::Options {
            schema: setup.schema,
            quota_per_unit: setup.quota_per_unit,
            version: setup.version,
            log_database: log_database.as_ref().map(|(url, _)| url.clone()),
            ..one_api::Options::new(url.clone())
        };
        let sim = match setup.kind {
            "one-api" => one_api::start(options).await.unwrap(),
            "new-api" => new_api::start(options).await.unwrap(),
            _ => {
                let options = litellm::Options {
                    schema: setup.schema,
                    flush_every: Duration::from_millis(50),
                    hesitation: Duration::from_millis(setup.hesitation),
                    ..litellm::Options::new(url.clone())
                };
                litellm::start(options).await.unwrap()
            }
        };
        trace::used_secret(sim.admin_token.expose());
        let log = ForeignLog::open(LogKind::find(setup.kind).unwrap(), &sim.log_url).await.unwrap();
        Some(Bench {
            setup,
            gateway: open(setup.kind, &sim.url, &sim.admin_token),
            twin: open(setup.kind, &sim.url, &sim.admin_token),
            http,
            database: url,
            _folders: folder.into_iter().chain(log_database.and_then(|(_, folder)| folder)).collect(),
            foreign: Some((sim, log)),
            embedded: None,
            real: None,
            answered: AtomicU64::new(0),
        })
    }

    /// The real LiteLLM, and our two processes that talk to it.
    pub fn real(
        setup: Setup,
        (gateway, twin): (Arc<dyn Gateway>, Arc<dyn Gateway>),
        foreign: (Running, ForeignLog),
        real: LiteLlm,
        database: Secret,
    ) -> Bench {
        Bench {
            setup,
            gateway,
            twin,
            foreign: Some(foreign),
            embedded: None,
            real: Some(real),
            answered: AtomicU64::new(0),
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
            database,
            _folders: vec![],
        }
    }

    pub fn is_real(&self) -> bool {
        self.real.is_some()
    }

    /// What the last case left is gone: only the real one serves several.
    pub async fn clear(&self) {
        if let Some(real) = &self.real {
            // Otherwise the next case counts what is written late for this one.
            testkit::until_ok("LiteLLM has written its log", async || self.unwritten().await).await;
            real.clear(&self.sim().tables).await;
            self.answered.store(0, Ordering::SeqCst);
        }
    }

    /// The provider behind the gateway refuses connections.
    pub fn provider_down(&self) {
        let switches = self.real.as_ref().map_or(&self.sim().switches, |real| &real.provider().switches);
        switches.set(|s| &s.upstream_down, true);
    }

    /// The gateway of somebody else: only cases that are about one ask for it.
    pub fn sim(&self) -> &Running {
        &self.foreign.as_ref().unwrap().0
    }

    pub fn log(&self) -> &ForeignLog {
        &self.foreign.as_ref().unwrap().1
    }

    /// The address below which the gateway is.
    pub fn url(&self) -> &str {
        match &self.embedded {
            Some(own) => &own.url,
            None => &self.sim().url,
        }
    }

    pub fn is(&self, kind: &str) -> bool {
        self.setup.kind == kind
    }

    /// Whether rows are counted (and tokens are rows of a table called so).
    pub fn family(&self) -> bool {
        self.foreign.as_ref().is_some_and(|(_, log)| log.counts())
    }

    /// Whether its log can have rows of requests that failed.
    pub fn logs_failures(&self) -> bool {
        self.is("new-api") || self.is("litellm")
    }

    pub async fn create(&self, name: &str, quota: Option<i64>) -> RemoteKey {
        let key = self.gateway.create_key(&new_key(name, quota)).await.unwrap();
        trace::used_secret(key.key.as_ref().unwrap().expose());
        key
    }

    /// A key that somebody made behind our back, of whatever name; answers its id.
    pub async fn smuggle(&self, name: &str, enabled: bool) -> String {
        let tables = &self.sim().tables;
        let secret = base::id::fresh().replace('-', "").repeat(2)[..48].to_owned();
        if !self.family() {
            let id = litellm::hash(&secret);
            let sql = "INSERT INTO \"LiteLLM_VerificationToken\" (token, key_alias, blocked) VALUES (?, ?, ?)";
            tables.run(sql, with![id.as_str(), name, !enabled]).await.unwrap();
            return id;
        }
        let key = tables.quoted("key");
        let sql = format!(
            "INSERT INTO tokens (user_id, {key}, status, name, created_time, accessed_time, unlimited_quota, \
             remain_quota) VALUES (1, ?, ?, ?, 0, 0, ?, 5)"
        );
        tables.run(&sql, with![secret.as_str(), if enabled { 1i64 } else { 2 }, name, false]).await.unwrap();
        let sql = format!("SELECT id FROM tokens WHERE {key} = ?");
        tables.number(&sql, with![secret]).await.unwrap().to_string()
    }

    /// One chat; answers the status and the body.
    pub async fn chat(&self, key: &Secret, model: &str, text: &str, stream: bool) -> (u16, String) {
        self.converse(key, model, &[text], stream).await
    }

    /// A chat of several messages. The provider has all but the last one in its cache.
    pub async fn converse(&self, key: &Secret, model: &str, texts: &[&str], stream: bool) -> (u16, String) {
        let messages: Vec<Value> = texts.iter().map(|text| json!({"role": "user", "content": text})).collect();
        let body = json!({"model": model, "messages": messages, "stream": stream});
        let request = self.http.post(self.gateway.chat_url()).bearer_auth(key.expose()).json(&body);
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        self.answered.fetch_add(u64::from(status == 200), Ordering::SeqCst);
        (status, text)
    }

    /// A chat with a key that was switched off. Our own gateway hears of it a moment later; the others at once.
    pub async fn refused(&self, key: &Secret) -> (u16, String) {
        testkit::until_ok("the key is refused", async || {
            let answer = self.chat(key, "gpt-4o-mini", "hello", false).await;
            if answer.0 != 200 || self.embedded.is_none() { Ok(answer) } else { Err(answer) }
        })
        .await
    }

    /// A chat that is answered. Our own gateway hears a moment later that a key was switched on; the others at once.
    pub async fn say(&self, key: &RemoteKey, text: &str) -> Value {
        let secret = key.key.as_ref().unwrap();
        let (status, body) = testkit::until_ok("the key is let in", async || {
            let answer = self.chat(secret, "gpt-4o-mini", text, false).await;
            if answer.0 != 401 || self.embedded.is_none() { Ok(answer) } else { Err(answer) }
        })
        .await;
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }

    pub async fn written(&self) {
        match &self.embedded {
            Some(own) => {
                testkit::until("the log is loaded", async || !own.app.feed.pull().await.stale).await;
            }
            None if self.real.is_some() => self.spend_written().await,
            None => self.sim().switches.written().await,
        }
    }

    /// The real LiteLLM writes rows and counters in batches.
    async fn spend_written(&self) {
        let counted = "SELECT CAST(ROUND(1e9 * CAST(COALESCE((SELECT SUM(spend) FROM \"LiteLLM_SpendLogs\"), 0) \
            - COALESCE((SELECT SUM(spend) FROM \"LiteLLM_VerificationToken\"), 0) AS NUMERIC)) AS BIGINT)";
        testkit::until_ok("LiteLLM has written what it spent", async || {
            self.unwritten().await.map_err(|rows| (rows, None))?;
            let apart = self.sim().tables.number(counted, vec![]).await.unwrap();
            if apart.abs() <= 1 { Ok(()) } else { Err(((0, 0), Some(apart))) }
        })
        .await;
    }

    /// Rows of the real LiteLLM's log, and chats that were answered, if there are fewer rows, or more come: rows of failures
    /// are not counted before.
    async fn unwritten(&self) -> Result<(), (i64, i64)> {
        let all = "SELECT COUNT(*) FROM \"LiteLLM_SpendLogs\"";
        let good = format!("{all} WHERE COALESCE(status, '') <> 'failure'");
        let before = self.sim().tables.number(all, vec![]).await.unwrap();
        tokio::time::sleep(BATCHES).await;
        let now = self.sim().tables.number(all, vec![]).await.unwrap();
        let rows = self.sim().tables.number(&good, vec![]).await.unwrap();
        let answered = self.answered.load(Ordering::SeqCst) as i64;
        if rows >= answered && now == before { Ok(()) } else { Err((rows, answered)) }
    }

    /// Every row of the log, in its order, read in small pieces.
    pub async fn rows(&self) -> Vec<ForeignRow> {
        let mut rows = vec![];
        let mut position = self.log().start();
        loop {
            let some = self.log().after(&position, 3).await.unwrap();
            let Some(last) = some.last() else { return rows };
            assert!(some.len() <= 3);
            position = last.position.clone();
            rows.extend(some);
        }
    }

    /// A row written by hand: columns and values as SQL.
    pub async fn log_row(&self, columns: &str, values: &str) {
        self.sim().log.run(&format!("INSERT INTO logs ({columns}) VALUES ({values})"), vec![]).await.unwrap();
    }
}

pub fn open(kind: &str, url: &str, token: &Secret) -> Arc<dyn Gateway> {
    let settings = Settings { url: url.to_owned(), admin_token: token.clone() };
    (Kind::find(kind).unwrap().open)(&settings).unwrap()
}

pub fn new_key(name: &str, quota: Option<i64>) -> NewKey {
    // Of the name, so that a repeat says the same; where the gateway makes its own it is not used.
    let value = Secret::new(format!("sk-test-{}", litellm::hash(name)));
    NewKey { name: name.to_owned(), quota, value: Some(value) }
}

/// An error as everybody may see it: kept for the search for secrets.
pub fn fault<T: std::fmt::Debug>(result: base::Result<T>) -> (Fault, String) {
    let error = result.unwrap_err();
    trace::said(&format!("{error} / {error:?}"));
    (error.kind, error.to_string())
}

/// Runs each case against every kind of gateway, our own included, on every database that each can use.
#[macro_export]
macro_rules! on_every_kind {
    ($($(#[$meta:meta])* async fn $name:ident($bench:ident: Bench) $body:block)*) => {$(
        $crate::on_gateways! {
            {
                embedded_sqlite = setup("embedded", Server::Sqlite);
                embedded_postgres = setup("embedded", Server::Postgres);
            }
            $(#[$meta])* $name($bench) $body
        }
    )*};
}

/// The same for foreign gateways only.
#[macro_export]
macro_rules! on_every_gateway {
    ($($(#[$meta:meta])* async fn $name:ident($bench:ident: Bench) $body:block)*) => {$(
        $crate::on_gateways! { {} $(#[$meta])* $name($bench) $body }
    )*};
}

/// Every kind and release of foreign gateway, on every database that each can use, after those that the caller names.
#[macro_export]
macro_rules! on_gateways {
    ({ $($others:tt)* } $($case:tt)*) => {
        $crate::cases! {
            $($case)*
            $($others)*
            one_api_sqlite = setup("one-api", Server::Sqlite);
            one_api_mariadb = setup("one-api", Server::Mariadb);
            one_api_postgres = setup("one-api", Server::Postgres);
            new_api_sqlite = setup("new-api", Server::Sqlite);
            new_api_mariadb = setup("new-api", Server::Mariadb);
            new_api_postgres = setup("new-api", Server::Postgres);
            new_api_rc22_postgres = Setup { version: (1, 0, 22), ..setup("new-api", Server::Postgres) };
            new_api_v011_sqlite = Setup { version: (0, 11, 0), ..setup("new-api", Server::Sqlite) };
            new_api_v010_mariadb = Setup { version: (0, 10, 0), ..setup("new-api", Server::Mariadb) };
            new_api_v08_sqlite = Setup { version: (0, 8, 0), ..setup("new-api", Server::Sqlite) };
            litellm_postgres = setup("litellm", Server::Postgres);
        }
    };
}

/// Runs each case against every kind of log, with the tables of today and with those of an old installation.
#[macro_export]
macro_rules! on_every_log {
    ($($(#[$meta:meta])* async fn $name:ident($bench:ident: Bench) $body:block)*) => {$(
        $crate::cases! {
            $(#[$meta])* $name($bench) $body
            one_api_sqlite = setup("one-api", Server::Sqlite);
            one_api_mariadb = setup("one-api", Server::Mariadb);
            one_api_postgres = setup("one-api", Server::Postgres);
            one_api_old_sqlite = Setup { schema: Schema::Old, ..setup("one-api", Server::Sqlite) };
            one_api_old_mariadb = Setup { schema: Schema::Old, ..setup("one-api", Server::Mariadb) };
            one_api_old_postgres = Setup { schema: Schema::Old, ..setup("one-api", Server::Postgres) };
            new_api_sqlite = setup("new-api", Server::Sqlite);
            new_api_mariadb = setup("new-api", Server::Mariadb);
            new_api_postgres = setup("new-api", Server::Postgres);
            new_api_old_sqlite = Setup { schema: Schema::Old, ..setup("new-api", Server::Sqlite) };
            new_api_old_mariadb = Setup { schema: Schema::Old, ..setup("new-api", Server::Mariadb) };
            new_api_old_postgres = Setup { schema: Schema::Old, ..setup("new-api", Server::Postgres) };
            litellm_postgres = setup("litellm", Server::Postgres);
            litellm_old_postgres = Setup { schema: Schema::Old, ..setup("litellm", Server::Postgres) };
        }
    )*};
}

#[macro_export]
macro_rules! cases {
    ($(#[$meta:meta])* $name:ident($bench:ident) $body:block $($test:ident = $setup:expr;)*) => {
        $(#[$meta])*
        pub mod $name {
            use super::*;
            #[allow(unused_imports, reason = "not every list of gateways has an old one")]
            use $crate::bench::{Schema, Server, Setup, setup};

            pub async fn case($bench: &Bench) $body

            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $test() {
                    if let Some(bench) = Bench::start($setup, concat!(module_path!(), "::", stringify!($test))).await {
                        case(&bench).await;
                    }
                }
            )*
        }
    };
}

#[test]
fn every_kind_is_in_both_lists() {
    let (gateways, logs) = include_str!("bench.rs").split_once("macro_rules! on_every_log").unwrap();
    for kind in remote::llm::KINDS {
        let case = format!("setup(\"{}\", ", kind.name);
        assert!(gateways.contains(&case), "{kind:?} is not in on_gateways!");
        assert!(logs.contains(&case), "{kind:?} is not in on_every_log!");
        assert!(LogKind::find(kind.name).is_some(), "nobody reads the log of {kind:?}");
    }
}
