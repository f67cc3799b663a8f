//! A conversation with an instance's gateway over its server's connection: a bound port and a green page are no proof
//! that it works, a handshake and an answer are.

use std::time::Duration;

use base::{Error, Kind, Result, Secret};
use futures_util::{SinkExt as _, StreamExt as _};
use openclaw::frame::{Frame, Request, Scope, connect};
use remote::host::{Forwarded, Host};
use serde_json::Value;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

const LIMIT: Duration = Duration::from_secs(5);

pub struct Rpc {
    socket: WebSocketStream<Forwarded>,
    next: u32,
}

impl Rpc {
    /// Connects and shakes hands, within five seconds.
    pub async fn open(host: &Host, port: u16, token: &Secret, scopes: &[Scope]) -> Result<Rpc> {
        let opened = async {
            let stream = host.forward(port).await?;
            let (socket, _) = client_async(format!("ws://127.0.0.1:{port}/"), stream).await.map_err(odd)?;
            let mut rpc = Rpc { socket, next: 1 };
            // The challenge comes first; what it asks for is for browsers.
            rpc.next_event("connect.challenge").await?;
            rpc.socket.send(Message::text(connect("1", token, scopes).expose())).await.map_err(odd)?;
            rpc.answer("1").await?;
            Ok(rpc)
        };
        timeout(LIMIT, opened).await.unwrap_or_else(|_| Err(late()))
    }

    /// One question and its answer, within five seconds.
    pub async fn call(&mut self, make: impl FnOnce(String) -> Request) -> Result<Value> {
        self.next += 1;
        let id = self.next.to_string();
        let text = make(id.clone()).to_text();
        let asked = async {
            self.socket.send(Message::text(text)).await.map_err(odd)?;
            self.answer(&id).await
        };
        timeout(LIMIT, asked).await.unwrap_or_else(|_| Err(late()))
    }

    async fn answer(&mut self, id: &str) -> Result<Value> {
        loop {
            if let Frame::Response(response) = self.frame().await?
                && response.id == id
            {
                return response.outcome.map_err(|error| error.to_error());
            }
        }
    }

    async fn next_event(&mut self, name: &str) -> Result<()> {
        loop {
            if let Frame::Event(event) = self.frame().await?
                && event.event == name
            {
                return Ok(());
            }
        }
    }

    async fn frame(&mut self) -> Result<Frame> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => return Frame::parse(text.as_str()),
                Some(Ok(Message::Close(_))) | None => {
                    return Err(Error::new(Kind::Gateway, "the gateway closed the connection"));
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(odd(error)),
            }
        }
    }
}

fn odd(error: impl std::fmt::Display) -> Error {
    Error::new(Kind::Gateway, "the gateway's WebSocket does not answer as it should").with_operator(error)
}

fn late() -> Error {
    Error::new(Kind::TimedOut, "the gateway is alive but does not answer within 5 s")
}
