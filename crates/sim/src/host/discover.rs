//! The answer to the script that discovers gateways.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::command::{Answer, show};
use super::machine::Machine;

/// The name of the script. Its text is long, so it comes through standard input.
pub(super) const DISCOVER: &str = "discover";

pub(super) fn answer(machine: &Machine) -> Answer {
    let state = machine.lock();
    let mut out = format!("discover 1\ntime {}\n", state.now().as_second());
    let mut homes = BTreeSet::new();
    for (name, unit) in &state.units {
        let Some(service) = state.service(name) else { continue };
        if let Some(process) = unit.process() {
            writeln!(
                out,
                "process {}\nuser|{}\n\ncgroup|/system.slice/{name}\n\nvariable|HOME={}\nlistens 0100007F:{:04X}",
                process.pid, service.user, service.home, service.port
            )
            .ok();
        }
        writeln!(out, "unit").ok();
        for line in show(&state, name).lines() {
            writeln!(out, "show|{line}").ok();
        }
        writeln!(out, "show|ExecStart={{ argv[]={} gateway --port {} ; }}", service.program, service.port).ok();
        writeln!(out, "variable|HOME={}", service.home).ok();
        homes.insert(service.home);
    }
    for home in homes {
        writeln!(out, "home\npath|{home}\nuser|{}", state.files.owner(&home)).ok();
        match state.files.text(&format!("{home}/.openclaw/openclaw.json")) {
            Some(config) => config.lines().for_each(|line| {
                writeln!(out, "config|{line}").ok();
            }),
            None => {
                writeln!(out, "config missing").ok();
            }
        }
    }
    out.push_str("done\n");
    Answer::said(out)
}
