//! What the cases stand on: the hosts, a thread inside their network, a connection that can be cut, and honest skips.

use std::fs::File;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use remote::host::{Actor, Address, Command, Host, HostKey, LoginKey, Target, Timing};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde::Deserialize;
use testkit::{LIMIT, skip};
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
            expected: None,
            host_key: Some(machine.host_key.parse().unwrap()),
        }
    }

    pub fn host_as(&self, name: &str, user: &str) -> Host {
        Host::new(Target::Ssh(self.address(name, user)))
    }

    pub fn host(&self, name: &str) -> Host {
        self.host_as(name, "root")
    }

    /// A host as this user, with other time limits.
    pub fn host_with(&self, name: &str, user: &str, timing: Timing) -> Host {
        Host::with(Target::Ssh(self.address(name, user)), timing)
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

/// For cases outside of the hosts' network.
pub fn fleet() -> Option<Fleet> {
    let fleet = Fleet::load();
    if fleet.is_none() {
        skip(std::thread::current().name().unwrap(), "no hosts: TIDEPOOL_TEST_HOSTS is not set");
    }
    fleet
}

/// So long that whatever a case waits for does not end by it.
pub const NEVER: Duration = Duration::from_secs(3600);

/// A word that nobody else uses.
pub fn unique(prefix: &str) -> String {
    format!("{prefix}-{}", base::id::fresh())
}

/// What a command prints, without the last line break.
pub async fn said(host: &Host, command: Command) -> String {
    host.succeed(&command).await.unwrap().text().trim_end_matches('\n').to_owned()
}

pub fn sh(script: &str) -> Command {
    Command::script("test", &[script])
}

/// A new empty folder on a host, root's.
pub async fn folder(host: &Host) -> String {
    said(host, sh("mktemp -d /srv/test.XXXXXXXX")).await
}

/// How many processes have this word in their command line and meet a condition of a shell, where `$p` is the process's folder.
async fn counted(host: &Host, word: &str, condition: &str) -> usize {
    // The word is not in this script's own command line: it comes by standard input.
    let script = format!(
        "read w; n=0; for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline 2>/dev/null | grep -qF -- \"$w\" && {condition} && n=$((n+1)); done; echo $n"
    );
    said(host, sh(&script).stdin(word).limit(LIMIT)).await.parse().unwrap()
}

/// How many processes on the host have this word in their command line (it must stand there in full).
pub async fn processes(host: &Host, word: &str) -> usize {
    counted(host, word, "true").await
}

/// How many journalctl wait for new entries of this unit.
pub async fn followers(host: &Host, unit: &str) -> usize {
    let waits = "[ \"$(cat $p/comm)\" = journalctl ] && ls -l $p/fd 2>/dev/null | grep -q inotify";
    counted(host, unit, waits).await
}

/// Which process of sshd's talks to this host's connection for commands.
pub async fn sshd_of(host: &Host) -> String {
    said(host, sh("ps -o ppid= -p $PPID").by(Actor::Login)).await.trim().to_owned()
}

/// Whether a process is there.
pub async fn lives(host: &Host, pid: &str) -> bool {
    host.run(&Command::new("test").args(["-e", &format!("/proc/{pid}")])).await.unwrap().succeeded()
}

/// Whether a file is there.
pub async fn exists(host: &Host, path: &str) -> bool {
    host.run(&Command::new("test").args(["-e", path])).await.unwrap().succeeded()
}

/// A TCP relay before a host, which counts connections, and cuts or freezes them.
pub struct Relay {
    pub at: SocketAddr,
    connections: Arc<AtomicUsize>,
    passed: Arc<AtomicUsize>,
    ended: Arc<AtomicUsize>,
    mode: watch::Sender<Mode>,
    target: Arc<Mutex<(String, u16)>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Open,
    /// Nothing passes any more, and nothing is closed: a cable that was pulled. What was sent meanwhile arrives when it is mended.
    Frozen,
    /// So many bytes pass on the way to the host, on each connection, then it is reset.
    CutAfter(usize),
}

impl Relay {
    pub async fn before(machine: &Machine) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (mode, seen) = watch::channel(Mode::Open);
        let at = listener.local_addr().unwrap();
        let [connections, passed, ended] = [(); 3].map(|()| Arc::new(AtomicUsize::new(0)));
        let target = Arc::new(Mutex::new((machine.address.clone(), machine.port)));
        let relay = Relay {
            at,
            connections: connections.clone(),
            passed: passed.clone(),
            ended: ended.clone(),
            mode,
            target: target.clone(),
        };
        tokio::spawn(async move {
            loop {
                let (near, _) = listener.accept().await.unwrap();
                connections.fetch_add(1, Ordering::SeqCst);
                let target = target.lock().unwrap().clone();
                let far = TcpStream::connect(target).await.unwrap();
                let (seen, passed, ended) = (seen.clone(), passed.clone(), ended.clone());
                tokio::spawn(async move {
                    pass(near, far, seen, &passed).await;
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

    /// How many pieces went to the host. What is sent at one time is one piece, or several that went together.
    pub fn passed(&self) -> usize {
        self.passed.load(Ordering::SeqCst)
    }

    /// Connections that are over, by whichever side.
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

    pub fn repair(&self) {
        self.mode.send_replace(Mode::Open);
    }

    pub fn target(&self, address: Address) -> Target {
        Target::Ssh(Address { host: self.at.ip().to_string(), port: self.at.port(), ..address })
    }
}

async fn pass(mut near: TcpStream, mut far: TcpStream, mut mode: watch::Receiver<Mode>, pieces: &AtomicUsize) {
    let (mut up, mut down) = (vec![0; 8192], vec![0; 8192]);
    let (mut passed, mut held) = (0, vec![]);
    loop {
        let now = *mode.borrow_and_update();
        if now != Mode::Frozen && !held.is_empty() {
            let held = std::mem::take(&mut held);
            if far.write_all(&held).await.is_err() {
                return;
            }
        }
        tokio::select! {
            changed = mode.changed() => match changed {
                Ok(()) => passed = 0,
                Err(_) => return,
            },
            read = near.read(&mut up) => {
                let Ok(size @ 1..) = read else { return };
                if now == Mode::Frozen {
                    held.extend_from_slice(&up[..size]);
                    continue;
                }
                pieces.fetch_add(1, Ordering::SeqCst);
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
            for i in $(seq 600); do ss -Hltn "sport = :$port" | grep -q . && { echo "$port"; exit; }; sleep 0.1; done
            echo "this sshd does not listen: $(systemctl status "$unit")" >&2; exit 1"#;
        let options: Vec<String> =
            settings.iter().flat_map(|setting| ["-o".to_owned(), (*setting).to_owned()]).collect();
        let port = said(host, sh(script).arg(&unit).args(options).limit(2 * LIMIT)).await.parse().unwrap();
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
        (umask 277; printf '%s ALL=(ALL) NOPASSWD:ALL\n' "$1" >"/etc/sudoers.d/$1")"#;
    host.succeed(&sh(script).arg(&name).stdin(keys)).await.unwrap();
    name
}

pub fn host_key(text: &str) -> HostKey {
    text.parse().unwrap()
}
