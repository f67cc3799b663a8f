//! Rule 1: a provider has no key. Every turn ends with an error; unit and health say nothing of it.

use super::{Detail, Evidence, Finding, best};
use crate::log::Line;

const WORDS: &str = "No API key found for provider \"";

pub(super) fn detect(evidence: &Evidence<'_>) -> Option<Finding> {
    best(evidence.lines.iter().filter_map(|line| {
        let provider = provider(line)?;
        Some(Finding::by(line, Detail::NoApiKey { provider }))
    }))
}

fn provider(line: &Line) -> Option<String> {
    let subsystems = ["diagnostic", "model-fallback/decision", "openai-compat"];
    let speaks = match line.subsystem {
        Some(_) => subsystems.iter().any(|name| line.is_of(name)),
        None => line.message.starts_with("Embedded agent failed before reply: "),
    };
    if !speaks || !line.is_trouble() {
        return None;
    }
    // A structured event has the text in a field.
    let texts = [Some(line.message.as_str()), line.fields.get("errorPreview").and_then(|value| value.as_str())];
    let (_, rest) = texts.into_iter().flatten().find_map(|text| text.split_once(WORDS))?;
    let (provider, _) = rest.split_once('"')?;
    (!provider.is_empty() && provider.len() <= 100).then(|| provider.to_owned())
}
