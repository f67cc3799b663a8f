//! The way to an instance: over its server's connection, or straight to its gateway_url where there is no such way.

use std::time::Duration;

use base::id::ServerId;
use base::{Error, Kind, Result};
use openclaw::config::{Bind, webhook_port};
use remote::assistant::{Road, Way, straight};
use remote::host;
use store::instance::Instance;
use store::server::{self, Server};

use crate::App;
use crate::assistant::settings;

/// What of an instance is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    Gateway,
    /// Where it takes the bot platform's messages. Never reached but over the server's connection.
    Webhook,
}

pub async fn reach(app: &App, instance: &Instance, port: Port) -> Result<Road> {
    let number = match port {
        Port::Gateway => instance.gateway_port,
        Port::Webhook => webhook_port(settings::port(instance)?),
    };
    let number = u16::try_from(number).map_err(Error::internal)?;
    let server = server::find(&app.db, &ServerId::named(&instance.server_id)).await?.ok_or(Kind::NotFound)?;
    match over_server(app, &server, port, number).await {
        Ok(way) => Ok(Road::new(way, format!("127.0.0.1:{number}"))),
        Err(error)
            if port == Port::Gateway
                && Bind::for_url(&instance.gateway_url) == Bind::Lan
                && is_no_way(&server, &error) =>
        {
            tracing::debug!(%error, instance = instance.id, "not over its server: straight to its gateway_url");
            straight(&instance.gateway_url).await
        }
        Err(error) => Err(error),
    }
}

/// Whether there is no way over the server at all. One that shows another key than it should is refused, and not gone around.
fn is_no_way(server: &Server, error: &Error) -> bool {
    !crate::host::has_login(server) || matches!(error.kind, Kind::Unavailable | Kind::TimedOut)
}

async fn over_server(app: &App, server: &Server, port: Port, number: u16) -> Result<Box<dyn Way>> {
    let target = crate::host::target(&app.sealer, server)?;
    let host = match target {
        // The first contact pins the server's key.
        host::Target::Ssh(_) if server.host_key.is_empty() => crate::host::connect(app, server).await?,
        // Browsers come back again and again: that a server is away is written down by those who look after servers.
        _ => app.hosts.host(&server.id, &target),
    };
    let forwarded = match port {
        Port::Gateway => host.forward_for_long(number).await,
        Port::Webhook => host.forward(number).await,
    };
    match forwarded {
        Ok(socket) => Ok(Box::new(socket)),
        Err(host::Error::PortClosed { .. }) => Err(Error::new(Kind::Unavailable, "the instance does not answer")),
        Err(error @ host::Error::Busy) => {
            let full = Error::new(Kind::TooManyRequests, "the instance's server has too many connections");
            Err(full.with_operator(error).retry_after(Duration::from_secs(5)))
        }
        Err(error) => Err(error.into()),
    }
}
