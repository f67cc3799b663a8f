//! A TCP proxy that can stop forwarding without closing anything: what a failover, a firewall or a pulled cable does.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Forwards until it is told otherwise; ends with the value.
pub struct Proxy {
    pub address: SocketAddr,
    state: Arc<watch::Sender<State>>,
    _accepting: JoinSet<()>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    /// Connections of an earlier one are silent.
    epoch: u64,
    /// Whether new connections are forwarded; otherwise they are taken, and silent.
    forwards: bool,
}

impl Proxy {
    /// A proxy on a free port of loopback, to `target` (`host:port`).
    pub async fn to(target: &str) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(watch::Sender::new(State { epoch: 0, forwards: true }));
        let mut accepting = JoinSet::new();
        let (target, seen) = (target.to_owned(), state.clone());
        accepting.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(forward(client, target.clone(), seen.subscribe()));
            }
        });
        Proxy { address, state, _accepting: accepting }
    }

    /// The same URL, by way of this proxy.
    pub fn instead_of(&self, url: &str) -> String {
        let (scheme, rest) = url.split_once("://").unwrap();
        let (authority, path) = rest.split_once('/').unwrap();
        match authority.rsplit_once('@') {
            Some((user, _)) => format!("{scheme}://{user}@{}/{path}", self.address),
            None => format!("{scheme}://{}/{path}", self.address),
        }
    }

    /// What a URL leads to, as `host:port`.
    pub fn target_of(url: &str) -> String {
        let (_, rest) = url.split_once("://").unwrap();
        let (authority, _) = rest.split_once('/').unwrap();
        authority.rsplit('@').next().unwrap().to_owned()
    }

    /// Another server takes over: the old one is gone, its clients are told nothing, and new connections reach the new one.
    pub fn fail_over(&self) {
        self.state.send_modify(|state| *state = State { epoch: state.epoch + 1, forwards: true });
    }

    /// Nothing answers any more, neither on the connections there are nor on new ones; none is refused or closed.
    pub fn swallow(&self) {
        self.state.send_modify(|state| *state = State { epoch: state.epoch + 1, forwards: false });
    }
}

async fn forward(mut client: TcpStream, target: String, mut state: watch::Receiver<State>) {
    let began = *state.borrow_and_update();
    if began.forwards
        && let Ok(mut server) = TcpStream::connect(&target).await
    {
        tokio::select! {
            _ = copy_bidirectional(&mut client, &mut server) => return,
            _ = state.wait_for(|now| now.epoch != began.epoch) => {}
        }
    }
    // The server's side is closed by now; the client's stays open and silent for as long as the proxy lives.
    std::future::pending::<()>().await;
    drop(client);
}
