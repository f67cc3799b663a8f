//! OpenClaw as a program on a machine: which configuration it accepts, and how its unit file is read and written.

use serde_json::{Value, json};

/// The keys that a configuration may have at its root.
const ROOT: &[&str] = &[
    "accessGroups",
    "acp",
    "agents",
    "approvals",
    "attachments",
    "auth",
    "bindings",
    "broadcast",
    "browser",
    "channels",
    "cloudWorkers",
    "commands",
    "cron",
    "desktop",
    "diagnostics",
    "discovery",
    "env",
    "gateway",
    "hooks",
    "logging",
    "mcp",
    "memory",
    "messages",
    "meta",
    "models",
    "nodeHost",
    "plugins",
    "proxy",
    "secrets",
    "security",
    "session",
    "skills",
    "surfaces",
    "talk",
    "telemetry",
    "tools",
    "transcripts",
    "tts",
    "ui",
    "update",
    "wizard",
];

/// The errors of a configuration: path and message, as `config validate` prints them.
pub fn issues(config: Option<&[u8]>) -> Vec<(String, String)> {
    let root = || "<root>".to_owned();
    let Some(bytes) = config else { return vec![(root(), "Missing config".to_owned())] };
    let document = match serde_json::from_slice::<Value>(bytes) {
        Ok(Value::Object(document)) => document,
        Ok(_) => return vec![(root(), "Invalid input: expected object".to_owned())],
        Err(error) => return vec![(root(), format!("JSON5 parse failed: {error}"))],
    };
    let unknown = document.keys().filter(|key| !ROOT.contains(&key.as_str()));
    let mut issues: Vec<_> = unknown.map(|key| (root(), format!("Unrecognized key: \"{key}\""))).collect();
    let port = document.get("gateway").and_then(|gateway| gateway.get("port"));
    if port.is_some_and(|port| !port.is_u64()) {
        issues.push(("gateway.port".to_owned(), "Invalid input: expected number".to_owned()));
    }
    issues
}

pub fn validation(config: &[u8]) -> Value {
    let issues: Vec<Value> =
        issues(Some(config)).iter().map(|(path, message)| json!({"path": path, "message": message})).collect();
    json!({"ok": issues.is_empty(), "valid": issues.is_empty(), "issues": issues})
}

/// The gateway that a unit file starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Service {
    pub user: String,
    pub description: String,
    pub home: String,
    pub state_dir: String,
    pub config_path: String,
    pub program: String,
    pub port: u16,
}

impl Service {
    pub fn read(text: &str) -> Service {
        let mut service = Service { user: "root".to_owned(), ..Service::default() };
        for line in text.lines() {
            let Some((name, value)) = line.split_once('=') else { continue };
            let value = value.trim_matches('"');
            match (name, value.split_once('=')) {
                ("User", _) => service.user = value.to_owned(),
                ("Description", _) => service.description = value.to_owned(),
                ("Environment", Some(("HOME", path))) => service.home = path.to_owned(),
                ("Environment", Some(("OPENCLAW_STATE_DIR", path))) => service.state_dir = path.to_owned(),
                ("Environment", Some(("OPENCLAW_CONFIG_PATH", path))) => service.config_path = path.to_owned(),
                ("ExecStart", _) => {
                    let words: Vec<&str> = value.split(' ').collect();
                    service.program = words.first().map_or_else(String::new, |word| (*word).to_owned());
                    let port = words.iter().position(|word| *word == "--port").and_then(|at| words.get(at + 1));
                    service.port = port.and_then(|port| port.parse().ok()).unwrap_or(0);
                }
                _ => {}
            }
        }
        service
    }

    /// The release: the name of the program's folder.
    pub fn version(&self) -> &str {
        self.program.rsplit('/').nth(1).unwrap_or_default()
    }
}

/// The unit file that the platform would write, for assistants that a test adds to a machine.
pub fn unit_text(service: &Service) -> String {
    let Service { user, description, home, state_dir, config_path, program, port } = service;
    format!(
        "# Written by tidepool. Changes are overwritten.\n[Unit]\nDescription={description}\n\n[Service]\nUser={user}\n\
         WorkingDirectory={home}\nEnvironment=HOME={home}\nEnvironment=OPENCLAW_STATE_DIR={state_dir}\n\
         Environment=OPENCLAW_CONFIG_PATH={config_path}\nExecStart={program} gateway run --port {port} --allow-unconfigured\n\
         Restart=always\n\n[Install]\nWantedBy=multi-user.target\n"
    )
}
