//! Rule 6: another, healthy gateway has this instance's port, so that this one gives up at once. Whose it is, another
//! instance's or nobody's, is seen by the owner of the port; /healthz is answered by the other.
//!
//! One that is left over of the very instance has its state too, which is looked at before the port: then it says nothing of the port. A
//! unit with a /tmp of its own does not see the other's lock there, and finds the other's lease in the state folder.

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

/// The address where it says one.
pub(super) fn address(line: &Line) -> Option<Option<String>> {
    let why = line.message.strip_prefix("Gateway failed to start: ").filter(|_| line.subsystem.is_none())?;
    let maintenance = why.strip_prefix("Doctor could not enter maintenance. ");
    if why.starts_with(LEASE) || maintenance.is_some_and(|why| why.starts_with(STATE)) {
        return Some(None);
    }
    // Under systemd it has looked at the other first: one that is not healthy is a stranger, which is rule 7.
    let healthy = why.starts_with("gateway already running under systemd; existing gateway is healthy");
    if !healthy && !why.starts_with(WORDS) {
        return None;
    }
    let (_, rest) = why.split_once(WORDS)?;
    let address = rest.split_whitespace().next()?;
    (address.starts_with("ws") && address.len() <= 100).then(|| Some(address.to_owned()))
}
