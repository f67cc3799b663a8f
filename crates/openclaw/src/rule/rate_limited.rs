//! Rule 8: the provider's rate limit. One turn tries ten times before it gives up, and its words are the provider's
//! own: what counts is a turn that ended for that reason.

use std::collections::HashSet;

use super::{Detail, Evidence, Finding};
use crate::log::{Line, Origin};

/// From this many turns on.
const TURNS: usize = 3;
const WORDS: &str = "embedded run failover decision";

pub(super) fn detect(evidence: &Evidence<'_>) -> Option<Finding> {
    let ended: Vec<&Line> = evidence.recent().filter(|line| ended_so(line)).collect();
    // The same turn is told in the file and on the console.
    let runs: HashSet<&str> = ended.iter().filter_map(|line| line.field("runId")).collect();
    let last = ended.iter().rev().find(|line| line.origin == Origin::File).or(ended.last())?;
    if runs.len() < TURNS {
        return None;
    }
    Some(Finding::by(last, Detail::RateLimited { turns: runs.len(), model: model(last) }))
}

fn ended_so(line: &Line) -> bool {
    let reason = || line.fields.get("failoverReason").and_then(|value| value.as_str()).or_else(|| line.field("reason"));
    line.is_of("agent/embedded")
        && line.message.starts_with(WORDS)
        && line.field("decision") == Some("surface_error")
        && reason() == Some("rate_limit")
}

fn model(line: &Line) -> Option<String> {
    let named = match (line.fields.get("provider"), line.fields.get("model")) {
        (Some(provider), Some(model)) => Some(format!("{}/{}", provider.as_str()?, model.as_str()?)),
        _ => line.field("from").map(str::to_owned),
    };
    named.map(|model| super::excerpt(&model))
}
