//! Checks step by step whether a server can be used: the answer of POST /servers/:id/test.
//!
//! It opens a new connection, so that every step is really tested. It stops at the first step that makes the next ones
//! impossible, and reports the others as not tried.

use std::time::{Duration, Instant};

use super::cell::{self, Ability, Part};
use super::command::{Actor, Command};
use super::error::{Error, Result};
use super::key::HostKey;
use super::pool::Remote;
use super::ssh::{self, Address, Connection};
use super::timing::Timing;
use super::{Host, Output, Target, metrics};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Address,
    HostKey,
    Login,
    Sudo,
    Systemd,
    Cell,
    Docker,
    Node,
    Openclaw,
    FreeMemory,
    Gateway,
}

impl Step {
    pub const ALL: &[Step] = &[
        Step::Address,
        Step::HostKey,
        Step::Login,
        Step::Sudo,
        Step::Systemd,
        Step::Cell,
        Step::Docker,
        Step::Node,
        Step::Openclaw,
        Step::FreeMemory,
        Step::Gateway,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Step::Address => "address",
            Step::HostKey => "host_key",
            Step::Login => "login",
            Step::Sudo => "sudo",
            Step::Systemd => "systemd",
            Step::Cell => "cell",
            Step::Docker => "docker",
            Step::Node => "node",
            Step::Openclaw => "openclaw",
            Step::FreeMemory => "free_memory",
            Step::Gateway => "gateway",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub step: Step,
    pub ok: bool,
    pub detail: String,
    pub ms: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Every step, in order.
    pub reports: Vec<Report>,
    /// The key that the server showed, whether it was expected or not.
    pub host_key: Option<HostKey>,
}

/// What the probe checks.
#[derive(Clone, Debug)]
pub struct Wants {
    /// The programs, by path or by name.
    pub node: String,
    pub openclaw: String,
    /// The parts of a cell, and a function that judges what the server supports of them.
    pub cell: Vec<Part>,
    pub cell_verdict: fn(&Ability) -> std::result::Result<String, String>,
    /// The LLM gateway's address for assistants on this server.
    pub gateway_url: Option<String>,
}

/// The memory that one more assistant needs.
const ENOUGH_MEMORY: u64 = 1 << 30;
const LIMIT: Duration = Duration::from_secs(15);

pub async fn probe(target: &Target, wants: &Wants) -> Probe {
    let mut probe = Probe { reports: vec![], host_key: None };
    let host = match target {
        Target::Local => {
            probe.note(Step::Address, Ok("this machine".into()), Instant::now());
            probe.note(Step::HostKey, Ok("not needed".into()), Instant::now());
            probe.note(Step::Login, Ok("not needed".into()), Instant::now());
            Some(Host::local())
        }
        Target::Ssh(address) => probe.connect(address).await,
    };
    if let Some(host) = host {
        probe.look_around(&host, wants).await;
        host.close().await;
    }
    for step in &Step::ALL[probe.reports.len()..] {
        probe.reports.push(Report { step: *step, ok: false, detail: "not tried".into(), ms: 0 });
    }
    probe
}

impl Probe {
    fn note(&mut self, step: Step, found: Result<String>, began: Instant) -> bool {
        let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let ok = found.is_ok();
        let detail = found.unwrap_or_else(|error| error.to_string());
        self.reports.push(Report { step, ok, detail, ms });
        ok
    }

    async fn connect(&mut self, address: &Address) -> Option<Host> {
        let timing = Timing::default();
        let began = Instant::now();
        let reached = async {
            let found = ssh::resolve(address, timing).await?;
            let stream = ssh::reach(&found, address, timing).await?;
            Ok::<_, Error>((stream.peer_addr().map(|at| at.to_string()).unwrap_or_default(), (stream, found)))
        };
        let (detail, reached) = split(reached.await);
        self.note(Step::Address, detail, began);

        let began = Instant::now();
        let (stream, found) = reached?;
        let greeted = ssh::greet(stream, &found, address, address.host_key.as_ref(), timing).await;
        self.host_key = match &greeted {
            Ok((_, key)) => Some(key.clone()),
            Err(Error::HostKeyChanged { seen, .. } | Error::HostKeyRefused { seen, .. }) => Some(seen.clone()),
            Err(_) => None,
        };
        let known = match &address.expected {
            Some(expected) if expected.is_authority() => format!("certified by {}", expected.fingerprint()),
            Some(_) => "as expected".to_owned(),
            None if address.host_key.is_some() => "as at the first contact".to_owned(),
            None => "seen for the first time, and compared with nothing".to_owned(),
        };
        let (detail, greeted) =
            split(greeted.map(|(handle, key)| (format!("{} ({known})", key.fingerprint()), (handle, key))));
        self.note(Step::HostKey, detail, began);

        let began = Instant::now();
        let (handle, host_key) = greeted?;
        let logged_in = async {
            let key = address.key.load().await?;
            ssh::log_in(handle, host_key, address, key, timing).await
        };
        let (detail, connection) =
            split(logged_in.await.map(|connection| (format!("as {}", address.user), connection)));
        self.note(Step::Login, detail, began);
        connection.map(|connection| Host::connected(address, connection))
    }

    async fn look_around(&mut self, host: &Host, wants: &Wants) {
        let began = Instant::now();
        let allowed = host.succeed(&Command::new("id").arg("-un").limit(LIMIT)).await;
        if !self.note(Step::Sudo, allowed.map(|output| line(&output)), began) {
            return;
        }
        let began = Instant::now();
        let found = systemd(host).await;
        self.note(Step::Systemd, found, began);
        let began = Instant::now();
        let found = cell::ability(host, &wants.cell).await.and_then(|able| (wants.cell_verdict)(&able).map_err(unfit));
        self.note(Step::Cell, found, began);
        let began = Instant::now();
        let found = version(host, Command::new("docker").args(["version", "--format", "{{.Server.Version}}"])).await;
        self.note(Step::Docker, found, began);
        // Neither program is run as root, because any user may have installed it.
        let began = Instant::now();
        let found = version(host, Command::new(&wants.node).arg("--version").by(Actor::nobody()))
            .await
            .and_then(|found| suits(&found));
        self.note(Step::Node, found, began);
        let began = Instant::now();
        let found = version(host, Command::new(&wants.openclaw).arg("--version").by(Actor::nobody())).await;
        self.note(Step::Openclaw, found, began);
        let began = Instant::now();
        let found = metrics::collect(host).await.and_then(|found| enough(found.memory_available, found.memory_total));
        self.note(Step::FreeMemory, found, began);
        let began = Instant::now();
        let found = match &wants.gateway_url {
            Some(url) => reach_gateway(host, url).await,
            None => Err(unfit("no address of the gateway is set")),
        };
        self.note(Step::Gateway, found, began);
    }
}

/// Separates the report of a step from the value that the next step needs.
fn split<T>(found: Result<(String, T)>) -> (Result<String>, Option<T>) {
    match found {
        Ok((detail, value)) => (Ok(detail), Some(value)),
        Err(error) => (Err(error), None),
    }
}

fn unfit(why: impl std::fmt::Display) -> Error {
    Error::Unfit(why.to_string())
}

fn line(output: &Output) -> String {
    output.text().lines().next().unwrap_or_default().trim().chars().take(200).collect()
}

async fn systemd(host: &Host) -> Result<String> {
    let output = host.run(&Command::new("systemctl").arg("is-system-running").limit(LIMIT)).await?;
    let state = line(&output);
    match state.as_str() {
        // A failed unit, or one that is still starting, does not make a server unusable.
        "running" | "degraded" | "starting" | "initializing" => {
            let version = version(host, Command::new("systemctl").arg("--version")).await?;
            Ok(format!("{version}, {state}"))
        }
        _ => Err(Error::failed("systemctl", &output)),
    }
}

async fn version(host: &Host, command: Command) -> Result<String> {
    let output = host.run(&command.limit(LIMIT)).await?;
    match output.status {
        0 => Ok(line(&output)),
        126 | 127 => Err(unfit("it is not installed")),
        _ => Err(unfit(output.complaint())),
    }
}

/// OpenClaw runs on Node 24 from 24.16 on, and on 26.1 and newer.
fn suits(version: &str) -> Result<String> {
    let mut numbers = version.trim_start_matches('v').split('.').map_while(|word| word.parse::<u32>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(24), Some(16..)) | (Some(26), Some(1..)) | (Some(27..), _) => Ok(version.to_owned()),
        _ => Err(unfit(format_args!("{version} does not run OpenClaw, which needs 24.16 or 26.1"))),
    }
}

fn enough(available: u64, total: u64) -> Result<String> {
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let memory = format!("{:.1} of {:.1} GiB", gib(available), gib(total));
    if available >= ENOUGH_MEMORY {
        Ok(memory)
    } else {
        Err(unfit(format_args!("{memory}: too little for an assistant")))
    }
}

/// Requests the LLM gateway's address from the server. Any HTTP status counts: the gateway refuses a request without a
/// key, but then it is reachable.
pub async fn reach_gateway(host: &Host, url: &str) -> Result<String> {
    let script = r#"exec curl -sS -o /dev/null -w '%{http_code}' --max-time 8 --url "$1""#;
    let output = host.run(&Command::script("reach-url", &[script]).arg(url).by(Actor::Login).limit(LIMIT)).await?;
    match output.status {
        0 => Ok(format!("answers {}", line(&output))),
        127 => Err(unfit("curl is not installed, so it was not tried")),
        _ => Err(unfit(String::from_utf8_lossy(&output.stderr).trim())),
    }
}

impl Host {
    fn connected(address: &Address, connection: Connection) -> Host {
        Host(std::sync::Arc::new(super::Inner {
            target: Target::Ssh(address.clone()),
            way: super::Way::Ssh(Box::new(Remote::connected(address.clone(), connection))),
            looks: super::Looks::default(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_must_be_one_that_openclaw_runs_on() {
        for good in ["v24.16.0", "v24.20.1", "v26.1.0", "v26.10.0", "v27.0.0"] {
            assert!(suits(good).is_ok(), "{good}");
        }
        for bad in ["v24.15.9", "v25.9.0", "v26.0.0", "v20.19.0", "nonsense", ""] {
            assert!(suits(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn memory_is_told_and_judged() {
        assert_eq!(enough(3 << 30, 24 << 30).unwrap(), "3.0 of 24.0 GiB");
        assert!(enough(500 << 20, 2 << 30).is_err());
    }
}
