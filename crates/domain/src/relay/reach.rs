//! The way to an instance: over its server's connection, or straight to its gateway_url where there is no such way.

use base::id::ServerId;
use base::{Error, Kind, Result};
use openclaw::config::{Bind, webhook_port};
use remote::assistant::{Way, straight};
use remote::host;
use store::instance::Instance;
use store::server;
use url::Url;

use crate::App;
use crate::assistant::settings;

/// What of an instance is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    Gateway,
    /// Where it takes the bot platform's messages. Never reached but over the server's connection.
    Webhook,
}

/// Bytes both ways, and the host that a request over them names.
pub async fn reach(app: &App, instance: &Instance, port: Port) -> Result<(Box<dyn Way>, String)> {
    let number = match port {
        Port::Gateway => instance.gateway_port,
        Port::Webhook => webhook_port(settings::port(instance)?),
    };
    let number = u16::try_from(number).map_err(Error::internal)?;
    match over_server(app, instance, number).await {
        Ok(way) => Ok((way, format!("127.0.0.1:{number}"))),
        Err(error) if port == Port::Gateway && Bind::for_url(&instance.gateway_url) == Bind::Lan => {
            tracing::debug!(%error, instance = instance.id, "not over its server: straight to its gateway_url");
            let way = straight(&instance.gateway_url).await?;
            let host = Url::parse(&instance.gateway_url).ok();
            Ok((way, host.map(|url| url.authority().to_owned()).unwrap_or_default()))
        }
        Err(error) => Err(error),
    }
}

async fn over_server(app: &App, instance: &Instance, port: u16) -> Result<Box<dyn Way>> {
    let server = server::find(&app.db, &ServerId::named(&instance.server_id)).await?.ok_or(Kind::NotFound)?;
    let target = crate::host::target(app, &server)?;
    let host = match target {
        // The first contact pins the server's key.
        host::Target::Ssh(_) if server.host_key.is_empty() => crate::host::connect(app, &server).await?,
        // Browsers come back again and again: that a server is away is written down by those who look after servers.
        _ => app.hosts.host(&server.id, &target),
    };
    match host.forward(port).await {
        Ok(socket) => Ok(Box::new(socket)),
        Err(host::Error::PortClosed { .. }) => Err(Error::new(Kind::Unavailable, "the instance does not answer")),
        Err(error) => Err(error.into()),
    }
}
