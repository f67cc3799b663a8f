//! Rule 8: the provider's rate limit. One turn tries a model ten times before it gives up, and each message has the
//! provider's own text. So the rule counts turns that gave a model up for that reason. If there are fallback models, as
//! for every instance of ours, the log has a line for each model that was given up, the last included, and never says
//! that the turn ended.

use std::collections::HashSet;

use super::{Detail, Evidence, Finding};
use crate::log::{Line, Origin};

/// The rule applies from this many turns on.
const TURNS: usize = 3;
const WORDS: &str = "embedded run failover decision";

pub(super) fn detect(evidence: &Evidence<'_>) -> Option<Finding> {
    let given_up: Vec<&Line> = evidence.recent().filter(|line| gave_up(line)).collect();
    // The same turn is in the file and on the console, once for each of its models.
    let runs: HashSet<&str> = given_up.iter().filter_map(|line| line.field("runId")).collect();
    let last = given_up.iter().rev().find(|line| line.origin == Origin::File).or(given_up.last())?;
    if runs.len() < TURNS {
        return None;
    }
    Some(Finding::by(last, Detail::RateLimited { turns: runs.len(), model: model(last) }))
}

fn gave_up(line: &Line) -> bool {
    let reason = || line.fields.get("failoverReason").and_then(|value| value.as_str()).or_else(|| line.field("reason"));
    line.is_of("agent/embedded")
        && line.message.starts_with(WORDS)
        && matches!(line.field("decision"), Some("surface_error" | "fallback_model"))
        && reason() == Some("rate_limit")
}

fn model(line: &Line) -> Option<String> {
    let named = match (line.fields.get("provider"), line.fields.get("model")) {
        (Some(provider), Some(model)) => Some(format!("{}/{}", provider.as_str()?, model.as_str()?)),
        _ => line.field("from").map(str::to_owned),
    };
    named.map(|model| super::excerpt(&model))
}
