//! One look at a whole server: a script that asks about every instance on it in one go, and the reading of its answer.

mod parse;
mod process;
mod script;

use std::net::IpAddr;
use std::time::Duration;

use base::GatewayPort;
use serde::Deserialize;

pub use parse::parse;
pub use process::Process;
pub use script::{Limits, script};

use crate::log::Line;
use crate::unit::{Confinement, Name, State};

/// An instance to ask about. Paths are absolute.
#[derive(Clone, Debug)]
pub struct Target {
    pub unit: Name,
    pub port: GatewayPort,
    /// Whose owner its files are looked at as.
    pub home: String,
    pub config_path: String,
    pub state_dir: String,
    pub log_file: String,
    /// Where the last look at the log ended.
    pub mark: Mark,
    /// Whether the size of its home is asked for: that takes its time.
    pub measure: bool,
}

/// A place in a log file. The file's number tells when it was replaced; none of a new one is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    pub inode: u64,
    pub offset: u64,
}

/// What a server answered.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    pub server: Server,
    /// In the order of the targets; None where no answer came.
    pub instances: Vec<Option<Answer>>,
    /// Whether the answer came to its end. If not, what is there counts, and what is missing says nothing.
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
    /// Of the fullest of the file systems that were asked about.
    pub disk_percent: Option<f64>,
    pub load_1m: Option<f64>,
    /// Every gateway that runs there, registered or not.
    pub gateways: Vec<Process>,
}

/// What is known of one instance at one moment.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Whether everything was asked in time.
    pub complete: bool,
    pub unit: State,
    /// Whose its home is; none where there is no folder of that name.
    pub home_owner: Option<String>,
    /// What its unit file says; none where there is no such file.
    pub confinement: Option<Confinement>,
    /// The SHA-256 of that file.
    pub unit_hash: Option<String>,
    /// What its home takes, in bytes, where that was asked for and counted in time.
    pub home_bytes: Option<u64>,
    /// Who listens on its port.
    pub listeners: Vec<Listener>,
    /// The processes that hold those sockets.
    pub owners: Vec<Process>,
    pub healthz: Option<Http>,
    pub readyz: Option<Http>,
    pub config: Option<ConfigFile>,
    /// There is an `auth-profiles.json`, which newer releases stumble over.
    pub legacy_auth: bool,
    /// In bytes.
    pub rss: Option<u64>,
    /// None where there is no log file.
    pub log: Option<LogTail>,
    /// Of the last minutes: what systemd says of the unit, and telling lines of the program.
    pub journal: Vec<Line>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listener {
    pub address: IpAddr,
    pub port: u16,
}

/// An HTTP answer, of whoever holds the port.
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

/// What was added to a log since the mark.
#[derive(Clone, Debug, Default)]
pub struct LogTail {
    pub lines: Vec<Line>,
    /// Where the next look begins.
    pub mark: Mark,
    /// Lines were passed over: too many came, or the file was replaced.
    pub gap: bool,
}

/// What /readyz tells. Channels in `suppressed` were not started after a series of crashes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Ready {
    pub ready: bool,
    #[serde(default)]
    pub failing: Vec<String>,
    #[serde(default)]
    pub suppressed: Vec<String>,
}

impl Answer {
    /// /healthz was answered by a gateway that is alive, whosever it is.
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

    /// Those who hold the port and do not belong to `unit`.
    pub fn strangers<'a>(&'a self, unit: &'a Name) -> impl Iterator<Item = &'a Process> {
        let service = unit.service();
        self.owners.iter().filter(move |owner| owner.service.as_deref() != Some(service.as_str()))
    }
}

#[cfg(test)]
mod tests;
