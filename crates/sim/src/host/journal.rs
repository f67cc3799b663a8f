//! The journal of a unit, as `journalctl -o json` prints it.

use std::collections::VecDeque;

use jiff::Timestamp;
use serde_json::{Value, json};

/// How many entries of a unit are kept.
const KEPT: usize = 500;

/// systemd's message ids for the events of a unit.
pub const STARTED: &str = "39f53479d3a045ac8e11786248231fbf";
pub const STOPPED: &str = "9d1aaa27d60140bd96365438aad20286";
pub const EXITED: &str = "98e322203f7a4ed290d09fe03c09fe15";
pub const FAILED: &str = "d9b373ed55a64feb8242e02dbe79a49c";
pub const RESTARTED: &str = "5eb03494b6584870a536b337290809b3";

#[derive(Clone, Debug)]
pub struct Entry {
    /// Its number and time; `State::record` sets them.
    pub number: u64,
    pub at: Timestamp,
    pub pid: u32,
    pub message: String,
    pub fields: Vec<(&'static str, String)>,
}

impl Entry {
    /// A line that the program printed.
    pub fn said(pid: u32, message: impl Into<String>) -> Entry {
        Entry { number: 0, at: Timestamp::UNIX_EPOCH, pid, message: message.into(), fields: vec![] }
    }

    /// A line of systemd about the unit.
    pub fn systemd(message: impl Into<String>, id: &str) -> Entry {
        let fields = if id.is_empty() { vec![] } else { vec![("MESSAGE_ID", id.to_owned())] };
        Entry { fields, ..Entry::said(1, message) }
    }

    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Entry {
        self.fields.push((name, value.into()));
        self
    }

    pub fn to_json(&self, unit: &str) -> String {
        let mut entry: Value = json!({
            "__CURSOR": cursor(self.number),
            "__REALTIME_TIMESTAMP": self.at.as_microsecond().to_string(),
            "MESSAGE": self.message,
            "_PID": self.pid.to_string(),
            "_UID": if self.pid == 1 { "0" } else { "999" },
        });
        if self.pid == 1 {
            entry["UNIT"] = unit.into();
        }
        for (name, value) in &self.fields {
            entry[*name] = value.as_str().into();
        }
        entry.to_string()
    }
}

fn cursor(number: u64) -> String {
    format!("s=simulated;i={number:x}")
}

/// The number in a cursor.
pub fn number(cursor: &str) -> Option<u64> {
    u64::from_str_radix(cursor.rsplit("i=").next()?, 16).ok()
}

#[derive(Debug, Default)]
pub struct Journal(VecDeque<Entry>);

impl Journal {
    pub fn push(&mut self, entry: Entry) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(entry);
    }

    pub fn last(&self, count: usize) -> impl Iterator<Item = &Entry> {
        self.0.iter().skip(self.0.len().saturating_sub(count))
    }

    pub fn after(&self, number: u64) -> impl Iterator<Item = &Entry> {
        self.0.iter().filter(move |entry| entry.number > number)
    }

    pub fn since(&self, from: Timestamp) -> impl Iterator<Item = &Entry> {
        self.0.iter().filter(move |entry| entry.at >= from)
    }
}
