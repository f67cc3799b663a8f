//! The demo's servers, simulated in this process, each behind its own sshd on a loopback socket. The platform does not
//! know the difference: its real handlers install the assistants there, monitor them and repair them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base::{Error, Result, Secret};
use fleet::{App, health, repair};
use queue::task::Status;
use remote::host::ExpectedKey;
use sim::host::{Hosts, Instance, Machine};

use super::Company;
use super::server_to_add::ServerToAdd;

/// id, name; four assistants on each.
pub const SERVERS: &[(&str, &str)] = &[("fra-1", "Frankfurt 1"), ("fra-2", "Frankfurt 2"), ("lis-1", "Lisbon 1")];
/// The unhealthy assistant and its server: it ran out of memory, which people have to solve.
const ILL: (&str, &str) = ("lis-1", "openclaw-lis-1-d.service");

/// The server that has an assistant which the platform did not make: the console finds it there.
const FOREIGN: &str = "lis-1";

/// How long to wait until all assistants are installed and set up; after that the demo shows what there is.
const PATIENCE: Duration = Duration::from_secs(45);

pub struct Fleet {
    servers: Vec<(Arc<Machine>, Hosts)>,
    to_add: ServerToAdd,
    pub key: Secret,
}

impl Fleet {
    pub async fn start() -> Result<Fleet> {
        let mut servers = vec![];
        for (id, _) in SERVERS {
            let machine = Machine::new(id);
            if *id == FOREIGN {
                add_foreign(&machine)?;
            }
            servers.push((machine.clone(), Hosts::of(machine).await.map_err(Error::internal)?));
        }
        let key = Secret::new(sim::host::login_key().map_err(Error::internal)?);
        Ok(Fleet { servers, to_add: ServerToAdd::start().await?, key })
    }

    /// The port on which a server's sshd listens.
    pub fn port(&self, id: &str) -> Result<u16> {
        let found = self.servers.iter().find(|(machine, _)| machine.name == id);
        found.map(|(_, hosts)| hosts.address.port()).ok_or_else(|| Error::internal("no such server"))
    }

    /// How a server is identified: each in another way, so that the console shows all three.
    pub fn expected(&self, id: &str) -> Result<Option<ExpectedKey>> {
        let found = self.servers.iter().find(|(machine, _)| machine.name == id);
        let text = match (id, found) {
            ("fra-2", Some((_, hosts))) => &hosts.host_key,
            ("lis-1", Some((_, hosts))) => &hosts.authority,
            _ => return Ok(None),
        };
        text.parse().map(Some).map_err(Error::internal)
    }

    /// Waits until the assistants are on their servers, gives some to people, lets one of them run out of memory, runs
    /// the platform's checks, and says where a further server can be added.
    pub async fn settle(&self, app: &Arc<App>, company: &Company) -> Result<()> {
        let began = Instant::now();
        no_task(app, began).await?;
        company.work(app).await?;
        no_task(app, began).await?;
        if let Some((machine, _)) = self.servers.iter().find(|(machine, _)| machine.name == ILL.0) {
            machine.run_out_of_memory(ILL.1);
        }
        // The start time of a process is known only to a tenth of a second, and a finding counts only if it is later.
        tokio::time::sleep(Duration::from_millis(1500)).await;
        repair::scan(app).await?;
        health::check(app).await?;
        println!("{}", self.to_add.describe());
        Ok(())
    }
}

/// An assistant that somebody made before the platform came.
fn add_foreign(machine: &Machine) -> Result<()> {
    let token = base::secret::random_token()?.expose().to_owned();
    let (unit, home) = ("openclaw.service".to_owned(), "/home/marta".to_owned());
    machine.add_as("marta", &Instance { unit, home, port: 21_000, token });
    Ok(())
}

/// Waits until every task has ended.
async fn no_task(app: &App, began: Instant) -> Result<()> {
    while began.elapsed() < PATIENCE && is_busy(app).await? {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

async fn is_busy(app: &App) -> Result<bool> {
    let counts = store::task::counts(&app.db).await?;
    Ok(counts.iter().any(|c| c.n > 0 && matches!(c.status, Status::Pending | Status::Processing | Status::Failed)))
}
