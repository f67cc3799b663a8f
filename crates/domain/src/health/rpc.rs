//! A conversation with an instance's gateway over its server's connection: a bound port and a green page are no proof
//! that it works, a handshake and an answer are. The token is shown to nobody but the instance's own gateway.

use std::io::ErrorKind;
use std::time::Duration;

use base::{Error, Kind};
use futures_util::{SinkExt as _, StreamExt as _};
use openclaw::frame::{Frame, Request, Scope, connect};
use remote::host::{Error as HostError, Forwarded, Host};
use serde_json::Value;
use store::instance::Instance;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::{App, listener};

const LIMIT: Duration = Duration::from_secs(5);
/// Until there is a socket, and the server has said whose it is.
const WAY: Duration = Duration::from_secs(10);

/// Why there is no answer.
#[derive(Debug)]
pub enum Silence {
    /// Nobody got as far as the gateway: that says nothing of it.
    NoWay(Error),
    /// The gateway is not there, or does not answer as it must.
    Wedged(Error),
    /// Something else holds its port, and was told nothing.
    Foreign(Error),
}

impl From<Error> for Silence {
    fn from(error: Error) -> Silence {
        Silence::Wedged(error)
    }
}

impl From<Silence> for Error {
    fn from(silence: Silence) -> Error {
        match silence {
            Silence::NoWay(error) | Silence::Wedged(error) | Silence::Foreign(error) => error,
        }
    }
}

type Heard<T> = std::result::Result<T, Silence>;

pub struct Rpc {
    socket: WebSocketStream<Forwarded>,
    next: u32,
}

impl Rpc {
    /// Shakes hands, within five seconds from when the gateway was reached.
    pub async fn open(app: &App, host: &Host, instance: &Instance, scopes: &[Scope]) -> Heard<Rpc> {
        let port = u16::try_from(instance.gateway_port).map_err(Error::internal)?;
        let token = instance.token(&app.sealer).map_err(Error::from)?;
        let stream = way(app, host, instance, port).await?;
        let opened = async {
            let (socket, _) = client_async(format!("ws://127.0.0.1:{port}/"), stream).await.map_err(odd)?;
            let mut rpc = Rpc { socket, next: 1 };
            // The challenge comes first; what it asks for is for browsers.
            rpc.next_event("connect.challenge").await?;
            rpc.socket.send(Message::text(connect("1", &token, scopes).expose())).await.map_err(odd)?;
            rpc.answer("1").await?;
            Ok::<_, Silence>(rpc)
        };
        timeout(LIMIT, opened).await.unwrap_or_else(|_| Err(late()))
    }

    /// One question and its answer, within five seconds.
    pub async fn call(&mut self, make: impl FnOnce(String) -> Request) -> Heard<Value> {
        self.next += 1;
        let id = self.next.to_string();
        let text = make(id.clone()).to_text();
        let asked = async {
            self.socket.send(Message::text(text)).await.map_err(odd)?;
            self.answer(&id).await
        };
        timeout(LIMIT, asked).await.unwrap_or_else(|_| Err(late()))
    }

    async fn answer(&mut self, id: &str) -> Heard<Value> {
        loop {
            if let Frame::Response(response) = self.frame().await?
                && response.id == id
            {
                return Ok(response.outcome.map_err(|error| error.to_error())?);
            }
        }
    }

    async fn next_event(&mut self, name: &str) -> Heard<()> {
        loop {
            if let Frame::Event(event) = self.frame().await?
                && event.event == name
            {
                return Ok(());
            }
        }
    }

    async fn frame(&mut self) -> Heard<Frame> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => return Ok(Frame::parse(text.as_str())?),
                Some(Ok(Message::Close(_))) | None => {
                    return Err(Error::new(Kind::Gateway, "the gateway closed the connection").into());
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(odd(error)),
            }
        }
    }
}

/// The way to the gateway's port, over its server's connection.
async fn way(app: &App, host: &Host, instance: &Instance, port: u16) -> Heard<Forwarded> {
    let tenant = listener::tenant(instance)?;
    match timeout(WAY, host.forward(port, &tenant)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error @ HostError::Foreign { .. })) => {
            listener::note(app, instance, &error).await;
            Err(Silence::Foreign(error.into()))
        }
        Ok(Err(error @ HostError::PortClosed { .. })) => Err(Silence::Wedged(error.into())),
        Ok(Err(error)) => Err(Silence::NoWay(error.into())),
        Err(_) => Err(Silence::NoWay(Error::new(Kind::TimedOut, "the server has no connection left for it"))),
    }
}

fn odd(error: tungstenite::Error) -> Silence {
    match error {
        // So ends a tunnel whose server's connection was lost; a gateway that goes away ends it properly.
        tungstenite::Error::Io(lost) if lost.kind() == ErrorKind::ConnectionReset => {
            Silence::NoWay(Error::new(Kind::Unavailable, "the connection to its server was lost").with_operator(lost))
        }
        other => Silence::Wedged(
            Error::new(Kind::Gateway, "the gateway's WebSocket does not answer as it should").with_operator(other),
        ),
    }
}

fn late() -> Silence {
    Silence::Wedged(Error::new(Kind::TimedOut, "the gateway is alive but does not answer within 5 s"))
}
