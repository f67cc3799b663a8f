//! The sweep: one script that checks every instance of a server, and the parser of its output.

mod parse;
mod process;
mod script;

use std::net::IpAddr;
use std::time::Duration;

use base::GatewayPort;
use serde::Deserialize;

pub use parse::parse;
pub use process::{Process, Service};
pub use script::{Limits, script};

use crate::log::Line;
use crate::unit::{Confinement, Name, State};

/// What runs an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runner {
    /// A unit of the system.
    Unit(Name),
    /// A unit of its user's own systemd.
    UserUnit(Name),
    /// A container, by its id or its name. The instance's paths are those inside of it.
    Container(String),
    /// Nothing: somebody started the process.
    Process,
}

impl Runner {
    fn word(&self) -> &'static str {
        match self {
            Runner::Unit(_) => "unit",
            Runner::UserUnit(_) => "user",
            Runner::Container(_) => "container",
            Runner::Process => "process",
        }
    }

    fn name(&self) -> String {
        match self {
            Runner::Unit(name) | Runner::UserUnit(name) => name.service(),
            Runner::Container(id) => id.clone(),
            Runner::Process => String::new(),
        }
    }

    /// The service that its processes belong to, if it is a unit. That of a user's own is known by the number of this
    /// user, who owns the home.
    pub fn service(&self, home_uid: Option<u32>) -> Option<Service> {
        match self {
            Runner::Unit(name) => Some(Service { name: name.service(), user: None }),
            Runner::UserUnit(name) => Some(Service { name: name.service(), user: Some(home_uid?) }),
            Runner::Container(_) | Runner::Process => None,
        }
    }
}

/// An instance to ask about. Paths are absolute.
#[derive(Clone, Debug)]
pub struct Target {
    pub runner: Runner,
    pub port: GatewayPort,
    /// Its files are read as the owner of this folder.
    pub home: String,
    pub config_path: String,
    pub state_dir: String,
    pub log_file: String,
    /// Where the last sweep stopped reading the log.
    pub mark: Mark,
    /// Whether to measure the size of its home, which takes long.
    pub measure: bool,
}

/// A position in a log file. Another inode shows that the file was replaced. The default, 0, is for a log that was
/// never read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    pub inode: u64,
    pub offset: u64,
}

/// The answer of a server.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    pub server: Server,
    /// In the order of the targets; `None` if no answer came.
    pub instances: Vec<Option<Answer>>,
    /// Whether the answer is complete. If not, the received parts count, and missing parts mean nothing.
    pub complete: bool,
}

/// The machine itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Server {
    /// Its clock, in seconds since 1970.
    pub time: Option<i64>,
    pub uptime_s: Option<f64>,
    pub cores: Option<u32>,
    pub cpu_percent: Option<f64>,
    pub memory_percent: Option<f64>,
    /// The use of the fullest file system among the checked ones.
    pub disk_percent: Option<f64>,
    pub load_1m: Option<f64>,
    /// Every gateway that runs there, registered or not.
    pub gateways: Vec<Process>,
}

/// What is known of one instance at one moment.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Whether everything was checked in time.
    pub complete: bool,
    pub unit: State,
    /// The owner of its home; `None` if there is no such folder.
    pub home_owner: Option<String>,
    /// The same owner's number.
    pub home_uid: Option<u32>,
    /// The confinement in its unit file; `None` if there is no such file.
    pub confinement: Option<Confinement>,
    /// The SHA-256 of that file.
    pub unit_hash: Option<String>,
    /// The size of its home in bytes, if it was requested and measured in time.
    pub home_bytes: Option<u64>,
    /// The listening sockets on its port.
    pub listeners: Vec<Listener>,
    /// The processes that hold those sockets.
    pub owners: Vec<Process>,
    pub healthz: Option<Http>,
    pub readyz: Option<Http>,
    pub config: Option<ConfigFile>,
    /// There is an `auth-profiles.json`, which newer releases fail on.
    pub legacy_auth: bool,
    /// In bytes.
    pub rss: Option<u64>,
    /// `None` if there is no log file.
    pub log: Option<LogTail>,
    /// The last minutes: systemd's records about the unit, and important lines of the program.
    pub journal: Vec<Line>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listener {
    pub address: IpAddr,
    pub port: u16,
}

/// An HTTP answer from the process that has the port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http {
    pub status: u16,
    /// At most 8 KiB.
    pub body: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigFile {
    Missing,
    Unreadable,
    Content { sha256: String, bytes: u64 },
}

/// The lines that were added to a log since the mark.
#[derive(Clone, Debug, Default)]
pub struct LogTail {
    pub lines: Vec<Line>,
    /// Where the next sweep begins.
    pub mark: Mark,
    /// Lines were skipped: there were too many, or the file was replaced.
    pub gap: bool,
}

/// The answer of /readyz. Channels in `suppressed` were not started after a series of crashes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Ready {
    pub ready: bool,
    #[serde(default)]
    pub failing: Vec<String>,
    #[serde(default)]
    pub suppressed: Vec<String>,
}

impl Answer {
    /// Whether a live gateway answered /healthz, of this instance or of another.
    pub fn is_live(&self) -> bool {
        #[derive(Deserialize)]
        struct Live {
            ok: bool,
        }
        let live = |http: &Http| http.status == 200 && serde_json::from_str::<Live>(&http.body).is_ok_and(|l| l.ok);
        self.healthz.as_ref().is_some_and(live)
    }

    pub fn ready(&self) -> Option<Ready> {
        serde_json::from_str(&self.readyz.as_ref()?.body).ok()
    }

    /// How long the unit's main process has been running.
    pub fn running_for(&self, server: &Server) -> Option<Duration> {
        self.unit.main_pid?;
        let started = self.unit.started_us? as f64 / 1e6;
        Duration::try_from_secs_f64(server.uptime_s? - started).ok()
    }

    /// The processes that have the port and are not the instance's. The port of a container is Docker's, and a process
    /// that nothing starts is in no service: of these it is proved whenever a connection is made.
    pub fn strangers(&self, runner: &Runner) -> impl Iterator<Item = &Process> {
        let service = runner.service(self.home_uid);
        self.owners.iter().filter(move |owner| service.is_some() && owner.service != service)
    }
}

#[cfg(test)]
mod tests;
