//! A server that the platform does not know yet. An administrator adds it in the console, and adopts the assistants that
//! somebody made there before. It is simulated like the others.

use std::sync::Arc;

use base::{Error, Result};
use serde_json::{Value, json};
use sim::host::{Hosts, Instance, Machine};

/// The Unix user of each assistant, its model, its channel, and the employee whom its configuration names.
type Made = (&'static str, &'static str, &'static str, Option<&'static str>);

const ADOPTABLE: &[Made] = &[
    ("aiko", "openai/gpt-4o", "slack", Some("aiko@demo.example")),
    ("dmitri", "anthropic/claude-opus-4-6", "telegram", Some("dmitri@demo.example")),
    ("helpdesk", "anthropic/claude-sonnet-4-6", "slack", None),
    ("lena", "openai/gpt-4o", "telegram", Some("lena@demo.example")),
    ("mara", "anthropic/claude-sonnet-4-6", "telegram", Some("mara@demo.example")),
    ("reports", "google/gemini-2.5-flash", "slack", None),
    ("samuel", "anthropic/claude-sonnet-4-6", "slack", Some("samuel@demo.example")),
];
/// Nobody can adopt these two before they are corrected on the server.
const BROKEN: &str = "archive";
const WITHOUT_TOKEN: &str = "trial";

const FIRST_PORT: u16 = 18_789;
/// The platform keeps the ports of instances at least ten apart.
const PORT_STEP: u16 = 20;

pub struct ServerToAdd(Hosts);

impl ServerToAdd {
    pub async fn start() -> Result<ServerToAdd> {
        let machine = Machine::new("ams-1");
        let users = ADOPTABLE.iter().map(|(user, ..)| *user).chain([BROKEN, WITHOUT_TOKEN]);
        for (port, user) in (FIRST_PORT..).step_by(PORT_STEP.into()).zip(users) {
            let token = base::secret::random_token()?.expose().to_owned();
            let (unit, home) = (format!("openclaw-{user}.service"), format!("/home/{user}"));
            machine.add_as(user, &Instance { unit, home, port, token });
        }
        for (user, model, channel, owner) in ADOPTABLE {
            configure(&machine, user, |config| {
                config["agents"] = json!({"defaults": {"model": {"primary": model}}});
                config["channels"] = json!({*channel: {"enabled": true}});
                if let Some(owner) = owner {
                    config["env"] = json!({"vars": {"OWNER": owner}});
                }
            });
        }
        configure(&machine, WITHOUT_TOKEN, |config| config["gateway"]["auth"] = json!({"mode": "none"}));
        machine.write(&config_path(BROKEN), "{ gateway: {");
        Ok(ServerToAdd(Hosts::of(Arc::clone(&machine)).await.map_err(Error::internal)?))
    }

    /// What the form for a new server is filled with.
    pub fn describe(&self) -> String {
        format!(
            "A fourth server can be added in the console: host {}, SSH port {}, user root, any SSH key. It has nine assistants already.",
            self.0.address.ip(),
            self.0.address.port()
        )
    }
}

fn config_path(user: &str) -> String {
    format!("/home/{user}/.openclaw/openclaw.json")
}

fn configure(machine: &Machine, user: &str, edit: impl FnOnce(&mut Value)) {
    let path = config_path(user);
    let mut config = machine.read(&path).and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    edit(&mut config);
    machine.write(&path, &config.to_string());
}
