//! The console: `<time> [subsystem] text`, `<time> text`, bare text, or one JSON object per line if
//! `logging.consoleStyle` is set so.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{Level, Line, Origin, cut, time};

pub(super) fn read(bytes: &[u8]) -> Line {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(64 * 1024)]);
    let text = without_colours(text.trim_end_matches(['\r', '\n']));
    let text = text.as_ref();
    if text.starts_with('{')
        && let Ok(Value::Object(record)) = serde_json::from_str(text)
        && let Some(line) = of_record(record)
    {
        return line;
    }
    let mut line = Line {
        time: None,
        level: None,
        subsystem: None,
        message: String::new(),
        fields: Map::new(),
        origin: Origin::Console,
    };
    let mut rest = text;
    if let Some((first, more)) = text.split_once(' ')
        && let Some(at) = time(first)
    {
        line.time = Some(at);
        rest = more;
        if let Some((subsystem, more)) = rest.strip_prefix('[').and_then(|inner| inner.split_once("] "))
            && is_subsystem(subsystem)
        {
            line.subsystem = Some(subsystem.to_owned());
            rest = more;
        }
    }
    line.message = cut(rest);
    line
}

/// `{"time":…,"level":…,"subsystem":…,"message":…}` and any other logged fields.
fn of_record(mut record: Map<String, Value>) -> Option<Line> {
    let mut text = |key: &str| match record.shift_remove(key) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let (Some(at), Some(level), message) = (text("time"), text("level"), text("message")?) else { return None };
    let subsystem = text("subsystem").map(|name| cut(&name));
    let message = match message.strip_prefix("gateway ") {
        Some(rest) if subsystem.as_deref() == Some("gateway") => cut(rest),
        _ => cut(&message),
    };
    let (time, level) = (time(&at), Level::parse(&level));
    Some(Line { time, level, subsystem, message, fields: record, origin: Origin::Console })
}

/// Removes colour escapes; OpenClaw writes them if an environment variable asks for them.
fn without_colours(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        out.push_str(before);
        let parameters = after.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        rest = parameters.strip_prefix('m').unwrap_or(parameters);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn is_subsystem(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'-' | b'_' | b'.' | b':');
    (1..=80).contains(&text.len()) && text.bytes().all(allowed)
}
