//! Simulated servers: sshd on a loopback socket, and behind it machines with units, files and logs in memory.
//!
//! A machine recognises the platform's commands by the form of their arguments (`command`, `script`, `sweep`), and
//! answers from its model (`machine`). It is not a shell: an unknown command returns 127 and is recorded in
//! `Machine::unknown`. A forwarded connection to a port leads to the simulated assistant of the unit that listens
//! there.

mod command;
mod discover;
mod journal;
mod machine;
mod openclaw;
mod script;
mod ssh;
mod state;
mod sweep;
mod tree;
mod words;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use russh::keys::ssh_key::certificate::{Builder, CertType};
use russh::keys::ssh_key::private::Ed25519Keypair;
use russh::keys::{Certificate, PrivateKey, ssh_key};
use russh::server;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

pub use machine::{Instance, Machine, Power};
use ssh::Connection;
pub use ssh::Lookup;

/// sshd in front of one or many machines. Dropping it ends its connections too.
pub struct Hosts {
    pub address: SocketAddr,
    /// Its own key, as `ssh-keyscan` would print it.
    pub host_key: String,
    /// The authority that certified that key for this address, as known_hosts would name it.
    pub authority: String,
    serving: JoinHandle<()>,
}

impl Hosts {
    /// One machine for every user name.
    pub async fn of(machine: Arc<Machine>) -> std::io::Result<Hosts> {
        Hosts::listen(Arc::new(move |_| Some(machine.clone()))).await
    }

    /// Many machines behind one socket, selected by the user name of the login.
    pub async fn listen(lookup: Lookup) -> std::io::Result<Hosts> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (key, authority) = (make_key()?, make_key()?);
        let certificate = certified(&key, &authority, address).map_err(std::io::Error::other)?;
        let line = |key: &PrivateKey| {
            let text = key.public_key().to_openssh().map_err(std::io::Error::other)?;
            Ok::<_, std::io::Error>(text.trim_end().to_owned())
        };
        let (host_key, authority) = (line(&key)?, format!("@cert-authority {} {}", address.ip(), line(&authority)?));
        let config = Arc::new(server::Config {
            keys: vec![key],
            certificates: vec![certificate],
            inactivity_timeout: None,
            nodelay: true,
            ..server::Config::default()
        });
        let serving = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                tokio::select! {
                    accepted = listener.accept() => match accepted {
                        Ok((stream, _)) => { connections.spawn(serve(config.clone(), stream, lookup.clone())); }
                        // Too many open files: wait until some connections end.
                        Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                    },
                    Some(_) = connections.join_next() => {}
                }
            }
        });
        Ok(Hosts { address, host_key, authority, serving })
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(config: Arc<server::Config>, stream: TcpStream, lookup: Lookup) {
    stream.set_nodelay(true).ok();
    let connection = Connection { lookup, machine: None, user: String::new() };
    if let Ok(session) = server::run_stream(config, stream, connection).await {
        session.await.ok();
    }
}

/// A host certificate for an address, valid for a year.
fn certified(key: &PrivateKey, authority: &PrivateKey, at: SocketAddr) -> Result<Certificate, ssh_key::Error> {
    let now = SystemTime::now();
    let (from, until) = (now - Duration::from_secs(3600), now + Duration::from_secs(365 * 86_400));
    let subject = key.public_key().key_data().clone();
    let mut builder = Builder::new_with_validity_times(*b"of the simulator", subject, from, until)?;
    builder.cert_type(CertType::Host)?.valid_principal(at.ip().to_string())?;
    builder.sign(authority)
}

fn make_key() -> std::io::Result<PrivateKey> {
    let mut seed = [0; 32];
    aws_lc_rs::rand::fill(&mut seed).map_err(std::io::Error::other)?;
    Ok(PrivateKey::from(Ed25519Keypair::from_seed(&seed)))
}

/// A private key in OpenSSH's format. The simulated machines accept any key.
pub fn login_key() -> std::io::Result<String> {
    let key = make_key()?;
    let text = key.to_openssh(russh::keys::ssh_key::LineEnding::LF).map_err(std::io::Error::other)?;
    Ok(text.as_str().to_owned())
}
