//! Containers on servers: listed over the server's connection, and stored as they were then.

use base::id::ServerId;
use base::{Error, Result};
use queue::audit::{self, Action, AuditEvent, By};
use remote::host::docker;
pub use remote::host::docker::Action as Verb;
use store::container;
pub use store::container::Container;

use crate::{App, host, server};

/// The containers that are on the server now.
pub async fn list(app: &App, id: &ServerId) -> Result<Vec<Container>> {
    let server = server::find(app, id).await?;
    let host = host::connect(app, &server).await?;
    let found: Vec<Container> = docker::list(&host).await?.into_iter().map(|c| kept(&server.id, c)).collect();
    container::replace(&app.db, id, &found, app.clock.now()).await?;
    Ok(found)
}

fn kept(server: &ServerId, found: docker::Container) -> Container {
    Container {
        id: found.id,
        server_id: server.clone(),
        name: found.name,
        image: found.image,
        status: found.status,
        ports: found.ports,
        created_at: found.created_at.map(|at| at.to_string()).unwrap_or_default(),
    }
}

pub async fn act(app: &App, by: &By, id: &ServerId, container: &str, verb: Verb) -> Result<()> {
    let server = server::find(app, id).await?;
    let host = host::connect(app, &server).await?;
    let done = docker::act(&host, container, verb).await;
    let name: String = container.chars().filter(|c| !c.is_control()).take(100).collect();
    let word = format!("{verb:?}").to_lowercase();
    let detail = match &done {
        Ok(()) => format!("container {name}: {word}"),
        Err(error) => format!("container {name}: {word} failed: {error}"),
    };
    audit::record_alone(app, by, AuditEvent::info(Action::ServerAction, id.as_str(), &detail)).await?;
    done.map_err(Error::from)
}

/// The last lines of the container's log.
pub async fn logs(app: &App, id: &ServerId, container: &str) -> Result<String> {
    let server = server::find(app, id).await?;
    let host = host::connect(app, &server).await?;
    Ok(docker::logs(&host, container).await?)
}
