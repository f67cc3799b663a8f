//! Puts together what belongs to one gateway: a process, the unit or container that runs it, and its home.

use std::collections::HashSet;

use super::parse::{Container, Home, Process, Raw, Unit};
use super::{Config, DEFAULT_PORT, Gateway, Runner, configured_port};
use crate::layout::{CONFIG_DOCUMENT, STATE};
use crate::{Document, Version};

/// Every gateway of a server once, in the order units, units of users, containers, processes, homes.
pub fn gather(raw: &Raw) -> Vec<Gateway> {
    let mut gateways = vec![];
    let mut taken: HashSet<u32> = HashSet::new();
    let mut shown: HashSet<String> = HashSet::new();
    for unit in raw.units.iter().filter(|unit| unit.property("LoadState") == "loaded") {
        let user = match unit.property("User") {
            "" => "root",
            user => user,
        };
        let process = of_unit(raw, unit, None);
        if process.is_none() && !runs_gateway(unit) {
            continue;
        }
        let runner = Runner::Unit { name: unit.property("Id").to_owned() };
        gateways.push(of_service(raw, runner, user, unit, process));
        taken.extend(process.map(|process| process.pid));
    }
    for home in &raw.homes {
        for unit in &home.units {
            let process = of_unit(raw, unit, Some(&home.user));
            if process.is_none() && !runs_gateway(unit) {
                continue;
            }
            let runner = Runner::UserUnit { name: unit.property("Id").to_owned(), lingers: home.lingers };
            gateways.push(of_service(raw, runner, &home.user, unit, process));
            taken.extend(process.map(|process| process.pid));
        }
    }
    for container in &raw.containers {
        let process = raw.processes.iter().find(|process| process.cgroup.contains(&container.id));
        taken.extend(process.map(|process| process.pid));
        gateways.push(of_container(container, process));
    }
    let is_free = |process: &&Process| !taken.contains(&process.pid) && !process.listens.is_empty();
    for process in raw.processes.iter().filter(is_free) {
        let runner = Runner::Process { pid: process.pid };
        gateways.push(of_service(raw, runner, &process.user, &Unit::default(), Some(process)));
    }
    // A home inside of a container is none of the server's, whatever it is called.
    let on_server = gateways.iter().filter(|gateway| !matches!(gateway.runner, Runner::Container { .. }));
    shown.extend(on_server.filter_map(|gateway| gateway.home.clone()));
    for home in raw.homes.iter().filter(|home| !shown.contains(&home.path)) {
        let document = config(home);
        gateways.push(Gateway {
            runner: Runner::Home,
            user: home.user.clone(),
            home: Some(home.path.clone()),
            elsewhere: None,
            is_running: false,
            listens: vec![],
            version: touched_by(&document),
            config: document,
            last_session: home.last_session,
            email: home.email.clone(),
        });
    }
    gateways
}

/// The process that a unit runs: its main one, or another of its control group if the unit is about it. Somebody may
/// have started a gateway by hand in a session that sshd has for its own.
fn of_unit<'a>(raw: &'a Raw, unit: &Unit, user: Option<&str>) -> Option<&'a Process> {
    let main: Option<u32> = unit.property("MainPID").parse().ok().filter(|pid| *pid != 0);
    let id = unit.property("Id");
    let is_in_group = |process: &&Process| {
        let is_user = process.cgroup.contains("/user@");
        let is_inside = process.cgroup.split('/').any(|part| part == id);
        !id.is_empty() && is_inside && is_user == user.is_some() && user.is_none_or(|user| process.user == user)
    };
    let is_about = |process: &&Process| {
        user.is_some() || runs_gateway(unit) || unit.property("User") == process.user && process.user != "root"
    };
    // What a user's own systemd says is that user's word: it is about that user's processes alone.
    let is_main = |process: &&Process| Some(process.pid) == main && user.is_none_or(|user| process.user == user);
    raw.processes.iter().find(is_main).or_else(|| raw.processes.iter().find(|one| is_in_group(one) && is_about(one)))
}

/// Whether the command of a unit is a gateway's: `openclaw gateway`, or Node with a file of its package.
fn runs_gateway(unit: &Unit) -> bool {
    let command = unit.property("ExecStart");
    let words: Vec<&str> = command.split_ascii_whitespace().collect();
    words.contains(&"gateway") && command.contains("openclaw")
}

fn of_service(raw: &Raw, runner: Runner, user: &str, unit: &Unit, process: Option<&Process>) -> Gateway {
    let variables = |name: &str| {
        let of_process = process.into_iter().flat_map(|process| &process.variables);
        let all = of_process.chain(&unit.variables);
        all.filter(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value.clone()).next()
    };
    let own = raw.homes.iter().filter(|home| home.user == user).map(|home| home.path.clone());
    let home = variables("OPENCLAW_HOME").or_else(|| variables("HOME")).or_else(|| own.clone().next());
    let (home, elsewhere) = match (home, state_of(&variables)) {
        (Some(home), None) => (Some(trimmed(&home)), None),
        (_, Some(state)) => match state.strip_suffix(&format!("/{STATE}")) {
            Some(home) => (Some(trimmed(home)), None),
            None => (None, Some(format!("its state is in {state}"))),
        },
        (None, None) => (None, None),
    };
    let found = raw.homes.iter().find(|one| Some(&one.path) == home.as_ref());
    let runs_as = process.map_or(user, |process| &process.user).to_owned();
    // Its environment is its user's word, too: the home of somebody else is not its own.
    let is_own = found.is_none_or(|home| home.user == runs_as);
    let (home, found) = (home.filter(|_| is_own), found.filter(|_| is_own));
    let document = found.map(config).unwrap_or_default();
    let named = variables("OPENCLAW_SERVICE_VERSION").and_then(|text| text.parse().ok());
    Gateway {
        user: runs_as,
        is_running: process.is_some() || unit.property("ActiveState") == "active",
        listens: process.map(|process| process.listens.clone()).unwrap_or_default(),
        version: of_program(unit.property("ExecStart")).or(named).or_else(|| touched_by(&document)),
        last_session: found.and_then(|home| home.last_session),
        email: found.and_then(|home| home.email.clone()),
        config: document,
        runner,
        home,
        elsewhere,
    }
}

/// The state folder that the environment names, if it names one.
fn state_of(variables: &impl Fn(&str) -> Option<String>) -> Option<String> {
    let beside = |path: String| Some(path.strip_suffix(&format!("/{CONFIG_DOCUMENT}"))?.to_owned());
    variables("OPENCLAW_STATE_DIR")
        .or_else(|| variables("OPENCLAW_CONFIG_PATH").map(|path| beside(path.clone()).unwrap_or(path)))
        .or_else(|| {
            let profile = variables("OPENCLAW_PROFILE").filter(|profile| profile != "default")?;
            Some(format!("{}/{STATE}-{profile}", variables("HOME").unwrap_or_default()))
        })
}

fn of_container(container: &Container, process: Option<&Process>) -> Gateway {
    let home = container.home.as_ref();
    let document = home.map(config).unwrap_or_default();
    let path = home.map(|home| trimmed(&home.path)).filter(|path| !path.is_empty());
    let inner = document.document().and_then(configured_port);
    let inner = inner.or_else(|| process?.inner.iter().map(std::net::SocketAddr::port).min()).unwrap_or(DEFAULT_PORT);
    let of_image = container.image.rsplit_once(':').and_then(|(_, tag)| tag.parse().ok());
    Gateway {
        runner: Runner::Container {
            id: container.id.clone(),
            name: container.name.trim_start_matches('/').to_owned(),
            image: container.image.clone(),
        },
        user: user_of(container, process),
        elsewhere: None,
        is_running: container.status == "running",
        listens: published(container, inner),
        version: of_image.or_else(|| touched_by(&document)),
        last_session: home.and_then(|home| home.last_session),
        email: home.and_then(|home| home.email.clone()),
        config: document,
        home: path,
    }
}

/// As whom it runs, by the server's names. One that may do what root may counts as root.
fn user_of(container: &Container, process: Option<&Process>) -> String {
    let has_docker = |mount: &super::parse::Mount| mount.source.ends_with("docker.sock");
    if container.privileged || container.mounts.iter().flatten().any(has_docker) {
        return "root".to_owned();
    }
    let named = || container.user.split(':').next().unwrap_or_default();
    match process.map_or_else(named, |process| &process.user) {
        "" | "0" => "root".to_owned(),
        user => user.to_owned(),
    }
}

/// The sockets of the server at which a port of a container is published.
fn published(container: &Container, inner: u16) -> Vec<std::net::SocketAddr> {
    let name = format!("{inner}/tcp");
    let found = container.ports.iter().flatten().filter(|(port, _)| **port == name);
    let sockets = found.flat_map(|(_, at)| at.iter().flatten()).filter_map(|at| {
        let address = if at.host_ip.is_empty() { "0.0.0.0" } else { &at.host_ip };
        Some(std::net::SocketAddr::new(address.parse().ok()?, at.host_port.parse().ok()?))
    });
    sockets.collect()
}

fn config(home: &Home) -> Config {
    match (home.config.as_str(), home.config_text.is_empty()) {
        ("missing", _) => Config::Missing,
        ("large", _) => Config::TooLarge,
        ("unreadable", _) => Config::Unreadable,
        (_, true) => Config::Unknown,
        (_, false) => Document::from_bytes(&home.config_text).map_or(Config::Broken, Config::Document),
    }
}

/// The release whose number is a folder of the program's path, as in ours and in those of version managers.
fn of_program(command: &str) -> Option<Version> {
    let mut folders =
        command.split_ascii_whitespace().filter(|word| word.contains("openclaw")).flat_map(|word| word.split('/'));
    folders.find_map(|folder| folder.rsplit('@').next()?.parse().ok())
}

/// The release that wrote the configuration last.
fn touched_by(config: &Config) -> Option<Version> {
    config.document()?.get_str(["meta", "lastTouchedVersion"])?.parse().ok()
}

fn trimmed(home: &str) -> String {
    home.trim_end_matches('/').to_owned()
}
