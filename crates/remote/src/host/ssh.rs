//! One SSH connection: connecting, checking the server's key, logging in. `session` and `forward` use it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use russh::client::{self, Handle};
use russh::keys::{Algorithm, PrivateKey, PrivateKeyWithHashAlg, PublicKeyOrCertificate};
use russh::{Disconnect, Preferred};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::command::Login;
use super::error::{Error, Result};
use super::expected::ExpectedKey;
use super::key::{HostKey, LoginKey};
use super::timing::Timing;

/// sshd allows 10 sessions per connection by default. Two stay free for sessions that we gave up and that sshd has not
/// ended yet.
pub(super) const SESSIONS: usize = 8;
/// sshd does not count forwarded sockets as sessions. This limits our own memory: for sockets that people keep open.
pub(super) const SOCKETS: usize = 256;
/// The same for short requests, which must not wait for people to leave.
pub(super) const QUESTIONS_AT_ONCE: usize = 64;

/// Ed25519, ECDSA on three curves, RSA.
const KINDS_OF_KEYS: usize = 5;

/// How many channels are opened on one connection before a new one replaces it.
const MOST_CHANNELS: usize = 200;

/// Where a server is, who logs in, and how it is identified. With neither `expected` nor `host_key`, the first key seen
/// is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub key: LoginKey,
    /// The key or authority that an administrator expects.
    pub expected: Option<ExpectedKey>,
    /// The key that it showed before.
    pub host_key: Option<HostKey>,
}

impl Address {
    pub(super) fn login(&self) -> Login {
        Login { user: self.user.clone(), is_root: self.user == "root" }
    }

    /// Its name in errors.
    pub(super) fn name(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

pub(super) struct Connection {
    pub handle: Handle<Watch>,
    pub host_key: HostKey,
    pub sessions: Arc<Semaphore>,
    pub timing: Timing,
    channels: AtomicUsize,
    retired: AtomicBool,
}

impl Connection {
    pub async fn open(address: &Address, pinned: Option<&HostKey>, timing: Timing) -> Result<Connection> {
        let key = address.key.load().await?;
        let found = resolve(address, timing).await?;
        let stream = reach(&found, address, timing).await?;
        let (handle, host_key) = greet(stream, &found, address, pinned, timing).await?;
        log_in(handle, host_key, address, key, timing).await
    }

    /// Counts an opened channel. russh 0.65 leaks some kilobytes, until the connection ends, for each channel that our
    /// side closed first. We must close first if a gateway does not hang up or a command left a process running. So the
    /// connection is replaced after some channels.
    pub fn count_channel(&self) {
        if self.channels.fetch_add(1, Ordering::Relaxed) + 1 >= MOST_CHANNELS {
            self.retire();
        }
    }

    /// Nothing new is started on it; running work may finish.
    pub fn retire(&self) {
        self.retired.store(true, Ordering::Relaxed);
    }

    pub fn is_usable(&self) -> bool {
        !self.retired.load(Ordering::Relaxed) && !self.handle.is_closed()
    }

    /// Disconnects properly, so that the server does not keep the session until a timeout.
    pub async fn close(&self) {
        self.retire();
        self.handle.disconnect(Disconnect::ByApplication, "", "").await.ok();
    }
}

/// The key that a server showed, and whether it is accepted.
type Shown = (HostKey, Result<()>);

/// Checks the key that the server shows.
pub(super) struct Watch {
    address: Address,
    pinned: Option<HostKey>,
    seen: Arc<Mutex<Option<Shown>>>,
}

impl Watch {
    fn judge(&self, presented: &PublicKeyOrCertificate, seen: &HostKey) -> Result<()> {
        let Address { host, port, expected, .. } = &self.address;
        if let Some(expected) = expected {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
            let refused = |why| Error::HostKeyRefused { address: self.address.name(), why, seen: seen.clone() };
            expected.check(host, *port, presented, now).map_err(refused)?;
        }
        match &self.pinned {
            Some(pinned) if pinned != seen => {
                Err(Error::HostKeyChanged { address: self.address.name(), pinned: pinned.clone(), seen: seen.clone() })
            }
            _ => Ok(()),
        }
    }
}

impl client::Handler for Watch {
    type Error = russh::Error;

    async fn check_server_key(&mut self, presented: &PublicKeyOrCertificate) -> Result<bool, Self::Error> {
        let seen = HostKey::of(presented);
        let verdict = self.judge(presented, &seen);
        let is_known = verdict.is_ok();
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some((seen, verdict));
        Ok(is_known)
    }
}

pub(super) async fn resolve(address: &Address, timing: Timing) -> Result<Vec<SocketAddr>> {
    let unknown = |why: &dyn std::fmt::Display| Error::Address { host: address.host.clone(), why: why.to_string() };
    let found = timeout(timing.resolve, tokio::net::lookup_host((address.host.as_str(), address.port)));
    let found: Vec<SocketAddr> = found.await.map_err(|e| unknown(&e))?.map_err(|e| unknown(&e))?.collect();
    if found.is_empty() { Err(unknown(&"it has no address")) } else { Ok(found) }
}

/// The first of its addresses that takes a connection.
pub(super) async fn reach(addresses: &[SocketAddr], address: &Address, timing: Timing) -> Result<TcpStream> {
    let share = timing.reach / u32::try_from(addresses.len().clamp(1, 5)).unwrap_or(1);
    let mut last = Error::ConnectTimedOut { address: address.name(), limit: timing.reach };
    for at in addresses {
        match timeout(share, TcpStream::connect(at)).await {
            Ok(Ok(stream)) => {
                stream.set_nodelay(true).ok();
                rustix::net::sockopt::set_tcp_user_timeout(&stream, timing.stuck.as_millis() as u32).ok();
                return Ok(stream);
            }
            Ok(Err(error)) => last = refused(address, &error, timing),
            Err(_) => last = Error::ConnectTimedOut { address: address.name(), limit: share },
        }
    }
    Err(last)
}

/// Exchanges versions and keys. On success the server has proved that it holds the returned key, and that key is
/// accepted.
///
/// A fingerprint does not show the type of its key, and a server has keys of several types. So the next type is
/// requested until the server has shown them all.
pub(super) async fn greet(
    mut stream: TcpStream,
    addresses: &[SocketAddr],
    address: &Address,
    pinned: Option<&HostKey>,
    timing: Timing,
) -> Result<(Handle<Watch>, HostKey)> {
    let mut shown: Vec<HostKey> = vec![];
    let mut first: Option<Error> = None;
    loop {
        let config = config(address, pinned, &shown, timing);
        match exchange(stream, config, address, pinned, timing).await {
            Err(Error::HostKeyRefused { seen, address: name, why })
                if matches!(address.expected, Some(ExpectedKey::Fingerprint(_)))
                    && pinned.is_none()
                    && shown.len() < KINDS_OF_KEYS =>
            {
                shown.push(seen.clone());
                first.get_or_insert(Error::HostKeyRefused { seen, address: name, why });
                stream = reach(addresses, address, timing).await?;
            }
            // The server has no key of another type.
            Err(error @ (Error::NotSsh { .. } | Error::Unreachable { .. })) => return Err(first.unwrap_or(error)),
            other => return other,
        }
    }
}

async fn exchange(
    stream: TcpStream,
    config: client::Config,
    address: &Address,
    pinned: Option<&HostKey>,
    timing: Timing,
) -> Result<(Handle<Watch>, HostKey)> {
    let seen = Arc::new(Mutex::new(None));
    let watch = Watch { address: address.clone(), pinned: pinned.cloned(), seen: seen.clone() };
    let greeting = timeout(timing.greet, client::connect_stream(Arc::new(config), stream, watch)).await;
    let shown = seen.lock().unwrap_or_else(PoisonError::into_inner).take();
    match (greeting, shown) {
        (Ok(Ok(handle)), Some((shown, Ok(())))) => Ok((handle, shown)),
        (_, Some((_, Err(refused)))) => Err(refused),
        (Ok(Err(russh::Error::IO(error))), _) => Err(refused(address, &error, timing)),
        (Ok(Err(russh::Error::HUP | russh::Error::Disconnect)), _) => {
            Err(Error::Unreachable { address: address.name(), why: "it closed the connection".into() })
        }
        (Ok(Err(error)), _) => Err(Error::NotSsh { address: address.name(), why: error.to_string() }),
        (Ok(Ok(_)), None) => Err(Error::NotSsh { address: address.name(), why: "it showed no key".into() }),
        (Err(_), _) => Err(Error::ConnectTimedOut { address: address.name(), limit: timing.greet }),
    }
}

pub(super) async fn log_in(
    mut handle: Handle<Watch>,
    host_key: HostKey,
    address: &Address,
    key: Arc<PrivateKey>,
    timing: Timing,
) -> Result<Connection> {
    let attempt = async {
        // Asking which hash an RSA key may use can cost a second; other keys have no choice.
        let hash = if key.algorithm().is_rsa() { handle.best_supported_rsa_hash().await?.flatten() } else { None };
        handle.authenticate_publickey(&address.user, PrivateKeyWithHashAlg::new(key.clone(), hash)).await
    };
    let cut = |why: &dyn std::fmt::Display| Error::Unreachable { address: address.name(), why: why.to_string() };
    match timeout(timing.greet, attempt).await {
        Ok(Ok(answer)) if answer.success() => Ok(Connection {
            handle,
            host_key,
            sessions: Arc::new(Semaphore::new(SESSIONS)),
            timing,
            channels: AtomicUsize::new(0),
            retired: AtomicBool::new(false),
        }),
        // russh reports a broken connection as a failed login.
        Ok(Ok(_)) if handle.is_closed() => Err(cut(&"it closed the connection during the login")),
        Ok(Ok(_)) => Err(Error::LoginRefused { address: address.name(), user: address.user.clone() }),
        Ok(Err(error)) => Err(cut(&error)),
        Err(_) => Err(Error::ConnectTimedOut { address: address.name(), limit: timing.greet }),
    }
}

/// `shown` are keys that were not the expected one, so that another type is requested.
fn config(address: &Address, pinned: Option<&HostKey>, shown: &[HostKey], timing: Timing) -> client::Config {
    let mut preferred = Preferred::default();
    // SHA-1 signatures can be forged.
    preferred.key.to_mut().retain(|algorithm| *algorithm != Algorithm::Rsa { hash: None });
    preferred.key.to_mut().retain(|algorithm| !shown.iter().any(|key| key.proves(algorithm)));
    let known = pinned.or(match &address.expected {
        Some(ExpectedKey::Key(key)) => Some(key),
        _ => None,
    });
    if let Some(known) = known {
        // A server has keys of several types. Request the type that we know: otherwise a new order of preference would
        // look like a changed key.
        preferred.key.to_mut().sort_by_key(|algorithm| !known.proves(algorithm));
    }
    if address.expected.as_ref().is_some_and(ExpectedKey::is_authority) {
        // Certificates are requested before plain keys. A server without one may still show a plain key, which is then
        // refused as having no certificate.
        preferred.host_key_certificates = preferred.key.clone();
    }
    client::Config {
        client_id: russh::SshId::Standard(concat!("SSH-2.0-tidepool_", env!("CARGO_PKG_VERSION")).into()),
        preferred,
        keepalive_interval: Some(timing.keep_alive),
        keepalive_max: timing.unanswered,
        inactivity_timeout: Some(timing.stuck),
        ..client::Config::default()
    }
}

fn refused(address: &Address, error: &std::io::Error, timing: Timing) -> Error {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::ConnectionRefused => Error::Refused { address: address.name() },
        ErrorKind::TimedOut => Error::ConnectTimedOut { address: address.name(), limit: timing.reach },
        _ => Error::Unreachable { address: address.name(), why: error.to_string() },
    }
}
