//! What a unit wrote to the journal, and what systemd wrote about it.

use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::command::Command;
use super::error::{Error, Result};
use super::lines::Lines;
use super::systemd::Unit;
use super::{Host, docker};

/// journald's position of an entry. It stays valid across reboots.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Cursor(String);

impl Cursor {
    /// A cursor that was stored earlier.
    pub fn kept(text: impl Into<String>) -> Cursor {
        Cursor(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    pub cursor: Cursor,
    pub at: Timestamp,
    /// The text. Bytes that are not UTF-8 became `\u{fffd}`.
    pub message: String,
    /// The process that wrote it. Only systemd itself is process 1.
    pub pid: Option<u32>,
    /// systemd's id for an event, such as the end of a process.
    pub message_id: Option<String>,
    /// Set with that id: `exited`, `killed` or `dumped`.
    pub exit_code: Option<String>,
    pub exit_status: Option<String>,
    pub unit_result: Option<String>,
}

const FIELDS: &str = "--output-fields=MESSAGE,_PID,MESSAGE_ID,EXIT_CODE,EXIT_STATUS,UNIT_RESULT";
/// Enough for the longest line that journald stores.
const KEPT_PER_ENTRY: usize = 64 * 1024;
const MOST_KEPT: usize = 16 << 20;

/// The last entries, oldest first.
pub async fn last(host: &Host, unit: &Unit, entries: usize) -> Result<Vec<Entry>> {
    let words = read_words(unit, &["-n", &entries.to_string()]);
    let command = match unit.user() {
        None => Command::new(words[0].as_str()).args(&words[1..]),
        Some(user) => {
            Command::script("read-user-journal", &[OF_USER, r#"exec "$@" "_UID=$uid""#]).arg(user).args(words)
        }
    };
    entries_of(host, &command, entries).await
}

// The first argument is a user's name. The number of that user is added as a field that every entry must have: journald
// itself writes it.
const OF_USER: &str = r#"uid=$(id -u -- "$1") || exit; shift; "#;

/// The entries after a cursor, oldest first and at most `most`. A caller that gets as many asks again from the last
/// one's cursor.
pub async fn after(host: &Host, unit: &Unit, cursor: &Cursor, most: usize) -> Result<Vec<Entry>> {
    const SCRIPT: &str = r#"most=$1; shift; "$@" | head -n "$most""#;
    let place = format!("--after-cursor={}", cursor.0);
    let command = Command::script("read-journal", &[SCRIPT]).arg(most.to_string()).args(read_words(unit, &[&place]));
    entries_of(host, &command, most).await
}

/// Follows new entries, or those after a cursor. It ends at its time limit: call it again with the last entry's cursor.
pub async fn follow(host: &Host, unit: &Unit, from: Option<&Cursor>, limit: Duration) -> Result<Follow> {
    // `--lines=0` would lose the first entry of a unit that has none yet.
    let place = from.map_or_else(|| "--since=now".to_owned(), |cursor| format!("--after-cursor={}", cursor.0));
    let words = read_words(unit, &["-f", "--no-tail", &place]);
    let command = match unit.user() {
        None => Command::script("follow-journal", &[UNTIL_INPUT_ENDS, r#"exec "$@" </dev/null 3<&-"#]),
        Some(user) => {
            let script = r#"exec "$@" "_UID=$uid" </dev/null 3<&-"#;
            Command::script("follow-user-journal", &[OF_USER, UNTIL_INPUT_ENDS, script]).arg(user)
        }
    };
    let command = command.args(words);
    Ok(Follow { lines: host.lines(&command.limit(limit)).await?, source: Source::Journal })
}

/// Follows the log of a container, from now on or after the place of a line.
pub async fn follow_container(host: &Host, container: &str, from: Option<&Cursor>, limit: Duration) -> Result<Follow> {
    let after = from.and_then(|cursor| cursor.0.parse().ok());
    let words = docker::follow(container, after)?;
    let script = r#"exec "$@" </dev/null 3<&- 2>&1"#;
    let command = Command::script("follow-container-log", &[UNTIL_INPUT_ENDS, script]).args(words).limit(limit);
    Ok(Follow { lines: host.lines(&command).await?, source: Source::Container { after } })
}

/// The command must end when its input ends. Neither journalctl nor Docker's client watches its input, so a child
/// process does.
const UNTIL_INPUT_ENDS: &str = "exec 3<&0; { cat <&3 >/dev/null 2>&1; kill $$; } >/dev/null 2>&1 & ";

/// Entries as they are written.
pub struct Follow {
    lines: Lines,
    source: Source,
}

enum Source {
    Journal,
    /// Docker repeats the line at which it is told to begin.
    Container {
        after: Option<Timestamp>,
    },
}

impl Follow {
    /// The next entry. The time limit is an error like any other: `CommandTimedOut`.
    pub async fn next(&mut self) -> Result<Entry> {
        loop {
            let cut_off = || Error::CutOff { command: "a log that is followed".into() };
            let line = self.lines.next().await?.ok_or_else(cut_off)?;
            match self.source {
                Source::Journal => return parse(&line),
                Source::Container { after } => {
                    let entry = docker::entry(&String::from_utf8_lossy(&line));
                    if let Some(entry) = entry.filter(|entry| after.is_none_or(|after| entry.at > after)) {
                        return Ok(entry);
                    }
                }
            }
        }
    }

    /// How many entries were lost because they were read too slowly.
    pub fn missed(&self) -> usize {
        self.lines.missed()
    }
}

fn read_words(unit: &Unit, more: &[&str]) -> Vec<String> {
    let own = match unit.user() {
        None => vec!["-u".to_owned(), unit.to_string()],
        Some(_) => vec![format!("_SYSTEMD_USER_UNIT={unit}")],
    };
    let words = ["journalctl", "-q", "--no-pager", "-o", "json", FIELDS].into_iter().chain(more.iter().copied());
    words.map(str::to_owned).chain(own).collect()
}

async fn entries_of(host: &Host, command: &Command, most: usize) -> Result<Vec<Entry>> {
    let keep = most.saturating_mul(KEPT_PER_ENTRY).min(MOST_KEPT);
    let output = host.succeed(&command.clone().keep(keep)).await?;
    // In a pipe, the exit status of journalctl is lost.
    if output.stdout.is_empty() && !output.stderr.is_empty() {
        return Err(Error::failed("journalctl", &output));
    }
    let mut lines: Vec<&[u8]> = output.stdout.split(|byte| *byte == b'\n').collect();
    // The last part is empty, or an entry that was cut off.
    lines.pop();
    lines.into_iter().filter(|line| !line.is_empty()).map(parse).collect()
}

fn parse(line: &[u8]) -> Result<Entry> {
    #[derive(Deserialize)]
    struct Raw {
        #[serde(rename = "__CURSOR")]
        cursor: Cursor,
        #[serde(rename = "__REALTIME_TIMESTAMP")]
        at: String,
        #[serde(rename = "MESSAGE", default)]
        message: Value,
        #[serde(rename = "_PID", default)]
        pid: Value,
        #[serde(rename = "MESSAGE_ID", default)]
        message_id: Value,
        #[serde(rename = "EXIT_CODE", default)]
        exit_code: Value,
        #[serde(rename = "EXIT_STATUS", default)]
        exit_status: Value,
        #[serde(rename = "UNIT_RESULT", default)]
        unit_result: Value,
    }
    let odd = |why: &dyn std::fmt::Display| Error::odd("journalctl", why);
    let raw: Raw = serde_json::from_slice(line).map_err(|e| odd(&e))?;
    let at: i64 = raw.at.parse().map_err(|e| odd(&e))?;
    let at = Timestamp::from_microsecond(at).map_err(|e| odd(&e))?;
    let word = |value: Value| Some(text(&value)).filter(|text| !text.is_empty());
    Ok(Entry {
        cursor: raw.cursor,
        at,
        message: text(&raw.message),
        pid: text(&raw.pid).parse().ok(),
        message_id: word(raw.message_id),
        exit_code: word(raw.exit_code),
        exit_status: word(raw.exit_status),
        unit_result: word(raw.unit_result),
    })
}

/// A field is a text, a list of bytes if it is not UTF-8, or a list of several values. One that is too long is null.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if items.iter().all(Value::is_u64) => {
            let bytes: Vec<u8> = items.iter().filter_map(Value::as_u64).map(|byte| byte as u8).collect();
            String::from_utf8_lossy(&bytes).into_owned()
        }
        Value::Array(items) => items.first().map(text).unwrap_or_default(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_from_what_journalctl_prints() {
        let ended = r#"{"UNIT_RESULT":"exit-code","__CURSOR":"s=90;i=72","__REALTIME_TIMESTAMP":"1794720777707157","_PID":"1",
            "MESSAGE_ID":"d9b373ed55a64feb8242e02dbe79a49c","_BOOT_ID":"61","MESSAGE":"lim.service: Failed with result 'exit-code'."}"#;
        let entry = parse(ended.as_bytes()).unwrap();
        assert_eq!(
            (entry.at.as_millisecond(), entry.pid, entry.cursor.as_str()),
            (1794720777707, Some(1), "s=90;i=72")
        );
        assert_eq!(entry.unit_result.as_deref(), Some("exit-code"));
        assert_eq!(entry.message, "lim.service: Failed with result 'exit-code'.");
    }

    #[test]
    fn a_message_may_be_bytes_missing_or_many() {
        let message = |json: &str| {
            let line = format!(r#"{{"__CURSOR":"c","__REALTIME_TIMESTAMP":"5000","MESSAGE":{json}}}"#);
            parse(line.as_bytes()).unwrap().message
        };
        assert_eq!(message("[104,105,255]"), "hi\u{fffd}");
        assert_eq!(message("null"), "");
        assert_eq!(message(r#"["first","second"]"#), "first");
        assert!(parse(b"-- No entries --").is_err());
    }
}
