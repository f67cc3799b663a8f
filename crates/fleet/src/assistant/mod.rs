//! An instance on its server: where it lives (`place`), as whom it runs (`unix_user`, `isolation`), what confines it (`cell`),
//! what is wanted of it (`desired`, `settings`, and its models in `access`) and written (`config`), how it is started and watched (`service`, `health`), what it runs (`install`), its files
//! (`files`), what is kept of it (`archive`), how a change is tried and taken back (`trial`), and which step was begun and is not finished (`pending`).
//!
//! Nothing here decides when something is done: the tasks do.

pub mod access;
pub mod archive;
pub mod cell;
pub mod config;
pub mod desired;
pub mod files;
pub mod health;
pub mod install;
pub mod isolation;
pub mod logs;
pub mod pending;
pub mod place;
pub mod service;
pub mod settings;
pub mod trial;
pub mod unit;
pub mod unix_user;

use std::time::Duration;

use base::id::InstanceId;
use base::{Error, Kind, Result};
use openclaw::Version;
use remote::host::home::Home;
use remote::host::runner::Runner;
use remote::host::{Host, systemd};
use store::instance::{self, Instance};
use store::server::{self, Server};

use crate::{App, host};
pub use place::Place;

/// What holds for all assistants.
#[derive(Clone, Debug)]
pub struct Defaults {
    /// The OpenClaw that servers are prepared with.
    pub version: Version,
    pub npm_registry: String,
    /// Whether a registry that is not the server itself may be asked without TLS.
    pub npm_registry_allow_http: bool,
    /// Checksums of archives of Node and npm that are taken besides ours, as npm writes them.
    pub npm_checksums: Vec<String>,
    /// The LLM gateway as assistants see it.
    pub gateway_url: String,
    /// Origins of our own pages that open an assistant's WebSocket.
    pub origins: Vec<String>,
    /// How long an assistant may take until it is ready.
    pub start_limit: Duration,
    /// How long after the answer to a restart the second look comes.
    pub settle: Duration,
    /// The bytes of memory that must be free for one more assistant.
    pub least_memory: u64,
    /// Whether a server may be the machine itself, on which the platform runs.
    pub local_server: bool,
    /// Whether servers that cannot do what a cell needs get assistants all the same, in cells without it.
    pub weak_cells: bool,
}

impl Default for Defaults {
    fn default() -> Defaults {
        Defaults {
            version: Version::TESTED,
            npm_registry: "https://registry.npmjs.org".into(),
            npm_registry_allow_http: false,
            npm_checksums: vec![],
            gateway_url: String::new(),
            origins: vec![],
            start_limit: Duration::from_secs(120),
            settle: Duration::from_secs(10),
            least_memory: 1 << 30,
            local_server: false,
            weak_cells: false,
        }
    }
}

/// An instance, its server, and the way there.
pub struct Assistant {
    pub instance: Instance,
    pub server: Server,
    pub host: Host,
    pub place: Place,
    /// The generation of our records when they were read, or an older one: what is changed meanwhile counts as not
    /// applied.
    pub generation: i64,
}

impl Assistant {
    /// The instance on its server; one that was never brought there is refused.
    pub async fn open(app: &App, id: &InstanceId) -> Result<Assistant> {
        let generation = store::reconcile::find(&app.db, id).await?.generation;
        let instance = instance::find(&app.db, id).await?.ok_or(Kind::NotFound)?;
        Assistant::at(app, instance, generation)
            .await?
            .ok_or_else(|| Error::conflict("the instance is not on its server yet: provision it"))
    }

    /// The same for what is done only where there is something to write to: nothing where the instance is gone, or on no server.
    pub async fn find(app: &App, id: &InstanceId) -> Result<Option<Assistant>> {
        let generation = store::reconcile::find(&app.db, id).await?.generation;
        match instance::find(&app.db, id).await? {
            Some(instance) => Assistant::at(app, instance, generation).await,
            None => Ok(None),
        }
    }

    /// The same of an instance that may be deleted; nothing where it was never brought to a server.
    pub async fn of(app: &App, instance: Instance) -> Result<Option<Assistant>> {
        // Read after the instance: what was changed in between is written by the task of that change.
        let generation = store::reconcile::find(&app.db, &instance.id).await?.generation;
        Assistant::at(app, instance, generation).await
    }

    async fn at(app: &App, instance: Instance, generation: i64) -> Result<Option<Assistant>> {
        let server = server::find_even_deleted(&app.db, &instance.server_id).await?;
        let server = server.ok_or(Kind::NotFound)?;
        if !instance.is_on_server() {
            return Ok(None);
        }
        let host = host::connect(app, &server).await?;
        let place = Place::find(&instance, &host).await?;
        Ok(Some(Assistant { instance, server, host, place, generation }))
    }

    pub fn id(&self) -> InstanceId {
        self.instance.id.clone()
    }

    /// As whom it runs, as far as its home and its unit tell.
    pub fn seen(&self, unit: &systemd::State) -> isolation::Seen {
        isolation::Seen {
            login: self.host.user().to_owned(),
            home_owner: self.place.owner.clone(),
            unit_user: unit.user.clone(),
        }
    }

    /// Its home, in which everything is done as the user whose home it is; `None` before it is made.
    pub fn home_if_any(&self) -> Option<Home<'_>> {
        if let Runner::Container { id } = &self.place.runner {
            return Some(Home::in_container(&self.host, &self.place.home, id));
        }
        let owner = self.place.owner.as_deref()?;
        Some(Home::new(&self.host, &self.place.home, owner))
    }

    pub fn home(&self) -> Result<Home<'_>> {
        self.home_if_any().ok_or_else(|| Error::conflict("the instance's home is not on its server"))
    }

    /// The state of what runs it.
    pub async fn service(&self) -> Result<systemd::State> {
        Ok(self.place.runner.state(&self.host, &self.place.unit).await?)
    }

    pub fn port(&self) -> u16 {
        self.instance.gateway_port.number()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Those that build commands. They name programs and units, and the place of a home; what lies below one is `remote::host::home`'s.
    const BUILDERS: &[&str] = &[
        "assistant/config.rs",
        "assistant/health.rs",
        "assistant/install.rs",
        "discover.rs",
        "pairing.rs",
        "platform_device.rs",
        "sweep.rs",
        "repair/exit_loop.rs",
        "reconcile/step.rs",
    ];

    fn sources(folder: &Path, found: &mut Vec<(String, String)>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
            }
        }
    }

    #[test]
    fn nothing_here_touches_a_home_but_by_its_module() {
        let mut found = vec![];
        for name in ["queue", "llm", "people", "fleet"] {
            sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src"), &mut found);
        }
        assert!(found.len() > 150);
        for (path, text) in &found {
            let name = path.rsplit_once("/src/").unwrap().1;
            let text = text.split("#[cfg(test)]").next().unwrap();
            for (word, allowed) in [
                ("Command::script(", BUILDERS.contains(&name)),
                ("Command::long_script(", BUILDERS.contains(&name)),
                ("Command::new(", BUILDERS.contains(&name)),
                ("Actor::User", false),
                ("host.read(", name == "assistant/unit.rs"),
                ("host.write(", false),
                ("host.tail(", false),
                ("host.kept(", false),
            ] {
                assert!(allowed || !text.contains(word), "{name} says {word}");
            }
        }
    }
}
