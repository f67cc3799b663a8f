//! Where OpenClaw keeps its files, below the home of its user.

/// The folder of its state, in the home.
pub const STATE: &str = ".openclaw";
/// The configuration document, in the state folder.
pub const CONFIG_DOCUMENT: &str = "openclaw.json";
/// Folders of the state that only the assistant itself writes.
pub const STATE_FOLDERS: &[&str] = &[
    "agents",
    "cache",
    "credentials",
    "devices",
    "identity",
    "logs",
    "media",
    "plugin-skills",
    "state",
    "tasks",
    "tmp",
    WORKSPACE,
];
const WORKSPACE: &str = "workspace";
const LOGS: &str = "logs";

/// The paths in a home.
#[derive(Clone, Copy, Debug)]
pub struct Layout<'a> {
    home: &'a str,
}

impl<'a> Layout<'a> {
    pub fn of(home: &'a str) -> Layout<'a> {
        Layout { home }
    }

    pub fn state_dir(&self) -> String {
        format!("{}/{STATE}", self.home)
    }

    pub fn config_path(&self) -> String {
        format!("{}/{STATE}/{CONFIG_DOCUMENT}", self.home)
    }

    pub fn workspace(&self) -> String {
        format!("{}/{STATE}/{WORKSPACE}", self.home)
    }

    pub fn logs(&self) -> String {
        format!("{}/{STATE}/{LOGS}", self.home)
    }

    pub fn log_file(&self) -> String {
        format!("{}/{STATE}/{LOGS}/openclaw.jsonl", self.home)
    }
}
