//! What the cases stand on: the hosts, a thread inside their network, a connection that can be cut, and honest skips.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use remote::host::{Actor, Address, Command, Host, HostKey, LoginKey, Target};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde::Deserialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The hosts of this run.
#[derive(Clone, Debug, Deserialize)]
pub struct Fleet {
    #[serde(skip)]
    pub folder: PathBuf,
    netns: PathBuf,
    /// An address of ours that the hosts can reach.
    pub bridge: String,
    pub key: PathBuf,
    hosts: Vec<Machine>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Machine {
    pub name: String,
    pub address: String,
    pub relay: String,
    pub port: u16,
    pub host_key: String,
}

impl Fleet {
    fn load() -> Option<Fleet> {
        let folder = PathBuf::from(std::env::var_os("TIDEPOOL_TEST_HOSTS")?);
        let text = std::fs::read_to_string(folder.join("hosts.json")).unwrap();
        Some(Fleet { folder, ..serde_json::from_str(&text).unwrap() })
    }

    pub fn machine(&self, name: &str) -> &Machine {
        self.hosts.iter().find(|machine| machine.name == name).unwrap()
    }

    pub fn address(&self, name: &str, user: &str) -> Address {
        let machine = self.machine(name);
        Address {
            host: machine.address.clone(),
            port: machine.port,
            user: user.into(),
            key: LoginKey::File(self.key.clone()),
            host_key: Some(machine.host_key.parse().unwrap()),
        }
    }

    pub fn host_as(&self, name: &str, user: &str) -> Host {
        Host::new(Target::Ssh(self.address(name, user)))
    }

    pub fn host(&self, name: &str) -> Host {
        self.host_as(name, "root")
    }

    /// A command of the testbed's own, such as `crash h2`.
    pub fn testbed(&self, verb: &str, rest: &[&str]) {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testbed/hosts.sh");
        let done = process::Command::new(script).arg(verb).arg(&self.folder).args(rest).status().unwrap();
        assert!(done.success(), "hosts.sh {verb} {rest:?}");
    }

    /// h2 for this case alone; it is up and plugged in again afterwards.
    pub fn alone(&self) -> Alone {
        let lock = File::create(self.folder.join("h2.lock")).unwrap();
        lock.lock().unwrap();
        Alone { fleet: self.clone(), _lock: lock }
    }
}

pub struct Alone {
    fleet: Fleet,
    _lock: File,
}

impl Drop for Alone {
    fn drop(&mut self) {
        self.fleet.testbed("cable", &["h2", "up"]);
        self.fleet.testbed("start", &["h2"]);
    }
}

/// Runs cases inside of the hosts' network, where addresses, refusals and pulled cables are what they are in a real one.
#[macro_export]
macro_rules! on_hosts {
    ($($(#[$meta:meta])* async fn $name:ident($fleet:ident: $hosts:ty) $body:block)*) => {$(
        $(#[$meta])*
        #[test]
        fn $name() {
            $crate::kit::inside(|$fleet: $hosts| async move $body);
        }
    )*};
}

pub fn inside<F: Future<Output = ()>>(case: impl FnOnce(Fleet) -> F + Send + 'static) {
    // The test's own thread has the test's own name.
    let name = std::thread::current().name().unwrap().to_owned();
    let Some(fleet) = Fleet::load() else { return skip(&name, "no hosts: TIDEPOOL_TEST_HOSTS is not set") };
    let thread = std::thread::spawn(move || {
        let netns = File::open(&fleet.netns).unwrap();
        move_into_link_name_space(netns.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        // Its workers are made by this thread, so they are in that network too.
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(case(fleet));
        runtime.shutdown_timeout(Duration::from_secs(1));
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// This case cannot run here. Counted and named by the runner; never silent where everything must be had.
fn skip(name: &str, reason: &str) {
    if let Some(log) = std::env::var_os("TIDEPOOL_TEST_SKIP_LOG") {
        let mut log = OpenOptions::new().create(true).append(true).open(log).unwrap();
        writeln!(log, "{name}: {reason}").unwrap();
    }
    assert!(std::env::var_os("CI").is_none(), "{name} cannot be skipped in CI: {reason}");
    eprintln!("skipped {name}: {reason}");
}

/// For cases outside of the hosts' network.
pub fn fleet() -> Option<Fleet> {
    let fleet = Fleet::load();
    if fleet.is_none() {
        skip(std::thread::current().name().unwrap(), "no hosts: TIDEPOOL_TEST_HOSTS is not set");
    }
    fleet
}

/// A word that nobody else uses.
pub fn unique(prefix: &str) -> String {
    format!("{prefix}-{}", base::id::fresh())
}

/// What a command prints, without the last line break.
pub async fn said(host: &Host, command: Command) -> String {
    host.succeed(&command).await.unwrap().text().trim_end_matches('\n').to_owned()
}

pub fn sh(script: &str) -> Command {
    Command::script(script)
}

/// A new empty folder on a host, root's.
pub async fn folder(host: &Host) -> String {
    said(host, sh("mktemp -d /srv/test.XXXXXXXX")).await
}

/// Waits until something is so, and fails when it is not within `limit`.
pub async fn until(what: &str, limit: Duration, mut so: impl AsyncFnMut() -> bool) -> Duration {
    let began = Instant::now();
    while !so().await {
        assert!(began.elapsed() < limit, "{what}: not within {limit:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    began.elapsed()
}

/// How many processes on the host have this word in their command line (it must stand there in full).
pub async fn processes(host: &Host, word: &str) -> usize {
    // The word is not in this script's own command line: it comes by standard input.
    let script = "read w; n=0; for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline 2>/dev/null | grep -qF -- \"$w\" && n=$((n+1)); done; echo $n";
    said(host, sh(script).stdin(word).by(Actor::Login)).await.parse().unwrap()
}

/// A TCP relay before a host, which counts connections, and cuts or freezes them.
pub struct Relay {
    pub at: SocketAddr,
    connections: Arc<AtomicUsize>,
    ended: Arc<AtomicUsize>,
    mode: watch::Sender<Mode>,
    target: Arc<Mutex<(String, u16)>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Open,
    /// Nothing passes any more, and nothing is closed: a cable that was pulled.
    Frozen,
    /// So many bytes pass on the way to the host, on each connection, then it is reset.
    CutAfter(usize),
}

impl Relay {
    pub async fn before(machine: &Machine) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (mode, seen) = watch::channel(Mode::Open);
        let at = listener.local_addr().unwrap();
        let (connections, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let target = Arc::new(Mutex::new((machine.address.clone(), machine.port)));
        let relay = Relay { at, connections: connections.clone(), ended: ended.clone(), mode, target: target.clone() };
        tokio::spawn(async move {
            loop {
                let (near, _) = listener.accept().await.unwrap();
                connections.fetch_add(1, Ordering::SeqCst);
                let target = target.lock().unwrap().clone();
                let far = TcpStream::connect(target).await.unwrap();
                let (seen, ended) = (seen.clone(), ended.clone());
                tokio::spawn(async move {
                    pass(near, far, seen).await;
                    ended.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        relay
    }

    /// Another machine is behind the same address from now on.
    pub fn redirect(&self, machine: &Machine) {
        *self.target.lock().unwrap() = (machine.address.clone(), machine.port);
    }

    /// All that were ever made.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub fn ended(&self) -> usize {
        self.ended.load(Ordering::SeqCst)
    }

    pub fn freeze(&self) {
        self.mode.send_replace(Mode::Frozen);
    }

    /// Lets so many more bytes through to the host on every connection, then resets it.
    pub fn cut_after(&self, bytes: usize) {
        self.mode.send_replace(Mode::CutAfter(bytes));
    }

    pub fn mend(&self) {
        self.mode.send_replace(Mode::Open);
    }

    pub fn target(&self, address: Address) -> Target {
        Target::Ssh(Address { host: self.at.ip().to_string(), port: self.at.port(), ..address })
    }
}

async fn pass(mut near: TcpStream, mut far: TcpStream, mut mode: watch::Receiver<Mode>) {
    let (mut up, mut down) = (vec![0; 8192], vec![0; 8192]);
    let mut passed = 0;
    loop {
        let now = *mode.borrow_and_update();
        tokio::select! {
            changed = mode.changed() => match changed {
                Ok(()) => passed = 0,
                Err(_) => return,
            },
            read = near.read(&mut up), if now != Mode::Frozen => {
                let Ok(size @ 1..) = read else { return };
                let size = match now {
                    Mode::CutAfter(bytes) if passed + size > bytes => bytes - passed,
                    _ => size,
                };
                passed += size;
                if far.write_all(&up[..size]).await.is_err() { return }
                if now == Mode::CutAfter(passed) {
                    near.set_zero_linger().ok();
                    far.set_zero_linger().ok();
                    return;
                }
            }
            read = far.read(&mut down), if now != Mode::Frozen => {
                let Ok(size @ 1..) = read else { return };
                if near.write_all(&down[..size]).await.is_err() { return }
            }
        }
    }
}

/// Another sshd on a host, with other settings; it goes with the case.
pub struct Sshd {
    pub port: u16,
    unit: String,
    host: Host,
}

impl Sshd {
    pub async fn start(host: &Host, settings: &[&str]) -> Sshd {
        let unit = unique("sshd");
        let script = r#"
            unit=$1; shift
            port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])')
            systemd-run -q --unit="$unit" /usr/sbin/sshd -D -p "$port" -o PidFile=none "$@"
            for i in $(seq 100); do ss -Hltn "sport = :$port" | grep -q . && break; sleep 0.05; done
            echo "$port""#;
        let options: Vec<String> =
            settings.iter().flat_map(|setting| ["-o".to_owned(), (*setting).to_owned()]).collect();
        let port = said(host, sh(script).arg(&unit).args(options)).await.parse().unwrap();
        Sshd { port, unit, host: host.clone() }
    }

    pub async fn stop(self) {
        self.host.succeed(&Command::new("systemctl").args(["stop", &self.unit])).await.unwrap();
    }
}

/// Where a key was generated for one case.
pub fn new_key(kind: &str, passphrase: &str) -> (tempfile::TempDir, PathBuf, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    let made = process::Command::new("ssh-keygen")
        .args(["-q", "-t", kind, "-N", passphrase, "-f"])
        .arg(&path)
        .status()
        .unwrap();
    assert!(made.success());
    let public = std::fs::read_to_string(path.with_extension("pub")).unwrap();
    (folder, path, public)
}

/// A new user on a host, who may log in with these keys (public, a line each) and use sudo.
pub async fn new_user(host: &Host, keys: &str) -> String {
    let name = format!("u{}", &base::id::fresh().replace('-', "")[20..]);
    let script = r#"
        useradd -m -s /bin/bash "$1" && install -d -o "$1" -m 700 "/home/$1/.ssh" && cat >"/home/$1/.ssh/authorized_keys"
        printf '%s ALL=(ALL) NOPASSWD:ALL\n' "$1" >"/etc/sudoers.d/$1""#;
    host.succeed(&sh(script).arg(&name).stdin(keys)).await.unwrap();
    name
}

pub fn host_key(text: &str) -> HostKey {
    text.parse().unwrap()
}
