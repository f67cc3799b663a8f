//! Connects to the server of a record: its address, the login key, and how its identity is verified. That is by a key
//! or an authority that an administrator expects, or by the key that it showed at the first contact.

use base::{Error, Kind, Result};
use queue::audit::{self, Action, AuditEvent, By};
use remote::host::{Address, ExpectedKey, Host, HostKey, KeyProblem, LoginKey, Target};
use store::seal::Sealer;
use store::server::{self, Server};

use crate::App;

/// The host of the machine that the platform itself runs on.
pub const LOCAL: &str = "local";

/// Whether the server has a login key, or needs none.
pub fn has_login(server: &Server) -> bool {
    server.host == LOCAL || server.ssh_key.is_some() || !server.ssh_key_path.is_empty()
}

/// Whether an instance may be dialled directly after this error of its server's connection. A server that shows a wrong
/// host key is refused: a direct connection must not bypass that.
pub fn allows_direct(server: &Server, error: &Error) -> bool {
    !has_login(server) || matches!(error.kind, Kind::Unavailable | Kind::TimedOut)
}

/// The server's address, login and expected host key.
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
    let expected = expected(server)?;
    let host_key = match server.host_key.as_deref() {
        None => None,
        // Do not compare with the last key: a new certificate may be for a new key.
        _ if expected.as_ref().is_some_and(ExpectedKey::is_authority) => None,
        Some(pinned) => Some(pinned.parse::<HostKey>()?),
    };
    Ok(Target::Ssh(Address {
        host: server.host.clone(),
        port: u16::try_from(server.ssh_port).map_err(Error::internal)?,
        user: server.ssh_user.clone(),
        key,
        expected,
        host_key,
    }))
}

/// The host key or authority that an administrator expects.
pub fn expected(server: &Server) -> Result<Option<ExpectedKey>> {
    let unreadable =
        |why: KeyProblem| Error::internal(format_args!("server {}: its expected host key {why}", server.id));
    server.expected_host_key.as_deref().map(|text| text.parse().map_err(unreadable)).transpose()
}

/// How a server's identity is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// It is the machine itself.
    Local,
    /// By the key of the first contact, which was compared with nothing.
    FirstUse,
    /// By a key that an administrator expects.
    Compared,
    /// By certificates of an authority.
    Certified,
}

pub fn trust(server: &Server) -> Result<Trust> {
    Ok(match expected(server)? {
        _ if server.host == LOCAL => Trust::Local,
        None => Trust::FirstUse,
        Some(expected) if expected.is_authority() => Trust::Certified,
        Some(_) => Trust::Compared,
    })
}

/// Connects to a server. The first contact pins its key. An audit entry is written if the server cannot be reached or
/// shows another key.
pub async fn connect(app: &App, server: &Server) -> Result<Host> {
    let host = app.hosts.host(&server.id, &target(&app.sealer, server)?);
    match host.contact().await {
        Ok(key) => {
            remember(app, server, key.as_ref()).await?;
            Ok(host)
        }
        Err(error) => {
            if error.is_unreachable() {
                note(app, &server.id, &error).await?;
            }
            Err(error.into())
        }
    }
}

/// The same without an audit entry for an unreachable server, for callers that run every few minutes. The health check
/// reports such a server.
pub async fn reach(app: &App, server: &Server) -> Result<Host> {
    let host = app.hosts.host(&server.id, &target(&app.sealer, server)?);
    let key = host.contact().await?;
    remember(app, server, key.as_ref()).await?;
    Ok(host)
}

/// Stores the key that a server showed: at the first contact and, if the server is certified, whenever the key changes.
pub async fn remember(app: &App, server: &Server, key: Option<&HostKey>) -> Result<()> {
    let Some(key) = key else { return Ok(()) };
    let is_certified = trust(server)? == Trust::Certified;
    if is_certified && server.host_key.as_deref() != Some(&key.to_string()) {
        let id = server.id.clone();
        if store::server::note_host_key(&app.db, &id, &key.to_string()).await? {
            let by = name_of_authority(server)?;
            let detail = format!("its key {} is certified by {by}", key.fingerprint());
            audit::record_alone(app, &By::system(), AuditEvent::info(Action::ServerAction, &server.id, &detail))
                .await?;
        }
    } else if !is_certified && server.host_key.is_none() {
        pin(app, server, key).await?;
    }
    Ok(())
}

fn name_of_authority(server: &Server) -> Result<String> {
    Ok(expected(server)?.map(|expected| expected.fingerprint()).unwrap_or_default())
}

async fn pin(app: &App, server: &Server, key: &HostKey) -> Result<()> {
    let id = server.id.clone();
    if server::pin(&app.db, server, &key.to_string()).await? {
        let how = match trust(server)? {
            Trust::Compared => "is the expected one, and pinned",
            _ => "was compared with nothing, and is pinned",
        };
        let detail = format!("first contact: its key {} {how}", key.fingerprint());
        return audit::record_alone(app, &By::system(), AuditEvent::info(Action::ServerAction, &server.id, &detail))
            .await;
    }
    // The record was changed in the meantime: another process pinned a key, or an administrator changed the address.
    let found = server::find(&app.db, &id).await?.ok_or(Kind::NotFound)?;
    let Some(pinned) = found.host_key else {
        app.hosts.forget(&server.id);
        return Err(Error::conflict("the server's address was changed at this moment: try again"));
    };
    let pinned = pinned.parse::<HostKey>()?;
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
    audit::record_alone(app, &By::system(), AuditEvent::error(Action::ServerAction, server, &detail)).await
}
