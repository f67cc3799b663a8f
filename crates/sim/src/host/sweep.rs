//! The answer to the sweep: the script that asks a machine about all its assistants.

use std::fmt::Write as _;

use jiff::SignedDuration;

use super::command::{Answer, RSS_KIB, Vitals, show};
use super::machine::Machine;
use super::state::State;
use super::tree::sha256;
use super::words::words;

/// The name of the script. Its text is long, so it comes through standard input.
pub(super) const SWEEP: &str = "sweep";

/// The question about one instance: the arguments of the script's function `one`.
struct Asked {
    unit: String,
    port: u16,
    home: String,
    config: String,
    state: String,
    log: String,
    inode: u64,
    offset: u64,
    limit: u64,
    since: i64,
    measure: bool,
}

impl Asked {
    fn read(line: &str) -> Option<Asked> {
        let words = words(line.strip_prefix("one ")?);
        // A simulated machine has units of the system alone.
        let [_, unit, port, home, limit, since, measure, config, state, log, inode, offset] =
            <[String; 12]>::try_from(words).ok()?;
        Some(Asked {
            unit,
            port: port.parse().ok()?,
            home,
            config,
            state,
            log,
            inode: inode.parse().ok()?,
            offset: offset.parse().ok()?,
            limit: limit.parse().ok()?,
            since: since.parse().ok()?,
            measure: measure == "yes",
        })
    }
}

pub(super) fn answer(machine: &Machine, script: &str) -> Answer {
    let state = machine.lock();
    let vitals = Vitals::of(&state, &machine.name);
    let mut out = format!("sweep 1\ntime {}\n{}\n", state.now().as_second(), behind("cpu", &vitals.cpu[0]));
    for (number, asked) in script.lines().filter_map(Asked::read).enumerate() {
        writeln!(out, "begin {number}").ok();
        section(&state, &asked, &mut out);
        writeln!(out, "end\n\nover {number}").ok();
    }
    writeln!(out, "uptime|{:.2} 0.00\n", state.uptime().as_secs_f64()).ok();
    for (label, text) in [("load", &vitals.load), ("memory", &vitals.memory), ("disk", &vitals.disk)] {
        writeln!(out, "{}\n", behind(label, text)).ok();
    }
    out.push_str("cores 4\n");
    for (name, unit) in &state.units {
        let Some(process) = unit.process() else { continue };
        writeln!(out, "gateway {}\ncgroup|/system.slice/{name}\n", process.pid).ok();
        writeln!(out, "config-path|{}\n", process.service.config_path).ok();
    }
    writeln!(out, "{}\n\ndone", behind("cpu", &vitals.cpu[1])).ok();
    Answer::said(out)
}

fn behind(label: &str, text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("{label}|{line}")).collect();
    lines.join("\n")
}

fn page(label: &str, body: &str, out: &mut String) {
    write!(out, "{label}|HTTP/1.1 200 OK\n{label}|Content-Type: application/json\n{label}|\n{label}|{body}\n\n").ok();
}

fn section(state: &State, asked: &Asked, out: &mut String) {
    writeln!(out, "{}\n", behind("unit", &show(state, &asked.unit))).ok();
    if state.units.get(&asked.unit).and_then(|unit| unit.process()).is_some() {
        writeln!(out, "rss {RSS_KIB}").ok();
    }
    if state.files.is_folder(&asked.home) {
        writeln!(out, "home {} 2000", state.files.owner(&asked.home)).ok();
    }
    if let Some(file) = state.files.file(&format!("/etc/systemd/system/{}", asked.unit)) {
        let text = String::from_utf8_lossy(file);
        let has = |mark: &str| text.lines().any(|line| line.starts_with(mark));
        let word = match (text.starts_with("# Written by tidepool."), has("# The cell.")) {
            (false, _) => "foreign",
            (true, false) => "unconfined",
            (true, true) => "confined",
        };
        writeln!(out, "cell {word} {}", sha256(file)).ok();
    }
    if asked.measure && !state.counts_no_homes && state.files.is_folder(&asked.home) {
        // A small home whose size depends on the port, so that no two are equal.
        writeln!(out, "home-kib {}", 96_000 + u64::from(asked.port) * 7).ok();
    }
    let holder = state.units.iter().find_map(|(name, unit)| {
        let process = unit.process()?;
        (process.service.port == asked.port).then_some((name, process))
    });
    if let Some((name, process)) = holder {
        let (pid, port) = (process.pid, asked.port);
        writeln!(
            out,
            "port|LISTEN 0      511    127.0.0.1:{port} 0.0.0.0:* users:((\"openclaw-gatewa\",pid={pid},fd=22)) ino:{pid} sk:1\n\n\
             owner {pid}\ncomm|openclaw-gatewa\n\ncgroup|/system.slice/{name}\n\nconfig-path|{}\n",
            process.service.config_path
        )
        .ok();
        page("healthz", r#"{"ok":true,"status":"live"}"#, out);
        page("readyz", r#"{"ready":true,"failing":[]}"#, out);
    }
    match state.files.file(&asked.config) {
        Some(bytes) => writeln!(out, "config {} {}", sha256(bytes), bytes.len()).ok(),
        None => writeln!(out, "config missing").ok(),
    };
    if state.files.get(&format!("{}/agents/main/agent/auth-profiles.json", asked.state)).is_some() {
        out.push_str("legacy-auth\n");
    }
    if let Some((node, bytes)) = state.files.get(&asked.log).and_then(|node| Some((node, node.bytes.as_ref()?))) {
        let size = bytes.len() as u64;
        let from = if node.inode != asked.inode || size < asked.offset { 0 } else { asked.offset };
        let from = from.max(size.saturating_sub(asked.limit));
        writeln!(out, "log {} {from} {}", node.inode, size - from).ok();
        let tail = bytes.get(usize::try_from(from).unwrap_or(0)..).unwrap_or_default();
        if !tail.is_empty() {
            // An unfinished last line is printed too.
            let text = String::from_utf8_lossy(tail);
            for line in text.split('\n') {
                writeln!(out, "log|{line}").ok();
            }
        }
    }
    if asked.limit > 0 {
        let from = state.now() - SignedDuration::from_secs(asked.since);
        let entries = state.units.get(&asked.unit).into_iter().flat_map(|unit| unit.journal.since(from));
        let telling = |message: &str| {
            ["FATAL ERROR: ", "Gateway failed to start: ", "Refusing to "].iter().any(|words| message.contains(words))
        };
        for entry in entries.filter(|entry| entry.pid == 1 || telling(&entry.message)) {
            writeln!(out, "journal|{}", entry.to_json(&asked.unit)).ok();
        }
    }
}
