//! One line of an instance's log, from any source: its log file (JSON lines), its console (text, or JSON lines of
//! another shape), or the journal, to which systemd itself writes too.
//!
//! The source of a line decides how far it can be trusted. Chat replies are printed to the console with their line
//! breaks, so a model can produce any console line. They do not get into the log file, and only systemd can write
//! systemd's records.

mod console;
mod file;
mod journal;
mod signal;

use jiff::Timestamp;
use serde_json::{Map, Value};

pub use journal::SystemEvent;
pub use signal::{Signal, signal};

use crate::unit::Exit;

/// How many characters of a message are kept.
const LONGEST: usize = 16 * 1024;

#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub time: Option<Timestamp>,
    pub level: Option<Level>,
    /// `gateway/reload`, `agent/embedded`; the console shortens some.
    pub subsystem: Option<String>,
    /// Without time and subsystem.
    pub message: String,
    /// Other logged values, by name.
    pub fields: Map<String, Value>,
    pub origin: Origin,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The log file: written by OpenClaw alone.
    File,
    /// Standard output: OpenClaw's lines, and anything that a chat reply made it print.
    Console,
    /// systemd, about the unit.
    System(SystemEvent),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
    Fatal,
}

impl Level {
    fn parse(word: &str) -> Option<Level> {
        Some(match word.to_ascii_lowercase().as_str() {
            "trace" | "silly" => Level::Trace,
            "debug" => Level::Debug,
            "info" => Level::Info,
            "warn" => Level::Warn,
            "error" => Level::Error,
            "fatal" => Level::Fatal,
            _ => return None,
        })
    }
}

impl Line {
    /// A line of the log file; `None` if it cannot be parsed.
    pub fn from_file(bytes: &[u8]) -> Option<Line> {
        file::read(bytes)
    }

    /// A line of the console, in either style.
    pub fn from_console(bytes: &[u8]) -> Line {
        console::read(bytes)
    }

    /// A record of `journalctl --output=json`; `None` if it cannot be parsed.
    pub fn from_journal(bytes: &[u8]) -> Option<Line> {
        journal::read(bytes)
    }

    /// Whether this line comes from the subsystem `name`, as the log file writes it. The console omits its first part.
    pub fn is_of(&self, name: &str) -> bool {
        let Some(subsystem) = &self.subsystem else { return false };
        let short = name.strip_prefix("gateway/").or_else(|| name.strip_prefix("channels/")).unwrap_or(name);
        subsystem == name || (self.origin == Origin::Console && subsystem == short)
    }

    /// At least a warning, or of unknown level: the text console does not show levels.
    pub fn is_trouble(&self) -> bool {
        self.level.is_none_or(|level| level >= Level::Warn)
    }

    /// A value that was logged with the message: a field of its own, or `name=value` in the text.
    pub fn field(&self, name: &str) -> Option<&str> {
        match self.fields.get(name) {
            Some(Value::String(text)) => return Some(text),
            Some(_) => return None,
            None => {}
        }
        let begins = |(at, _): &(usize, &str)| *at == 0 || self.message[..*at].ends_with([' ', '\t']);
        let (at, _) = self
            .message
            .match_indices(name)
            .filter(begins)
            .find(|(at, _)| self.message[at + name.len()..].starts_with('='))?;
        self.message[at + name.len() + 1..].split([' ', '\t']).next().filter(|value| !value.is_empty())
    }

    /// How the unit's process ended, if systemd reports that in this line.
    pub fn exit(&self) -> Option<Exit> {
        match &self.origin {
            Origin::System(SystemEvent::Exited(exit)) => Some(*exit),
            _ => None,
        }
    }
}

/// `text`, cut to the limit.
fn cut(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

fn time(text: &str) -> Option<Timestamp> {
    // A longer text is not a time, and a shorter one has no date.
    (20..=40).contains(&text.len()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests;
