//! What a failed test shows and keeps: the last lines that its server logged, and its database.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::trace;

/// How many lines of the server's log a failed test shows; the whole is in the run's folder.
const SHOWN: usize = 30;
/// Longer lines are cut: a statement of SQL with its values can fill a screen.
const WIDTH: usize = 300;

/// Prints the end of this process's log, once: the first panic is the one to understand.
pub(crate) fn show_log() {
    static SHOWN_ALREADY: AtomicBool = AtomicBool::new(false);
    let Some(path) = trace::log_file() else { return };
    let Ok(text) = std::fs::read(&path) else { return };
    if SHOWN_ALREADY.swap(true, Ordering::SeqCst) {
        return;
    }
    let text = String::from_utf8_lossy(&text);
    let telling: Vec<String> = text.lines().filter_map(telling).collect();
    eprintln!("── the last lines of the server's log ({}) ──", path.display());
    for line in &telling[telling.len().saturating_sub(SHOWN)..] {
        eprintln!("{line}");
    }
}

/// A line of the JSON log in words; what databases and connections say of themselves is left to the file.
fn telling(line: &str) -> Option<String> {
    let line: Value = serde_json::from_str(line).ok()?;
    let word = |name: &str| line[name].as_str().unwrap_or_default();
    if word("level") == "DEBUG" && (word("target").starts_with("sqlx") || word("target").starts_with("russh")) {
        return None;
    }
    let text = format!("{} {} {} {}", word("timestamp"), word("level"), word("target"), line["fields"]);
    Some(text.chars().take(WIDTH).collect())
}

/// Keeps the database of a failed test beside its log. For the `drop` of whatever owns the database: does nothing unless the
/// thread panics.
pub fn keep_database(url: &str) {
    if !std::thread::panicking() {
        return;
    }
    let Some(folder) = trace::failed_folder() else { return };
    if let Some(file) = url.strip_prefix("sqlite:") {
        let file = Path::new(file);
        for end in ["", "-wal", "-shm"] {
            let name = format!("{}{end}", file.file_name().unwrap_or_default().to_string_lossy());
            std::fs::copy(file.with_file_name(&name), folder.join(name)).ok();
        }
    } else if url.starts_with("postgres") {
        let dump = Command::new("pg_dump").args(["--inserts", "--dbname", url]).stderr(Stdio::null()).output();
        if let Ok(dump) = dump {
            std::fs::write(folder.join("database.sql"), dump.stdout).ok();
        }
    }
    eprintln!("── the database is kept in {} ──", folder.display());
}
