//! Real servers for a case: the testbed's hosts, with a stand-in for OpenClaw on them, and a worker that runs the real handlers.

use std::path::PathBuf;
use std::time::Duration;

use base::id::TaskId;
use fleet::assistant::Defaults;
use fleet::registry::TYPES;
use queue::task::{Status, Task};
use queue::task_admin;
use queue::worker::{Timing, Worker};
use remote::host::file::{Expect, Write};
use remote::host::{Address, Command, Host, LoginKey, Target};
use serde::Deserialize;
use serde_json::{Value, json};
use testkit::{until_ok, until_ok_within};
use tokio::sync::watch;

use super::{Database, Options, Site, reserved, skip};

#[derive(Clone, Debug, Deserialize)]
pub struct Fleet {
    pub key: PathBuf,
    netns: PathBuf,
    hosts: Vec<Machine>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Machine {
    name: String,
    /// In its own network.
    address: String,
    /// Where this machine reaches it.
    pub relay: String,
    pub port: u16,
    pub host_key: String,
    pub docker: bool,
}

/// The hosts of this run; `None` (a counted skip) where there are none.
pub fn fleet(name: &str) -> Option<Fleet> {
    let Some(folder) = std::env::var_os("TIDEPOOL_TEST_HOSTS") else {
        skip(name, "no hosts: TIDEPOOL_TEST_HOSTS is not set");
        return None;
    };
    let text = std::fs::read_to_string(PathBuf::from(folder).join("hosts.json")).unwrap();
    Some(serde_json::from_str(&text).unwrap())
}

impl Fleet {
    /// Gives this machine a way to a port of a host, as from another machine of its network, as long as the answer is held.
    pub fn open(&self, name: &str, port: u16) -> tokio::process::Child {
        let host = self.machine(name);
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testbed/hosts_relay.py");
        let mut command = tokio::process::Command::new("python3");
        command.arg(script).arg(&self.netns).arg(format!("{}:{port}={}:{port}", host.relay, host.address));
        command.kill_on_drop(true).spawn().unwrap()
    }

    pub fn has(&self, name: &str) -> bool {
        self.hosts.iter().any(|machine| machine.name == name)
    }

    pub fn machine(&self, name: &str) -> &Machine {
        self.hosts.iter().find(|machine| machine.name == name).unwrap()
    }

    pub fn host(&self, name: &str) -> Host {
        let machine = self.machine(name);
        Host::new(Target::Ssh(Address {
            host: machine.relay.clone(),
            port: machine.port,
            user: "root".into(),
            key: LoginKey::File(self.key.clone()),
            expected: None,
            host_key: Some(machine.host_key.parse().unwrap()),
        }))
    }
}

/// Whether the real OpenClaw is there, in the stand-in's place.
pub async fn is_real(host: &Host, version: &str) -> bool {
    let module = format!("/opt/tidepool/openclaw/{version}/node_modules/openclaw");
    host.run(&Command::new("test").args(["-d", &module])).await.unwrap().succeeded()
}

/// A site, a server of the testbed's, and a worker.
pub struct Ground {
    pub site: Site,
    pub fleet: Fleet,
    /// Root on the server, beside the platform's own connection.
    pub host: Host,
    pub server: String,
    pub base_dir: String,
    port: u16,
    stop: watch::Sender<bool>,
    worker: Option<tokio::task::JoinHandle<()>>,
}

/// How long an assistant may take to start where that is not what a case is about.
pub const START_LIMIT: Duration = Duration::from_secs(60);

const TIMING: Timing = Timing {
    lease: Duration::from_secs(60),
    poll: Duration::from_millis(50),
    backoff: Duration::from_secs(5),
    slots: 8,
    drain: Duration::from_secs(5),
};

/// What a task on a real host may take, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(150);

/// Versions of the stand-in.
pub const CURRENT: &str = "2026.9.6";
pub const OLDER: &str = "2026.5.28";

impl Ground {
    pub async fn new(name: &str) -> Option<Ground> {
        Ground::with(name, START_LIMIT).await
    }

    /// `start_limit`: how long an assistant may take to start.
    pub async fn with(name: &str, start_limit: Duration) -> Option<Ground> {
        let assistants = Defaults { start_limit, ..Ground::defaults() };
        Some(Ground::on(fleet(name)?, "h1", assistants).await)
    }

    pub async fn on(fleet: Fleet, machine: &str, assistants: Defaults) -> Ground {
        Ground::with_options(fleet, machine, Options { assistants, ..Options::default() }).await
    }

    /// The usual limits, for a site that is different otherwise.
    pub fn defaults() -> Defaults {
        let gateway_url = "http://10.0.0.1:8082".into();
        let settle = Duration::from_secs(2);
        Defaults { start_limit: START_LIMIT, settle, gateway_url, least_memory: 64 << 20, ..Defaults::default() }
    }

    pub async fn with_options(fleet: Fleet, machine: &str, options: Options) -> Ground {
        let site = Site::with(Database::sqlite(), options).await;
        let host = fleet.host(machine);
        for version in [CURRENT, OLDER] {
            let folder = format!("/opt/tidepool/openclaw/{version}");
            host.succeed(&Command::new("mkdir").args(["-p", &folder])).await.unwrap();
            if is_real(&host, version).await {
                continue;
            }
            let standin =
                Write::new(format!("{folder}/openclaw"), include_str!("openclaw.py"), Expect::Any).mode(0o755);
            host.write(&standin).await.unwrap();
        }
        let (server, base_dir) = (base::id::fresh(), format!("/srv/t-{}", base::id::fresh()));
        let machine = fleet.machine(machine);
        let body = json!({"id": server, "name": "A real one", "host": machine.relay, "ssh_port": machine.port,
            "ssh_key_path": fleet.key, "base_dir": base_dir});
        site.admin.post("/servers", body).token(&site.root).ok().await;
        let (stop, stopped) = watch::channel(false);
        let worker = Worker::new(site.app.clone(), TYPES, TIMING);
        let worker = Some(tokio::spawn(worker.run(stopped)));
        let port = free_block(&host, &machine.name).await;
        Ground { site, fleet, host, server, base_dir, port, stop, worker }
    }

    /// Adds an instance and makes it on the server.
    pub async fn provisioned(&mut self, more: Value) -> String {
        let id = self.instance(more).await;
        self.run("provision_instance", json!({"instance_id": id})).await;
        id
    }

    /// A port that no other case has.
    pub fn next_port(&mut self) -> u16 {
        self.port += 10;
        self.port
    }

    pub async fn instance(&mut self, more: Value) -> String {
        self.next_port();
        let id = format!("i-{}", base::id::fresh());
        let mut body = json!({"id": id, "name": "Assistant", "server_id": self.server, "model": "gpt-4o", "gateway_port": self.port});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let made = self.site.admin.post("/assistant-instances", body).token(&self.site.root).ok().await;
        super::used_secret(made["gateway_token"].as_str().unwrap());
        id
    }

    pub async fn enqueue(&self, name: &str, payload: Value) -> TaskId {
        let body = json!({"type": name, "payload": payload});
        let made = self.site.admin.post("/tasks", body).token(&self.site.root).ok().await;
        TaskId::named(made["id"].as_str().unwrap())
    }

    /// Runs a task to its end, which is good.
    pub async fn run(&self, name: &str, payload: Value) -> Task {
        let id = self.enqueue(name, payload).await;
        self.done(&id).await
    }

    /// The task of this type that was enqueued last.
    pub async fn latest(&self, name: &str) -> TaskId {
        let path = format!("/tasks?type={name}&sort=-created_at&limit=1");
        let tasks = self.site.admin.get(&path).token(&self.site.root).ok().await;
        TaskId::named(tasks["list"][0]["id"].as_str().unwrap())
    }

    /// Runs a task whose first attempt fails.
    pub async fn fails(&self, name: &str, payload: Value) -> Task {
        let id = self.enqueue(name, payload).await;
        let task = self.ended(&id).await;
        assert_eq!(task.status, Status::Failed, "{}", task.result);
        task
    }

    /// Waits until so many attempts have failed.
    pub async fn failed_times(&self, id: &TaskId, times: i64) -> Task {
        until_ok_within(PATIENCE, "so many attempts have failed", async || {
            let task = task_admin::show(&self.site.app, id).await.unwrap();
            if task.failures >= times { Ok(task) } else { Err((task.failures, times, self.log(id).await)) }
        })
        .await
    }

    pub async fn done(&self, id: &TaskId) -> Task {
        let task = self.ended(id).await;
        assert_eq!(task.status, Status::Done, "{} {}: {:#?}", task.r#type, task.error, self.log(id).await);
        task
    }

    /// Waits until it is done or has failed, where another task of the instance may have to be tried again first: time passes
    /// while it waits and nothing runs. While something does, hours would pass, and the administrator's login with them.
    pub async fn failed_or_done_in_its_turn(&self, id: &TaskId) {
        until_ok_within(PATIENCE, "the task has ended in its turn", async || {
            let task = task_admin::show(&self.site.app, id).await.unwrap();
            match task.status {
                Status::Done | Status::Failed | Status::Dead => return Ok(()),
                Status::Pending => {
                    let counts = store::task::counts(&self.site.app.db).await.unwrap();
                    if counts.iter().all(|count| count.status != Status::Processing) {
                        self.site.wait(Duration::from_secs(5));
                    }
                }
                Status::Processing => {}
            }
            Err((task.status, self.log(id).await))
        })
        .await;
    }

    /// Whether it went well, whichever.
    pub async fn failed_or_done(&self, id: &TaskId) -> bool {
        self.ended(id).await.status == Status::Done
    }

    async fn ended(&self, id: &TaskId) -> Task {
        until_ok_within(PATIENCE, "the task has ended", async || {
            let task = task_admin::show(&self.site.app, id).await.unwrap();
            let ended = matches!(task.status, Status::Done | Status::Failed | Status::Dead);
            if ended { Ok(task) } else { Err((task.status, self.log(id).await)) }
        })
        .await
    }

    pub async fn log(&self, id: &TaskId) -> Vec<String> {
        task_admin::log_of(&self.site.app, id).await.unwrap().into_iter().map(|line| line.line).collect()
    }

    /// What a script on the server prints.
    pub async fn sh(&self, script: &str, args: &[&str]) -> String {
        let command = Command::script("test", &[script]).args(args.iter().copied()).limit(PATIENCE);
        self.host.succeed(&command).await.unwrap().text().trim_end_matches('\n').to_owned()
    }

    /// Waits until somebody listens on a port of the server.
    pub async fn listens(&self, port: &str) {
        until_ok("somebody listens on the port", async || {
            let found = self.sh("ss -Hltn \"sport = :$1\"", &[port]).await;
            if found.is_empty() { Err(port.to_owned()) } else { Ok(()) }
        })
        .await;
    }

    pub async fn show(&self, id: &str) -> Value {
        self.site.admin.get(&format!("/instances/{id}")).token(&self.site.root).ok().await
    }

    pub async fn home(&self, id: &str) -> String {
        self.show(id).await["home"].as_str().unwrap().to_owned()
    }

    /// The configuration on the server.
    pub async fn config(&self, id: &str) -> Value {
        let path = format!("{}/.openclaw/openclaw.json", self.home(id).await);
        serde_json::from_str(&self.sh("cat -- \"$1\"", &[&path]).await).unwrap()
    }

    /// Tells the stand-in what to do wrong.
    pub async fn wrong(&self, id: &str, what: Value) {
        let path = format!("{}/.openclaw/standin.json", self.home(id).await);
        // Renamed into place, so that the stand-in never reads half of it.
        self.sh(
            "printf %s \"$2\" >\"$1.new\" && chmod 644 \"$1.new\" && mv -f \"$1.new\" \"$1\"",
            &[&path, &what.to_string()],
        )
        .await;
    }

    pub async fn main_pid(&self, id: &str) -> String {
        self.sh("systemctl show -p MainPID --value \"openclaw-$1\"", &[id]).await
    }

    /// Nothing of the case stays on the server.
    pub async fn end(mut self) {
        self.stop.send(true).unwrap();
        self.worker.take().unwrap().await.unwrap();
        let script = r#"
            for unit in $(grep -lF "$1/" /etc/systemd/system/openclaw-*.service 2>/dev/null); do
              systemctl disable --now "${unit##*/}" 2>/dev/null; rm -f "$unit" "$unit".tidepool-*
            done
            systemctl daemon-reload
            getent passwd | grep -F ":$1/" | cut -d: -f1,3 | while IFS=: read -r user uid; do
              rm -f "/etc/systemd/system/user@$uid.service"; userdel "$user" 2>/dev/null
            done
            rm -rf -- "$1""#;
        self.sh(script, &[&self.base_dir]).await;
        self.site.check().await;
    }
}

/// Cases share the host: each has ports of its own, away from those that the kernel gives out. A case that failed may have
/// left gateways behind.
async fn free_block(host: &Host, machine: &str) -> u16 {
    loop {
        let port = reserved::block_of_ports(machine);
        let range = format!("sport >= :{port} and sport < :{}", port + reserved::BLOCK);
        let listens = host.succeed(&Command::new("ss").args(["-Hltn", &range])).await.unwrap();
        if listens.stdout.is_empty() {
            return port;
        }
    }
}
