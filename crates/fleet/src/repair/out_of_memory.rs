//! Rule 3: it ran out of memory. Nothing is done by itself: the state says so until it was started anew, and somebody is told.

use base::Result;
use openclaw::rule::{Confidence, Finding, Rule};

use super::{Case, Handler, Remedy, Verdict};

pub(super) const HANDLER: Handler = Handler {
    rule: Rule::OutOfMemory,
    plan: "mark it unhealthy and tell somebody",
    confirm: |case, finding| Box::pin(confirm(case, finding)),
    remedy: Remedy::LeftToPeople,
};

/// A chat reply can say the words; it cannot make the process abort. Only systemd's own word counts.
async fn confirm(_: &Case<'_>, finding: Option<&Finding>) -> Result<Verdict> {
    Ok(match finding {
        Some(finding) if finding.confidence == Confidence::Fact => Verdict::LeftToPeople(finding.excerpt.clone()),
        _ => Verdict::Refuted,
    })
}
