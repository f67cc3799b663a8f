//! A simulated server for a case, and workers that run the real handlers on it. What breaks off a task in the middle, on purpose.

use std::sync::Arc;
use std::time::Duration;

use base::id::TaskId;
use fleet::assistant::Defaults;
use fleet::registry::TYPES;
use queue::task::{Status, Task};
use queue::task_admin;
use queue::worker::{Timing, Worker};
use serde_json::{Value, json};
use sim::host::{Hosts, Machine};
use testkit::{until, until_ok};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::{Database, Gateway, Options, Site, used_secret};

pub struct Simulated {
    pub site: Site,
    pub machine: Arc<Machine>,
    _hosts: Hosts,
}

/// A worker that goes away at once when it is told to stop, and gives back what it holds.
const TIMING: Timing = Timing {
    lease: Duration::from_secs(60),
    poll: Duration::from_millis(50),
    backoff: Duration::from_millis(1),
    slots: 8,
    drain: Duration::ZERO,
};

pub struct Working {
    stop: watch::Sender<bool>,
    ended: JoinHandle<()>,
}

impl Working {
    pub async fn stop(self) {
        self.stop.send(true).unwrap();
        self.ended.await.unwrap();
    }
}

impl Simulated {
    /// A site with one server, `s`.
    pub async fn new() -> Simulated {
        Simulated::at(Gateway::default()).await
    }

    /// The same with this LLM gateway.
    pub async fn at(gateway: Gateway) -> Simulated {
        Simulated::with(Database::sqlite(), |options| options.gateway = gateway).await
    }

    /// The same on this database, with these options.
    pub async fn with(database: Database, change: impl FnOnce(&mut Options)) -> Simulated {
        let assistants = Defaults {
            settle: Duration::from_millis(50),
            start_limit: Duration::from_secs(10),
            gateway_url: "http://10.0.0.1:8082".into(),
            ..Defaults::default()
        };
        let mut options = Options { assistants, ..Options::default() };
        change(&mut options);
        let site = Site::with(database, options).await;
        let machine = Machine::with_clock("s", site.app.clock.clone());
        let hosts = Hosts::of(machine.clone()).await.unwrap();
        let key = sim::host::login_key().unwrap();
        used_secret(&key);
        let body = json!({"id": "s", "name": "Server s", "host": "127.0.0.1", "ssh_port": hosts.address.port(),
            "ssh_user": "root", "ssh_key": key});
        site.admin.post("/servers", body).token(&site.root).ok().await;
        Simulated { site, machine, _hosts: hosts }
    }

    pub fn work(&self) -> Working {
        let (stop, stopped) = watch::channel(false);
        let ended = tokio::spawn(Worker::new(self.site.app.clone(), TYPES, TIMING).run(stopped));
        Working { stop, ended }
    }

    /// Adds an instance, made on the server; answers its unit.
    pub async fn provisioned(&self, id: &str) -> String {
        let body = json!({"id": id, "name": "Assistant", "server_id": "s", "model": "gpt-4o"});
        let made = self.site.admin.post("/assistant-instances", body).token(&self.site.root).ok().await;
        used_secret(made["gateway_token"].as_str().unwrap());
        let working = self.work();
        let task = self.enqueue("provision_instance", json!({"instance_id": id})).await;
        self.done(&task).await;
        working.stop().await;
        format!("openclaw-{id}.service")
    }

    pub async fn enqueue(&self, name: &str, payload: Value) -> TaskId {
        let body = json!({"type": name, "payload": payload});
        let made = self.site.admin.post("/tasks", body).token(&self.site.root).ok().await;
        TaskId::named(made["id"].as_str().unwrap())
    }

    /// The task of this type that was enqueued last.
    pub async fn latest(&self, name: &str) -> TaskId {
        let tasks = self.site.admin.get(&format!("/tasks?type={name}")).token(&self.site.root).ok().await;
        let ids = tasks["list"].as_array().unwrap().iter().map(|t| t["id"].as_str().unwrap().to_owned());
        TaskId::named(ids.max().unwrap())
    }

    pub async fn ended(&self, id: &TaskId) -> Task {
        until_ok("the task has ended", async || {
            let task = task_admin::show(&self.site.app, id).await.unwrap();
            let ended = matches!(task.status, Status::Done | Status::Failed | Status::Dead);
            if ended { Ok(task) } else { Err((task.status, self.log(id).await)) }
        })
        .await
    }

    /// Has a task that fails tried again until it is over. The clock moves only between two attempts: within one it would end
    /// the attempt's lease.
    pub async fn over(&self, id: &TaskId) -> Task {
        let mut failures = 0;
        until_ok("the task is over", async || {
            let task = task_admin::show(&self.site.app, id).await.unwrap();
            match task.status {
                Status::Done | Status::Dead => return Ok(task),
                Status::Failed if task.failures > failures => {
                    failures = task.failures;
                    self.site.wait(Duration::from_secs(90));
                }
                _ => {}
            }
            Err((task.status, task.failures, self.log(id).await))
        })
        .await
    }

    pub async fn done(&self, id: &TaskId) -> Task {
        let task = self.ended(id).await;
        assert_eq!(task.status, Status::Done, "{} {}: {:#?}", task.r#type, task.error, self.log(id).await);
        task
    }

    pub async fn log(&self, id: &TaskId) -> Vec<String> {
        task_admin::log_of(&self.site.app, id).await.unwrap().into_iter().map(|line| line.line).collect()
    }

    /// A worker does everything that is due.
    pub async fn settle(&self) {
        let working = self.work();
        until_ok("nothing is to be done", async || {
            let tasks = self.site.admin.get("/tasks?limit=200").token(&self.site.root).ok().await;
            let counts = &tasks["counts"];
            if counts["pending"] == 0 && counts["processing"] == 0 { Ok(()) } else { Err(counts.clone()) }
        })
        .await;
        working.stop().await;
    }

    /// A worker begins what waits, and goes away in the middle: where commands with this word are sent, once this is so.
    /// Then the server answers again.
    pub async fn broken_off(&self, word: &str, is_so: impl AsyncFn() -> bool) {
        self.machine.hold(word);
        let working = self.work();
        until(&format!("what comes before {word}"), async || is_so().await).await;
        until(word, async || self.machine.held() > 0).await;
        working.stop().await;
        self.machine.go_on();
    }

    /// The text of a unit on the server.
    pub fn unit(&self, name: &str) -> String {
        String::from_utf8(self.machine.read(&format!("/etc/systemd/system/{name}")).unwrap()).unwrap()
    }

    /// The configuration on the server.
    pub fn config(&self, home: &str) -> Value {
        let bytes = self.machine.read(&format!("{home}/.openclaw/openclaw.json")).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }
}
