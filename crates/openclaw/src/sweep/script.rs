//! Builds the script. Every value in it goes through `shell::quote`.

use std::time::Duration;

use base::{Error, Result};

use super::Target;
use crate::program::LIST_GATEWAYS;
use crate::shell::{quote, without_comments};
use crate::unit::PROPERTIES;

const SERVER: &str = include_str!("server.sh");
const SECTION: &str = include_str!("section.sh");
const FILES: &str = include_str!("files.sh");

/// How much the script reads.
#[derive(Clone, Debug)]
pub struct Limits {
    /// For each instance's log, and for its journal.
    pub log_bytes: u64,
    /// How far back the journal is read.
    pub journal: Duration,
    /// The time limit for one instance; eight are checked at a time.
    pub instance: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { log_bytes: 64 * 1024, journal: Duration::from_secs(300), instance: Duration::from_secs(20) }
    }
}

impl Limits {
    /// How much of the script's output to keep. A log of very short lines can exceed this; then the output is cut off,
    /// and parsed as far as it goes.
    pub fn output_bytes(&self, instances: usize) -> usize {
        let logs = usize::try_from(self.log_bytes).unwrap_or(usize::MAX).saturating_mul(4);
        logs.saturating_add(64 * 1024).saturating_mul(instances.max(1))
    }
}

/// A script for `sh`. Pass it as standard input: with many instances it is longer than an argument may be. `folders`
/// are those whose file systems are checked besides `/`. `as_owner` is shell text that defines a function of this name,
/// which runs everything below a home: `as_owner SECONDS HOME PROGRAM ARGUMENT…`.
pub fn script(targets: &[Target], folders: &[&str], limits: &Limits, as_owner: &str) -> Result<String> {
    let section = without_comments(SECTION)
        .replace("@PROPERTIES@", PROPERTIES)
        .replace("@AS_OWNER@", &without_comments(as_owner))
        .replace("@FILES@", &quote(&without_comments(FILES))?);
    let mut sections = String::new();
    for target in targets {
        sections += "one";
        for value in [
            target.runner.word().to_owned(),
            target.runner.name(),
            target.port.get().to_string(),
            absolute(&target.home)?.to_owned(),
            limits.log_bytes.to_string(),
            limits.journal.as_secs().to_string(),
            if target.measure { "yes" } else { "no" }.to_owned(),
            absolute(&target.config_path)?.to_owned(),
            absolute(&target.state_dir)?.to_owned(),
            absolute(&target.log_file)?.to_owned(),
            target.mark.inode.to_string(),
            target.mark.offset.to_string(),
        ] {
            sections += " ";
            sections += &quote(&value)?;
        }
        sections += "\n";
    }
    let folders: Result<Vec<_>> = folders.iter().map(|folder| quote(absolute(folder)?)).collect();
    let parts = [
        ("@TIMEOUT@", limits.instance.as_secs().max(1).to_string()),
        ("@SECTION@", quote(&section)?.into_owned()),
        ("@FOLDERS@", folders?.join(" ")),
        ("@LIST_GATEWAYS@\n", without_comments(LIST_GATEWAYS)),
        ("@SECTIONS@\n", sections),
    ];
    let mut rest = without_comments(SERVER);
    let mut out = String::new();
    // Replace one placeholder after the other, and never search in an inserted value.
    while let Some((at, name, value)) =
        parts.iter().filter_map(|(name, value)| rest.find(name).map(|at| (at, *name, value))).min_by_key(|(at, ..)| *at)
    {
        out += &rest[..at];
        out += value;
        rest.drain(..at + name.len());
    }
    Ok(out + &rest)
}

fn absolute(path: &str) -> Result<&str> {
    // A log line cannot imitate the script's own output, but a path with a line break would be ambiguous in messages.
    if path.starts_with('/') && !path.chars().any(char::is_control) {
        Ok(path)
    } else {
        Err(Error::internal("a path of an instance must be absolute, without control characters"))
    }
}
