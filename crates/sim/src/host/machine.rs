//! One simulated machine: what tests and the demo can do to it, and the listeners on its ports.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::Clock;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::sync::{Notify, watch};

use super::journal::Entry;
use super::openclaw::{Service, unit_text};
use super::state::{PROGRAMS, State, TRIES, UNITS, Unit};
use super::tree::Tree;
use crate::assistant::{Door, Gateway, Reply, Stranded};

/// The webhook's port is this much higher than the gateway's.
pub(super) const WEBHOOK: u16 = 4;

/// Whether a machine answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    Up,
    /// It accepts connections, but answers nothing.
    Hung,
    Down,
}

/// Prevents commands that contain a word from being executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Obstacle {
    None,
    Held(String),
    Refused(String, String),
}

/// A machine, reachable through `host::Hosts`.
pub struct Machine {
    pub name: String,
    state: Mutex<State>,
    pub(super) power: watch::Sender<Power>,
    obstacle: watch::Sender<Obstacle>,
    /// How many commands were held since `hold`.
    held: AtomicUsize,
    pub(super) news: Notify,
}

/// An assistant to add to a machine.
#[derive(Clone, Debug)]
pub struct Instance {
    pub unit: String,
    pub home: String,
    pub port: u16,
    pub token: String,
}

impl Machine {
    pub fn new(name: &str) -> Arc<Machine> {
        Machine::with_clock(name, Clock::default())
    }

    /// A machine with a given clock, which a test can move.
    pub fn with_clock(name: &str, clock: Clock) -> Arc<Machine> {
        let mut files = Tree::default();
        for folder in [UNITS, "/root", "/srv", "/opt", "/tmp"] {
            files.folder(folder, "root");
        }
        let state = State {
            files,
            units: BTreeMap::new(),
            users: BTreeMap::from([("root".to_owned(), "/root".to_owned())]),
            conversations: HashMap::new(),
            senders: HashMap::new(),
            unknown: vec![],
            strangers: vec![],
            odd_about_cells: String::new(),
            disk_limits: vec![],
            counts_no_homes: false,
            numbers: 1000,
            booted: clock.now(),
            clock,
        };
        let (power, obstacle) = (watch::channel(Power::Up).0, watch::channel(Obstacle::None).0);
        let (name, state, held) = (name.to_owned(), Mutex::new(state), AtomicUsize::new(0));
        Arc::new(Machine { name, state, power, obstacle, held, news: Notify::new() })
    }

    /// Adds an assistant as the platform would, and starts it as root.
    pub fn add(&self, instance: &Instance) {
        self.add_with("root", instance, unit_text);
    }

    /// Adds an assistant as somebody else would have made it, and starts it: its unit is not the platform's.
    pub fn add_as(&self, user: &str, instance: &Instance) {
        let foreign = |service: &Service| unit_text(service).lines().skip(1).flat_map(|line| [line, "\n"]).collect();
        self.add_with(user, instance, foreign);
    }

    fn add_with(&self, user: &str, instance: &Instance, text: impl Fn(&Service) -> String) {
        let Instance { unit, home, port, token } = instance;
        let state_dir = format!("{home}/.openclaw");
        let service = Service {
            user: user.to_owned(),
            description: format!("Assistant {unit}"),
            config_path: format!("{state_dir}/openclaw.json"),
            program: format!("{PROGRAMS}/openclaw/{}/openclaw", crate::assistant::VERSION),
            home: home.clone(),
            port: *port,
            state_dir,
        };
        let config = json!({
            "gateway": {"mode": "local", "port": port, "bind": "loopback", "auth": {"mode": "token", "token": token}},
            "logging": {"file": format!("{}/logs/openclaw.jsonl", service.state_dir)},
        });
        let mut state = self.lock();
        state.files.folder(&format!("{}/logs", service.state_dir), user);
        state.files.write(&service.config_path, config.to_string(), user);
        state.files.write(&format!("{UNITS}/{unit}"), text(&service), "root");
        state.start(unit);
    }

    /// Changes a file as an administrator would by hand.
    pub fn write(&self, path: &str, text: &str) {
        self.happens(|state| {
            state.files.write(path, text, "root");
            state.reload(path);
        });
    }

    pub fn read(&self, path: &str) -> Option<Vec<u8>> {
        self.lock().files.file(path).map(<[u8]>::to_vec)
    }

    /// Makes a gateway crash until systemd's start limit is reached.
    pub fn crash(&self, unit: &str) {
        self.happens(|state| {
            state.kill(unit, (1, 1), "exit-code");
            for restarts in 1..=TRIES {
                state.restarts(unit, restarts);
                state.fail(unit, (1, 1), "exit-code");
            }
            state.record(unit, Entry::systemd(format!("{unit}: Start request repeated too quickly."), ""));
            if let Some(unit) = state.units.get_mut(unit) {
                (unit.restarts, unit.given_up) = (TRIES, true);
            }
        });
    }

    /// Adds a listener of another user on a port, in addition to existing ones.
    pub fn add_listener(&self, port: u16, user: &str) {
        self.happens(|state| state.strangers.push((port, user.to_owned())));
    }

    /// Removes all listeners that belong to no unit.
    pub fn remove_listeners(&self) {
        self.happens(|state| state.strangers.clear());
    }

    /// Sets additional lines for the answer about what the machine supports of a cell, such as `refused PrivateUsers
    /// why`.
    pub fn odd_about_cells(&self, lines: &[&str]) {
        self.happens(|state| state.odd_about_cells = lines.iter().map(|line| format!("{line}\n")).collect());
    }

    /// The disk limits that were requested for homes, in order, in KiB; 0 is no limit.
    pub fn disk_limits(&self) -> Vec<String> {
        self.lock().disk_limits.clone()
    }

    /// Sets whether the machine fails to measure the size of homes.
    pub fn count_no_homes(&self, odd: bool) {
        self.happens(|state| state.counts_no_homes = odd);
    }

    /// Stops a gateway as an administrator would.
    pub fn stop(&self, unit: &str) {
        self.happens(|state| {
            state.stop(unit);
        });
    }

    /// Restarts a gateway as an administrator would.
    pub fn restart(&self, unit: &str) {
        self.happens(|state| {
            state.stop(unit);
            state.start(unit);
        });
    }

    /// How often a unit was started since the machine was created; failed starts do not count.
    pub fn starts(&self, unit: &str) -> u32 {
        self.lock().units.get(unit).map_or(0, |unit| unit.starts)
    }

    /// Whether a unit runs and its gateway answers.
    pub fn is_well(&self, unit: &str) -> bool {
        self.lock().units.get(unit).is_some_and(|unit| unit.process().is_some() && !unit.wedged)
    }

    /// Simulates that the kernel kills a gateway for its memory and systemd restarts it.
    pub fn run_out_of_memory(&self, unit: &str) {
        self.happens(|state| {
            state.kill(unit, (2, 9), "oom-kill");
            let restarts = state.units.get(unit).map_or(0, |unit| unit.restarts) + 1;
            state.restarts(unit, restarts);
            state.start(unit);
            if let Some(unit) = state.units.get_mut(unit) {
                unit.restarts = restarts;
            }
        });
    }

    /// Makes a gateway hang: it still listens, but answers nothing.
    pub fn wedge(&self, unit: &str) {
        self.happens(|state| {
            if let Some(unit) = state.units.get_mut(unit) {
                unit.wedged = true;
            }
        });
    }

    /// Adds a session to a unit's gateway that is listed as running since now.
    pub async fn strand_session(self: &Arc<Machine>, unit: &str, session: &str, stranded: Stranded) {
        let (conversations, at) = {
            let mut state = self.lock();
            let Some(gateway) = state.gateway(unit, Arc::downgrade(self)) else { return };
            let conversations = gateway.conversations();
            let state_dir = state.units.get(unit).and_then(|unit| Some(unit.process()?.service.state_dir.clone()));
            state.conversations.insert(state_dir.unwrap_or_default(), conversations.clone());
            (conversations, state.clock.now().as_millisecond())
        };
        conversations.strand(session, stranded, at).await;
    }

    /// Somebody writes to the bot of a unit's gateway.
    pub fn write_to_bot(&self, unit: &str, sender: i64, first_name: &str, username: &str) -> Reply {
        let state = self.lock();
        let process = state.units.get(unit).and_then(Unit::process);
        let senders = process.and_then(|process| state.senders.get(&process.service.state_dir));
        senders.map_or(Reply::Nothing, |senders| senders.write(sender, first_name, username, state.now()))
    }

    fn happens(&self, what: impl FnOnce(&mut State)) {
        what(&mut self.lock());
        self.news.notify_waiters();
    }

    pub fn set_power(&self, power: Power) {
        self.power.send_replace(power);
    }

    /// Commands that contain `word`, which is the name of a script or an argument, hang until `go_on` and are never
    /// executed. So a test can interrupt the caller there.
    pub fn hold(&self, word: &str) {
        self.held.store(0, Ordering::SeqCst);
        self.obstacle.send_replace(Obstacle::Held(word.to_owned()));
    }

    /// How many commands were held since `hold`.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::SeqCst)
    }

    /// Commands that contain `word`, which is the name of a script or an argument, fail with the message `why`, until
    /// `go_on`.
    pub fn refuse(&self, word: &str, why: &str) {
        self.obstacle.send_replace(Obstacle::Refused(word.to_owned(), why.to_owned()));
    }

    pub fn go_on(&self) {
        self.obstacle.send_replace(Obstacle::None);
    }

    /// Finds the obstacle for a command. A held command waits here until `go_on`; then the caller drops it.
    pub(super) async fn obstacle(&self, argv: &[String]) -> Obstacle {
        let mut obstacle = self.obstacle.subscribe();
        let found = obstacle.borrow().clone();
        let word = match &found {
            Obstacle::Held(word) | Obstacle::Refused(word, _) => word,
            Obstacle::None => return Obstacle::None,
        };
        if !argv.contains(word) {
            return Obstacle::None;
        }
        if matches!(found, Obstacle::Held(_)) {
            self.held.fetch_add(1, Ordering::SeqCst);
            obstacle.wait_for(|now| *now == Obstacle::None).await.ok();
        }
        found
    }

    /// The commands that the machine did not recognise.
    pub fn unknown(&self) -> Vec<String> {
        self.lock().unknown.clone()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The listener on a port of its loopback, if there is one.
    pub(super) fn listener(self: &Arc<Machine>, port: u16) -> Option<Listener> {
        let mut state = self.lock();
        let at = |unit: &Unit| match unit.process()?.service.port {
            own if own == port => Some(Door::Gateway),
            own if own + WEBHOOK == port => Some(Door::Webhook),
            _ => None,
        };
        let (name, door) = state.units.iter().find_map(|(name, unit)| Some((name.clone(), at(unit)?)))?;
        if state.units.get(&name)?.wedged {
            return Some(Listener::Mute);
        }
        let gateway = state.gateway(&name, Arc::downgrade(self))?;
        Some(Listener::Answers(gateway, door))
    }

    /// Serves a connection to one of its ports that did not come over SSH.
    pub async fn serve(self: &Arc<Machine>, port: u16, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        if let Some(listener) = self.listener(port) {
            listener.serve(stream).await;
        }
    }

    /// The running gateway with this configuration file, for OpenClaw's command-line client.
    pub(super) fn gateway_of(self: &Arc<Machine>, config_path: &str) -> Option<Gateway> {
        let mut state = self.lock();
        let is_its = |unit: &Unit| unit.process().is_some_and(|process| process.service.config_path == config_path);
        let name = state.units.iter().find(|(_, unit)| is_its(unit)).map(|(name, _)| name.clone())?;
        state.gateway(&name, Arc::downgrade(self))
    }
}

pub(super) enum Listener {
    Answers(Gateway, Door),
    Mute,
}

impl Listener {
    pub async fn serve(self, mut stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        match self {
            Listener::Answers(gateway, door) => gateway.serve(stream, door).await,
            Listener::Mute => while stream.read_u8().await.is_ok() {},
        }
    }
}
