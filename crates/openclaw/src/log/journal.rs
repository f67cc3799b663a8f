//! The journal, as `journalctl --output=json` prints it. journald itself writes the fields that begin with `_`, so a
//! record of process 1 is systemd's, whatever a program prints.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{Line, Origin, console, cut};
use crate::unit::Exit;

/// What systemd reports about a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SystemEvent {
    /// Its main process ended.
    Exited(Exit),
    /// It failed, with `exit-code`, `signal`, `oom-kill` or another result.
    Failed(String),
    /// It is restarted, for the n-th time.
    Restarted(u32),
    Other,
}

const EXITED: &str = "98e322203f7a4ed290d09fe03c09fe15";
const FAILED: &str = "d9b373ed55a64feb8242e02dbe79a49c";
const RESTARTED: &str = "5eb03494b6584870a536b337290809b3";

pub(super) fn read(bytes: &[u8]) -> Option<Line> {
    let text = String::from_utf8_lossy(bytes);
    let record: Map<String, Value> = serde_json::from_str(&text).ok()?;
    let message = message(record.get("MESSAGE")?);
    let field = |name: &str| record.get(name).and_then(Value::as_str).unwrap_or_default();
    let micros = field("__REALTIME_TIMESTAMP").parse::<i64>().ok();
    let time = micros.and_then(|micros| Timestamp::from_microsecond(micros).ok());
    if field("_PID") != "1" || field("_UID") != "0" {
        let line = console::read(&message);
        return Some(Line { time: time.or(line.time), ..line });
    }
    let event = match field("MESSAGE_ID") {
        // Other commands of the unit end too; only the main process counts.
        EXITED if !matches!(field("COMMAND"), "" | "ExecStart") => None,
        EXITED => exit(field("EXIT_CODE"), field("EXIT_STATUS")).map(SystemEvent::Exited),
        FAILED => Some(SystemEvent::Failed(field("UNIT_RESULT").chars().take(40).collect())),
        RESTARTED => field("N_RESTARTS").parse().ok().map(SystemEvent::Restarted),
        _ => None,
    };
    Some(Line {
        time,
        level: None,
        subsystem: Some("systemd".to_owned()),
        message: cut(&String::from_utf8_lossy(&message)),
        fields: Map::new(),
        origin: Origin::System(event.unwrap_or(SystemEvent::Other)),
    })
}

fn exit(code: &str, status: &str) -> Option<Exit> {
    // A signal is given by its number or by its name.
    let number = match status {
        "KILL" => 9,
        "ABRT" => 6,
        "TERM" => 15,
        "SEGV" => 11,
        other => other.parse().ok()?,
    };
    match code {
        "exited" => Some(Exit::Status(number)),
        "killed" | "dumped" => Some(Exit::Signal(number)),
        _ => None,
    }
}

/// A text, or its bytes as numbers if it is not UTF-8; null if it is too long to be shown.
fn message(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => text.clone().into_bytes(),
        Value::Array(bytes) => {
            bytes.iter().filter_map(|b| b.as_u64().and_then(|b| u8::try_from(b).ok())).take(64 * 1024).collect()
        }
        _ => vec![],
    }
}
