//! Rule 1: a provider has no key. Every turn ends with an error; the unit and the health endpoint do not show it.
//!
//! If the LLM gateway has a loopback or private address, OpenClaw sends requests without a key and logs nothing. Then
//! only the configuration shows it.

use super::{Detail, Evidence, Finding, best};
use crate::config::{Api, Found, Problem};
use crate::document::Document;
use crate::log::Line;

const WORDS: &str = "No API key found for provider \"";

pub(super) fn detect(evidence: &Evidence<'_>) -> Option<Finding> {
    if let Some(entry) = evidence.document.and_then(keyless) {
        let message = format!("models.providers.{entry}.apiKey is missing");
        return Some(Finding::fact(Detail::NoApiKey { provider: entry.to_owned() }, message));
    }
    best(evidence.lines.iter().filter_map(|line| {
        let provider = provider(line)?;
        Some(Finding::by(line, Detail::NoApiKey { provider }))
    }))
}

/// The entry of ours that exists and lacks only the key.
fn keyless(document: &Document) -> Option<&'static str> {
    if Found::read(document).problems() != [Problem::NoKey] {
        return None;
    }
    let there = |entry: &&str| document.has(["models", "providers", entry, "baseUrl"]);
    // The key may also be a reference to a secret, which is not a text.
    let key = |entry: &str| document.get(["models", "providers", entry, "apiKey"]);
    let is_missing = |entry: &&str| key(entry).is_none_or(|key| key.is_null() || key == "");
    Api::ALL.map(Api::entry).into_iter().filter(there).find(is_missing)
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
    // A structured event has the message in a field.
    let texts = [Some(line.message.as_str()), line.fields.get("errorPreview").and_then(|value| value.as_str())];
    let (_, rest) = texts.into_iter().flatten().find_map(|text| text.split_once(WORDS))?;
    let (provider, _) = rest.split_once('"')?;
    (!provider.is_empty() && provider.len() <= 100).then(|| provider.to_owned())
}
