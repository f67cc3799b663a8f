//! LLM gateways of others when they do not do what they should: a log that says nothing, a management token that is
//! refused, too many calls, keys that are gone.

mod answers;
mod drift;
mod older;
mod pace;
mod quota;
mod token;

use std::time::Duration;

use base::Secret;
use fleet::App;
use fleet::registry::TYPES;
use queue::task::TaskType;
use queue::worker::{Timing, Worker};
use serde_json::{Value, json};
use sim::llm::{Running, Schema, litellm, new_api, one_api};
use sim::with;
use testkit::trace;
use tokio::sync::watch;

use crate::keys::adapter;
use crate::kit::{Call, Database, Gateway, Options, ROOT, Site, used_secret};

/// A site at a gateway of somebody else, whose log it reads.
pub struct World {
    pub site: Site,
    pub gateway: Running,
    _database: Option<Database>,
    _folder: tempfile::TempDir,
}

/// Which gateway, on which database.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    OneApi,
    OneApiOld,
    OneApiMariadb,
    NewApi,
    LiteLlm,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::OneApi | Kind::OneApiOld | Kind::OneApiMariadb => "one-api",
            Kind::NewApi => "new-api",
            Kind::LiteLlm => "litellm",
        }
    }
}

/// A MariaDB database of its own; `None`, a counted skip, where there is no such server.
async fn mariadb(test: &str) -> Option<Secret> {
    let Ok(url) = std::env::var("TIDEPOOL_TEST_MARIADB_URL") else {
        trace::skip(test, "no MariaDB: TIDEPOOL_TEST_MARIADB_URL is not set");
        return None;
    };
    let name = format!("t_{}", base::id::fresh().replace('-', ""));
    let tables = sim::llm::tables::Tables::open(&Secret::new(&url)).await.unwrap();
    tables.run(&format!("CREATE DATABASE {name} CHARACTER SET utf8mb4"), vec![]).await.unwrap();
    tables.close().await;
    Some(Secret::new(format!("{}/{name}", url.rsplit_once('/').unwrap().0)))
}

impl World {
    pub async fn start(kind: Kind, test: &str, keys_off_without_log: bool) -> Option<World> {
        let folder = tempfile::tempdir().unwrap();
        let file = Secret::new(format!("sqlite:{}", folder.path().join("gateway.db").display()));
        let mut database = None;
        let gateway = match kind {
            Kind::OneApi => one_api::start(one_api::Options::new(file)).await.unwrap(),
            Kind::OneApiOld => {
                let options = one_api::Options { schema: Schema::Old, ..one_api::Options::new(file) };
                one_api::start(options).await.unwrap()
            }
            Kind::OneApiMariadb => one_api::start(one_api::Options::new(mariadb(test).await?)).await.unwrap(),
            Kind::NewApi => new_api::start(new_api::Options::new(file)).await.unwrap(),
            Kind::LiteLlm => {
                let of = database.insert(Database::postgres(test).await?);
                let flush_every = Duration::from_millis(300);
                litellm::start(litellm::Options { flush_every, ..litellm::Options::new(of.url.clone()) }).await.unwrap()
            }
        };
        let log_url = gateway.log_url.clone();
        Some(World::at(gateway, kind, log_url, keys_off_without_log, database, folder).await)
    }

    async fn at(
        gateway: Running,
        kind: Kind,
        log_url: Secret,
        keys_off_without_log: bool,
        database: Option<Database>,
        folder: tempfile::TempDir,
    ) -> World {
        let adapter = adapter(&gateway, kind.name());
        let options =
            Options { gateway: Gateway::Logged(adapter, log_url), keys_off_without_log, ..Options::default() };
        let site = Site::with(Database::sqlite(), options).await;
        World { site, gateway, _database: database, _folder: folder }
    }

    /// An employee with the instance `a<n>` and this quota; answers the id and the token.
    pub async fn employee(&self, instance: &str, quota: i64) -> (String, String) {
        let (user, token) = self.site.quick_employee(&format!("{instance}@example.com")).await;
        let path = format!("/instances/{instance}/assign");
        self.site.admin.patch(&path, json!({"user_id": user})).token(&self.site.root).ok().await;
        let path = format!("/users/{user}");
        self.site.admin.patch(&path, json!({"quota_daily": quota})).token(&self.site.root).ok().await;
        (user, token)
    }

    pub fn ask(&self, token: &str, instance: &str, text: &str) -> Call {
        let body = json!({"instance_id": instance, "message": text, "model": "gpt-4o"});
        self.site.employee.post("/me/chat", body).token(token)
    }

    /// The same as a stream; answers all that came.
    pub async fn ask_stream(&self, token: &str, instance: &str, text: &str) -> String {
        let body = json!({"instance_id": instance, "message": text, "model": "gpt-4o", "stream": true});
        let url = format!("{}/api/v1/me/chat", self.site.employee.url);
        let answer = self.site.employee.http.post(url).bearer_auth(token).json(&body).send().await.unwrap();
        answer.text().await.unwrap()
    }

    pub async fn key(&self, name: &str) -> store::gateway_key::GatewayKey {
        let key = store::gateway_key::named(&self.site.app.db, name).await.unwrap().unwrap();
        used_secret(key.key(&self.site.app.sealer).unwrap().expose());
        key
    }

    /// A token at the one-api with our record of it, without the calls that making one takes.
    pub async fn adopted_key(&self, name: &str) {
        let secret = self.site.key(name, Some(name), None).await;
        let tables = &self.gateway.tables;
        let column = tables.quoted("key");
        let sql = format!(
            "INSERT INTO tokens (user_id, {column}, status, name, created_time, accessed_time, unlimited_quota, \
             remain_quota) VALUES (1, ?, 1, ?, 0, 0, ?, 0)"
        );
        tables.run(&sql, with![secret.trim_start_matches("sk-"), name, true]).await.unwrap();
        let id = tables.number("SELECT id FROM tokens WHERE name = ?", with![name]).await.unwrap();
        let sql = format!("UPDATE gateway_key SET gateway_id = '{id}', state = 'valid' WHERE name = '{name}'");
        self.site.app.db.run(&sql, vec![]).await.unwrap();
    }

    /// As an assistant itself asks: past us, with its sub key. Answers the status.
    pub async fn assistant_asks(&self, name: &str, text: &str) -> u16 {
        let secret = self.key(name).await.key(&self.site.app.sealer).unwrap();
        let body = json!({"model": "gpt-4o", "messages": [{"role": "user", "content": text}]});
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let url = format!("{}/v1/chat/completions", self.gateway.url);
        http.post(url).bearer_auth(secret.expose()).json(&body).send().await.unwrap().status().as_u16()
    }

    /// Brings in what the log has, at once.
    pub async fn read_log(&self) {
        self.gateway.switches.written().await;
        // A pull begins at most once a second.
        tokio::time::sleep(Duration::from_millis(1100)).await;
        self.site.app.feed.pull().await;
    }

    /// One round of what the leading scheduler does every few seconds.
    pub async fn round(&self) {
        let (_lead, leads) = tokio::sync::watch::channel(true);
        assert!(llm::watch::watch_once(&self.site.app, &leads).await);
    }

    pub async fn work(&self) {
        crate::keys::work(&self.site, &["apply_key"]).await;
    }

    /// A worker that does what is due beside the test.
    pub fn work_beside(&self) -> Working {
        let timing = Timing { poll: Duration::from_millis(50), ..Timing::default() };
        let types: Vec<TaskType<App>> = TYPES.iter().filter(|t| t.name == "apply_key").copied().collect();
        let (stop, stopped) = watch::channel(false);
        let ended = tokio::spawn(Worker::new(self.site.app.clone(), types.leak(), timing).run(stopped));
        Working { stop, ended }
    }

    pub async fn root(&self) -> String {
        self.site.admin_login(ROOT).await
    }

    /// The messages of the open alerts of a rule.
    pub async fn alerts(&self, rule: &str) -> Vec<String> {
        let root = self.root().await;
        let open = self.site.admin.get(&format!("/alerts?rule={rule}&open=true")).token(&root).ok().await;
        open["list"].as_array().unwrap().iter().map(|alert| alert["message"].as_str().unwrap().to_owned()).collect()
    }

    pub async fn shown(&self, name: &str) -> Value {
        let root = self.root().await;
        let keys = self.site.admin.get("/keys").token(&root).ok().await;
        keys["list"].as_array().unwrap().iter().find(|key| key["name"] == name).cloned().unwrap()
    }

    pub async fn ready(&self) -> Value {
        self.site.admin.raw(reqwest::Method::GET, "/readyz").ok().await
    }

    pub async fn guardian(&self) -> String {
        let root = self.root().await;
        self.site.run_job(&root, "guardian_gateway").await
    }

    /// The status of the token of this name at a one-api or new-api; 1 is enabled.
    pub async fn token_status(&self, name: &str) -> i64 {
        self.gateway.tables.number("SELECT status FROM tokens WHERE name = ?", with![name]).await.unwrap()
    }
}

pub struct Working {
    stop: watch::Sender<bool>,
    ended: tokio::task::JoinHandle<()>,
}

impl Working {
    pub async fn stop(self) {
        self.stop.send(true).unwrap();
        self.ended.await.unwrap();
    }
}

/// Names the test for a skip.
macro_rules! here {
    ($name:literal) => {
        concat!("upstreams::", $name)
    };
}
use here;
