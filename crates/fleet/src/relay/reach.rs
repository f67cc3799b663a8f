//! Opens a connection to an instance: over its server's connection or, if that is not possible, directly to its
//! gateway_url. In both cases the server must first confirm who answers there, if it can be asked.

use std::time::Duration;

use base::{Error, Kind, Result};
use openclaw::config::webhook_port;
use remote::assistant::{Road, Way, straight};
use remote::host::{self, Accepted, Host};
use store::instance::Instance;
use store::server::{self, Server};
use url::Url;

use crate::{App, listener, tenant};

/// Which port of an instance to connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    Gateway,
    /// Where it receives the bot platform's messages. It is reached only over the server's connection.
    Webhook,
}

pub async fn reach(app: &App, instance: &Instance, port: Port) -> Result<Road> {
    let number = match port {
        Port::Gateway => instance.gateway_port.get(),
        Port::Webhook => webhook_port(instance.gateway_port),
    };
    let number = u16::try_from(number).map_err(Error::internal)?;
    let server = server::find(&app.db, &instance.server_id).await?.ok_or(Kind::NotFound)?;
    match over_server(app, &server, instance, port, number).await {
        Ok(way) => Ok(Road::new(way, format!("127.0.0.1:{number}"))),
        Err(error)
            if port == Port::Gateway && tenant::is_direct(instance) && crate::host::allows_direct(&server, &error) =>
        {
            tracing::debug!(%error, instance = %instance.id, "not over its server: straight to its gateway_url");
            let road = straight(&instance.gateway_url).await?;
            require_no_foreigner(app, &server, instance).await?;
            Ok(road)
        }
        Err(error) => Err(error),
    }
}

/// Refuses a direct connection if another user on the instance's server has its port. That the instance itself answers
/// at its own address cannot be proved: the address may be any machine's. But a neighbour who has the port at an
/// address other than loopback must not get the connection.
async fn require_no_foreigner(app: &App, server: &Server, instance: &Instance) -> Result<()> {
    let port = Url::parse(&instance.gateway_url).ok().and_then(|url| url.port_or_known_default());
    let Some(port) = port.filter(|port| *port == instance.gateway_port.number()) else { return Ok(()) };
    let Ok(host) = connect(app, server).await else { return Ok(()) };
    match host.prove(port, &tenant::tenant(instance)?, Accepted::Anywhere).await {
        Ok(()) => Ok(()),
        // No process on the server has the port, so the address is of another machine.
        Err(host::Error::PortClosed { .. }) => Ok(()),
        // An unreachable server cannot be asked. If a reachable one does not answer, the neighbour may be the cause.
        Err(error) if error.is_unreachable() => Ok(()),
        Err(error) => {
            listener::note(app, instance, &error).await;
            Err(error.into())
        }
    }
}

async fn connect(app: &App, server: &Server) -> Result<Host> {
    let target = crate::host::target(&app.sealer, server)?;
    match target {
        // The first contact pins the server's key.
        host::Target::Ssh(_) if server.host_key.is_none() => crate::host::connect(app, server).await,
        // Do not record here that a server is unreachable: browsers reconnect again and again. The health check records
        // it.
        _ => Ok(app.hosts.host(&server.id, &target)),
    }
}

async fn over_server(app: &App, server: &Server, instance: &Instance, port: Port, number: u16) -> Result<Box<dyn Way>> {
    let host = connect(app, server).await?;
    let tenant = tenant::tenant(instance)?;
    let forwarded = match port {
        Port::Gateway => host.forward_for_long(number, &tenant).await,
        Port::Webhook => host.forward(number, &tenant).await,
    };
    match forwarded {
        Ok(socket) => {
            listener::proved(app, instance).await?;
            Ok(Box::new(socket))
        }
        Err(error @ host::Error::Foreign { .. }) => {
            listener::note(app, instance, &error).await;
            Err(error.into())
        }
        Err(host::Error::PortClosed { .. }) => Err(Error::new(Kind::Unavailable, "the instance does not answer")),
        Err(error @ host::Error::Busy) => {
            let full = Error::new(Kind::TooManyRequests, "the instance's server has too many connections");
            Err(full.with_operator(error).retry_after(Duration::from_secs(5)))
        }
        Err(error) => Err(error.into()),
    }
}
