//! Adopts gateways that a server has already: a record is made of what is there (`ground`), and only what the preview said
//! is changed. A record that was made without a look at its server is brought together with its gateway in `record`. An
//! adopted home, user or container is never cleaned, pooled, renamed or deleted.

mod ground;
pub mod record;

use base::id::{InstanceId, NewInstanceId, ServerId, TaskId};
use base::{Email, Error, Kind, Result};
use queue::audit::{self, Action, AuditEvent, By};
use store::instance;
use store::notice::{Notice, Topic};
use store::server;

use crate::App;
use crate::discover::Discovered;
use crate::instance::free_port;
use crate::reconcile::compare::{Effect, Field};
use ground::Ground;

/// How many gateways are adopted with one request.
pub const MOST: usize = 200;

/// What is to become of one gateway.
pub struct Wish {
    /// What discovery called it.
    pub key: String,
    pub id: NewInstanceId,
    pub name: String,
    /// The employee who gets it.
    pub email: Option<Email>,
    /// It keeps the model provider of its own. Its use is not counted.
    pub keeps_llm: bool,
    /// What needs a restart is brought at once. Otherwise it waits for the next restart, or for a person.
    pub restart: bool,
}

/// What an adoption changes.
pub struct Preview {
    pub key: String,
    pub id: InstanceId,
    /// What is written into its configuration. Secrets are masked.
    pub changes: Vec<Field>,
    /// Nothing starts it: it is observed, and nothing is ever written there.
    pub is_only_observed: bool,
    /// Why it is not adopted.
    pub refusal: Option<String>,
}

impl Preview {
    /// Whether it is restarted at once.
    pub fn needs_restart(&self) -> bool {
        self.changes.iter().any(|change| change.effect == Effect::Restart)
    }
}

/// What came of an adoption.
pub struct Adopted {
    pub key: String,
    pub id: InstanceId,
    /// The task that writes its configuration; none if nothing is written.
    pub task: Option<TaskId>,
    /// Why it was not adopted.
    pub refusal: Option<String>,
}

/// Shows what each adoption would change. Nothing is changed.
pub async fn preview(app: &App, by: &By, id: &ServerId, wishes: Vec<Wish>) -> Result<Vec<Preview>> {
    let ground = Ground::find(app, id).await?;
    let mut previews = vec![];
    for wish in wishes {
        let changes = async {
            let candidate = ground.candidate(app, by, &wish).await?;
            ground.changes(app, &candidate).await
        };
        let (changes, refusal) = split(changes.await)?;
        let is_only_observed = ground.found(&wish.key).is_some_and(Discovered::is_only_observed);
        let changes = changes.unwrap_or_default();
        previews.push(Preview { key: wish.key, id: wish.id.id(), changes, is_only_observed, refusal });
    }
    Ok(previews)
}

/// Adopts each gateway by itself: one that is refused does not hold up the others.
pub async fn adopt(app: &App, by: &By, id: &ServerId, wishes: Vec<Wish>) -> Result<Vec<Adopted>> {
    let ground = Ground::find(app, id).await?;
    let mut all = vec![];
    for wish in wishes {
        let (task, refusal) = split(adopt_one(app, by, &ground, &wish).await)?;
        all.push(Adopted { key: wish.key, id: wish.id.id(), task: task.flatten(), refusal });
    }
    Ok(all)
}

/// A refusal is about one gateway; every other error ends the request.
fn split<T>(done: Result<T>) -> Result<(Option<T>, Option<String>)> {
    match done {
        Ok(value) => Ok((Some(value), None)),
        Err(error) if matches!(error.kind, Kind::Conflict | Kind::BadRequest | Kind::NotFound | Kind::NoAccess) => {
            Ok((None, Some(error.client.into_owned())))
        }
        Err(error) => Err(error),
    }
}

async fn adopt_one(app: &App, by: &By, ground: &Ground, wish: &Wish) -> Result<Option<TaskId>> {
    let candidate = ground.candidate(app, by, wish).await?;
    let record = &candidate.record;
    let mut tx = app.db.begin().await?;
    server::lock(&mut tx, &ground.server.id).await?.ok_or(Kind::NotFound)?;
    free_port(&mut tx, &ground.server.id, None, Some(record.gateway_port)).await?;
    instance::insert(&mut tx, record).await.map_err(|error| match error {
        store::Error::Taken => Error::conflict("an instance with this id exists, or existed, already"),
        other => other.into(),
    })?;
    let mut detail =
        format!("adopted {} of {} on {}, port {}", wish.key, candidate.user, ground.server.name, record.gateway_port);
    let task = candidate.settle(app, &mut tx, by, wish.restart, &mut detail).await?;
    audit::record(app, &mut tx, by, AuditEvent::info(Action::InstanceCreate, &record.id, &detail)).await?;
    tx.notify(Notice::new(Topic::Instance, &record.id)).await?;
    tx.commit().await?;
    Ok(task)
}
