//! The handshake with a gateway, done by the platform: the browser never sees the token.

use std::time::Duration;

use base::{Error, Kind};
use futures_util::{SinkExt as _, StreamExt as _};
use openclaw::frame::{self, ALLOWED, Challenge, Frame, Hello, Refusal, Response, Said, Scope};
use remote::assistant::{self, CloseFrame, Message, Socket};
use serde_json::json;
use store::instance::Instance;
use store::server;
use tokio::time::{Instant, sleep, timeout};

use super::End;
use super::reach::{Port, reach};
use crate::{App, host, platform_device};

/// Timeout of the handshake. A gateway that has just started is slow.
const HELLO: Duration = Duration::from_secs(15);
/// How long to retry while the gateway reports that it is starting.
const STARTING: Duration = Duration::from_secs(5);

/// Opens a connection with the scopes for chat; also returns the hello frame for the browser.
pub async fn connect(app: &App, instance: &Instance) -> Result<(Socket, String), End> {
    let began = Instant::now();
    let mut is_approved = false;
    loop {
        let road = reach(app, instance, Port::Gateway).await.map_err(End::from)?;
        let road = road.at_first(frame::MAX_BEFORE_HELLO);
        let mut socket = assistant::dial(road, None, frame::MAX_BYTES).await.map_err(End::from)?;
        let greeted = timeout(HELLO, greet(app, instance, &mut socket)).await;
        match greeted.unwrap_or_else(|_| Err(Greeting::Lost(None))) {
            Ok(hello) => {
                // It has proved to be a gateway, so the limit on its first bytes ends. The limits on each message and
                // on the memory of all sockets remain.
                let meter = socket.get_ref().meter();
                meter.allow(usize::MAX);
                meter.passed_on();
                return Ok((socket, hello));
            }
            Err(Greeting::Starting(after)) if began.elapsed() + after < STARTING => sleep(after).await,
            Err(Greeting::Starting(_)) => return Err(End::new(End::LATER, "the instance is starting")),
            Err(Greeting::NotPaired(_)) if !is_approved => {
                approve(app, instance).await.map_err(End::from)?;
                is_approved = true;
            }
            Err(Greeting::Refused(error) | Greeting::NotPaired(error)) => return Err(End::from(error)),
            Err(Greeting::Lost(close)) => return Err(End::of_gateway(close)),
        }
    }
}

/// Has the platform itself approved as a device of the gateway.
async fn approve(app: &App, instance: &Instance) -> Result<(), Error> {
    let server = server::find(&app.db, &instance.server_id).await?.ok_or(Kind::NotFound)?;
    let host = host::reach(app, &server).await?;
    platform_device::approve(app, &host, instance).await
}

enum Greeting {
    Starting(Duration),
    /// The platform's device is not approved there.
    NotPaired(Error),
    Refused(Error),
    Lost(Option<CloseFrame>),
}

async fn greet(app: &App, instance: &Instance, socket: &mut Socket) -> Result<String, Greeting> {
    let token = instance.token(&app.sealer).map_err(|e| Greeting::Refused(e.into()))?;
    let device = platform_device::of(&app.sealer, instance).map_err(Greeting::Refused)?;
    let mut asked = false;
    while let Some(message) = socket.next().await {
        let text = match message.map_err(|_| Greeting::Lost(None))? {
            Message::Text(text) => text,
            Message::Close(close) => return Err(Greeting::Lost(close)),
            _ => continue,
        };
        match Said::parse(&text).map_err(Greeting::Refused)? {
            // The gateway sends the first frame.
            Said::Event(event) if event == "connect.challenge" && !asked => {
                asked = true;
                let challenge = Challenge::read(&text);
                let device = device.as_ref().map(|device| (device, &challenge));
                let connect = frame::connect("connect", &token, Scope::CHAT, device);
                socket.send(Message::text(connect.expose())).await.map_err(|_| Greeting::Lost(None))?;
            }
            Said::Response(id) if id == "connect" => {
                if let Frame::Response(response) = Frame::parse(&text).map_err(Greeting::Refused)? {
                    return read(&response, device.is_some());
                }
            }
            _ => {}
        }
    }
    Err(Greeting::Lost(None))
}

fn read(response: &Response, is_device: bool) -> Result<String, Greeting> {
    if let Err(error) = &response.outcome {
        return Err(match error.refusal() {
            Refusal::Starting => {
                Greeting::Starting(Duration::from_millis(error.retry_after_ms.unwrap_or(500).clamp(100, 2000)))
            }
            Refusal::NotPaired if is_device => Greeting::NotPaired(Error { kind: Kind::Gateway, ..error.to_error() }),
            _ => Greeting::Refused(Error { kind: Kind::Gateway, ..error.to_error() }),
        });
    }
    let hello: Hello = response.read().map_err(Greeting::Refused)?;
    if !hello.grants(Scope::CHAT) {
        let error = Error::new(Kind::Gateway, "the instance does not let the platform chat");
        return Err(Greeting::Refused(error.with_operator("fewer scopes were granted than asked for")));
    }
    let methods: Vec<&str> = ALLOWED.iter().copied().filter(|method| hello.has(method)).collect();
    let frame = json!({
        "type": "event",
        "event": "relay.hello",
        "payload": {
            "protocol": hello.protocol,
            "server": {"version": hello.server.version},
            "methods": methods,
            "policy": {
                "maxPayload": hello.policy.max_payload.min(frame::MAX_BYTES),
                "tickIntervalMs": hello.policy.tick_interval_ms,
                "attachments": {
                    "maxBytes": hello.policy.attachments.max_bytes,
                    "maxImageBytes": hello.policy.attachments.max_image_bytes,
                },
            },
        },
    });
    Ok(frame.to_string())
}
