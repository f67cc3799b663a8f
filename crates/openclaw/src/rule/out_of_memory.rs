//! Rule 3: the gateway ran out of memory. Node reports it on the console before it aborts itself; if the kernel kills
//! it, systemd reports that. A process that was killed for any other reason is not a case of this rule.

use super::{Confidence, Detail, Evidence, Finding};
use crate::log::{Line, Origin, SystemEvent};
use crate::unit::Exit;

const KILLED: &str = "oom-kill";

pub(super) fn detect(evidence: &Evidence<'_>) -> Option<Finding> {
    let by_kernel = |line: &&Line| matches!(&line.origin, Origin::System(SystemEvent::Failed(why)) if why == KILLED);
    if let Some(line) = evidence.lines.iter().rev().find(by_kernel) {
        return Some(Finding::by(line, Detail::OutOfMemory));
    }
    if evidence.state.is_some_and(|(_, answer)| answer.unit.result == KILLED) {
        return Some(Finding::fact(Detail::OutOfMemory, "the unit's result is oom-kill"));
    }
    let said = evidence.lines.iter().rev().find(|line| says_so(line))?;
    // A chat reply can contain this text too, but cannot make the process abort.
    let aborted = evidence.lines.iter().any(|line| line.exit() == Some(Exit::ABORT));
    let finding = Finding::by(said, Detail::OutOfMemory);
    Some(if aborted { Finding { confidence: Confidence::Fact, ..finding } } else { finding })
}

fn says_so(line: &Line) -> bool {
    line.origin == Origin::Console
        && line.message.starts_with("FATAL ERROR: ")
        && (line.message.contains("heap out of memory") || line.message.contains("Allocation failed"))
}
