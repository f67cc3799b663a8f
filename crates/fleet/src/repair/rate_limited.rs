//! Rule 8: turns end with the model provider's rate limit. The state says so, and somebody is told; no model is changed by itself.

use base::Result;
use openclaw::rule::{Confidence, Finding, Rule};

use super::{Case, Handler, Remedy, Verdict};

pub(super) const HANDLER: Handler = Handler {
    rule: Rule::RateLimited,
    plan: "mark it rate_limited and tell somebody",
    confirm: |case, finding| Box::pin(confirm(case, finding)),
    remedy: Remedy::LeftToPeople,
};

/// Nothing is changed by it, so OpenClaw's own log is proof enough; what a chat reply can print is not.
async fn confirm(_: &Case<'_>, finding: Option<&Finding>) -> Result<Verdict> {
    Ok(match finding {
        Some(finding) if finding.confidence >= Confidence::Logged => Verdict::LeftToPeople(finding.excerpt.clone()),
        _ => Verdict::Refuted,
    })
}
