//! Rule 6: another, healthy gateway has this instance's port, so this one gives up at once. The owner of the port shows
//! whether it belongs to another instance; /healthz does not, since the other gateway answers it.
//!
//! A left-over gateway of the same instance has its state too. OpenClaw checks the state before the port, so its
//! message does not mention the port. A unit with a private /tmp does not see the other's lock there, but finds its
//! lease in the state folder.

use super::{Detail, Evidence, Finding, best};
use crate::log::Line;

const WORDS: &str = "another gateway instance is already listening on ";
const STATE: &str = "StateDatabaseCoordinatorContentionError: another OpenClaw process owns gateway-lifecycle";
const LEASE: &str = "Another Gateway owner lease is still active for this state directory";

pub(super) fn detect(evidence: &Evidence<'_>) -> Option<Finding> {
    best(evidence.lines.iter().filter_map(|line| {
        let address = address(line)?;
        Some(Finding::by(line, Detail::PortTaken { address }))
    }))
}

/// `Some` if the line reports such a gateway; inside, the address if the line has one.
pub(super) fn address(line: &Line) -> Option<Option<String>> {
    let why = line.message.strip_prefix("Gateway failed to start: ").filter(|_| line.subsystem.is_none())?;
    let maintenance = why.strip_prefix("Doctor could not enter maintenance. ");
    if why.starts_with(LEASE) || maintenance.is_some_and(|why| why.starts_with(STATE)) {
        return Some(None);
    }
    // Under systemd it checks the other gateway first: an unhealthy one is a case of rule 7.
    let healthy = why.starts_with("gateway already running under systemd; existing gateway is healthy");
    if !healthy && !why.starts_with(WORDS) {
        return None;
    }
    let (_, rest) = why.split_once(WORDS)?;
    let address = rest.split_whitespace().next()?;
    (address.starts_with("ws") && address.len() <= 100).then(|| Some(address.to_owned()))
}
