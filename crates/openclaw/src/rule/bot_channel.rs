//! Rule 9: a chat-bot is bound to the instance and its channel does not run: it is switched off, has no token, or has
//! one that the platform refuses. No log reports the first two.

use super::{Channel, Detail, Evidence, Finding, best};
use crate::document::{Document, Path};
use crate::log::Line;

const CHANNEL: [&str; 2] = ["channels", "telegram"];

pub(super) fn detect(evidence: &Evidence<'_>) -> Option<Finding> {
    if !evidence.expected.bot {
        return None;
    }
    if let Some((channel, summary)) = evidence.document.and_then(broken) {
        return Some(Finding::fact(Detail::BotChannel(channel), summary));
    }
    let refused = evidence.lines.iter().filter(|line| is_refused(line));
    best(refused.map(|line| Finding::by(line, Detail::BotChannel(Channel::Refused))))
}

fn broken(document: &Document) -> Option<(Channel, &'static str)> {
    if !document.has(CHANNEL) {
        return Some((Channel::Missing, "channels.telegram is missing"));
    }
    let key = |key: &str| Path::from(CHANNEL).key(key);
    if document.get(key("enabled")) == Some(serde_json::Value::Bool(false)) {
        return Some((Channel::Disabled, "channels.telegram.enabled is false"));
    }
    // A token may also be a reference to a secret, be in a file, or belong to an account.
    let token = document.get(key("botToken")).is_some_and(|token| token.as_str() != Some("") && !token.is_null());
    if !token && !document.has(key("tokenFile")) && document.keys(key("accounts")).is_empty() {
        return Some((Channel::NoToken, "channels.telegram.botToken is missing"));
    }
    None
}

fn is_refused(line: &Line) -> bool {
    line.is_of("channels/telegram") && line.is_trouble() && line.message.contains("Telegram bot token unauthorized")
}
