//! Rule 4: the configuration has keys that this release does not know. A running gateway keeps its old configuration
//! and logs that once; a start ends with 78.

use super::{Detail, Evidence, Finding, best, excerpt};
use crate::log::{Line, Origin};

const WORDS: [&str; 3] = ["Unrecognized key: \"", "Unrecognized keys: \"", "must not have additional properties: \""];

pub(super) fn detect(evidence: &Evidence<'_>) -> Option<Finding> {
    best(evidence.lines.iter().filter(|line| names_keys(line)).map(|line| {
        // The names of the keys follow this prefix.
        let message = line.message.split_once("invalid config): ").map_or(line.message.as_str(), |(_, rest)| rest);
        Finding::by(line, Detail::UnknownKey { message: excerpt(message) })
    }))
}

fn names_keys(line: &Line) -> bool {
    let message = line.message.as_str();
    let named = || WORDS.iter().any(|words| message.contains(words));
    match line.subsystem {
        Some(_) => {
            line.is_of("gateway/reload") && message.starts_with("config reload skipped (invalid config): ") && named()
        }
        // In the file the whole refusal is one line; on the console each part has its own line.
        None if message.starts_with("Gateway failed to start: Invalid config at ") => named(),
        None => {
            let part = message.starts_with("openclaw.json:") || message.starts_with("<root>: ");
            line.origin == Origin::Console && part && named()
        }
    }
}
