//! What the suite leaves behind for its own checks: logs, answers, the secrets it used, and named skips.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Once;

use serde_json::Value;

fn append(path: PathBuf, line: &str) {
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    // With one write: several processes append to it.
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

fn folder() -> Option<PathBuf> {
    std::env::var_os("TIDEPOOL_TEST_TRACE_DIR").map(PathBuf::from)
}

fn log_in(folder: &std::path::Path) -> PathBuf {
    folder.join(format!("server-{}.log", std::process::id()))
}

/// Where `logs` writes to.
pub(crate) fn log_file() -> Option<PathBuf> {
    folder().map(|folder| log_in(&folder))
}

/// A folder of this test in the run's folder, beside the trace: nothing in it is searched for secrets.
pub(crate) fn failed_folder() -> Option<PathBuf> {
    let name = std::thread::current().name().unwrap_or("test").replace("::", "-");
    let folder = folder()?.parent()?.join("failed").join(format!("{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder)
}

/// Says that a secret is in use: it must stand in no log and no answer.
pub fn used_secret(secret: &str) {
    if let Some(folder) = folder() {
        append(folder.join("secrets.txt"), secret);
    }
}

/// Where an answer hands a secret to whoever may have it, by a part of its path.
const HANDED_OVER: &[(&str, &[&str])] = &[
    ("instance", &["/data/gateway_token", "/data/instance/gateway_token"]),
    ("/professions/", &["/data/instance/gateway_token"]),
    ("/mfa", &["/data/secret", "/data/otpauth_uri", "/data/recovery_codes"]),
    ("/auth/login", &["/data/mfa_token"]),
    ("/ws-ticket", &["/data/ticket"]),
    ("/embed-ticket", &["/data/url"]),
    ("/alerts/rules/", &["/data/signing_secret", "/data/channel"]),
];

/// Keeps an answer for the search for secrets, without what it hands over. In a list that is never left out: no list shows a secret.
pub fn answered(path: &str, text: &str) {
    let Some(folder) = folder() else { return };
    let mut kept = text.to_owned();
    let places: Vec<&&str> =
        HANDED_OVER.iter().filter(|(part, _)| path.contains(part)).flat_map(|(_, places)| *places).collect();
    if !places.is_empty()
        && let Ok(mut answer) = serde_json::from_str::<Value>(text)
    {
        for place in places {
            if let Some(field) = answer.pointer_mut(place) {
                *field = Value::Null;
            }
        }
        kept = answer.to_string();
    }
    append(folder.join(format!("answers-{}.log", std::process::id())), &kept);
}

/// Keeps a text that somebody could read, for the search for secrets.
pub fn said(text: &str) {
    if let Some(folder) = folder() {
        append(folder.join(format!("said-{}.log", std::process::id())), text);
    }
}

/// Sends this process's log to the folder, at its most talkative.
pub fn logs() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let Some(folder) = folder() else { return };
        let path = log_in(&folder);
        let file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        let filter = "debug,hyper=info,h2=info,reqwest=info,hyper_util=info,sqlx=debug";
        let subscriber =
            tracing_subscriber::fmt().json().with_env_filter(filter).with_writer(std::sync::Mutex::new(file));
        subscriber.try_init().unwrap();
    });
}

/// A line that the runner shows at the end of its part of the suite: what was measured, or how often something held.
pub fn publish(name: &str, line: &str) {
    println!("{line}");
    if let Some(folder) = std::env::var_os("TIDEPOOL_TEST_NOTES") {
        append(PathBuf::from(folder).join(format!("{name}.txt")), line);
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
