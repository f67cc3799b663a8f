//! RPC with an instance's gateway, as a rule over its server's connection. An open port and a healthy /healthz do not
//! prove that it works; a handshake and an answer do. Over the server, the token is sent only to the instance's own
//! gateway.

use std::io::ErrorKind;
use std::time::Duration;

use base::{Error, Kind};
use futures_util::{SinkExt as _, StreamExt as _};
use openclaw::frame::{
    Challenge, MAX_BEFORE_HELLO, Refusal, Request, Said, Scope, accepted, connect, payload, refusal,
};
use remote::assistant::{Message, Road, Socket, SocketError, Utf8Bytes, is_out_of_memory, upgrade};
use remote::host::{Error as HostError, Forwarded, Host};
use serde::de::DeserializeOwned;
use store::instance::Instance;
use tokio::time::timeout;

use crate::{App, listener, platform_device, tenant};

const LIMIT: Duration = Duration::from_secs(5);
/// Timeout until there is a socket and the server has confirmed whose it is.
const WAY: Duration = Duration::from_secs(10);

/// The maximum size of an answer; a list of all sessions has some hundred kilobytes.
const LONGEST: usize = 4 << 20;

/// Why there is no answer.
#[derive(Debug)]
pub enum Silence {
    /// The gateway was not reached, so nothing is known about it.
    NoWay(Error),
    /// The gateway does not run, or does not answer correctly.
    Wedged(Error),
    /// Another process has its port. Nothing was sent to that process.
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

type Heard<T> = Result<T, Silence>;

/// Why a handshake ended without a connection.
enum Greeting {
    /// The platform's device is not approved there.
    NotPaired(Error),
    Failed(Silence),
}

impl From<Silence> for Greeting {
    fn from(silence: Silence) -> Greeting {
        Greeting::Failed(silence)
    }
}

impl From<Greeting> for Silence {
    fn from(greeting: Greeting) -> Silence {
        match greeting {
            Greeting::NotPaired(error) => Silence::Wedged(error),
            Greeting::Failed(silence) => silence,
        }
    }
}

pub struct Rpc {
    socket: Socket,
    next: u32,
}

impl Rpc {
    /// Connects and does the handshake, which may take five seconds from when the gateway is reached. The first one with a
    /// gateway in a container takes longer: the platform is approved there.
    pub async fn open(app: &App, host: &Host, instance: &Instance, scopes: &[Scope]) -> Heard<Rpc> {
        let port = instance.gateway_port.number();
        let road = async || -> Heard<Road> {
            Ok(Road::new(Box::new(way(app, host, instance, port).await?), format!("127.0.0.1:{port}")))
        };
        match Rpc::greet(app, road().await?, instance, scopes).await {
            Err(Greeting::NotPaired(_)) => {
                platform_device::approve(app, host, instance).await?;
                Rpc::over(app, road().await?, instance, scopes).await
            }
            greeted => greeted.map_err(Silence::from),
        }
    }

    /// The same over a connection that the caller has opened, and whose other end it trusts with the token.
    pub async fn over(app: &App, road: Road, instance: &Instance, scopes: &[Scope]) -> Heard<Rpc> {
        Ok(Rpc::greet(app, road, instance, scopes).await?)
    }

    async fn greet(app: &App, road: Road, instance: &Instance, scopes: &[Scope]) -> Result<Rpc, Greeting> {
        let token = instance.token(&app.sealer).map_err(Error::from).map_err(Silence::from)?;
        let device = platform_device::of(&app.sealer, instance).map_err(Silence::from)?;
        let opened = async {
            let road = road.at_first(MAX_BEFORE_HELLO);
            let mut rpc = Rpc { socket: upgrade(road, None, LONGEST).await.map_err(odd)?, next: 1 };
            // The gateway first sends a challenge. Only a device has to sign it.
            let is_challenge = |said: &Said<'_>| matches!(said, Said::Event(event) if event == "connect.challenge");
            let challenge = Challenge::read(&rpc.heard(is_challenge).await?);
            let hello = connect("1", &token, scopes, device.as_ref().map(|device| (device, &challenge)));
            rpc.socket.send(Message::text(hello.expose())).await.map_err(odd)?;
            let answer = rpc.answer("1").await?;
            match refusal(&answer).map_err(Silence::from)? {
                Some(error) if device.is_some() && error.refusal() == Refusal::NotPaired => {
                    Err(Greeting::NotPaired(error.to_error()))
                }
                Some(error) => Err(Silence::from(error.to_error()).into()),
                None => Ok(rpc),
            }
        };
        timeout(LIMIT, opened).await.unwrap_or_else(|_| Err(late().into()))
    }

    /// Sends one request and returns the payload of its answer, within five seconds.
    pub async fn call<T: DeserializeOwned>(&mut self, make: impl FnOnce(String) -> Request) -> Heard<T> {
        Ok(payload(&self.ask(make).await?)?)
    }

    /// Sends one request and checks only that it was accepted.
    pub async fn require(&mut self, make: impl FnOnce(String) -> Request) -> Heard<()> {
        Ok(accepted(&self.ask(make).await?)?)
    }

    /// The same, but a refusal because the connection lacks the scope counts as an answer too.
    pub async fn require_answer(&mut self, make: impl FnOnce(String) -> Request) -> Heard<()> {
        match refusal(&self.ask(make).await?)? {
            Some(error) if error.refusal() != Refusal::MissingScope => Err(error.to_error().into()),
            _ => Ok(()),
        }
    }

    async fn ask(&mut self, make: impl FnOnce(String) -> Request) -> Heard<Utf8Bytes> {
        self.next += 1;
        let id = self.next.to_string();
        let text = make(id.clone()).to_text();
        // The allowance also covers other frames that arrive before the answer.
        self.socket.get_ref().meter().allow(2 * LONGEST);
        let asked = async {
            self.socket.send(Message::text(text)).await.map_err(odd)?;
            self.answer(&id).await
        };
        timeout(LIMIT, asked).await.unwrap_or_else(|_| Err(late()))
    }

    async fn answer(&mut self, id: &str) -> Heard<Utf8Bytes> {
        self.heard(|said| matches!(said, Said::Response(of) if of == id)).await
    }

    /// Waits for the next text that `is_it` accepts, and skips all others.
    async fn heard(&mut self, is_it: impl Fn(&Said<'_>) -> bool) -> Heard<Utf8Bytes> {
        loop {
            let other = match self.socket.next().await {
                Some(Ok(Message::Text(text))) if is_it(&Said::parse(&text)?) => return Ok(text),
                Some(Ok(Message::Close(_))) | None => {
                    return Err(Error::new(Kind::Gateway, "the gateway closed the connection").into());
                }
                Some(Ok(other)) => other,
                Some(Err(error)) => return Err(odd(error)),
            };
            self.socket.get_ref().meter().left_out(&other);
        }
    }
}

/// Opens a connection to the gateway's port over its server's connection.
async fn way(app: &App, host: &Host, instance: &Instance, port: u16) -> Heard<Forwarded> {
    let tenant = tenant::tenant(instance)?;
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

fn odd(error: SocketError) -> Silence {
    match error {
        // The memory limit of all sockets together is reached, which says nothing about this gateway.
        error if is_out_of_memory(&error) => {
            Silence::NoWay(Error::new(Kind::Unavailable, "too much is under way at present").with_operator(error))
        }
        // A tunnel is reset if the connection to the server is lost. A gateway that stops closes its tunnel properly.
        SocketError::Io(lost) if lost.kind() == ErrorKind::ConnectionReset => {
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
