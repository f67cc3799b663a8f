//! What runs an instance on a server, and the one way to ask for its state, to start and stop it, and to read what it
//! writes: a unit of the system or of a user, a container, or nothing at all.

use std::time::Duration;

use super::error::{Error, Result};
use super::journal::{self, Cursor, Entry, Follow};
use super::ports;
use super::systemd::{self, Active, State, Unit};
use super::{Host, docker};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runner {
    /// A unit of the system, or of a user's own systemd.
    Unit(Unit),
    Container {
        id: String,
    },
    /// Nothing: somebody started the process, and nobody starts it again. It is known by its port and its state folder.
    Process {
        port: u16,
        user: String,
        state_dir: String,
    },
}

impl Runner {
    /// Its state, in the words of a unit: `unit` is the name that the answer gets where there is none.
    pub async fn state(&self, host: &Host, unit: &Unit) -> Result<State> {
        match self {
            Runner::Unit(unit) => systemd::state(host, unit).await,
            Runner::Container { id } => docker::state(host, id, unit).await,
            Runner::Process { port, user, state_dir } => {
                let listening = ports::look(host, *port).await?;
                let own = listening.owners.iter().find(|owner| owner.is_gateway_of(user, state_dir));
                Ok(State::of_process(unit, own.map(|owner| owner.pid), user))
            }
        }
    }

    pub async fn start(&self, host: &Host) -> Result<()> {
        match self {
            Runner::Unit(unit) => systemd::start(host, unit).await.map(drop),
            Runner::Container { id } => docker::act(host, id, docker::Action::Start).await,
            Runner::Process { .. } => Err(Error::OnlyObserved),
        }
    }

    /// Waits until it has stopped, however long that takes.
    pub async fn stop(&self, host: &Host) -> Result<()> {
        match self {
            Runner::Unit(unit) => systemd::stop(host, unit).await.map(drop),
            Runner::Container { id } => docker::stop_in_time(host, id).await,
            Runner::Process { .. } => Err(Error::OnlyObserved),
        }
    }

    /// Allows it to be started again after it failed too often.
    pub async fn reset_failed(&self, host: &Host) -> Result<()> {
        match self {
            Runner::Unit(unit) => systemd::reset_failed(host, unit).await.map(drop),
            Runner::Container { .. } | Runner::Process { .. } => Ok(()),
        }
    }

    /// The last lines that it wrote, oldest first.
    pub async fn last_lines(&self, host: &Host, lines: usize) -> Result<Vec<Entry>> {
        match self {
            Runner::Unit(unit) => journal::last(host, unit, lines).await,
            Runner::Container { id } => docker::last(host, id, lines).await,
            Runner::Process { .. } => Err(Error::NoLog),
        }
    }

    /// The lines that it writes from now on, or after a place.
    pub async fn follow(&self, host: &Host, from: Option<&Cursor>, limit: Duration) -> Result<Follow> {
        match self {
            Runner::Unit(unit) => journal::follow(host, unit, from, limit).await,
            Runner::Container { id } => journal::follow_container(host, id, from, limit).await,
            Runner::Process { .. } => Err(Error::NoLog),
        }
    }
}

impl State {
    /// The state of a process that nothing starts.
    fn of_process(unit: &Unit, pid: Option<u32>, user: &str) -> State {
        let (active, sub) = if pid.is_some() { (Active::Active, "running") } else { (Active::Inactive, "dead") };
        let user = Some(user.to_owned());
        State { active, sub: sub.to_owned(), is_loaded: true, main_pid: pid, user, ..State::missing(unit) }
    }
}
