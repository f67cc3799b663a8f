//! The log file: one JSON object per line, with the message under `message` and, for structured events, the details
//! in an object under `"1"`.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Level, Line, Origin, cut, time};

/// Longer lines are skipped: no rule looks for anything in them.
const LONGEST_LINE: usize = 1024 * 1024;

#[derive(Deserialize)]
struct Record {
    #[serde(rename = "_meta")]
    meta: Meta,
    #[serde(default)]
    time: Option<String>,
    #[serde(default)]
    message: Option<Value>,
    #[serde(default, rename = "1")]
    details: Option<Value>,
}

#[derive(Deserialize)]
struct Meta {
    #[serde(default)]
    date: Option<String>,
    #[serde(default, rename = "logLevelName")]
    level: Option<String>,
    #[serde(default)]
    name: Option<String>,
}

/// The logger's name: a JSON object as text, or the program's name.
#[derive(Deserialize)]
struct Name {
    subsystem: Option<String>,
    module: Option<String>,
}

pub(super) fn read(bytes: &[u8]) -> Option<Line> {
    if bytes.len() > LONGEST_LINE || !bytes.starts_with(b"{") {
        return None;
    }
    let text = String::from_utf8_lossy(bytes);
    let record: Record = serde_json::from_str(&text).ok()?;
    let name = record.meta.name.and_then(|name| serde_json::from_str::<Name>(&name).ok());
    let subsystem = name.and_then(|name| name.subsystem.or(name.module)).map(|name| cut(&name));
    let message = match record.message {
        Some(Value::String(message)) => cut(&message),
        Some(other) => cut(&other.to_string()),
        None => String::new(),
    };
    // The console says "ready" where the file says "gateway ready".
    let message = match message.strip_prefix("gateway ") {
        Some(rest) if subsystem.as_deref() == Some("gateway") => rest.to_owned(),
        _ => message,
    };
    let fields = match record.details {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    Some(Line {
        time: record.time.as_deref().and_then(time).or_else(|| record.meta.date.as_deref().and_then(time)),
        level: record.meta.level.as_deref().and_then(Level::parse),
        subsystem,
        message,
        fields,
        origin: Origin::File,
    })
}
