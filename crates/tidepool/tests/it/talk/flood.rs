//! Gateways that send more than anybody wants: before the hello, after it, as a page. What the platform holds of all of them stays under a
//! bound, and who sends little is served as ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use testkit::{until, until_ok};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::neighbour::shown;
use crate::kit::Database;
use crate::kit::talk::{Client, Closed, Talk, ticket, words};

const GATEWAYS: usize = 64;
const OF_A_USER: usize = 16;
/// What unfinished answers may hold here, all together.
const SOCKET_MEMORY: usize = 32 << 20;
/// How much the platform may grow under all of these gateways: what they may hold, as much again that the allocator keeps, and the
/// sockets, tasks and pages of 64 people. The hostile gateways themselves are in it, since they are in this process.
const BOUND: usize = 160 << 20;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Flood {
    /// One frame of 25 MB, of which a tree would take a gigabyte.
    BeforeHello,
    /// A proper hello, and then one frame of 4 MB after the other.
    AfterHello,
    /// A page without an end.
    Page,
}

struct Gateway {
    port: u16,
    serving: tokio::task::JoinHandle<()>,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Gateway {
    async fn start(flood: Flood) -> Gateway {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let serving = tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                // Whoever hangs up ends it.
                tokio::spawn(async move { serve(socket, flood).await.ok() });
            }
        });
        Gateway { port, serving }
    }
}

async fn serve(mut socket: TcpStream, flood: Flood) -> std::io::Result<()> {
    let mut head = vec![];
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let key =
        head.lines().find_map(|line| line.to_ascii_lowercase().starts_with("sec-websocket-key").then(|| &line[18..]));
    let Some(key) = key else {
        socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n").await?;
        return pour(&mut socket, usize::MAX).await;
    };
    let accept = derive_accept_key(key.trim().as_bytes());
    let upgrade = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
    );
    socket.write_all(upgrade.as_bytes()).await?;
    if flood == Flood::AfterHello {
        let challenge = json!({"type": "event", "event": "connect.challenge", "payload": {"nonce": "n", "ts": 1}});
        say(&mut socket, &challenge.to_string()).await?;
        socket.read_u8().await?;
        let hello = json!({"type": "res", "id": "connect", "ok": true, "payload": {"protocol": 4, "server": {"version": "2026.9.6"},
            "features": {"methods": ["chat.send"]}, "auth": {"scopes": ["operator.read", "operator.write"]}}});
        say(&mut socket, &hello.to_string()).await?;
    }
    loop {
        let begun = br#"{"type":"event","event":"connect.challenge","payload":["#;
        // After the hello so little that some fit, and wait.
        let size: u64 = if flood == Flood::AfterHello { 4 << 20 } else { 26_214_400 };
        socket.write_all(&[&[0x81, 127], size.to_be_bytes().as_slice(), begun].concat()).await?;
        pour(&mut socket, size as usize - begun.len() - 4).await?;
        socket.write_all(b"[]]}").await?;
    }
}

async fn say(socket: &mut TcpStream, text: &str) -> std::io::Result<()> {
    let size = u16::try_from(text.len()).unwrap();
    socket.write_all(&[&[0x81, 126], size.to_be_bytes().as_slice(), text.as_bytes()].concat()).await
}

/// What is small as a text and large as a tree.
async fn pour(socket: &mut TcpStream, mut bytes: usize) -> std::io::Result<()> {
    static PIECE: [u8; 64 * 1024] = {
        let mut piece = [b'0'; 64 * 1024];
        let mut at = 1;
        while at < piece.len() {
            piece[at] = b',';
            at += 2;
        }
        piece
    };
    while bytes > 0 {
        let size = bytes.min(PIECE.len());
        socket.write_all(&PIECE[..size]).await?;
        bytes -= size;
    }
    Ok(())
}

/// The most memory that the process had since this was made.
struct Peak {
    before: usize,
    most: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

fn memory() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * rustix::param::page_size()
}

impl Peak {
    fn begin() -> Peak {
        let (most, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (seen, ended) = (most.clone(), stop.clone());
        std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                seen.fetch_max(memory(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        Peak { before: memory(), most, stop }
    }

    fn grown(&self) -> usize {
        self.most.load(Ordering::Relaxed).saturating_sub(self.before)
    }
}

impl Drop for Peak {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Instances with gateways of this kind, each on a server record of its own; whose token opens which.
async fn hostile(talk: &Talk, flood: Flood) -> (Vec<Gateway>, Vec<(String, String)>) {
    let site = &talk.site;
    let (mut gateways, mut seats) = (vec![], vec![]);
    let mut token = String::new();
    for number in 0..GATEWAYS {
        if number % OF_A_USER == 0 {
            token = site.quick_employee(&format!("user{number}@example.com")).await.1;
        }
        let gateway = Gateway::start(flood).await;
        let (server, id) = (format!("s{number}"), format!("h{number}"));
        let body = json!({"id": server, "name": server, "host": "local"});
        site.admin.post("/servers", body).token(&site.root).ok().await;
        let body = json!({"id": id, "name": id, "server_id": server, "gateway_port": gateway.port, "gateway_token": "a-token-of-nobody"});
        site.admin.post("/assistant-instances", body).token(&site.root).ok().await;
        let me = site.employee.get("/me").token(&token).ok().await;
        site.admin.patch(&format!("/instances/{id}/assign"), json!({"user_id": me["id"]})).token(&site.root).ok().await;
        gateways.push(gateway);
        seats.push((id, token.clone()));
    }
    (gateways, seats)
}

async fn enter(talk: &Talk, (id, token): &(String, String)) -> Client {
    let employee = &talk.site.employee;
    Client::open(employee, id, &ticket(employee, token, id).await, &[]).await.unwrap()
}

async fn talk() -> Talk {
    let talk = Talk::start(Database::sqlite()).await;
    remote::memory::set_limit(SOCKET_MEMORY);
    // As everything is when somebody has talked.
    let mut client = talk.connect().await;
    client.send("warm", "count 3").await;
    client.chat("warm", "final").await;
    talk
}

/// Somebody else is served meanwhile, and afterwards nothing is held.
async fn others_go_on(talk: &Talk, run: &str) {
    let mut client = talk.connect().await;
    client.send(run, "count 3").await;
    assert!(words(&client.chat(run, "final").await).ends_with("word3 "));
}

async fn all_is_given_back() {
    until_ok("nothing is held", async || match remote::memory::held() {
        0 => Ok(()),
        held => Err(held),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_sixty_four_gateways_that_flood_before_the_hello_cost_little() {
    let talk = talk().await;
    let (_gateways, seats) = hostile(&talk, Flood::BeforeHello).await;
    let peak = Peak::begin();
    let ends = join_all(seats.iter().map(async |seat| enter(&talk, seat).await.closed().await)).await;
    for end in ends {
        assert_eq!(end, Closed(1011, "the connection to the instance was lost".into()));
    }
    // The same question as a health check asks.
    for (id, token) in &seats {
        let device = json!({"request_id": "r", "device_id": "d"});
        let path = format!("/me/instances/{id}/devices");
        talk.site.employee.post(&path, device).token(token).refused("5020").await;
    }
    others_go_on(&talk, "run-1").await;
    assert!(peak.grown() < BOUND, "{} MiB", peak.grown() >> 20);
    eprintln!("measured: {} MiB under {GATEWAYS} gateways before the hello", peak.grown() >> 20);
    all_is_given_back().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_sixty_four_gateways_that_flood_readers_of_nothing_cost_little() {
    let talk = talk().await;
    let (_gateways, seats) = hostile(&talk, Flood::AfterHello).await;
    let peak = Peak::begin();
    let mut clients = join_all(seats.iter().map(|seat| enter(&talk, seat))).await;
    // Some wait for their browsers with what they hold, and there is no room for the others.
    until("most are refused", async || talk.site.app.sockets.count() <= GATEWAYS / 8).await;
    let held = remote::memory::held();
    assert!(held > SOCKET_MEMORY / 4 && held <= SOCKET_MEMORY, "{held}");
    others_go_on(&talk, "run-1").await;
    let grown = peak.grown();
    assert!(grown < BOUND, "{} MiB", grown >> 20);
    // Those that wait are flooded on as soon as they read.
    let end =
        async |client: &mut Client| tokio::time::timeout(Duration::from_secs(5), client.ended()).await.ok().flatten();
    let ends = join_all(clients.iter_mut().map(end)).await;
    let full = ends.iter().filter(|end| **end == Some(1013)).count();
    assert!(full >= GATEWAYS / 2, "{ends:?}");
    eprintln!("measured: {} MiB under {GATEWAYS} gateways after the hello; {full} were refused", grown >> 20);
    drop(clients);
    all_is_given_back().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_sixty_four_pages_without_an_end_cost_little() {
    let talk = talk().await;
    let (_gateways, seats) = hostile(&talk, Flood::Page).await;
    let peak = Peak::begin();
    let pages = seats.iter().map(async |(id, token)| {
        let path = format!("/me/instances/{id}/embed-ticket");
        let answer = talk.site.employee.post(&path, json!({})).token(token).ok().await;
        let url = answer["url"].as_str().unwrap().split('#').next().unwrap().to_owned();
        shown(&url).await
    });
    let shown = join_all(pages).await;
    assert!(shown.iter().all(|status| matches!(status, 502 | 503)), "{shown:?}");
    others_go_on(&talk, "run-1").await;
    assert!(peak.grown() < BOUND, "{} MiB", peak.grown() >> 20);
    eprintln!("measured: {} MiB under {GATEWAYS} pages", peak.grown() >> 20);
    all_is_given_back().await;
}
