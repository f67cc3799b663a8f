//! Sockets to a host's own loopback, through its connection.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use remote::host::{Command, Error, Host, Target, Timing};
use testkit::{LIMIT, until, until_ok};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::kit::{Fleet, NEVER, Sshd, said, sh, unique};
use crate::on_hosts;

/// A server on the host's loopback: it echoes, or floods when told `flood`.
struct Echo {
    port: u16,
    unit: String,
}

impl Echo {
    async fn start(host: &Host) -> Echo {
        let unit = unique("echo");
        let program = r#"
import os, socketserver, sys
class H(socketserver.BaseRequestHandler):
    def handle(self):
        data = self.request.recv(65536)
        if data.startswith(b"flood"):
            try:
                while True: self.request.sendall(b"x" * 65536)
            except OSError: return
        while data:
            self.request.sendall(data)
            data = self.request.recv(65536)
class S(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
    request_queue_size = 256
s = S(("127.0.0.1", 0), H)
open(sys.argv[1] + ".new", "w").write(str(s.server_address[1]))
os.rename(sys.argv[1] + ".new", sys.argv[1])
s.serve_forever()
"#;
        let script = r#"
            systemd-run -q --unit="$1" python3 -c "$2" "/run/$1" || exit
            for i in $(seq 600); do [ -s "/run/$1" ] && exec cat "/run/$1"; sleep 0.1; done
            echo "the server does not listen: $(systemctl status "$1")" >&2; exit 1"#;
        let port = said(host, sh(script).args([unit.as_str(), program]).limit(2 * LIMIT)).await.parse().unwrap();
        Echo { port, unit }
    }

    async fn stop(self, host: &Host) {
        host.succeed(&Command::new("systemctl").args(["stop", &self.unit])).await.unwrap();
    }
}

async fn echoes(host: &Host, port: u16, size: usize) {
    let (mut read, mut write) = tokio::io::split(host.tunnel(port).await.unwrap());
    let sent: Vec<u8> = (0..size).map(|n| (n % 251) as u8).collect();
    let writing = async {
        write.write_all(&sent).await.unwrap();
        write.shutdown().await.unwrap();
    };
    let mut got = vec![];
    let (_, read) = tokio::join!(writing, read.read_to_end(&mut got));
    read.unwrap();
    assert!(got == sent, "{} of {size} bytes", got.len());
}

/// How many clients a server on the host has.
async fn open_sockets(host: &Host, port: u16) -> String {
    said(host, sh(r#"ss -Htn state established "sport = :$1" | wc -l"#).arg(port.to_string())).await
}

on_hosts! {
    async fn bytes_pass_both_ways_and_ends_are_seen(fleet: Fleet) {
        for login in ["root", "guest"] {
            let (root, host) = (fleet.host("h1"), fleet.host_as("h1", login));
            let server = Echo::start(&root).await;
            echoes(&host, server.port, 5).await;
            echoes(&host, server.port, 5_000_000).await;
            server.stop(&root).await;
        }
    }

    async fn many_sockets_share_the_connection(fleet: Fleet) {
        let host = fleet.host("h1");
        let server = Echo::start(&host).await;
        let began = Instant::now();
        join_all((0..100).map(|_| echoes(&host, server.port, 10_000))).await;
        eprintln!("measured: 100 forwarded sockets in {:?}", began.elapsed());
        server.stop(&host).await;
    }

    async fn people_who_stay_hold_up_no_question(fleet: Fleet) {
        // Whoever waits for the place of somebody who stays is told soon; nobody else has a reason to wait at all.
        let timing = Timing { short_queue: Duration::from_millis(200), queue: NEVER, ..Timing::default() };
        let host = fleet.host_with("h1", "root", timing);
        let server = Echo::start(&host).await;
        let mut open = vec![];
        for _ in 0..256 {
            open.push(host.tunnel_for_long(server.port).await.unwrap());
        }
        assert_eq!(host.tunnel_for_long(server.port).await.err(), Some(Error::Busy));
        tokio::time::timeout(LIMIT, echoes(&host, server.port, 10)).await.expect("a question waits for people");
        open.pop();
        until_ok("somebody has the place that was left", async || host.tunnel_for_long(server.port).await.map(drop)).await;
        server.stop(&host).await;
    }

    async fn a_port_that_nobody_has_is_closed(fleet: Fleet) {
        let error = fleet.host("h1").tunnel(1).await.err().unwrap();
        assert_eq!(error, Error::PortClosed { port: 1 });
    }

    async fn a_server_that_forbids_it_is_told_apart(fleet: Fleet) {
        let root = fleet.host("h3");
        let sshd = Sshd::start(&root, &["AllowTcpForwarding=no"]).await;
        let mut address = fleet.address("h3", "root");
        address.port = sshd.port;
        let error = Host::new(Target::Ssh(address)).tunnel(22).await.err().unwrap();
        assert_eq!(error, Error::NoForwarding);
        sshd.stop().await;
    }

    async fn a_reader_that_is_too_slow_is_cut_and_nobody_else_notices(fleet: Fleet) {
        let host = fleet.host("h3");
        let server = Echo::start(&host).await;
        let mut slow = host.tunnel(server.port).await.unwrap();
        slow.write_all(b"flood").await.unwrap();
        // The others are served while it is flooded, and after it was cut.
        let others = async || {
            tokio::time::timeout(LIMIT, echoes(&host, server.port, 1000)).await.expect("others wait for the slow one");
        };
        others().await;
        until_ok("its socket on the host is closed", async || {
            others().await;
            let open = open_sockets(&host, server.port).await;
            if open == "0" { Ok(()) } else { Err(open) }
        })
        .await;
        others().await;
        let mut got = vec![];
        let error = slow.read_to_end(&mut got).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        assert!((1 << 20..=17 << 20).contains(&got.len()), "{}", got.len());
        server.stop(&host).await;
    }

    async fn what_all_sockets_hold_together_is_bounded(fleet: Fleet) {
        const MOST: usize = 24 << 20;
        remote::memory::set_limit(MOST);
        let host = fleet.host("h3");
        let server = Echo::start(&host).await;
        let mut flooded = vec![];
        for _ in 0..16 {
            let mut socket = host.tunnel(server.port).await.unwrap();
            socket.write_all(b"flood").await.unwrap();
            flooded.push(socket);
        }
        until_ok("all but what fits are closed on the host", async || {
            assert!(remote::memory::held() <= MOST);
            let open = open_sockets(&host, server.port).await;
            if open == "0" { Ok(()) } else { Err(open) }
        })
        .await;
        tokio::time::timeout(LIMIT, echoes(&host, server.port, 1000)).await.expect("who sends little waits for those who flood");
        let mut faults = vec![];
        for socket in &mut flooded {
            faults.push(socket.read_to_end(&mut vec![]).await.unwrap_err().kind());
        }
        assert!(faults.contains(&std::io::ErrorKind::OutOfMemory), "{faults:?}");
        drop(flooded);
        until("nothing is held", async || remote::memory::held() == 0).await;
        remote::memory::set_limit(remote::memory::DEFAULT);
        server.stop(&host).await;
    }

    async fn a_socket_that_is_dropped_is_closed_on_the_host(fleet: Fleet) {
        let host = fleet.host("h1");
        let server = Echo::start(&host).await;
        let mut socket = host.tunnel(server.port).await.unwrap();
        socket.write_all(b"x").await.unwrap();
        assert_eq!(socket.read_u8().await.unwrap(), b'x');
        assert_eq!(open_sockets(&host, server.port).await, "1");
        drop(socket);
        until("it is closed", async || open_sockets(&host, server.port).await == "0").await;
        server.stop(&host).await;
    }
}
