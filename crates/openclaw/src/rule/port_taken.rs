//! Rule 6: another, healthy gateway has this instance's port, so that this one gives up at once. Whose it is, another
//! instance's or nobody's, is seen by the owner of the port; /healthz is answered by the other.

use super::{Detail, Evidence, Finding, best};
use crate::log::Line;

const WORDS: &str = "another gateway instance is already listening on ";

pub(super) fn detect(evidence: &Evidence<'_>) -> Option<Finding> {
    best(evidence.lines.iter().filter_map(|line| {
        let address = address(line)?;
        Some(Finding::by(line, Detail::PortTaken { address }))
    }))
}

fn address(line: &Line) -> Option<String> {
    let why = line.message.strip_prefix("Gateway failed to start: ").filter(|_| line.subsystem.is_none())?;
    // Under systemd it has looked at the other first: one that is not healthy is a stranger, which is rule 7.
    let healthy = why.starts_with("gateway already running under systemd; existing gateway is healthy");
    if !healthy && !why.starts_with(WORDS) {
        return None;
    }
    let (_, rest) = why.split_once(WORDS)?;
    let address = rest.split_whitespace().next()?;
    (address.starts_with("ws") && address.len() <= 100).then(|| address.to_owned())
}
