//! Lines that show the state of an instance, besides those of the repair rules: whether a written configuration was
//! taken over, why a start failed, which errors users got.

use super::{Line, Origin};
use crate::document::mask_words;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The gateway has started.
    Ready,
    /// A changed configuration has taken effect; these keys changed.
    ReloadApplied(Vec<String>),
    /// A changed configuration is invalid and was not taken over. The next start will refuse it.
    ReloadSkipped,
    /// These keys need a restart, which OpenClaw does by itself when nothing is running.
    RestartNeeded(Vec<String>),
    /// OpenClaw replaced our configuration by an older one.
    AutoRestored {
        reason: String,
    },
    /// OpenClaw suspects a configuration that it took over nevertheless; the next start may undo it.
    Doubted {
        reason: String,
    },
    /// After a series of crashes no channel is started.
    BreakerTripped,
    BreakerRecovered,
    /// This channel was not started because of that.
    ChannelSuppressed {
        channel: String,
    },
    /// Old credentials prevent a start until OpenClaw's doctor has migrated them.
    AuthMigration,
    /// The data was written by a newer release than the program.
    NewerData,
    StartFailed {
        why: String,
    },
    /// A model that neither OpenClaw nor its provider knows.
    UnknownModel {
        model: Option<String>,
    },
    /// A model failed, with OpenClaw's reason: auth, billing, rate_limit, model_not_found, timeout.
    Failover {
        model: Option<String>,
        reason: String,
    },
    /// A user got an error instead of an answer.
    TurnFailed {
        why: String,
    },
    /// Another program uses the same chat-bot.
    BotConflict,
}

/// How many characters of a reason are kept.
const REASON: usize = 300;

pub fn signal(line: &Line) -> Option<Signal> {
    if matches!(line.origin, Origin::System(_)) {
        return None;
    }
    match line.subsystem.as_deref() {
        None => unnamed(line),
        Some(_) if line.is_of("gateway") => gateway(line),
        Some(_) if line.is_of("gateway/reload") => reload(line),
        Some(_) if line.is_of("channels/telegram") => telegram(line),
        Some(_) if line.is_of("diagnostic") => diagnostic(line),
        Some(_) if line.is_of("model-fallback/decision") => decision(line),
        Some(_) => None,
    }
}

/// The first line, shortened, without anything that looks like a secret.
fn short(text: &str) -> String {
    let first: String = text.lines().next().unwrap_or_default().chars().take(REASON).collect();
    mask_words(&first)
}

/// The keys in `… (a, b, c)`.
fn keys(text: &str) -> Vec<String> {
    let inner = text.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map(|(inner, _)| inner);
    inner.unwrap_or_default().split(", ").filter(|key| !key.is_empty()).take(100).map(str::to_owned).collect()
}

/// The text in the last parentheses of a line.
fn reason(text: &str) -> String {
    let inner = text.trim_end().strip_suffix(')').and_then(|rest| rest.rsplit_once('('));
    short(inner.map_or("", |(_, inner)| inner))
}

fn unnamed(line: &Line) -> Option<Signal> {
    let message = line.message.as_str();
    if message.starts_with("Config auto-restored from ") {
        return Some(Signal::AutoRestored { reason: reason(message) });
    }
    if message.starts_with("Config observe anomaly: ") {
        return Some(Signal::Doubted { reason: reason(message) });
    }
    if let Some(why) = message.strip_prefix("Embedded agent failed before reply: ") {
        return Some(Signal::TurnFailed { why: short(why) });
    }
    let why = message.strip_prefix("Gateway failed to start: ")?;
    Some(if why.contains("requires legacy credential migration") {
        Signal::AuthMigration
    } else if why.contains("newer than this build") || why.contains("cannot open your existing data") {
        Signal::NewerData
    } else {
        Signal::StartFailed { why: short(why) }
    })
}

fn gateway(line: &Line) -> Option<Signal> {
    let message = line.message.as_str();
    if message == "ready" {
        Some(Signal::Ready)
    } else if message.starts_with("restart-loop breaker tripped") {
        Some(Signal::BreakerTripped)
    } else if message.starts_with("restart-loop breaker recovered") {
        Some(Signal::BreakerRecovered)
    } else {
        None
    }
}

fn reload(line: &Line) -> Option<Signal> {
    let message = line.message.as_str();
    if message.starts_with("config hot reload applied") {
        Some(Signal::ReloadApplied(keys(message)))
    } else if message.starts_with("config reload skipped") {
        Some(Signal::ReloadSkipped)
    } else if message.starts_with("config change requires gateway restart") {
        Some(Signal::RestartNeeded(keys(message)))
    } else {
        None
    }
}

fn telegram(line: &Line) -> Option<Signal> {
    if line.message.contains("isolated polling ingress failed: Telegram getUpdates conflict") {
        return Some(Signal::BotConflict);
    }
    let rest = line.message.strip_prefix("channel autostart suppressed by crash-loop breaker")?;
    let channel =
        rest.split_once(" for ").and_then(|(_, rest)| rest.split_once('.')).map_or("", |(channel, _)| channel);
    Some(Signal::ChannelSuppressed { channel: short(channel) })
}

fn diagnostic(line: &Line) -> Option<Signal> {
    let error = line.message.strip_prefix("lane task error: ")?.split_once("error=\"")?.1;
    let model = error.strip_prefix("Unknown model: ")?.split(". ").next();
    Some(Signal::UnknownModel { model: model.map(short) })
}

fn decision(line: &Line) -> Option<Signal> {
    if !line.message.starts_with("model fallback decision") || line.field("decision") != Some("candidate_failed") {
        return None;
    }
    let reason = short(line.field("reason")?);
    let named = |provider: &str, model: &str| Some(format!("{}/{}", line.field(provider)?, line.field(model)?));
    let model = named("candidateProvider", "candidateModel").or_else(|| line.field("candidate").map(str::to_owned));
    let model = model.as_deref().map(short);
    Some(match reason.as_str() {
        "model_not_found" => Signal::UnknownModel { model },
        _ => Signal::Failover { model, reason },
    })
}
