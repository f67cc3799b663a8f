//! The check when a server cannot be reached over SSH: /healthz, a WebSocket handshake and one RPC at the instance's own
//! address, unless that is the loopback of another machine. The key is checked as usual.

use std::time::{Duration, Instant};

use base::{Error, Result};
use bytes::Bytes;
use http_body_util::Full;
use openclaw::config::Bind;
use openclaw::frame::{Request, Scope};
use openclaw::program;
use remote::assistant::{Road, send, straight};
use remote::host::Host;
use store::instance::Instance;
use store::instance_health::Layer;
use store::server::Server;
use tokio::time::{timeout, timeout_at};

use super::judge::Found;
use super::{Seen, key};
use crate::relay::reach::{self, Port};
use crate::rpc::Rpc;
use crate::sweep::Member;
use crate::{App, host, tenant};

/// Timeout of all requests to the instance together.
const LIMIT: Duration = Duration::from_secs(5);
/// The same where the server is asked first who has the port.
const ADDRESS: Duration = Duration::from_secs(15);

/// Checks an instance whose server could not be reached because of `error`.
pub(super) async fn check(app: &App, server: &Server, member: &Member, error: &Error) -> Seen {
    if !member.is_there() {
        return Seen::new(Found::NotThere, Layer::None, "it was not brought to its server yet");
    }
    let instance = &member.instance;
    let away = format!("the server cannot be reached: {}", error.client);
    let failed = |layer, detail| Seen { unreachable: true, ..Seen::new(Found::Failed, layer, detail) };
    // The instance's token must not be sent to a machine whose identity the server's connection did not confirm.
    if !host::allows_direct(server, error) {
        return failed(Layer::Ssh, away);
    }
    let (began, until) = (Instant::now(), tokio::time::Instant::now() + LIMIT);
    // If /healthz does not answer either, the result is of the layer `ssh`, because the server cannot be reached.
    match timeout_at(until, healthz(server, instance)).await {
        Ok(Ok(None)) => return failed(Layer::Ssh, away),
        Ok(Ok(Some(200..300))) => {}
        Ok(Ok(Some(status))) => return failed(Layer::Ssh, format!("{away}; /healthz answers {status}")),
        Ok(Err(_)) | Err(_) => return failed(Layer::Ssh, format!("{away}; /healthz does not answer")),
    }
    let called = timeout_at(until, call(app, server, instance)).await;
    let problem = match called {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(error.client.into_owned()),
        Err(_) => Some("the gateway does not answer within 5 s".to_owned()),
    };
    if let Some(problem) = problem {
        return failed(Layer::WebSocket, format!("{away}; alive, but wedged: {problem}"));
    }
    let latency_ms = i64::try_from(began.elapsed().as_millis()).ok();
    let key = key(app, instance).await;
    let detail = format!("{away}; its own address answers; {}", key.detail);
    Seen { latency_ms, unreachable: true, ..Seen::new(key.found, key.layer, detail) }
}

/// Checks an instance of which nothing is known on its server: it answers at its own address, or it does not.
pub(super) async fn at_its_address(app: &App, member: &Member) -> Seen {
    let (instance, began) = (&member.instance, Instant::now());
    let called = async {
        let road = reach::reach(app, instance, Port::Gateway).await?;
        let mut rpc = Rpc::over(app, road, instance, Scope::LOOK).await?;
        Ok::<(), Error>(rpc.require_answer(Request::health).await?)
    };
    let failed = |detail| Seen { unreachable: true, ..Seen::new(Found::Failed, Layer::WebSocket, detail) };
    match timeout(ADDRESS, called).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return failed(format!("its own address does not answer: {}", error.client)),
        Err(_) => return failed(format!("its own address did not answer within {} s", ADDRESS.as_secs())),
    }
    let latency_ms = i64::try_from(began.elapsed().as_millis()).ok();
    Seen { latency_ms, unreachable: true, ..Seen::new(Found::Passed, Layer::WebSocket, "its own address answers") }
}

/// The status of /healthz at the instance's own address; `None` if that is the loopback of another machine.
async fn healthz(server: &Server, instance: &Instance) -> Result<Option<u16>> {
    let Some(road) = road(server, instance).await? else { return Ok(None) };
    let request = http::Request::get(program::HEALTH).body(Full::new(Bytes::new())).map_err(Error::internal)?;
    Ok(Some(send(road, request).await?.status().as_u16()))
}

/// Does the handshake and one RPC. A gateway grants scopes to approved devices only when it is dialled directly, so a
/// refusal for a missing scope is as good an answer as any.
async fn call(app: &App, server: &Server, instance: &Instance) -> Result<()> {
    let road =
        road(server, instance).await?.ok_or_else(|| Error::conflict("the instance has no address of its own"))?;
    let mut rpc = Rpc::over(app, road, instance, Scope::LOOK).await?;
    Ok(rpc.require_answer(Request::health).await?)
}

async fn road(server: &Server, instance: &Instance) -> Result<Option<Road>> {
    match Bind::for_url(&instance.gateway_url) {
        Bind::Lan => straight(&instance.gateway_url).await.map(Some),
        Bind::Loopback if server.host == host::LOCAL => {
            let port = instance.gateway_port.number();
            let socket = Host::local().forward(port, &tenant::tenant(instance)?).await?;
            Ok(Some(Road::new(Box::new(socket), format!("127.0.0.1:{port}"))))
        }
        Bind::Loopback => Ok(None),
    }
}
