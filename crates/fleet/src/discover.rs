//! Discovers what a server has: every OpenClaw gateway that runs or is configured there, whoever made it. It only looks.

use std::time::Duration;

use base::id::{InstanceId, ServerId};
use base::{Kind, Result};
use openclaw::Document;
use openclaw::config::Found;
use openclaw::discover::{self, Config, Gateway, Runner};
use remote::host::{Command, home};
use serde_json::Value;
use store::instance::{self, Instance};
use store::server;

use crate::{App, host, tenant};

/// Timeout for the whole server.
const LIMIT: Duration = Duration::from_secs(60);
/// OpenClaw's own choice where the configuration names no port.
const DEFAULT_PORT: u16 = 18789;

/// What was found on a server.
pub struct Discovery {
    pub list: Vec<Discovered>,
    /// Whether the answer is complete. If not, there may be more.
    pub is_complete: bool,
}

pub struct Discovered {
    /// Names it among all of the server, and stays the same while it runs in the same way.
    pub key: String,
    pub gateway: Gateway,
    /// The instance of ours that it is.
    pub instance: Option<InstanceId>,
    /// The model of its agents, with its provider.
    pub model: Option<String>,
    /// The channels that are switched on.
    pub channels: Vec<String>,
    /// Whether its gateway has a token, by which the platform can talk to it.
    pub has_token: bool,
    /// Why it cannot be adopted as it is.
    pub obstacle: Option<Obstacle>,
}

impl Discovered {
    pub fn port(&self) -> Option<u16> {
        let is_configured = self.gateway.config.document().is_some();
        self.gateway.port().or_else(|| is_configured.then_some(DEFAULT_PORT))
    }
}

/// Looks at a server.
pub async fn discover(app: &App, id: &ServerId) -> Result<Discovery> {
    let server = server::find(&app.db, id).await?.ok_or(Kind::NotFound)?;
    let host = host::reach(app, &server).await?;
    let script = discover::script(&server.base_dir, home::SHELL)?;
    let command = Command::long_script("discover", script).keep(discover::OUTPUT_BYTES).limit(LIMIT);
    let raw = discover::parse(&host.run(&command).await?.stdout);
    let known: Vec<Instance> =
        instance::all_live(&app.db).await?.into_iter().filter(|one| one.server_id == *id).collect();
    let login_home = host.home().await?;
    let list = discover::gather(&raw).into_iter().map(|gateway| describe(gateway, &known, &login_home)).collect();
    Ok(Discovery { list, is_complete: raw.complete })
}

fn describe(gateway: Gateway, known: &[Instance], login_home: &str) -> Discovered {
    let instance = known.iter().find(|instance| is_it(instance, &gateway, login_home)).map(|one| one.id.clone());
    let document = gateway.config.document();
    let has_token = document.and_then(|document| document.get_str(TOKEN)).is_some_and(|token| !token.is_empty());
    Discovered {
        key: key(&gateway),
        model: document.and_then(|document| Found::read(document).primary),
        channels: document.map(channels).unwrap_or_default(),
        obstacle: Obstacle::of(&gateway, has_token),
        has_token,
        instance,
        gateway,
    }
}

/// Where a configuration has the token of its gateway.
pub const TOKEN: [&str; 3] = ["gateway", "auth", "token"];

/// Whether an instance of ours is this gateway.
fn is_it(instance: &Instance, gateway: &Gateway, login_home: &str) -> bool {
    if let Runner::Container { id, name, .. } = &gateway.runner {
        let container = instance.container_id.as_str();
        return !container.is_empty() && (container == name || id.starts_with(container));
    }
    let own_home = instance.home.as_deref().or(instance.is_main.then_some(login_home));
    let is_home = own_home.is_some() && own_home.map(|home| home.trim_end_matches('/')) == gateway.home.as_deref();
    let is_unit = match &gateway.runner {
        Runner::Unit { name } => {
            instance.is_on_server() && tenant::unit(instance).is_ok_and(|unit| unit.service() == *name)
        }
        _ => false,
    };
    is_home || is_unit
}

fn key(gateway: &Gateway) -> String {
    match &gateway.runner {
        Runner::Unit { name } => format!("unit:{name}"),
        Runner::UserUnit { name, .. } => format!("user-unit:{}:{name}", gateway.user),
        Runner::Container { id, .. } => format!("container:{id}"),
        Runner::Process { pid } => match &gateway.home {
            Some(home) => format!("process:{home}"),
            None => format!("process:{pid}"),
        },
        Runner::Home => format!("home:{}", gateway.home.as_deref().unwrap_or_default()),
    }
}

/// The channels that are switched on: a channel is, unless it says otherwise.
fn channels(document: &Document) -> Vec<String> {
    let Some(Value::Object(all)) = document.get(["channels"]) else { return vec![] };
    let is_on = |settings: &Value| settings.get("enabled").and_then(Value::as_bool).unwrap_or(true);
    let names = all.iter().filter(|(name, settings)| *name != "defaults" && settings.is_object() && is_on(settings));
    names.map(|(name, _)| name.clone()).take(20).collect()
}

/// Why the platform cannot adopt a gateway as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    UserUnit,
    Process,
    Container,
    Home,
    StateElsewhere,
    HomeUnknown,
    NoToken,
    ConfigBroken,
    ConfigMissing,
    ConfigTooLarge,
    ConfigUnreadable,
}

impl Obstacle {
    /// Its name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Obstacle::UserUnit => "user_unit",
            Obstacle::Process => "process",
            Obstacle::Container => "container",
            Obstacle::Home => "home",
            Obstacle::StateElsewhere => "state_elsewhere",
            Obstacle::HomeUnknown => "home_unknown",
            Obstacle::NoToken => "no_token",
            Obstacle::ConfigBroken => "config_broken",
            Obstacle::ConfigMissing => "config_missing",
            Obstacle::ConfigTooLarge => "config_too_large",
            Obstacle::ConfigUnreadable => "config_unreadable",
        }
    }

    /// What it says to a person, with what to do about it where something can be done.
    pub fn text(self) -> &'static str {
        match self {
            Obstacle::UserUnit => "its unit belongs to its user's own systemd: move it to one of the system",
            Obstacle::Process => "nothing starts it again: move it into a unit of the system",
            Obstacle::Container => "it runs in a container",
            Obstacle::Home => "nothing runs it: there is only a configuration",
            Obstacle::StateElsewhere => "its state is not in the folder .openclaw of a home",
            Obstacle::HomeUnknown => "its home is not known",
            Obstacle::NoToken => "its gateway has no token: set gateway.auth.token",
            Obstacle::ConfigBroken => "its configuration is no JSON5 document",
            Obstacle::ConfigMissing => "it has no configuration",
            Obstacle::ConfigTooLarge => "its configuration is too large",
            Obstacle::ConfigUnreadable => "its configuration cannot be read",
        }
    }

    fn of(gateway: &Gateway, has_token: bool) -> Option<Obstacle> {
        match &gateway.runner {
            Runner::Unit { .. } => {}
            Runner::UserUnit { .. } => return Some(Obstacle::UserUnit),
            Runner::Process { .. } => return Some(Obstacle::Process),
            Runner::Container { .. } => return Some(Obstacle::Container),
            Runner::Home => return Some(Obstacle::Home),
        }
        match &gateway.config {
            _ if gateway.elsewhere.is_some() => Some(Obstacle::StateElsewhere),
            _ if gateway.home.is_none() => Some(Obstacle::HomeUnknown),
            Config::Document(_) if has_token => None,
            Config::Document(_) => Some(Obstacle::NoToken),
            Config::Broken => Some(Obstacle::ConfigBroken),
            Config::Missing => Some(Obstacle::ConfigMissing),
            Config::TooLarge => Some(Obstacle::ConfigTooLarge),
            Config::Unreadable | Config::Unknown => Some(Obstacle::ConfigUnreadable),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_is_on_unless_it_says_otherwise() {
        let text = r#"{channels: {telegram: {botToken: "t"}, slack: {enabled: false}, discord: {enabled: true}, defaults: {}}}"#;
        assert_eq!(channels(&Document::parse(text).unwrap()), ["telegram", "discord"]);
        assert_eq!(channels(&Document::parse("{channels: 1}").unwrap()), Vec::<String>::new());
    }
}
