//! Shared connections: each server has one for commands and one for streams. They are opened when first needed, and
//! again when they were lost.
//!
//! All callers that need a missing connection wait for the same attempt. A server that is known to be down costs its
//! callers little: they get the error at once, or after a moment in which it could have come back.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::command::{Command, Login};
use super::error::{Error, Result};
use super::expected::ExpectedKey;
use super::forward::{self, Forwarded};
use super::key::HostKey;
use super::lines::Lines;
use super::output::Output;
use super::session::{self, Fault};
use super::ssh::{Address, Connection, QUESTIONS_AT_ONCE, SOCKETS};
use super::timing::Timing;
use super::{Host, Target};

/// How long to wait before a command is tried again on a server that allows fewer sessions than usual.
const AGAIN: Duration = Duration::from_millis(50);

/// How many servers keep their connections while they are idle. Each costs two sockets, some memory, and a keep-alive
/// message every five seconds on both connections. Beyond this number, the least recently used server loses its
/// connections, and is connected to again when needed.
const KEPT: usize = 512;

/// All servers in use, by a name that the caller chooses.
#[derive(Default)]
pub struct Hosts {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    hosts: HashMap<String, Entry>,
    /// Counts uses.
    uses: u64,
}

struct Entry {
    host: Host,
    used: u64,
}

impl Known {
    /// Makes room for one more server: removes the least recently used one that no caller holds.
    fn make_room(&mut self) {
        if self.hosts.len() < KEPT {
            return;
        }
        let idle = self.hosts.iter().filter(|(_, entry)| Arc::strong_count(&entry.host.0) == 1);
        if let Some(oldest) = idle.min_by_key(|(_, entry)| entry.used).map(|(name, _)| name.clone()) {
            self.hosts.remove(&oldest);
        }
    }
}

impl Hosts {
    pub fn new() -> Hosts {
        Hosts::default()
    }

    /// The server of this name. If its address, login key or pinned host key changed, it gets new connections, and the
    /// old ones end.
    pub fn host(&self, name: &str, target: &Target) -> Host {
        let mut known = lock(&self.known);
        known.uses += 1;
        let used = known.uses;
        match known.hosts.get_mut(name) {
            Some(entry) if entry.host.serves(target) => {
                entry.used = used;
                entry.host.clone()
            }
            _ => {
                let host = Host::new(target.clone());
                known.make_room();
                known.hosts.insert(name.to_owned(), Entry { host: host.clone(), used });
                host
            }
        }
    }

    /// Drops a server that is no longer managed. Commands that run there may finish.
    pub fn forget(&self, name: &str) {
        lock(&self.known).hosts.remove(name);
    }

    /// Closes all connections, so that no server has to wait for a timeout.
    pub async fn close(&self) {
        let hosts: Vec<Host> = lock(&self.known).hosts.drain().map(|(_, entry)| entry.host).collect();
        for host in hosts {
            host.close().await;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A server over SSH.
pub(super) struct Remote {
    address: Arc<Address>,
    pub login: Login,
    timing: Timing,
    commands: Link,
    streams: Link,
    /// The limits for forwarded sockets, over all connections: for people who chat, and for short requests.
    sockets: Arc<Semaphore>,
    questions: Arc<Semaphore>,
    /// Whether the caller has stored the key that the first contact saw. From then on, an address without a key means
    /// that an administrator deleted the stored key.
    stored: AtomicBool,
}

impl Remote {
    pub fn new(address: Address, timing: Timing) -> Remote {
        let address = Arc::new(address);
        let pinned = Arc::new(Mutex::new(address.host_key.clone()));
        let link = || Link {
            address: address.clone(),
            timing,
            pinned: pinned.clone(),
            state: Arc::new(Mutex::new(State::Idle)),
        };
        Remote {
            login: address.login(),
            timing,
            commands: link(),
            streams: link(),
            sockets: Arc::new(Semaphore::new(SOCKETS)),
            questions: Arc::new(Semaphore::new(QUESTIONS_AT_ONCE)),
            stored: AtomicBool::new(false),
            address,
        }
    }

    /// A server with an open connection.
    pub fn connected(address: Address, connection: Connection) -> Remote {
        let remote = Remote::new(address, connection.timing);
        *lock(&remote.commands.state) = State::Open(Arc::new(connection));
        remote
    }

    /// Connects if necessary; returns the key that the server showed.
    pub async fn contact(&self) -> Result<HostKey> {
        Ok(self.commands.get().await?.host_key.clone())
    }

    /// Whether this address is the same server with the same login. If the caller has now pinned the key that was seen
    /// here, nothing changed. If the caller had pinned it and has no longer, the next contact counts as the first.
    pub fn serves(&self, address: &Address) -> bool {
        if *self.address == *address {
            return !self.stored.load(Ordering::Relaxed);
        }
        let seen = lock(&self.commands.pinned).clone();
        let is_seen = *address == Address { host_key: seen, ..(*self.address).clone() };
        if is_seen {
            self.stored.store(true, Ordering::Relaxed);
        }
        is_seen
    }

    pub async fn run(&self, line: String, command: &Command) -> Result<Output> {
        let work = |connection, permit| session::run(connection, permit, line.clone(), command);
        self.commands.turn(|connection| connection.sessions.clone(), self.timing.queue, work).await
    }

    pub async fn feed(&self, line: String, command: &Command) -> Result<Lines> {
        let work = |connection, permit| session::feed(connection, permit, line.clone(), command, &self.login);
        self.streams.turn(|connection| connection.sessions.clone(), self.timing.queue, work).await
    }

    /// Runs a short command on the connection for streams, which has its own sessions.
    pub async fn beside(&self, line: String, command: &Command) -> Result<Output> {
        let work = |connection, permit| session::run(connection, permit, line.clone(), command);
        self.streams.turn(|connection| connection.sessions.clone(), self.timing.short_queue, work).await
    }

    pub async fn forward(&self, port: u16) -> Result<Forwarded> {
        let work = |connection, permit| forward::open(connection, permit, port);
        self.streams.turn(|_| self.questions.clone(), self.timing.queue, work).await
    }

    pub async fn forward_for_long(&self, port: u16) -> Result<Forwarded> {
        let work = |connection, permit| forward::open(connection, permit, port);
        self.streams.turn(|_| self.sockets.clone(), self.timing.short_queue, work).await
    }

    pub async fn close(&self) {
        for link in [&self.commands, &self.streams] {
            let state = std::mem::replace(&mut *lock(&link.state), State::Idle);
            if let State::Open(connection) = state {
                connection.close().await;
            }
        }
    }
}

/// One connection that is opened when needed, and again when it was lost.
struct Link {
    address: Arc<Address>,
    timing: Timing,
    /// The key that the first connection saw. All later connections must show it, whether it was stored or not.
    pinned: Arc<Mutex<Option<HostKey>>>,
    state: Arc<Mutex<State>>,
}

type Outcome = Option<Result<Arc<Connection>>>;

enum State {
    Idle,
    /// `before` is the last failure, if the server was down already.
    Opening {
        outcome: watch::Receiver<Outcome>,
        before: Option<Down>,
    },
    Open(Arc<Connection>),
    Down(Down),
}

#[derive(Clone)]
struct Down {
    why: Error,
    since: Instant,
    /// How often in a row it was refused.
    refusals: u32,
}

impl Down {
    fn hold(&self, timing: Timing) -> Duration {
        timing.hold.saturating_mul(1 << self.refusals.saturating_sub(1).min(10)).min(timing.longest_hold)
    }
}

impl Link {
    async fn get(&self) -> Result<Arc<Connection>> {
        let (mut outcome, before) = {
            let mut state = lock(&self.state);
            match &*state {
                State::Open(connection) if connection.is_usable() => return Ok(connection.clone()),
                State::Down(down) if down.since.elapsed() < down.hold(self.timing) => return Err(down.why.clone()),
                // If the task of an attempt is gone, the attempt never ends.
                State::Opening { outcome, before } if outcome.has_changed().is_ok() => {
                    (outcome.clone(), before.clone())
                }
                State::Down(down) => {
                    let before = Some(down.clone());
                    self.begin(&mut state, before)
                }
                State::Opening { .. } | State::Open(_) | State::Idle => self.begin(&mut state, None),
            }
        };
        let waiting = outcome.wait_for(Option::is_some);
        let outcome = match before {
            None => waiting.await,
            Some(down) => timeout(self.timing.patience, waiting).await.map_err(|_| down.why)?,
        };
        let cut = || Error::Unreachable { address: self.address.name(), why: "the attempt was given up".into() };
        outcome.map_err(|_| cut())?.clone().unwrap_or_else(|| Err(cut()))
    }

    /// Begins one attempt in its own task, so that it goes on if the caller goes away.
    fn begin(&self, state: &mut State, before: Option<Down>) -> (watch::Receiver<Outcome>, Option<Down>) {
        let (tell, outcome) = watch::channel(None);
        *state = State::Opening { outcome: outcome.clone(), before: before.clone() };
        let refusals = before.as_ref().map_or(0, |down| down.refusals);
        let (address, pinned, state) = (self.address.clone(), self.pinned.clone(), self.state.clone());
        let timing = self.timing;
        tokio::spawn(async move {
            let opened = attempt(&address, &pinned, timing).await;
            *lock(&state) = match &opened {
                Ok(connection) => State::Open(connection.clone()),
                Err(why) => {
                    let refused = matches!(
                        why,
                        Error::LoginRefused { .. } | Error::HostKeyChanged { .. } | Error::HostKeyRefused { .. }
                    );
                    let refusals = if refused { refusals + 1 } else { 0 };
                    State::Down(Down { why: why.clone(), since: Instant::now(), refusals })
                }
            };
            tell.send(Some(opened)).ok();
        });
        (outcome, before)
    }

    /// Runs `work` on the connection as soon as `gate` has room. If the connection was lost before the server got the
    /// request, it is sent again on a new connection. A request that the server may have got is never repeated.
    async fn turn<T, F: Future<Output = Result<T, Fault>>>(
        &self,
        gate: impl Fn(&Connection) -> Arc<Semaphore>,
        patience: Duration,
        work: impl Fn(Arc<Connection>, OwnedSemaphorePermit) -> F,
    ) -> Result<T> {
        let last = Instant::now() + patience;
        let mut lost = 0;
        loop {
            let connection = self.get().await?;
            let permit = timeout_at(last, gate(&connection).acquire_owned()).await.map_err(|_| Error::Busy)?;
            let Ok(permit) = permit else { return Err(Error::Busy) };
            if !connection.is_usable() {
                continue;
            }
            match work(connection.clone(), permit).await {
                Ok(done) => return Ok(done),
                Err(Fault::Failed(error)) => return Err(error),
                Err(Fault::Full) if Instant::now() >= last => return Err(Error::Busy),
                Err(Fault::Full) => sleep(AGAIN).await,
                Err(Fault::Lost) => {
                    connection.retire();
                    lost += 1;
                    if lost > 2 {
                        let why = "connections break as soon as they are made".into();
                        return Err(Error::Unreachable { address: self.address.name(), why });
                    }
                }
            }
        }
    }
}

async fn attempt(address: &Address, pinned: &Mutex<Option<HostKey>>, timing: Timing) -> Result<Arc<Connection>> {
    let known = lock(pinned).clone();
    let opened = Connection::open(address, known.as_ref(), timing).await;
    // A server with a certificate may change its key together with it. Each connection was checked on its own.
    let is_certified = address.expected.as_ref().is_some_and(ExpectedKey::is_authority);
    match &opened {
        Ok(_) if is_certified => tracing::debug!(server = address.name(), "connected"),
        Ok(connection) => {
            let mut pinned = lock(pinned);
            match &*pinned {
                Some(key) if *key != connection.host_key => {
                    let (pinned, seen) = (key.clone(), connection.host_key.clone());
                    return Err(Error::HostKeyChanged { address: address.name(), pinned, seen });
                }
                Some(_) => {}
                None => {
                    tracing::info!(server = address.name(), key = connection.host_key.fingerprint(), "first contact");
                    *pinned = Some(connection.host_key.clone());
                }
            }
            tracing::debug!(server = address.name(), "connected");
        }
        Err(error @ (Error::HostKeyChanged { .. } | Error::HostKeyRefused { .. })) => {
            tracing::error!(server = address.name(), "{error}")
        }
        Err(error) => tracing::debug!(server = address.name(), "no connection: {error}"),
    }
    opened.map(Arc::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_connections_are_kept_than_there_is_room_for() {
        let hosts = Hosts::new();
        let in_hand = hosts.host("0", &Target::Local);
        for number in 1..2 * KEPT {
            hosts.host(&number.to_string(), &Target::Local);
        }
        let known = lock(&hosts.known);
        assert_eq!(known.hosts.len(), KEPT);
        assert!(known.hosts.contains_key("0"), "somebody has it in hand");
        assert!(!known.hosts.contains_key("1") && known.hosts.contains_key(&(2 * KEPT - 1).to_string()));
        drop(in_hand);
    }

    #[test]
    fn a_key_that_was_stored_and_forgotten_is_forgotten_here_too() {
        let key: HostKey =
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPdU2gFyX0RrEgly4iUaJbkaPzYZUaHYuzbzkf85LRze".parse().unwrap();
        let address = |host_key| Address {
            host: "h1".into(),
            port: 22,
            user: "root".into(),
            key: super::super::LoginKey::File("/nowhere/key".into()),
            expected: None,
            host_key,
        };
        let remote = Remote::new(address(None), Timing::default());
        *lock(&remote.commands.pinned) = Some(key.clone());
        assert!(remote.serves(&address(None)), "its key is not stored yet");
        assert!(remote.serves(&address(Some(key.clone()))) && remote.serves(&address(Some(key.clone()))));
        assert!(!remote.serves(&address(None)), "the next contact is a first one");
        assert!(!Remote::new(address(Some(key)), Timing::default()).serves(&address(None)));
    }

    #[test]
    fn refusals_in_a_row_are_tried_ever_more_rarely() {
        let down = |refusals| Down { why: Error::Busy, since: Instant::now(), refusals };
        let hold = |refusals| down(refusals).hold(Timing::default()).as_millis();
        assert_eq!([0, 1, 2, 3, 5, 6, 1000].map(hold), [500, 500, 1000, 2000, 8000, 10_000, 10_000]);
    }
}
