//! The cell of an assistant: how much of its server it may use, and which holes its confinement has.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The limits set for an instance, a profession or a server. An unset value falls back to the next in this order:
/// instance, profession, server, platform default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub memory_mib: Option<i64>,
    /// 100 is one processor.
    pub cpu_percent: Option<i64>,
    pub tasks: Option<i64>,
    pub disk_mib: Option<i64>,
}

/// The allowed ranges. The lower bound lets an assistant start; the upper bound keeps a typing error from taking a
/// server down.
pub const MEMORY_MIB: std::ops::RangeInclusive<i64> = 256..=1_048_576;
pub const CPU_PERCENT: std::ops::RangeInclusive<i64> = 10..=100_000;
pub const TASKS: std::ops::RangeInclusive<i64> = 64..=1_000_000;
pub const DISK_MIB: std::ops::RangeInclusive<i64> = 100..=100_000_000;

impl Limits {
    /// These values; unset ones are taken from `others`.
    pub fn or(self, others: Limits) -> Limits {
        Limits {
            memory_mib: self.memory_mib.or(others.memory_mib),
            cpu_percent: self.cpu_percent.or(others.cpu_percent),
            tasks: self.tasks.or(others.tasks),
            disk_mib: self.disk_mib.or(others.disk_mib),
        }
    }

    /// The values with the platform's defaults for those that are unset.
    pub fn effective(self) -> Effective {
        let default = Effective::default();
        Effective {
            memory_mib: self.memory_mib.unwrap_or(default.memory_mib),
            cpu_percent: self.cpu_percent.unwrap_or(default.cpu_percent),
            tasks: self.tasks.unwrap_or(default.tasks),
            disk_mib: self.disk_mib.unwrap_or(default.disk_mib),
        }
    }

    /// The first value out of its range: its field, and the error text.
    pub fn refusal(&self) -> Option<(&'static str, String)> {
        [
            ("memory_mib", self.memory_mib, MEMORY_MIB),
            ("cpu_percent", self.cpu_percent, CPU_PERCENT),
            ("tasks", self.tasks, TASKS),
            ("disk_mib", self.disk_mib, DISK_MIB),
        ]
        .into_iter()
        .find(|(_, value, range)| value.is_some_and(|value| !range.contains(&value)))
        .map(|(field, _, range)| (field, format!("must be from {} to {}", range.start(), range.end())))
    }
}

/// The limits that apply to one instance, with all fallbacks resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effective {
    pub memory_mib: i64,
    pub cpu_percent: i64,
    pub tasks: i64,
    pub disk_mib: i64,
}

impl Default for Effective {
    fn default() -> Effective {
        Effective { memory_mib: 2048, cpu_percent: 200, tasks: 512, disk_mib: 10_240 }
    }
}

/// A named exception from the confinement. An assistant that has any of these except `Browser` can become root on the
/// server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Opening {
    /// User namespaces, in which Chromium builds its own sandbox.
    Browser,
    /// The devices of the server.
    Devices,
    /// The group `docker`, and so the server's Docker engine.
    Docker,
    /// Programs that change their user, as the server's sudoers allow.
    Sudo,
}

impl Opening {
    pub const ALL: [Opening; 4] = [Opening::Browser, Opening::Devices, Opening::Docker, Opening::Sudo];

    pub fn as_str(self) -> &'static str {
        match self {
            Opening::Browser => "browser",
            Opening::Devices => "devices",
            Opening::Docker => "docker",
            Opening::Sudo => "sudo",
        }
    }

    /// Whether an assistant that has it counts as one that runs as root.
    pub fn is_root(self) -> bool {
        self != Opening::Browser
    }
}

/// Several openings, each once, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Openings(Vec<Opening>);

impl Openings {
    pub fn of(openings: impl IntoIterator<Item = Opening>) -> Openings {
        let mut list: Vec<Opening> = openings.into_iter().collect();
        list.sort_unstable();
        list.dedup();
        Openings(list)
    }

    /// Reads what `Display` wrote. Unknown words are ignored, so they open nothing.
    pub fn parse(text: &str) -> Openings {
        Openings::of(text.split(',').filter_map(|word| Opening::ALL.into_iter().find(|one| one.as_str() == word)))
    }

    pub fn has(&self, opening: Opening) -> bool {
        self.0.contains(&opening)
    }

    pub fn is_root(&self) -> bool {
        self.0.iter().any(|one| one.is_root())
    }

    pub fn iter(&self) -> impl Iterator<Item = Opening> + '_ {
        self.0.iter().copied()
    }
}

impl fmt::Display for Openings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.0.iter().map(|one| one.as_str()).collect();
        f.write_str(&words.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_value_holds() {
        let instance = Limits { memory_mib: Some(4096), ..Limits::default() };
        let profession = Limits { memory_mib: Some(1024), tasks: Some(900), ..Limits::default() };
        let server = Limits { tasks: Some(100), disk_mib: Some(500), ..Limits::default() };
        let held = instance.or(profession).or(server).effective();
        assert_eq!(held, Effective { memory_mib: 4096, cpu_percent: 200, tasks: 900, disk_mib: 500 });
    }

    #[test]
    fn a_limit_out_of_its_range_is_named() {
        assert_eq!(Limits::default().refusal(), None);
        let small = Limits { memory_mib: Some(255), ..Limits::default() };
        assert_eq!(small.refusal(), Some(("memory_mib", "must be from 256 to 1048576".into())));
        let none = Limits { cpu_percent: Some(0), ..Limits::default() };
        assert_eq!(none.refusal().map(|(field, _)| field), Some("cpu_percent"));
    }

    #[test]
    fn openings_are_kept_once_and_in_order() {
        let both = Openings::of([Opening::Sudo, Opening::Browser, Opening::Sudo]);
        assert_eq!(both.to_string(), "browser,sudo");
        assert_eq!(Openings::parse("browser,sudo"), both);
        assert_eq!(Openings::parse("browser,rockets,"), Openings::of([Opening::Browser]));
        assert!(both.is_root() && !Openings::parse("browser").is_root() && !Openings::default().is_root());
    }
}
