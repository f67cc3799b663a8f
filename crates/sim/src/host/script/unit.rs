//! Scripts about units, their journals, and ports.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Call;
use crate::host::command::{self, Answer, show};
use crate::host::machine::WEBHOOK;
use crate::host::state::{State, Unit};

/// The arguments are units.
pub fn show_all(state: &mut State, call: &Call<'_>) -> Answer {
    shown(state, call, true)
}

pub fn start(state: &mut State, call: &Call<'_>) -> Answer {
    let is_done = state.start(call.arg(1));
    shown(state, call, is_done)
}

pub fn stop(state: &mut State, call: &Call<'_>) -> Answer {
    let is_done = state.stop(call.arg(1));
    shown(state, call, is_done)
}

pub fn restart(state: &mut State, call: &Call<'_>) -> Answer {
    let is_done = state.stop(call.arg(1)) && state.start(call.arg(1));
    shown(state, call, is_done)
}

pub fn reset_failed(state: &mut State, call: &Call<'_>) -> Answer {
    state.reset_failed(call.arg(1));
    shown(state, call, true)
}

pub fn enable(state: &mut State, call: &Call<'_>) -> Answer {
    let is_done = set_enabled(state, call.arg(1), true);
    shown(state, call, is_done)
}

pub fn disable(state: &mut State, call: &Call<'_>) -> Answer {
    let is_done = set_enabled(state, call.arg(1), false);
    shown(state, call, is_done)
}

fn set_enabled(state: &mut State, unit: &str, is_enabled: bool) -> bool {
    let is_loaded = state.service(unit).is_some();
    if is_loaded {
        state.units.entry(unit.to_owned()).or_default().enabled = is_enabled;
    }
    is_loaded
}

/// The states of the units, after what was done to the first of them.
fn shown(state: &State, call: &Call<'_>, is_done: bool) -> Answer {
    let mut text = String::new();
    for name in call.args {
        writeln!(text, "{}", show(state, name)).ok();
    }
    text.push('\n');
    for name in call.args.iter().filter(|name| state.units.get(**name).is_some_and(|unit| unit.given_up)) {
        writeln!(text, "StartLimit={name}").ok();
    }
    let why = format!("Failed: {} could not be handled\n", call.arg(1));
    let (status, stderr) = if is_done { (0, vec![]) } else { (5, why.into_bytes()) };
    Answer { status, stdout: text.into_bytes(), stderr }
}

/// Arguments: the largest number of entries, and the words of `journalctl`.
pub fn read_journal(state: &mut State, call: &Call<'_>) -> Answer {
    let most = call.arg(1).parse().unwrap_or(0);
    let (unit, cursor) = command::journal_place(call.args);
    let (lines, _) = command::entries_after(state, unit.unwrap_or_default(), cursor);
    Answer::said(lines.lines().take(most).map(|line| format!("{line}\n")).collect::<String>())
}

/// The processes that listen on a port. The argument is the port.
pub fn port_owners(state: &mut State, call: &Call<'_>) -> Answer {
    let port = call.arg(1).parse().unwrap_or(0);
    let mut text = String::new();
    for (name, process) in state.units.iter().filter_map(|(name, unit)| Some((name, unit.process()?))) {
        if process.service.port != port {
            continue;
        }
        let (pid, service) = (process.pid, &process.service);
        let coded = |text: &str| STANDARD.encode(text);
        let environment = format!("HOME={}\nOPENCLAW_STATE_DIR={}\n", service.home, service.state_dir);
        writeln!(
            text,
            "L LISTEN 0 511 127.0.0.1:{port} 0.0.0.0:* users:((\"openclaw-gatewa\",pid={pid},fd=22))\nP {pid} {} {} ={} ={} ={}",
            process.started_us / 10_000,
            service.user,
            coded("openclaw-gateway\0"),
            coded(&format!("0::/system.slice/{name}\n")),
            coded(&environment),
        )
        .ok();
    }
    Answer::said(text)
}

/// The owners of homes, and the users that listen on ports. Arguments: the ports, in hexadecimal, and the homes.
pub fn sockets(state: &mut State, call: &Call<'_>) -> Answer {
    const FOLDER: &str = "41c0";
    let mut text = format!("login {}\n", uid_of(call.user));
    for home in call.args.iter().skip(1).filter(|home| state.files.is_folder(home)) {
        writeln!(text, "home {} {FOLDER} {home}", uid_of(state.files.owner(home))).ok();
    }
    for port in call.arg(1).split_whitespace() {
        let number = u16::from_str_radix(port, 16).unwrap_or(0);
        let processes = state.units.values().filter_map(Unit::process);
        let own = processes.filter(|process| [number, number.wrapping_sub(WEBHOOK)].contains(&process.service.port));
        let users = own.map(|process| process.service.user.as_str());
        let others = state.strangers.iter().filter(|(taken, _)| *taken == number).map(|(_, user)| user.as_str());
        for user in users.chain(others) {
            writeln!(text, "listens {port} {}", uid_of(user)).ok();
        }
    }
    Answer::said(text)
}

/// The user of a unit, and the names of users. Arguments: a home, a unit, and user numbers.
pub fn unit_user(state: &mut State, call: &Call<'_>) -> Answer {
    let mut text = String::new();
    if let Some(service) = state.service(call.arg(2)) {
        writeln!(text, "unit {}", uid_of(&service.user)).ok();
    }
    let strangers = state.strangers.iter().map(|(_, user)| user);
    for user in state.users.keys().chain(strangers) {
        writeln!(text, "name {} {user}", uid_of(user)).ok();
    }
    Answer::said(text)
}

/// The number of a user; it is the same on all machines.
fn uid_of(user: &str) -> u32 {
    match user {
        "root" => 0,
        name => 1000 + name.bytes().fold(7u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into())) % 50_000,
    }
}

/// Ends processes that listen on a port. The arguments after the first are `pid:start`.
pub fn end_processes(state: &mut State, call: &Call<'_>) -> Answer {
    for pid in call.args.iter().skip(1).filter_map(|pair| pair.split(':').next()?.parse::<u32>().ok()) {
        let its = |unit: &Unit| unit.process().is_some_and(|process| process.pid == pid);
        if let Some(name) = state.units.iter().find(|(_, unit)| its(unit)).map(|(name, _)| name.clone()) {
            state.stop(&name);
        }
    }
    Answer::nothing()
}
