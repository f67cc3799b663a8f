//! The simulated servers of the measurement, in a separate process: the same binary, with a hidden command.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use base::{Error, Result};
use sim::host::{Hosts, Instance, Lookup, Machine};
use tidepool::serve::allow_many_files;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

use super::INSTANCES;

/// The command's name.
pub const SIMULATED: &str = "bench-hosts";
/// The token of every gateway.
pub const TOKEN: &str = "a-token-of-the-measurement";

pub fn user(server: usize) -> String {
    format!("h{server}")
}

pub fn instance(server: usize, place: usize) -> String {
    format!("b{server}-{place}")
}

pub fn home(place: usize) -> String {
    format!("/srv/assistants/{}", place + 1)
}

pub fn port(place: usize) -> u16 {
    20_000 + 10 * place as u16
}

/// Serves the simulated servers until standard input is closed. Each is created at its first login.
pub async fn simulated() -> Result<()> {
    allow_many_files();
    let known: Mutex<HashMap<String, Arc<Machine>>> = Mutex::default();
    let lookup: Lookup = Arc::new(move |user: &str| {
        let number: usize = user.strip_prefix('h')?.parse().ok()?;
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        Some(known.entry(user.to_owned()).or_insert_with(|| machine(number)).clone())
    });
    let hosts = Hosts::listen(lookup.clone()).await.map_err(Error::internal)?;
    let straight = TcpListener::bind("127.0.0.1:0").await.map_err(Error::internal)?;
    println!("{} {}", hosts.address.port(), straight.local_addr().map_err(Error::internal)?.port());
    tokio::spawn(serve_straight(straight, lookup));
    let ended = tokio::task::spawn_blocking(|| std::io::stdin().read(&mut [0]));
    ended.await.map_err(Error::internal)?.map_err(Error::internal)?;
    Ok(())
}

/// Serves the gateways without SSH: the first line names the server and the port, and the rest is the connection.
async fn serve_straight(listener: TcpListener, lookup: Lookup) {
    while let Ok((mut stream, _)) = listener.accept().await {
        stream.set_nodelay(true).ok();
        let lookup = lookup.clone();
        tokio::spawn(async move {
            let mut line = vec![];
            while let Ok(byte @ 32..) = stream.read_u8().await {
                line.push(byte);
            }
            let line = String::from_utf8_lossy(&line);
            let (user, port) = line.split_once(' ').unwrap_or_default();
            if let (Some(machine), Ok(port)) = (lookup(user), port.parse()) {
                machine.serve(port, stream).await;
            }
        });
    }
}

fn machine(number: usize) -> Arc<Machine> {
    let machine = Machine::new(&user(number));
    for place in 0..INSTANCES {
        let unit = format!("openclaw-{}.service", instance(number, place));
        machine.add(&Instance { unit, home: home(place), port: port(place), token: TOKEN.to_owned() });
    }
    machine
}

/// The process, which ends when this is dropped.
pub struct Simulated {
    child: Child,
    pub port: u16,
    /// The port for gateways without SSH.
    pub straight: u16,
}

impl Simulated {
    pub fn start() -> Result<Simulated> {
        let binary = std::env::current_exe().map_err(Error::internal)?;
        let mut command = Command::new(binary);
        command.arg(SIMULATED).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(Error::internal)?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut line).map_err(Error::internal)?;
        }
        // From here on, dropping the value ends the process.
        let mut simulated = Simulated { child, port: 0, straight: 0 };
        let ports: Vec<u16> = line.split_whitespace().filter_map(|port| port.parse().ok()).collect();
        let [port, straight] = ports[..] else {
            return Err(Error::internal("the simulated servers did not come up"));
        };
        (simulated.port, simulated.straight) = (port, straight);
        Ok(simulated)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
