//! Rule 2: the gateway ends with status 1 again and again, or refuses to start because older settings must be migrated
//! first. (A refused configuration ends with 78, once, and systemd does not restart it.)

use super::{Detail, Evidence, Finding, best, port_taken};
use crate::unit::Exit;

/// The rule applies from this many ends within five minutes on.
const EXITS: usize = 3;

/// Its messages before it ends because of settings of an older form. A new state ends with 1, a used one with 78.
const REFUSALS: [&str; 2] =
    ["Refusing to run automatic gateway startup migrations", "OpenClaw migration inputs changed during startup"];

pub(super) fn detect(evidence: &Evidence<'_>) -> Option<Finding> {
    let ends: Vec<_> = evidence.recent().filter(|line| line.exit() == Some(Exit::Status(1))).collect();
    // If another gateway has the state or the port, the configuration is not the cause, and the doctor must not change
    // it.
    let is_kept_out = evidence.recent().any(|line| port_taken::address(line).is_some());
    if ends.len() >= EXITS
        && !is_kept_out
        && let Some(last) = ends.last()
    {
        return Some(Finding::by(last, Detail::ExitLoop { exits: ends.len() }));
    }
    best(evidence.lines.iter().filter_map(|line| {
        let message = line.message.strip_prefix("Gateway failed to start: ").unwrap_or(&line.message);
        let refuses = line.subsystem.is_none() && REFUSALS.iter().any(|words| message.starts_with(words));
        refuses.then(|| Finding::by(line, Detail::Migration))
    }))
}
