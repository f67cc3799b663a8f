//! What the suite leaves behind for its own checks: logs, answers, the secrets it used, and named skips.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Once;

use serde_json::Value;

fn append(path: PathBuf, line: &str) {
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    writeln!(file, "{line}").unwrap();
}

fn folder() -> Option<PathBuf> {
    std::env::var_os("TIDEPOOL_TEST_TRACE_DIR").map(PathBuf::from)
}

/// Says that a secret is in use: it must stand in no log and no answer.
pub fn used_secret(secret: &str) {
    if let Some(folder) = folder() {
        append(folder.join("secrets.txt"), secret);
    }
}

/// Fields by which whoever asks is handed a secret that is theirs to have.
const HANDED_OVER: &[&str] = &["gateway_token", "ticket", "signing_secret", "channel", "url"];

/// Keeps an answer for the search for secrets. What it hands over is left out, but never in a list: no list shows a secret.
pub fn answered(text: &str) {
    if let Some(folder) = folder() {
        let kept = match serde_json::from_str::<Value>(text) {
            Ok(mut answer) => {
                leave_out(&mut answer);
                answer.to_string()
            }
            Err(_) => text.to_owned(),
        };
        append(folder.join(format!("answers-{}.log", std::process::id())), &kept);
    }
}

fn leave_out(value: &mut Value) {
    let Value::Object(fields) = value else { return };
    for (name, field) in fields {
        if HANDED_OVER.contains(&name.as_str()) {
            *field = Value::Null;
        } else {
            leave_out(field);
        }
    }
}

/// Sends this process's log to the folder, at its most talkative.
pub fn logs() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let Some(folder) = folder() else { return };
        let path = folder.join(format!("server-{}.log", std::process::id()));
        let file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        let filter = "debug,hyper=info,h2=info,reqwest=info,hyper_util=info,sqlx=debug";
        let subscriber =
            tracing_subscriber::fmt().json().with_env_filter(filter).with_writer(std::sync::Mutex::new(file));
        subscriber.try_init().unwrap();
    });
}

/// This case cannot run here. Counted and named by the runner; never silent where everything must be had.
pub fn skip(name: &str, reason: &str) {
    if let Some(log) = std::env::var_os("TIDEPOOL_TEST_SKIP_LOG") {
        append(PathBuf::from(log), &format!("{name}: {reason}"));
    }
    assert!(std::env::var_os("CI").is_none(), "{name} cannot be skipped in CI: {reason}");
    eprintln!("skipped {name}: {reason}");
}
