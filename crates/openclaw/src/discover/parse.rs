//! Parses the script's output. It may be cut off anywhere and contain any bytes; unreadable parts are skipped.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use jiff::Timestamp;
use serde::Deserialize;

/// The limit of each kind of thing that is found on one server.
const MOST: usize = 200;
/// The limit for one quoted text.
const MOST_TEXT: usize = 512 * 1024;

/// What the server said, not yet put together.
#[derive(Debug, Default)]
pub struct Raw {
    pub processes: Vec<Process>,
    pub units: Vec<Unit>,
    pub homes: Vec<Home>,
    pub containers: Vec<Container>,
    /// Whether the answer is complete. If not, there may be more.
    pub complete: bool,
}

#[derive(Debug, Default)]
pub struct Process {
    pub pid: u32,
    pub user: String,
    pub cgroup: String,
    pub variables: Vec<(String, String)>,
    /// Its sockets in the server's own network.
    pub listens: Vec<SocketAddr>,
    /// Those in another network, as in a container.
    pub inner: Vec<SocketAddr>,
}

/// A unit of the system, or of a user.
#[derive(Debug, Default)]
pub struct Unit {
    pub shown: Vec<(String, String)>,
    pub variables: Vec<(String, String)>,
}

impl Unit {
    pub fn property(&self, name: &str) -> &str {
        self.shown.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }
}

#[derive(Debug, Default)]
pub struct Home {
    pub path: String,
    pub user: String,
    pub lingers: bool,
    /// `missing`, `unreadable` or `large`, if there is no text.
    pub config: String,
    pub config_text: Vec<u8>,
    pub last_session: Option<Timestamp>,
    pub email: Option<String>,
    pub units: Vec<Unit>,
}

/// A container, as `docker inspect` describes it.
#[derive(Debug, Deserialize)]
pub struct Container {
    pub id: String,
    pub name: String,
    pub image: String,
    pub status: String,
    #[serde(default)]
    pub user: String,
    /// Whether it may do on the server what root may.
    #[serde(default)]
    pub privileged: bool,
    #[serde(default)]
    pub mounts: Option<Vec<Mount>>,
    #[serde(default)]
    pub ports: Option<std::collections::BTreeMap<String, Option<Vec<Published>>>>,
    /// Its home, as it is inside of it; `None` if it does not run.
    #[serde(skip)]
    pub home: Option<Home>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Mount {
    #[serde(default)]
    pub source: String,
    #[serde(default)]
    pub destination: String,
}

/// An address of the server at which a port of a container is published.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Published {
    #[serde(default)]
    pub host_ip: String,
    #[serde(default)]
    pub host_port: String,
}

/// What the lines are about that follow.
#[derive(Clone, Copy, Default)]
enum About {
    #[default]
    Nothing,
    Process,
    Unit,
    Home,
    UserUnit,
    /// The home inside of the container with this number.
    Inside(usize),
}

impl Raw {
    /// The home that the lines are about.
    fn home(&mut self, about: About) -> Option<&mut Home> {
        match about {
            About::Home | About::UserUnit => self.homes.last_mut(),
            About::Inside(number) => self.containers.get_mut(number)?.home.as_mut(),
            About::Nothing | About::Process | About::Unit => None,
        }
    }
}

pub fn parse(output: &[u8]) -> Raw {
    let (mut raw, mut about) = (Raw::default(), About::default());
    for line in output.split(|byte| *byte == b'\n') {
        // A label is short; the text after it is not trusted.
        let label = line.iter().take(20).position(|byte| *byte == b'|');
        match label {
            Some(at) if line[..at].iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'-') => {
                quoted(&mut raw, about, &line[..at], &line[at + 1..]);
            }
            _ => word(&mut raw, &mut about, line),
        }
    }
    raw
}

fn word(raw: &mut Raw, about: &mut About, line: &[u8]) {
    let Ok(text) = str::from_utf8(&line[..line.len().min(200)]) else { return };
    let mut words = text.split_ascii_whitespace();
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    match first {
        "process" if raw.processes.len() < MOST => {
            *about = About::Process;
            raw.processes.push(Process { pid: second.parse().unwrap_or(0), ..Process::default() });
        }
        "unit" if raw.units.len() < MOST => {
            *about = About::Unit;
            raw.units.push(Unit::default());
        }
        "home" if raw.homes.len() < MOST => {
            *about = About::Home;
            raw.homes.push(Home::default());
        }
        "inside" => {
            *about = match raw.containers.iter().position(|container| container.id == second) {
                Some(number) => {
                    raw.containers[number].home = Some(Home::default());
                    About::Inside(number)
                }
                None => About::Nothing,
            };
        }
        "process" | "unit" | "home" => *about = About::Nothing,
        "done" => raw.complete = true,
        "listens" => {
            if let (About::Process, Some(process)) = (*about, raw.processes.last_mut()) {
                process.listens.extend(socket(second));
            }
        }
        "inner" => {
            if let (About::Process, Some(process)) = (*about, raw.processes.last_mut()) {
                process.inner.extend(socket(second));
            }
        }
        _ => {
            let is_inside = matches!(about, About::Inside(_));
            let Some(home) = raw.home(*about) else { return };
            match first {
                "lingers" => home.lingers = true,
                "config" => home.config = second.to_owned(),
                "session" => {
                    let at = second.parse().ok().and_then(|second| Timestamp::from_second(second).ok());
                    home.last_session = at;
                }
                "user-unit" if home.units.len() < MOST && !is_inside => {
                    *about = About::UserUnit;
                    home.units.push(Unit::default());
                }
                _ => {}
            }
        }
    }
}

fn quoted(raw: &mut Raw, about: About, label: &[u8], bytes: &[u8]) {
    let text = || String::from_utf8_lossy(&bytes[..bytes.len().min(8192)]).into_owned();
    let pair = || text().split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    if label == b"container" {
        if raw.containers.len() < MOST {
            raw.containers.extend(serde_json::from_slice::<Container>(bytes).ok());
        }
        return;
    }
    match about {
        About::Nothing => {}
        About::Process => {
            let Some(process) = raw.processes.last_mut() else { return };
            match label {
                b"user" if process.user.is_empty() => process.user = text(),
                b"cgroup" if process.cgroup.is_empty() => process.cgroup = text(),
                b"variable" => process.variables.extend(pair()),
                _ => {}
            }
        }
        About::Unit => {
            let Some(unit) = raw.units.last_mut() else { return };
            match label {
                b"show" => unit.shown.extend(pair()),
                b"variable" => unit.variables.extend(pair()),
                _ => {}
            }
        }
        About::Home | About::UserUnit | About::Inside(_) => {
            let Some(home) = raw.home(about) else { return };
            match (label, home.units.last_mut()) {
                (b"path", _) if home.path.is_empty() => home.path = text(),
                (b"user", _) if home.user.is_empty() => home.user = text(),
                (b"email", _) if home.email.is_none() => home.email = Some(text()).filter(|text| !text.is_empty()),
                (b"config", _) if home.config_text.len() + bytes.len() < MOST_TEXT => {
                    home.config_text.extend_from_slice(bytes);
                    home.config_text.push(b'\n');
                }
                (b"user-show", Some(unit)) => unit.shown.extend(pair()),
                (b"user-variable", Some(unit)) => unit.variables.extend(pair()),
                _ => {}
            }
        }
    }
}

/// `0100007F:4965`, as /proc/net/tcp has it: words of the machine's own byte order, which is little-endian.
fn socket(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| u32::from_str_radix(address.get(at..at + 8)?, 16).ok();
    let address: IpAddr = match address.len() {
        8 => Ipv4Addr::from(word(0)?.swap_bytes()).into(),
        32 => {
            let mut bytes = [0u8; 16];
            for (part, at) in bytes.chunks_mut(4).zip([0, 8, 16, 24]) {
                part.copy_from_slice(&word(at)?.swap_bytes().to_be_bytes());
            }
            Ipv6Addr::from(bytes).into()
        }
        _ => return None,
    };
    Some(SocketAddr::new(address, port))
}
