//! The state of a machine: its files, users, and units with their journals; and how units start, end and restart.

use std::collections::{BTreeMap, HashMap};
use std::sync::Weak;
use std::time::Duration;

use base::Clock;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::journal::{EXITED, Entry, FAILED, Journal, RESTARTED, STARTED, STOPPED};
use super::machine::Machine;
use super::openclaw::{Service, issues};
use super::tree::Tree;
use crate::assistant::{Conversations, Gateway, Model, Options, Senders, WeakGateway};

/// The uptime that a machine begins with.
const UP_BEFORE: Duration = Duration::from_secs(9 * 24 * 3600);
/// The folder of unit files.
pub const UNITS: &str = "/etc/systemd/system";
/// The folder where the platform installs Node and OpenClaw.
pub const PROGRAMS: &str = "/opt/tidepool";
/// How often systemd restarts a unit that ends at once.
pub const TRIES: u32 = 10;
pub(super) struct State {
    pub files: Tree,
    pub units: BTreeMap<String, Unit>,
    /// Homes by user name.
    pub users: BTreeMap<String, String>,
    /// Conversations by the state folder of their gateway.
    pub conversations: HashMap<String, Conversations>,
    /// Who may write to a gateway's bot, by its state folder.
    pub senders: HashMap<String, Senders>,
    pub unknown: Vec<String>,
    /// Listeners that belong to no unit: port and user.
    pub strangers: Vec<(u16, String)>,
    /// Additional lines in the answer about what the machine supports of a cell.
    pub odd_about_cells: String,
    /// The disk limits that were requested for homes, in order, in KiB.
    pub disk_limits: Vec<String>,
    /// Whether the size of homes cannot be measured.
    pub counts_no_homes: bool,
    /// The last number given to a journal entry or a process.
    pub numbers: u64,
    pub clock: Clock,
    pub booted: Timestamp,
}

#[derive(Default)]
pub(super) struct Unit {
    pub enabled: bool,
    pub life: Life,
    pub restarts: u32,
    /// waitid's code and status.
    pub exit: (u8, i32),
    pub result: &'static str,
    /// systemd no longer starts it: its start limit is reached.
    pub given_up: bool,
    pub since: Timestamp,
    pub journal: Journal,
    /// How often it was started since the machine was created.
    pub starts: u32,
    pub wedged: bool,
    pub gateway: WeakGateway,
}

#[derive(Default)]
pub(super) enum Life {
    Running(Box<Process>),
    #[default]
    Dead,
    Failed,
}

pub(super) struct Process {
    pub pid: u32,
    /// In microseconds since the machine's boot.
    pub started_us: u64,
    pub service: Service,
    token: String,
    origins: Vec<String>,
    model: Option<Model>,
    log_file: Option<String>,
}

impl Unit {
    pub fn process(&self) -> Option<&Process> {
        match &self.life {
            Life::Running(process) => Some(process),
            Life::Dead | Life::Failed => None,
        }
    }

    /// systemd's `ActiveState` and `SubState`.
    pub fn words(&self) -> (&'static str, &'static str) {
        match self.life {
            Life::Running(_) => ("active", "running"),
            Life::Dead => ("inactive", "dead"),
            Life::Failed => ("failed", "failed"),
        }
    }
}

impl State {
    pub fn uptime(&self) -> Duration {
        UP_BEFORE + Duration::try_from(self.now().duration_since(self.booted)).unwrap_or_default()
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn next(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub fn service(&self, unit: &str) -> Option<Service> {
        self.files.text(&format!("{UNITS}/{unit}")).map(Service::read)
    }

    /// The gateway of a running unit, created at the first call.
    pub fn gateway(&mut self, name: &str, machine: Weak<Machine>) -> Option<Gateway> {
        let unit = self.units.get_mut(name)?;
        let process = unit.process()?;
        if let Some(gateway) = unit.gateway.upgrade() {
            return Some(gateway);
        }
        let state_dir = process.service.state_dir.clone();
        let gateway = Gateway::new(Options {
            origins: process.origins.clone(),
            model: process.model.clone(),
            version: process.service.version().to_owned(),
            conversations: self.conversations.get(&state_dir).cloned().unwrap_or_default(),
            senders: self.senders.get(&state_dir).cloned().unwrap_or_default(),
            backlog: 256,
            ..Options::new(&process.token)
        });
        unit.gateway = gateway.downgrade();
        let (unit, conversations) = (name.to_owned(), gateway.conversations());
        gateway.on_run(move |session| {
            let Some(machine) = machine.upgrade() else { return };
            let mut state = machine.lock();
            state.conversations.insert(state_dir.clone(), conversations.clone());
            state.log(&unit, "agent/embedded", &format!("embedded run start: sessionKey={session}"));
            drop(state);
            machine.news.notify_waiters();
        });
        Some(gateway)
    }

    pub fn record(&mut self, unit: &str, entry: Entry) {
        let (number, at) = (self.next(), self.now());
        self.units.entry(unit.to_owned()).or_default().journal.push(Entry { number, at, ..entry });
    }

    /// Records that systemd restarts a unit.
    pub fn restarts(&mut self, unit: &str, restarts: u32) {
        let message = format!("{unit}: Scheduled restart job, restart counter is at {restarts}.");
        self.record(unit, Entry::systemd(message, RESTARTED).with("N_RESTARTS", restarts.to_string()));
    }

    /// Writes a line of a running gateway to its log file and to the unit's journal.
    pub fn log(&mut self, unit: &str, subsystem: &str, message: &str) {
        let Some(process) = self.units.get(unit).and_then(Unit::process) else { return };
        let now = self.now();
        let time = now.strftime("%FT%T%.3f+00:00").to_string();
        let (pid, user, file) = (process.pid, process.service.user.clone(), process.log_file.clone());
        if let Some(file) = file {
            let name = json!({"subsystem": subsystem}).to_string();
            let line = json!({
                "0": name, "1": message,
                "_meta": {"runtime": "node", "date": now.strftime("%FT%T%.3fZ").to_string(), "logLevelId": 3, "logLevelName": "INFO",
                    "name": name, "parentNames": ["openclaw"]},
                "time": time, "hostname": "simulated", "message": message,
            });
            self.files.append(&file, format!("{line}\n").as_bytes(), &user);
        }
        self.record(unit, Entry::said(pid, format!("{time} [{subsystem}] {message}")));
    }

    /// Starts a unit; false if it does not exist or its start limit is reached.
    pub fn start(&mut self, name: &str) -> bool {
        let Some(service) = self.service(name) else { return false };
        if self.units.get(name).is_some_and(|unit| unit.process().is_some()) {
            return true;
        }
        if self.units.get(name).is_some_and(|unit| unit.given_up) {
            self.record(name, Entry::systemd(format!("{name}: Start request repeated too quickly."), ""));
            return false;
        }
        let pid = self.next() as u32;
        let (started_us, described) = (self.uptime().as_micros() as u64, service.description.clone());
        self.record(name, Entry::systemd(format!("Started {name} - {described}."), STARTED));
        let config = self.files.file(&service.config_path);
        let wrong = issues(config);
        let document: Value = config.and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default();
        let taken = self.units.values().filter_map(Unit::process).any(|other| other.service.port == service.port);
        if !wrong.is_empty() || taken {
            let first = match taken {
                true => format!(
                    "Gateway failed to start: another gateway instance is already listening on ws://127.0.0.1:{}",
                    service.port
                ),
                false => format!("Gateway failed to start: Invalid config at {}:", service.config_path),
            };
            self.record(name, Entry::said(pid, first));
            for (path, message) in wrong {
                self.record(name, Entry::said(pid, format!("{path}: {message}")));
            }
            self.fail(name, (1, 78), "exit-code");
            return true;
        }
        self.senders.entry(service.state_dir.clone()).or_default().configure(&document);
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let origins = document["gateway"]["controlUi"]["allowedOrigins"].as_array();
        let process = Process {
            pid,
            started_us,
            token: text(&document["gateway"]["auth"]["token"]).unwrap_or_default(),
            origins: origins.into_iter().flatten().filter_map(text).collect(),
            model: Model::of(&document),
            log_file: text(&document["logging"]["file"]),
            service,
        };
        let listening = format!("listening on ws://127.0.0.1:{} (PID {pid})", process.service.port);
        let now = self.now();
        let unit = self.units.entry(name.to_owned()).or_default();
        (unit.life, unit.exit, unit.result, unit.restarts) = (Life::Running(Box::new(process)), (0, 0), "success", 0);
        (unit.since, unit.wedged, unit.gateway) = (now, false, WeakGateway::default());
        unit.starts += 1;
        self.log(name, "gateway", "starting...");
        self.log(name, "gateway", &listening);
        self.log(name, "gateway", "ready");
        true
    }

    /// Stops a unit; false if it does not exist.
    pub fn stop(&mut self, name: &str) -> bool {
        if self.service(name).is_none() {
            return false;
        }
        if self.end(name, false) {
            self.log_end(name);
        }
        true
    }

    fn log_end(&mut self, name: &str) {
        self.record(name, Entry::systemd(format!("{name}: Deactivated successfully."), ""));
        self.record(name, Entry::systemd(format!("Stopped {name}."), STOPPED));
        let now = self.now();
        if let Some(unit) = self.units.get_mut(name) {
            (unit.life, unit.exit, unit.result, unit.since) = (Life::Dead, (1, 0), "success", now);
        }
    }

    /// Ends the gateway of a running unit; false if the unit does not run.
    pub fn end(&mut self, name: &str, killed: bool) -> bool {
        let Some(unit) = self.units.get_mut(name).filter(|unit| unit.process().is_some()) else { return false };
        if let Some(gateway) = unit.gateway.upgrade() {
            gateway.end(killed);
        }
        true
    }

    pub fn kill(&mut self, name: &str, exit: (u8, i32), result: &'static str) {
        if self.end(name, true) {
            self.fail(name, exit, result);
        }
    }

    pub fn fail(&mut self, name: &str, exit: (u8, i32), result: &'static str) {
        let (code, status) = if exit.0 == 1 { ("exited", exit.1.to_string()) } else { ("killed", "KILL".to_owned()) };
        let ended = format!("{name}: Main process exited, code={code}, status={status}");
        let ended = Entry::systemd(ended, EXITED).with("COMMAND", "ExecStart").with("EXIT_CODE", code);
        self.record(name, ended.with("EXIT_STATUS", status));
        let failed = Entry::systemd(format!("{name}: Failed with result '{result}'."), FAILED);
        self.record(name, failed.with("UNIT_RESULT", result));
        let now = self.now();
        let unit = self.units.entry(name.to_owned()).or_default();
        (unit.life, unit.exit, unit.result, unit.since) = (Life::Failed, exit, result, now);
    }

    pub fn reset_failed(&mut self, name: &str) {
        if let Some(unit) = self.units.get_mut(name) {
            unit.given_up = false;
            unit.restarts = 0;
            if matches!(unit.life, Life::Failed) {
                unit.life = Life::Dead;
            }
        }
    }

    /// Reloads a configuration that was written, in the gateway that runs with it.
    pub fn reload(&mut self, path: &str) {
        let its = |unit: &Unit| unit.process().is_some_and(|process| process.service.config_path == path);
        let Some(name) = self.units.iter().find(|(_, unit)| its(unit)).map(|(name, _)| name.clone()) else { return };
        let config = self.files.file(path);
        let wrong = issues(config);
        let document: Value = config.and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default();
        if document["gateway"]["reload"]["mode"] == "off" {
            return;
        }
        let said = match wrong.first() {
            None => "config hot reload applied (changed)".to_owned(),
            Some((path, message)) => format!("config reload skipped (invalid config): {path}: {message}"),
        };
        // New connections get a gateway with the new token, and with the new model and its key.
        if let Some(unit) = self.units.get_mut(&name).filter(|_| wrong.is_empty())
            && let Life::Running(process) = &mut unit.life
        {
            process.model = Model::of(&document);
            process.token = document["gateway"]["auth"]["token"].as_str().unwrap_or_default().to_owned();
            self.senders.entry(process.service.state_dir.clone()).or_default().configure(&document);
            unit.gateway = WeakGateway::default();
        }
        self.log(&name, "gateway/reload", &said);
    }
}
