//! The browser's side of a live chat: a socket through the relay or directly to the gateway, idle or talking.

use std::time::{Duration, Instant};

use base::{Error, Result, Secret};
use futures_util::{SinkExt as _, StreamExt as _};
use openclaw::frame::{Frame, Request, Scope, connect};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::{sleep, sleep_until};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::bench::sweep;

/// The employee and the instance of a socket.
#[derive(Clone)]
pub struct Seat {
    pub server: usize,
    pub place: usize,
    /// The employee's login.
    pub token: Secret,
    pub talks: bool,
}

/// How to connect to an instance.
#[derive(Clone)]
pub enum Way {
    /// Directly to the gateways, at this port.
    Straight(u16),
    /// Through the platform that listens here.
    Relay { http: reqwest::Client, listen: String },
}

pub type Socket = WebSocketStream<TcpStream>;

/// Opens a socket and completes its handshake.
pub async fn open(way: &Way, seat: &Seat) -> Result<Socket> {
    match way {
        Way::Straight(port) => straight(*port, seat).await,
        Way::Relay { http, listen } => relay(http, listen, seat).await,
    }
}

async fn straight(port: u16, seat: &Seat) -> Result<Socket> {
    let mut stream = stream(&format!("127.0.0.1:{port}")).await?;
    let line = format!("{} {}\n", sweep::user(seat.server), sweep::port(seat.place));
    stream.write_all(line.as_bytes()).await.map_err(Error::internal)?;
    let (mut socket, _) = client_async("ws://127.0.0.1/", stream).await.map_err(Error::internal)?;
    until(&mut socket, |frame| matches!(frame, Frame::Event(event) if event.event == "connect.challenge")).await?;
    let hello = connect("hello", &Secret::new(sweep::TOKEN), Scope::CHAT, None);
    socket.send(Message::text(hello.expose())).await.map_err(Error::internal)?;
    answered(&mut socket, "hello").await?;
    Ok(socket)
}

async fn relay(http: &reqwest::Client, listen: &str, seat: &Seat) -> Result<Socket> {
    let instance = sweep::instance(seat.server, seat.place);
    let url = format!("http://{listen}/api/v1/me/instances/{instance}/ws-ticket");
    let answer = http.post(url).bearer_auth(seat.token.expose()).send().await.map_err(Error::internal)?;
    let body: Value = answer.json().await.map_err(Error::internal)?;
    let ticket = body["data"]["ticket"].as_str().ok_or_else(|| Error::internal(&body))?;
    let url = format!("ws://{listen}/api/v1/me/instances/{instance}/ws?ticket={ticket}");
    let (mut socket, _) = client_async(url, stream(listen).await?).await.map_err(Error::internal)?;
    until(&mut socket, |frame| matches!(frame, Frame::Event(event) if event.event == "relay.hello")).await?;
    Ok(socket)
}

async fn stream(address: &str) -> Result<TcpStream> {
    let stream = TcpStream::connect(address).await.map_err(Error::internal)?;
    stream.set_nodelay(true).map_err(Error::internal)?;
    Ok(stream)
}

/// The same, with retries, as a page does after a refusal.
pub async fn open_at_last(way: &Way, seat: &Seat, limit: Duration) -> Result<Socket> {
    let began = Instant::now();
    loop {
        match open(way, seat).await {
            Ok(socket) => return Ok(socket),
            Err(error) if began.elapsed() > limit => return Err(error),
            Err(_) => sleep(Duration::from_millis(250)).await,
        }
    }
}

async fn next(socket: &mut Socket) -> Result<Frame> {
    loop {
        match socket.next().await {
            Some(Ok(Message::Text(text))) => return Frame::parse(&text),
            Some(Ok(Message::Close(close))) => return Err(Error::internal(format_args!("closed: {close:?}"))),
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(Error::internal(error)),
            None => return Err(Error::internal("the socket ended")),
        }
    }
}

async fn until(socket: &mut Socket, is_last: impl Fn(&Frame) -> bool) -> Result<()> {
    while !is_last(&next(socket).await?) {}
    Ok(())
}

async fn answered(socket: &mut Socket, id: &str) -> Result<()> {
    until(socket, |frame| matches!(frame, Frame::Response(response) if response.id == id && response.outcome.is_ok()))
        .await
}

/// Keeps the socket open until the end. If the seat talks, sends a message each second and measures how long the answer
/// takes.
pub async fn stay(mut socket: Socket, seat: Seat, end: Instant) -> Result<Vec<Duration>> {
    let mut took = vec![];
    let last = tokio::time::Instant::from_std(end);
    // Spread the first messages over a second.
    let mut due =
        tokio::time::Instant::now() + Duration::from_millis((seat.server * 97 + seat.place * 31) as u64 % 1000);
    while due < last && seat.talks {
        listen_until(&mut socket, due).await?;
        let id = took.len().to_string();
        let key = base::id::fresh();
        let said = Request::chat_send(&id, "agent:main:main", "count 5", &key, &[]).to_text();
        let asked = Instant::now();
        socket.send(Message::text(said)).await.map_err(Error::internal)?;
        answered(&mut socket, &id).await?;
        took.push(asked.elapsed());
        due += Duration::from_secs(1);
    }
    listen_until(&mut socket, last).await?;
    Ok(took)
}

async fn listen_until(socket: &mut Socket, end: tokio::time::Instant) -> Result<()> {
    loop {
        tokio::select! {
            () = sleep_until(end) => return Ok(()),
            heard = next(socket) => heard.map(drop)?,
        }
    }
}
