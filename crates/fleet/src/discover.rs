//! Discovers what a server has: every OpenClaw gateway that runs or is configured there, whoever made it. It only looks.

use std::net::SocketAddr;
use std::time::Duration;

use base::id::{InstanceId, ServerId};
use base::{Email, Kind, Result};
use openclaw::Document;
use openclaw::config::Found;
use openclaw::discover::{self, Config, Gateway, Runner};
use remote::host::{Command, home};
use serde_json::Value;
use store::instance::{self, Instance, Runner as By};
use store::moved_from::{self, MovedFrom};
use store::server;

use crate::{App, host, tenant};

/// Timeout for the whole server.
const LIMIT: Duration = Duration::from_secs(60);
/// Where a gateway may name its employee.
#[derive(Clone, Debug, Default)]
pub struct EmailSource {
    /// A file of its home, as a path below it.
    pub file: Option<String>,
    /// A field of its configuration, such as `env.vars.OWNER`.
    pub field: Option<String>,
}

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
    /// The e-mail address of its employee, as its file or its configuration has it. That is its user's word.
    pub email: Option<Email>,
    /// Why it cannot be adopted as it is.
    pub obstacle: Option<Obstacle>,
}

impl Discovered {
    pub fn port(&self) -> Option<u16> {
        let is_container = matches!(self.gateway.runner, Runner::Container { .. });
        let is_configured = self.gateway.config.document().is_some() && !is_container;
        self.gateway.port().or_else(|| is_configured.then_some(discover::DEFAULT_PORT))
    }

    /// Whether nothing starts it: it is observed, and the platform changes nothing there.
    pub fn is_only_observed(&self) -> bool {
        matches!(self.gateway.runner, Runner::Process { .. })
    }
}

/// Looks at a server.
pub async fn discover(app: &App, id: &ServerId, emails: &EmailSource) -> Result<Discovery> {
    let server = server::find(&app.db, id).await?.ok_or(Kind::NotFound)?;
    let host = host::reach(app, &server).await?;
    let script = discover::script(&server.base_dir, emails.file.as_deref().unwrap_or_default(), home::SHELL)?;
    let command = Command::long_script("discover", script).keep(discover::OUTPUT_BYTES).limit(LIMIT);
    let raw = discover::parse(&host.run(&command).await?.stdout);
    let known: Vec<Instance> =
        instance::all_live(&app.db).await?.into_iter().filter(|one| one.server_id == *id).collect();
    let login_home = host.home().await?;
    let places = Places { known, moved: moved_from::of_server(&app.db, id).await?, login_home };
    let list = discover::gather(&raw).into_iter().map(|gateway| describe(gateway, &places, emails)).collect();
    Ok(Discovery { list, is_complete: raw.complete })
}

fn describe(gateway: Gateway, places: &Places, emails: &EmailSource) -> Discovered {
    let instance = places.instance_of(&gateway);
    let document = gateway.config.document();
    let has_token = document.and_then(|document| document.get_str(TOKEN)).is_some_and(|token| !token.is_empty());
    let in_config = || {
        let path: Vec<&str> = emails.field.as_deref()?.split('.').collect();
        document?.get_str(path.as_slice())
    };
    let email = gateway.email.clone().or_else(in_config).and_then(|text| text.trim().parse().ok());
    Discovered {
        key: key(&gateway),
        model: document.and_then(|document| Found::read(document).primary),
        channels: document.map(channels).unwrap_or_default(),
        obstacle: Obstacle::of(&gateway, has_token),
        has_token,
        instance,
        email,
        gateway,
    }
}

/// Where a configuration has the token of its gateway.
pub const TOKEN: [&str; 3] = ["gateway", "auth", "token"];

/// Where our instances of a server are.
struct Places {
    known: Vec<Instance>,
    /// Where some were before they were moved into a cell: they may be moved back.
    moved: Vec<MovedFrom>,
    login_home: String,
}

impl Places {
    /// The instance of ours that a gateway is, or was.
    fn instance_of(&self, gateway: &Gateway) -> Option<InstanceId> {
        let is = |instance: &&Instance| is_it(instance, gateway, &self.login_home);
        let was = |moved: &&MovedFrom| !is_container(gateway) && is_same(Some(moved.home.as_str()), gateway);
        let known = self.known.iter().find(is).map(|instance| instance.id.clone());
        known.or_else(|| self.moved.iter().find(was).map(|moved| moved.instance_id.clone()))
    }
}

fn is_container(gateway: &Gateway) -> bool {
    matches!(gateway.runner, Runner::Container { .. })
}

fn is_same(home: Option<&str>, gateway: &Gateway) -> bool {
    home.is_some() && home.map(|home| home.trim_end_matches('/')) == gateway.home.as_deref()
}

/// Whether an instance of ours is this gateway.
fn is_it(instance: &Instance, gateway: &Gateway, login_home: &str) -> bool {
    let container = instance.container_id.as_str();
    if let Runner::Container { id, name, .. } = &gateway.runner {
        return !container.is_empty() && (container == name || id.starts_with(container));
    }
    let is_home = is_same(instance.home.as_deref().or(instance.is_main.then_some(login_home)), gateway);
    let is_unit = match &gateway.runner {
        Runner::Unit { name } => {
            let is_of_system = instance.is_on_server() && instance.runner == By::Unit;
            is_of_system && tenant::unit(instance).is_ok_and(|unit| unit.service() == *name)
        }
        _ => false,
    };
    container.is_empty() && (is_home || is_unit)
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
    Home,
    ContainerStopped,
    PortNotPublished,
    NotOnLoopback,
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
            Obstacle::Home => "home",
            Obstacle::ContainerStopped => "container_stopped",
            Obstacle::PortNotPublished => "port_not_published",
            Obstacle::NotOnLoopback => "not_on_loopback",
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
            Obstacle::Home => "nothing runs it: there is only a configuration",
            Obstacle::ContainerStopped => "its container does not run: start it, and look again",
            Obstacle::PortNotPublished => "Docker publishes no port of its gateway on the server: publish it",
            Obstacle::NotOnLoopback => {
                "it does not listen on the server's loopback: set gateway.bind to loopback or lan"
            }
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
            Runner::Home => return Some(Obstacle::Home),
            Runner::Container { .. } if !gateway.is_running => return Some(Obstacle::ContainerStopped),
            Runner::Container { .. } if gateway.listens.is_empty() => return Some(Obstacle::PortNotPublished),
            Runner::Unit { .. } | Runner::UserUnit { .. } | Runner::Process { .. } | Runner::Container { .. } => {}
        }
        let is_reached = |socket: &SocketAddr| {
            let address = socket.ip().to_canonical();
            Some(socket.port()) == gateway.port() && (address.is_loopback() || address.is_unspecified())
        };
        match &gateway.config {
            _ if gateway.elsewhere.is_some() => Some(Obstacle::StateElsewhere),
            _ if gateway.home.is_none() => Some(Obstacle::HomeUnknown),
            Config::Document(_) if !has_token => Some(Obstacle::NoToken),
            Config::Document(_) if !gateway.listens.is_empty() && !gateway.listens.iter().any(is_reached) => {
                Some(Obstacle::NotOnLoopback)
            }
            Config::Document(_) => None,
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
