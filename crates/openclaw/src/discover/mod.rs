//! Discovery: one script that finds every OpenClaw gateway of a server, whoever made it, and the parser of its output.

mod gather;
mod parse;

use std::net::{IpAddr, SocketAddr};

use base::{Error, Result};
use jiff::Timestamp;

pub use gather::gather;
pub use parse::{Raw, parse};

use crate::program::LIST_GATEWAYS;
use crate::shell::{quote, without_comments};
use crate::{Document, Version};

const DISCOVER: &str = include_str!("discover.sh");
const LOOK: &str = include_str!("look.sh");

/// OpenClaw's own choice where the configuration names no port.
pub const DEFAULT_PORT: u16 = 18789;

/// How much of the script's output is kept.
pub const OUTPUT_BYTES: usize = 16 << 20;

/// A script for `sh`, as root. `base` is the folder in which the platform makes homes. `email_file` is a file of each home
/// that may have its employee's e-mail address, or empty. `as_owner` is shell text that defines a function of this name,
/// which runs everything below a home: `as_owner SECONDS HOME PROGRAM ARGUMENT…`.
pub fn script(base: &str, email_file: &str, as_owner: &str) -> Result<String> {
    let (look, base) = (quote(&without_comments(LOOK))?.into_owned(), quote(base)?.into_owned());
    let email_file = quote(relative(email_file)?)?.into_owned();
    let mut out = String::new();
    // Replace one placeholder after the other, and never search in an inserted value.
    for line in without_comments(DISCOVER).lines() {
        match line {
            "@AS_OWNER@" => out += &without_comments(as_owner),
            "@LIST_GATEWAYS@" => out += &without_comments(LIST_GATEWAYS),
            "look=@LOOK@" => out += &format!("look={look}"),
            "base=@BASE@" => out += &format!("base={base}"),
            "email_file=@EMAIL_FILE@" => out += &format!("email_file={email_file}"),
            line => out += line,
        }
        out.push('\n');
    }
    Ok(out)
}

/// A path below a home, or nothing. Only what looks like an e-mail address is ever printed of the file.
fn relative(path: &str) -> Result<&str> {
    let plain = |segment: &str| !matches!(segment, "" | "." | "..");
    if path.is_empty() || path.len() <= 200 && path.split('/').all(plain) && !path.chars().any(char::is_control) {
        Ok(path)
    } else {
        Err(Error::field("email_file", "must be a path below a home, such as .config/owner"))
    }
}

/// A gateway of a server, or a configuration of one.
#[derive(Clone, Debug)]
pub struct Gateway {
    pub runner: Runner,
    /// The user that it runs as, or whose home it is.
    pub user: String,
    /// The folder that has its `.openclaw`; `None` if it is not known, or if its state is elsewhere.
    pub home: Option<String>,
    /// Why its state is not in a `.openclaw` of a home.
    pub elsewhere: Option<String>,
    pub is_running: bool,
    /// The sockets on which it listens.
    pub listens: Vec<SocketAddr>,
    pub config: Config,
    /// The release, as far as its program, its environment or its configuration says.
    pub version: Option<Version>,
    /// When the newest file of its sessions was written.
    pub last_session: Option<Timestamp>,
    /// What the asked file has for an e-mail address.
    pub email: Option<String>,
}

/// What starts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runner {
    /// A unit of the system.
    Unit {
        name: String,
    },
    /// A unit of its user's own systemd. Without lingering it ends when the user logs out.
    UserUnit {
        name: String,
        lingers: bool,
    },
    /// Nothing: somebody started the process.
    Process {
        pid: u32,
    },
    Container {
        id: String,
        name: String,
        image: String,
    },
    /// Nothing runs: there is a configuration.
    Home,
}

#[derive(Clone, Debug, Default)]
pub enum Config {
    /// It was not looked for, or its user did not answer in time.
    #[default]
    Unknown,
    Missing,
    Unreadable,
    /// It is larger than any that people write.
    TooLarge,
    /// It is no JSON5 document.
    Broken,
    Document(Document),
}

impl Config {
    pub fn document(&self) -> Option<&Document> {
        match self {
            Config::Document(document) => Some(document),
            _ => None,
        }
    }
}

impl Gateway {
    /// The port of its gateway: the one that it listens on, else the one that its configuration names. OpenClaw has other
    /// sockets too, of its browser and canvas. Of a container it is the port of the server at which Docker publishes it.
    pub fn port(&self) -> Option<u16> {
        let listens = |port: u16| self.listens.iter().any(|socket| socket.port() == port);
        let lowest = self.listens.iter().map(SocketAddr::port).min();
        let configured = self.config.document().and_then(configured_port);
        match self.runner {
            Runner::Container { .. } => lowest,
            _ => configured.filter(|port| self.listens.is_empty() || listens(*port)).or(lowest).or(configured),
        }
    }

    /// Whether machines other than the server can reach it.
    pub fn is_open_to_others(&self) -> bool {
        let port = self.port();
        let is_ours = |socket: &&SocketAddr| Some(socket.port()) == port;
        self.listens.iter().filter(is_ours).any(|socket| !is_loopback(socket.ip()))
    }
}

fn configured_port(document: &Document) -> Option<u16> {
    document.get(["gateway", "port"])?.as_u64().and_then(|port| u16::try_from(port).ok())
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests;
