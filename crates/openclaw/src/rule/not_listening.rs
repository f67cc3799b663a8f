//! Rule 7: the unit is active and the instance does not listen where it should: another process has the port, or the
//! instance listens at another address, or not at all. `is-active` still reports that it is healthy.

use std::net::IpAddr;
use std::time::Duration;

use super::{Detail, Evidence, Finding, Listening, best};
use crate::config::Bind;
use crate::log::Line;
use crate::sweep::Answer;
use crate::unit::Active;

/// A start takes up to 45 s, during which the port is closed.
const START: Duration = Duration::from_secs(90);
/// A gateway that waits for its port logs that every 20 to 30 s; a single line can come from an ordinary restart.
const WAITS: usize = 2;

pub(super) fn detect(evidence: &Evidence<'_>) -> Option<Finding> {
    match evidence.state {
        Some((server, answer)) => {
            let settled = answer.running_for(server).is_some_and(|time| time >= START);
            // If the section was cut off, the port may not have been checked.
            if answer.unit.active != Active::Active || !settled || !answer.complete {
                return None;
            }
            let listening = look(answer, evidence)?;
            Some(Finding::fact(Detail::NotListening(listening.clone()), describe_listening(&listening)))
        }
        None => by_log(evidence),
    }
}

fn look(answer: &Answer, evidence: &Evidence<'_>) -> Option<Listening> {
    if let Some(owner) = answer.strangers(&evidence.expected.runner).next() {
        return Some(Listening::Stranger { owner: Some(owner.clone()) });
    }
    if answer.listeners.is_empty() {
        return Some(Listening::Nobody);
    }
    // Without the right to see the socket's owner, decide by its HTTP answer.
    if answer.owners.is_empty() && answer.healthz.is_some() && !answer.is_live() {
        return Some(Listening::Stranger { owner: None });
    }
    let addresses = || answer.listeners.iter().map(|listener| listener.address);
    let right = match evidence.expected.bind {
        None => true,
        Some(Bind::Loopback) => addresses().all(|address| address.is_loopback()),
        Some(Bind::Lan) => addresses().any(|address| IpAddr::is_unspecified(&address)),
    };
    let elsewhere = || Listening::Elsewhere { addresses: addresses().map(|address| address.to_string()).collect() };
    (!right).then(elsewhere)
}

fn describe_listening(listening: &Listening) -> String {
    match listening {
        Listening::Nobody => "nobody listens on its port".to_owned(),
        Listening::Elsewhere { addresses } => format!("listens on {}", addresses.join(", ")),
        Listening::Stranger { owner: Some(owner) } => {
            format!("its port is held by process {} ({:?}, {})", owner.pid, owner.name, owner.service_name())
        }
        Listening::Stranger { owner: None } => "its port is answered by something that is no gateway".to_owned(),
        Listening::Waiting => "waits for its port".to_owned(),
    }
}

fn by_log(evidence: &Evidence<'_>) -> Option<Finding> {
    let finding = |line: &Line| Finding::by(line, Detail::NotListening(Listening::Waiting));
    let waits: Vec<&Line> = evidence.recent().filter(|line| is_waiting(line)).collect();
    let gave_up = evidence.recent().filter(|line| gave_up(line)).map(finding);
    let waiting = waits.iter().filter(|_| waits.len() >= WAITS).map(|line| finding(line));
    best(waiting.chain(gave_up))
}

fn is_waiting(line: &Line) -> bool {
    line.is_of("gateway") && line.message.starts_with("already running under systemd; waiting ")
}

fn gave_up(line: &Line) -> bool {
    let why = line.message.strip_prefix("Gateway failed to start: ").filter(|_| line.subsystem.is_none());
    why.is_some_and(|why| {
        why.starts_with("gateway already running under systemd; existing gateway did not become healthy")
    })
}
