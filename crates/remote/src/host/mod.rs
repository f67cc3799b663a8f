//! Talks to servers, over SSH or on this machine.
//!
//! A `Host` runs commands (argument vectors, see `command`), reads and writes files (`file`; below a tenant's home:
//! `home`), and forwards sockets (`forward`). Over SSH it has two connections, because a slow reader of a stream may
//! block its connection, and commands must not wait for that. All callers share both, and they are opened again when
//! they are lost (`pool`). Each other file adds one subject: `systemd`, `cell`, `journal`, `ports`, `users`, `docker`,
//! `metrics`, and `probe`, which checks step by step whether a server can be used at all. A socket to an instance is
//! handed out only after `listener` has proved who answers there.

pub mod cell;
mod command;
pub mod docker;
mod error;
mod expected;
pub mod file;
mod forward;
pub mod home;
pub mod journal;
mod key;
mod lines;
mod listener;
mod local;
pub mod metrics;
mod output;
mod pool;
pub mod ports;
pub mod probe;
pub mod runner;
mod session;
mod ssh;
pub mod systemd;
mod timing;
pub mod users;

use std::sync::Arc;

pub use command::{Actor, Command};
pub use error::{Error, ONLY_OBSERVED, Result};
pub use expected::{ExpectedKey, Problem as KeyProblem};
pub use forward::Forwarded;
pub use key::{HostKey, LoginKey};
pub use lines::Lines;
pub use listener::{Accepted, Tenant};
pub use output::Output;
pub use pool::Hosts;
pub use ssh::Address;
pub use timing::Timing;

use command::Login;
use listener::Looks;
use pool::Remote;

/// What a server is: this machine, or one that is reached over SSH.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Local,
    Ssh(Address),
}

/// A server. Clones are the same server.
#[derive(Clone)]
pub struct Host(Arc<Inner>);

struct Inner {
    target: Target,
    way: Way,
    looks: Looks,
}

enum Way {
    Local(Login),
    Ssh(Box<Remote>),
}

impl Host {
    /// A server with its own connections; `Hosts` hands out shared ones.
    pub fn new(target: Target) -> Host {
        Host::with(target, Timing::default())
    }

    /// The same with other time limits.
    pub fn with(target: Target, timing: Timing) -> Host {
        let way = match &target {
            Target::Local => Way::Local(local::login()),
            Target::Ssh(address) => Way::Ssh(Box::new(Remote::new(address.clone(), timing))),
        };
        Host(Arc::new(Inner { target, way, looks: Looks::default() }))
    }

    pub fn local() -> Host {
        Host::new(Target::Local)
    }

    pub fn target(&self) -> &Target {
        &self.0.target
    }

    fn serves(&self, target: &Target) -> bool {
        match (&self.0.way, target) {
            (Way::Ssh(remote), Target::Ssh(address)) => remote.serves(address),
            (Way::Local(_), Target::Local) => true,
            _ => false,
        }
    }

    /// The user who logs in.
    pub fn user(&self) -> &str {
        &self.login().user
    }

    fn login(&self) -> &Login {
        match &self.0.way {
            Way::Local(login) => login,
            Way::Ssh(remote) => &remote.login,
        }
    }

    /// Connects if necessary, and returns the key that the server showed. A caller that has no stored key stores this
    /// one, and passes it in `Address` from then on. Until then this `Host` accepts no other key either.
    pub async fn contact(&self) -> Result<Option<HostKey>> {
        match &self.0.way {
            Way::Local(_) => Ok(None),
            Way::Ssh(remote) => remote.contact().await.map(Some),
        }
    }

    /// Runs a command to its end, whatever its status. If the caller stops waiting, the command gets SIGTERM where that
    /// is possible; its time limit ends it in any case.
    pub async fn run(&self, command: &Command) -> Result<Output> {
        let line = command.line(self.login())?;
        let output = match &self.0.way {
            Way::Local(_) => local::run(line, command).await?,
            Way::Ssh(remote) => remote.run(line, command).await?,
        };
        command.judged(self.login(), output)
    }

    /// Runs a command that must succeed.
    pub async fn succeed(&self, command: &Command) -> Result<Output> {
        self.run(command).await?.ok(command.name())
    }

    /// Starts a long-running command (up to its time limit), and reads it line by line. It must end when its standard
    /// input ends.
    pub async fn lines(&self, command: &Command) -> Result<Lines> {
        let line = command.line(self.login())?;
        match &self.0.way {
            Way::Local(login) => local::feed(&line, command, login),
            Way::Ssh(remote) => remote.feed(line, command).await,
        }
    }

    /// Runs a command on the connection for forwarded sockets, where it does not wait for commands that take long.
    async fn beside(&self, command: &Command) -> Result<Output> {
        let line = command.line(self.login())?;
        let output = match &self.0.way {
            Way::Local(_) => local::run(line, command).await?,
            Way::Ssh(remote) => remote.beside(line, command).await?,
        };
        command.judged(self.login(), output)
    }

    fn looks(&self) -> &Looks {
        &self.0.looks
    }

    /// A socket to an instance's port on the server's loopback, for a short request. It is handed out only after every
    /// socket on the port was proved to be the tenant's.
    pub async fn forward(&self, port: u16, tenant: &Tenant) -> Result<Forwarded> {
        let socket = self.tunnel(port).await?;
        self.prove(port, tenant, Accepted::AtLoopback).await?;
        Ok(socket)
    }

    /// The same for a connection that may stay open for hours. These have their own limit, and fail soon when it is
    /// reached.
    pub async fn forward_for_long(&self, port: u16, tenant: &Tenant) -> Result<Forwarded> {
        let socket = self.tunnel_for_long(port).await?;
        self.prove(port, tenant, Accepted::AtLoopback).await?;
        Ok(socket)
    }

    /// A socket to any program that listens on a port of the server's loopback. Never send anything over it that is
    /// meant for an instance.
    pub async fn tunnel(&self, port: u16) -> Result<Forwarded> {
        match &self.0.way {
            Way::Local(_) => forward::local(port).await,
            Way::Ssh(remote) => remote.forward(port).await,
        }
    }

    /// The same for a connection that may stay open for hours.
    pub async fn tunnel_for_long(&self, port: u16) -> Result<Forwarded> {
        match &self.0.way {
            Way::Local(_) => forward::local(port).await,
            Way::Ssh(remote) => remote.forward_for_long(port).await,
        }
    }

    /// The home folder of the user who logs in.
    pub async fn home(&self) -> Result<String> {
        let output = self.succeed(&Command::new("printenv").arg("HOME").by(Actor::Login)).await?;
        let home = output.text().trim_end_matches('\n').to_owned();
        if home.starts_with('/') { Ok(home) } else { Err(Error::odd("printenv HOME", format_args!("{home:?}"))) }
    }

    /// Closes its connections; the next use opens new ones.
    pub async fn close(&self) {
        if let Way::Ssh(remote) = &self.0.way {
            remote.close().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tasks that move between threads call all of these functions.
    #[test]
    fn what_is_begun_on_one_thread_may_go_on_on_another() {
        fn moves<T: Send>(_: T) {}
        let (host, command) = (Host::local(), Command::new("true"));
        moves(host.run(&command));
        moves(host.lines(&command));
        moves(host.read("/x", 1, Actor::Root));
        moves(host.write(&file::Write::new("/x", "y", file::Expect::Any)));
        moves(host.tunnel(1));
        moves(host.tunnel_for_long(1));
        moves(home::owner(&host, "/x"));
        moves(home::Home::new(&host, "/x", "y").read("/x/z", 1));
        moves(home::archive::Archive::of(&host, "/x", 1).restore("y"));
        moves(host.contact());
        let unit = systemd::Unit::parse("x").unwrap();
        let tenant = Tenant::Service { home: String::new(), unit: Some(unit.clone()) };
        moves(host.forward(1, &tenant));
        moves(host.forward_for_long(1, &tenant));
        moves(systemd::restart(&host, &unit));
        moves(journal::last(&host, &unit, 1));
        moves(ports::free(&host, 1, &ports::Instance { unit: &unit, state_dir: "/x", user: None }));
        moves(docker::list(&host));
        moves(metrics::collect(&host));
    }
}
