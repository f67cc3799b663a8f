//! Who answers on an instance's port, on real hosts: the instance itself, a neighbour in its place or beside it, and one who hands the
//! port back after taking a connection. What a neighbour hears is written to a file.

use std::time::Instant;

use futures_util::future::join_all;
use remote::host::systemd::Unit;
use remote::host::{Accepted, Command, Error, Host, Tenant};
use testkit::{LIMIT, until};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::kit::{Fleet, folder, said, sh, unique};
use crate::on_hosts;

/// Listens at an address and writes down everything that it hears; `once` leaves the port after the first connection, and keeps that.
const LISTEN: &str = r#"
import os, socket, sys, threading
address, port, heard, once = sys.argv[1], int(sys.argv[2]), sys.argv[3], len(sys.argv) > 4
s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
if address == "::1": s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((address, port))
s.listen(64)
out = os.open(heard, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
def take(c):
    c.sendall(b"!")
    while data := c.recv(65536): os.write(out, data)
    c.close()
while True:
    c, _ = s.accept()
    if once:
        s.close()
        take(c)
        break
    threading.Thread(target=take, args=(c,), daemon=True).start()
threading.Event().wait()
"#;

/// A user of the host, with a home that root made for them.
struct Person {
    host: Host,
    name: String,
    home: String,
    units: Vec<String>,
}

impl Person {
    async fn new(host: &Host) -> Person {
        let base = folder(host).await;
        let (name, home) = (format!("n{}", &base::id::fresh().replace('-', "")[20..]), format!("{base}/home"));
        let script = r#"chmod 755 "${2%/*}" && useradd --system --no-create-home --home-dir "$2" -- "$1" && install -d -m 700 -o "$1" -- "$2""#;
        host.succeed(&sh(script).args([&name, &home])).await.unwrap();
        Person { host: host.clone(), name, home, units: vec![] }
    }

    fn heard(&self) -> String {
        format!("{}/heard", self.home)
    }

    /// Runs the listener as this user, in a unit of its own.
    async fn listens(&mut self, address: &str, port: u16, once: &[&str]) -> Unit {
        let (unit, heard) = (unique("openclaw"), self.heard());
        self.host.succeed(&Command::new("rm").args(["-f", "--", &heard])).await.unwrap();
        let run = Command::new("systemd-run").args(["-q", &format!("--unit={unit}"), &format!("--uid={}", self.name)]);
        let run = run.args(["python3", "-c", LISTEN, address, &port.to_string(), &heard]).args(once.iter().copied());
        self.host.succeed(&run).await.unwrap();
        self.units.push(unit.clone());
        // It is made when somebody listens.
        let there = Command::new("test").args(["-e", &heard]);
        until("it listens", async || self.host.run(&there).await.unwrap().succeeded()).await;
        Unit::parse(&unit).unwrap()
    }

    fn tenant(&self, unit: &Unit) -> Tenant {
        Tenant::Service { home: self.home.clone(), unit: Some(unit.clone()) }
    }

    async fn has_heard(&self) -> String {
        said(&self.host, sh(r#"cat -- "$1" 2>/dev/null || true"#).arg(self.heard())).await
    }

    async fn stop(&mut self) {
        for unit in self.units.drain(..) {
            self.host.run(&Command::new("systemctl").args(["stop", &unit])).await.unwrap();
        }
    }

    async fn end(mut self) {
        self.stop().await;
        let script = r#"userdel -- "$1"; rm -rf -- "${2%/*}""#;
        self.host.run(&sh(script).args([&self.name, &self.home])).await.unwrap();
    }
}

async fn free_port(host: &Host) -> u16 {
    let script = "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); print(s.getsockname()[1])";
    said(host, Command::new("python3").args(["-c", script])).await.parse().unwrap()
}

/// The other end has accepted the connection: it says something first.
async fn accepted(socket: &mut (impl tokio::io::AsyncRead + Unpin)) {
    let first = tokio::time::timeout(LIMIT, socket.read_u8()).await.expect("nobody accepts");
    assert_eq!(first.unwrap(), b'!');
}

fn foreign(result: Result<impl Sized, Error>, port: u16, name: &str) {
    match result.err() {
        Some(Error::Foreign { port: at, by }) => assert!(at == port && by.contains(name), "{by}"),
        other => panic!("{other:?}"),
    }
}

on_hosts! {
    async fn an_instance_is_talked_to_by_whoever_logs_in(fleet: Fleet) {
        let root = fleet.host("h1");
        let mut ada = Person::new(&root).await;
        let port = free_port(&root).await;
        // By both families at once.
        let unit = ada.listens("::", port, &[]).await;
        for login in ["root", "ops", "guest"] {
            let host = fleet.host_as("h1", login);
            let mut socket = host.forward(port, &ada.tenant(&unit)).await.unwrap();
            accepted(&mut socket).await;
            socket.write_all(login.as_bytes()).await.unwrap();
            until("it is heard", async || ada.has_heard().await.contains(login)).await;
            // Accepted connections of the instance's own are no reason for doubt.
            host.forward_for_long(port, &ada.tenant(&unit)).await.unwrap();
        }
        ada.stop().await;
        let gone = root.forward(port, &ada.tenant(&unit)).await.err();
        assert_eq!(gone, Some(Error::PortClosed { port }));
        ada.end().await;
    }

    async fn a_neighbour_in_its_place_hears_nothing(fleet: Fleet) {
        let root = fleet.host("h1");
        let (mut ada, mut bob) = (Person::new(&root).await, Person::new(&root).await);
        let port = free_port(&root).await;
        let own = Unit::parse(&unique("openclaw")).unwrap();
        bob.listens("127.0.0.1", port, &[]).await;
        for login in ["root", "ops", "guest"] {
            let host = fleet.host_as("h1", login);
            foreign(host.forward(port, &ada.tenant(&own)).await, port, if login == "guest" { "user" } else { &bob.name });
            foreign(host.forward_for_long(port, &ada.tenant(&own)).await, port, "user");
        }
        assert_eq!(bob.has_heard().await, "");
        // What he would have heard.
        let mut socket = root.tunnel(port).await.unwrap();
        socket.write_all(b"a secret").await.unwrap();
        until("he hears it", async || bob.has_heard().await == "a secret").await;
        bob.stop().await;
        let unit = ada.listens("127.0.0.1", port, &[]).await;
        root.forward(port, &ada.tenant(&unit)).await.unwrap();
        ada.end().await;
        bob.end().await;
    }

    async fn a_neighbour_beside_it_is_seen_at_every_address(fleet: Fleet) {
        let root = fleet.host("h1");
        let (mut ada, mut bob) = (Person::new(&root).await, Person::new(&root).await);
        let port = free_port(&root).await;
        let unit = ada.listens("127.0.0.1", port, &[]).await;
        for address in ["127.0.0.2", "::1"] {
            bob.listens(address, port, &[]).await;
            foreign(root.forward(port, &ada.tenant(&unit)).await, port, &bob.name);
            bob.stop().await;
            root.forward(port, &ada.tenant(&unit)).await.unwrap();
        }
        ada.end().await;
        bob.end().await;
    }

    async fn a_neighbour_who_took_the_connection_and_left_the_port_is_seen(fleet: Fleet) {
        let root = fleet.host("h1");
        let (mut ada, mut bob) = (Person::new(&root).await, Person::new(&root).await);
        for address in ["127.0.0.1", "::"] {
            let port = free_port(&root).await;
            bob.listens(address, port, &["once"]).await;
            let mut socket = root.tunnel(port).await.unwrap();
            accepted(&mut socket).await;
            let unit = ada.listens("127.0.0.1", port, &[]).await;
            // Nobody but ada listens, and the connection that stands is bob's.
            foreign(root.prove(port, &ada.tenant(&unit), Accepted::AtLoopback).await, port, &bob.name);
            drop(socket);
            bob.stop().await;
            root.forward(port, &ada.tenant(&unit)).await.unwrap();
            ada.stop().await;
            assert_eq!(bob.has_heard().await, "");
        }
        ada.end().await;
        bob.end().await;
    }

    async fn the_user_of_the_unit_counts_where_the_home_is_anothers(fleet: Fleet) {
        let root = fleet.host("h1");
        let (mut ada, bob) = (Person::new(&root).await, Person::new(&root).await);
        let port = free_port(&root).await;
        let unit = ada.listens("127.0.0.1", port, &[]).await;
        let moved = Tenant::Service { home: bob.home.clone(), unit: Some(unit.clone()) };
        for login in ["root", "ops"] {
            fleet.host_as("h1", login).forward(port, &moved).await.unwrap();
        }
        let nowhere = Tenant::Service { home: "/srv/nothing here".into(), unit: Some(unit) };
        root.forward(port, &nowhere).await.unwrap();
        // A unit that there is not says nothing, and neither does a home that is a link.
        let missing = Unit::parse("openclaw-that-there-is-not").unwrap();
        let link = format!("{}-link", ada.home);
        root.succeed(&Command::new("ln").args(["-s", &ada.home, &link])).await.unwrap();
        for home in [link.as_str(), "/srv/nothing here", ""] {
            let tenant = Tenant::Service { home: home.into(), unit: Some(missing.clone()) };
            foreign(root.forward(port, &tenant).await, port, &ada.name);
        }
        ada.end().await;
        bob.end().await;
    }

    async fn many_connections_at_once_share_few_looks(fleet: Fleet) {
        let root = fleet.host("h1");
        let mut ada = Person::new(&root).await;
        let port = free_port(&root).await;
        let unit = ada.listens("127.0.0.1", port, &[]).await;
        let tenant = ada.tenant(&unit);
        root.forward(port, &tenant).await.unwrap();
        let began = Instant::now();
        for _ in 0..20 {
            root.tunnel(port).await.unwrap();
        }
        let bare = began.elapsed() / 20;
        let began = Instant::now();
        for _ in 0..20 {
            root.forward(port, &tenant).await.unwrap();
        }
        let alone = began.elapsed() / 20;
        let began = Instant::now();
        let all = join_all((0..60).map(|_| root.forward(port, &tenant))).await;
        assert!(all.iter().all(Result::is_ok), "{:?}", all.iter().find_map(|one| one.as_ref().err()));
        eprintln!("measured: a socket {bare:?}, with its proof {alone:?}; 60 at once {:?}", began.elapsed());
        ada.end().await;
    }

    async fn a_container_answers_on_what_docker_publishes_for_it(fleet: Fleet) {
        let host = fleet.host_as("h1", "ops");
        super::docker::image(&host).await;
        let (name, other, port) = (unique("web"), unique("web"), free_port(&host).await);
        let run = r#"docker run -d --init --name "$1" -p "127.0.0.1:$2:80" tiny /bin/sh -c 'sleep 1000'"#;
        host.succeed(&sh(run).args([&name, &port.to_string()])).await.unwrap();
        host.succeed(&sh(r#"docker run -d --init --name "$1" tiny /bin/sh -c 'sleep 1000'"#).arg(&other)).await.unwrap();
        let container = |id: &str| Tenant::Container { id: id.to_owned() };
        host.prove(port, &container(&name), Accepted::AtLoopback).await.unwrap();
        foreign(host.prove(port, &container(&other), Accepted::AtLoopback).await, port, "not its container");
        let missing = host.prove(port, &container("nothing"), Accepted::AtLoopback).await;
        assert_eq!(missing, Err(Error::NoContainer("nothing".into())));
        host.succeed(&sh(r#"docker rm -f "$1" "$2""#).args([&name, &other])).await.unwrap();
    }
}
