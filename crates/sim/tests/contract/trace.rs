//! What the suite leaves behind for the runner: named skips, and the secrets that must stand in no text.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;

fn append(path: PathBuf, line: &str) {
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    writeln!(file, "{line}").unwrap();
}

fn folder() -> Option<PathBuf> {
    std::env::var_os("TIDEPOOL_TEST_TRACE_DIR").map(PathBuf::from)
}

/// Says that a secret is in use: it must stand in no error.
pub fn used_secret(secret: &str) {
    if let Some(folder) = folder() {
        append(folder.join("secrets.txt"), secret);
    }
}

/// Keeps a text that somebody could read, for the search for secrets.
pub fn told(text: &str) {
    if let Some(folder) = folder() {
        append(folder.join(format!("gateway-{}.log", std::process::id())), text);
    }
}

/// This case cannot run here. Counted and named by the runner; never silent where everything must be had.
pub fn skip(name: &str, reason: &str) {
    if let Some(log) = std::env::var_os("TIDEPOOL_TEST_SKIP_LOG") {
        append(PathBuf::from(log), &format!("{name}: {reason}"));
    }
    assert!(std::env::var_os("CI").is_none(), "{name} cannot be skipped in CI: {reason}");
    eprintln!("skipped {name}: {reason}");
}
