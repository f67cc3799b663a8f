//! The server of a record, as one talks to it: its address, the key that logs in, and its own key, which is pinned at the first contact.

use base::id::ServerId;
use base::{Error, Kind, Result};
use remote::host::probe::{self, Probe, Wants};
use remote::host::{Address, Host, HostKey, LoginKey, Target};
use store::seal::Sealer;
use store::server::{self, Server};

use crate::App;
use crate::assistant::install;
use crate::audit::{self, Action, By, Deed, Level};

/// The host of the machine that the platform itself runs on.
pub const LOCAL: &str = "local";

/// Whether there is a key to log in with, where one is needed.
pub fn has_login(server: &Server) -> bool {
    server.host == LOCAL || server.ssh_key.is_some() || !server.ssh_key_path.is_empty()
}

/// Where the server is, and how one gets in.
pub fn target(sealer: &Sealer, server: &Server) -> Result<Target> {
    if server.host == LOCAL {
        return Ok(Target::Local);
    }
    let key = match server.key(sealer)? {
        Some(key) => LoginKey::Text(key),
        None if server.ssh_key_path.is_empty() => {
            return Err(Error::conflict("the server has no SSH key: set ssh_key or ssh_key_path"));
        }
        None => LoginKey::File(server.ssh_key_path.clone().into()),
    };
    let host_key = match server.host_key.as_str() {
        "" => None,
        pinned => Some(pinned.parse::<HostKey>()?),
    };
    Ok(Target::Ssh(Address {
        host: server.host.clone(),
        port: u16::try_from(server.ssh_port).map_err(Error::internal)?,
        user: server.ssh_user.clone(),
        key,
        host_key,
    }))
}

/// The server, connected. The first contact pins its key; that it cannot be reached, or shows another key, is written down.
pub async fn connect(app: &App, server: &Server) -> Result<Host> {
    let host = app.hosts.host(&server.id, &target(&app.sealer, server)?);
    match host.contact().await {
        Ok(Some(key)) if server.host_key.is_empty() => {
            pin(app, server, &key).await?;
            Ok(host)
        }
        Ok(_) => Ok(host),
        Err(error) => {
            if error.is_unreachable() {
                note(app, &server.id, &error).await?;
            }
            Err(error.into())
        }
    }
}

/// The same for who looks every few minutes: that a server is away is told by what is found about its instances.
pub async fn reach(app: &App, server: &Server) -> Result<Host> {
    let host = app.hosts.host(&server.id, &target(&app.sealer, server)?);
    match host.contact().await? {
        Some(key) if server.host_key.is_empty() => pin(app, server, &key).await?,
        _ => {}
    }
    Ok(host)
}

async fn pin(app: &App, server: &Server, key: &HostKey) -> Result<()> {
    let id = ServerId::named(&server.id);
    if server::pin(&app.db, &id, &key.to_string()).await? {
        let detail = format!("first contact: its key {} is pinned", key.fingerprint());
        return audit::record_alone(app, &By::system(), Deed::info(Action::ServerAction, &server.id, &detail)).await;
    }
    // Somebody else was there at the same moment: what they saw counts.
    let pinned = server::find(&app.db, &id).await?.ok_or(Kind::NotFound)?.host_key.parse::<HostKey>()?;
    if pinned == *key {
        return Ok(());
    }
    app.hosts.forget(&server.id);
    let error = remote::host::Error::HostKeyChanged { address: server.host.clone(), pinned, seen: key.clone() };
    note(app, &server.id, &error).await?;
    Err(error.into())
}

async fn note(app: &App, server: &str, error: &remote::host::Error) -> Result<()> {
    let detail = error.to_string();
    audit::record_alone(app, &By::system(), Deed::error(Action::ServerAction, server, &detail)).await
}

/// Tries everything that assistants on the server need, step by step.
pub async fn test(app: &App, by: &By, id: &ServerId) -> Result<Probe> {
    let server = crate::server::find(app, id).await?;
    let version = install::wanted(app, &server);
    let wants = Wants {
        node: install::node(),
        openclaw: install::program(&version),
        gateway_url: Some(app.assistants.gateway_url.clone()).filter(|url| !url.is_empty()),
    };
    let target = target(&app.sealer, &server)?;
    let probe = probe::probe(&target, &wants).await;
    let logged_in = probe.reports.iter().any(|report| report.step == probe::Step::Login && report.ok);
    if let Some(key) = probe.host_key.as_ref().filter(|_| logged_in && server.host_key.is_empty()) {
        pin(app, &server, key).await?;
    }
    let failed: Vec<&str> = probe.reports.iter().filter(|r| !r.ok).map(|r| r.step.as_str()).collect();
    let detail = match failed.as_slice() {
        [] => "tested: everything is there".to_owned(),
        failed => format!("tested; not there: {}", failed.join(", ")),
    };
    let changed = probe.reports.iter().any(|r| r.step == probe::Step::HostKey && !r.ok) && probe.host_key.is_some();
    let level = if changed { Level::Error } else { Level::Info };
    let deed = Deed { action: Action::ServerAction, level, target: id.as_str(), detail: &detail };
    audit::record_alone(app, by, deed).await?;
    Ok(probe)
}
