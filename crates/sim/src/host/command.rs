//! Runs a command on a simulated machine: programs and scripts (`script`) by their name, and the sweep (`sweep`).

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Value;

use super::discover::DISCOVER;
use super::machine::Machine;
use super::state::{PROGRAMS, State, Unit};
use super::sweep::SWEEP;
use super::words::Invocation;
use super::{discover, journal, script, sweep};

#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub status: u32,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Answer {
    pub fn said(text: impl Into<Vec<u8>>) -> Answer {
        Answer { stdout: text.into(), ..Answer::default() }
    }

    pub fn nothing() -> Answer {
        Answer::default()
    }

    pub fn status(status: u32) -> Answer {
        Answer { status, ..Answer::default() }
    }

    pub fn failed(status: u32, why: &str) -> Answer {
        Answer { status, stderr: format!("{why}\n").into_bytes(), ..Answer::default() }
    }
}

pub(super) async fn run(machine: &Arc<Machine>, invocation: &Invocation, stdin: &[u8]) -> Answer {
    let words: Vec<&str> = invocation.argv.iter().map(String::as_str).collect();
    let answer = match words.as_slice() {
        ["sh", "-s", SWEEP] => Some(sweep::answer(machine, &String::from_utf8_lossy(stdin))),
        ["sh", "-s", DISCOVER] => Some(discover::answer(machine)),
        ["sh", "-c", _, name, args @ ..] => script::run(machine, invocation, name, args, stdin).await,
        ["journalctl", ..] => Some(journal_of(machine, &words)),
        ["printenv", "HOME"] => {
            let home = machine.lock().users.get(&invocation.user).cloned();
            Some(Answer::said(format!("{}\n", home.unwrap_or_else(|| format!("/home/{}", invocation.user)))))
        }
        ["test", "-e", path] => Some(Answer::status(u32::from(machine.lock().files.get(path).is_none()))),
        ["id", "-un"] => Some(Answer::said(format!("{}\n", invocation.user))),
        ["systemctl", "is-system-running"] => Some(Answer::said("running\n")),
        ["systemctl", "--version"] => Some(Answer::said("systemd 252 (simulated)\n")),
        // The machine has Docker, but no containers.
        ["docker", "version", ..] => Some(Answer::said("27.0.0 (simulated)\n")),
        ["docker", "ps", ..] => Some(Answer::nothing()),
        ["systemd-analyze", "security", "--no-pager", "--", unit] => Some(Answer::said(exposure(machine, unit))),
        ["mkdir", "-p", "-m", "755", "--", folder] => {
            machine.lock().files.folder(folder, &invocation.user);
            Some(Answer::nothing())
        }
        ["systemctl", "daemon-reload"] => Some(Answer::nothing()),
        [program, args @ ..] if program.starts_with(PROGRAMS) => {
            self::program(machine, invocation, program, args).await
        }
        _ => None,
    };
    answer.unwrap_or_else(|| {
        let (text, why) = match words.as_slice() {
            ["sh", "-c", _, name, ..] | ["sh", "-s", name] => {
                (format!("script {name}"), format!("{name}: not simulated"))
            }
            words => (words.join(" "), format!("sh: {}: not found", words.first().copied().unwrap_or_default())),
        };
        machine.lock().unknown.push(text.chars().take(200).collect());
        Answer::failed(127, &why)
    })
}

/// The answer of `systemd-analyze security` for a unit.
fn exposure(machine: &Machine, unit: &str) -> String {
    let state = machine.lock();
    let file = state.files.file(&format!("/etc/systemd/system/{unit}")).unwrap_or_default();
    let is_confined = String::from_utf8_lossy(file).contains("\n# The cell.");
    format!("→ Overall exposure level for {unit}: {}\n", if is_confined { "1.3 OK :-)" } else { "9.2 UNSAFE :-{" })
}

/// Runs Node or OpenClaw, if it is installed.
async fn program(machine: &Arc<Machine>, invocation: &Invocation, path: &str, args: &[&str]) -> Option<Answer> {
    machine.lock().files.file(path)?;
    let folder = path.rsplit('/').nth(1).unwrap_or_default();
    match args {
        ["--version"] if path.ends_with("/node") => {
            let version = path.rsplit('/').nth(2).unwrap_or_default();
            Some(Answer::said(format!("v{version}\n")))
        }
        ["--version"] => Some(Answer::said(format!("OpenClaw {folder} (simulated)\n"))),
        ["doctor", "--fix", ..] => Some(Answer::said("Doctor complete.\n")),
        ["gateway", "call", method, "--params", params, "--timeout", "30000", "--json"] => {
            let gateway = machine.gateway_of(invocation.variable("OPENCLAW_CONFIG_PATH")?);
            let Some(gateway) = gateway else { return Some(Answer::failed(1, "gateway connect failed: ECONNREFUSED")) };
            let params: Value = serde_json::from_str(params).unwrap_or_default();
            Some(match gateway.call(method, &params).await {
                Ok(payload) => Answer::said(format!("{payload}\n")),
                Err(error) => Answer::failed(1, &error.to_string()),
            })
        }
        _ => None,
    }
}

fn journal_of(machine: &Machine, words: &[&str]) -> Answer {
    let after = |name: &str| words.iter().position(|word| *word == name).and_then(|at| words.get(at + 1));
    let Some(unit) = after("-u") else { return Answer::failed(1, "journalctl: which unit?") };
    let count = after("-n").and_then(|n| n.parse().ok()).unwrap_or(usize::MAX);
    let state = machine.lock();
    let entries = state.units.get(*unit).into_iter().flat_map(|unit| unit.journal.last(count));
    Answer::said(entries.map(|entry| entry.to_json(unit) + "\n").collect::<String>())
}

/// The script whose output has no end: see `ssh`.
pub(super) const FOLLOW_JOURNAL: &str = "follow-journal";

/// If the command follows a journal: the unit, and the number of the entry to start after.
pub(super) fn followed(invocation: &Invocation) -> Option<(String, Option<u64>)> {
    let words: Vec<&str> = invocation.argv.iter().map(String::as_str).collect();
    let ["sh", "-c", _, FOLLOW_JOURNAL, args @ ..] = words.as_slice() else { return None };
    let (unit, cursor) = journal_place(args);
    Some((unit?.to_owned(), cursor))
}

/// The unit and the number of an entry that the words of `journalctl` name.
pub(super) fn journal_place<'a>(words: &[&'a str]) -> (Option<&'a str>, Option<u64>) {
    let unit = words.iter().position(|word| *word == "-u").and_then(|at| words.get(at + 1)).copied();
    let cursor = words.iter().find_map(|word| word.strip_prefix("--after-cursor="));
    (unit, cursor.and_then(journal::number))
}

/// The entries of a journal after a number, and the number of the last one. Without a number: no entries, and the last
/// number.
pub(super) fn entries_after(state: &State, unit: &str, from: Option<u64>) -> (String, u64) {
    let Some(there) = state.units.get(unit) else { return (String::new(), from.unwrap_or(0)) };
    let end = there.journal.last(1).next().map_or(0, |entry| entry.number);
    let from = from.unwrap_or(end);
    (there.journal.after(from).map(|entry| entry.to_json(unit) + "\n").collect(), end.max(from))
}

/// The output of `systemctl show` for a unit, with the properties that the platform asks for.
pub(super) fn show(state: &State, name: &str) -> String {
    let loaded = state.service(name).is_some();
    let none = Unit::default();
    let unit = state.units.get(name).filter(|_| loaded).unwrap_or(&none);
    let (active, sub) = unit.words();
    let mut text = format!("Id={name}\nLoadState={}\n", if loaded { "loaded" } else { "not-found" });
    let (pid, started) = unit.process().map_or((0, 0), |process| (process.pid, process.started_us));
    let result = if unit.result.is_empty() { "success" } else { unit.result };
    let file = match (loaded, unit.enabled) {
        (false, _) => "",
        (true, false) => "disabled",
        (true, true) => "enabled",
    };
    let memory = if pid == 0 { "[not set]".to_owned() } else { (RSS_KIB * 1024).to_string() };
    write!(
        text,
        "ActiveState={active}\nSubState={sub}\nUnitFileState={file}\nMainPID={pid}\nExecMainCode={}\nExecMainStatus={}\n\
         ExecMainStartTimestampMonotonic={started}\nResult={result}\nNRestarts={}\nStateChangeTimestamp=@{}\nMemoryCurrent={memory}\nUser={}\n",
        unit.exit.0,
        unit.exit.1,
        unit.restarts,
        unit.since.as_second(),
        state.service(name).map_or_else(String::new, |service| service.user),
    )
    .ok();
    text
}

/// The memory of a gateway.
pub(super) const RSS_KIB: u64 = 412_000;

/// The metrics of a machine: CPU ticks at two moments, load, memory, disk.
pub(super) struct Vitals {
    pub cpu: [String; 2],
    pub load: String,
    pub memory: String,
    pub disk: String,
}

impl Vitals {
    pub fn of(state: &State, name: &str) -> Vitals {
        // The values depend on the machine's name, so that no two charts look alike.
        let seed = name.bytes().fold(7u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte))) % 1000;
        let wave = (state.uptime().as_secs_f64() / 240.0 + seed as f64).sin();
        let busy = 14.0 + seed as f64 % 9.0 + 9.0 * wave;
        let ticks = state.uptime().as_millis() as u64 / 10 * 4;
        let cpu = |at: u64, busy: u64| format!("cpu  {busy} 0 0 {} 0 0 0 0 0 0", at - busy);
        let before = ticks / 6;
        let running = state.units.values().filter(|unit| unit.process().is_some()).count() as u64;
        let total = 32_768_000u64;
        let available = total.saturating_sub(2_100_000 + running * RSS_KIB);
        let used = 61_000_000 + seed * 40_000;
        Vitals {
            cpu: [cpu(ticks, before), cpu(ticks + 400, before + (busy * 4.0) as u64)],
            load: format!("{:.2} {:.2} {:.2} 2/345 6789", busy / 25.0, busy / 27.0, busy / 30.0),
            memory: format!("MemTotal:       {total} kB\nMemAvailable:   {available} kB"),
            disk: format!("/dev/vda1 206292968 {used} {} {}% /", 206_292_968 - used, used * 100 / 206_292_968),
        }
    }
}
