//! Adopts gateways that a server has already: a record is made of what is there, and only what the preview said is changed.
//! An adopted home or user is never cleaned, pooled, renamed or deleted.

use base::id::{InstanceId, NewInstanceId, ServerId, TaskId};
use base::{Email, Error, GatewayPort, Kind, NonEmpty, Result, Secret};
use openclaw::discover::Runner;
use openclaw::{Document, Version};
use people::binding::bind;
use queue::audit::{self, Action, AuditEvent, By};
use queue::permission::Permission;
use queue::task;
use remote::host::Host;
use store::binding::{self, Origin};
use store::instance::{self, Instance, Isolation};
use store::notice::{Notice, Topic};
use store::server::{self, Server};
use store::user::{self, Status};

use crate::assistant::desired::Desired;
use crate::assistant::{Assistant, Place};
use crate::discover::{self, Discovered};
use crate::instance::{self as instances, New, free_port};
use crate::reconcile::compare::{Effect, Field, field};
use crate::task::ReconcileInstance;
use crate::{App, host};

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

/// A gateway that can be adopted, with the record that it would get.
struct Candidate {
    record: Instance,
    /// Its configuration as it is.
    document: Document,
    version: Version,
    user: String,
    holder: Option<user::User>,
}

/// Shows what each adoption would change. Nothing is changed.
pub async fn preview(app: &App, by: &By, id: &ServerId, wishes: Vec<Wish>) -> Result<Vec<Preview>> {
    let ground = Ground::find(app, id).await?;
    let mut previews = vec![];
    for wish in wishes {
        let changes = async {
            let candidate = ground.candidate(app, by, &wish).await?;
            changes(app, &ground, &candidate).await
        };
        let (changes, refusal) = split(changes.await)?;
        previews.push(Preview { key: wish.key, id: wish.id.id(), changes: changes.unwrap_or_default(), refusal });
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
    let Candidate { record, document, version, user, holder } = ground.candidate(app, by, wish).await?;
    let mut tx = app.db.begin().await?;
    server::lock(&mut tx, &ground.server.id).await?.ok_or(Kind::NotFound)?;
    free_port(&mut tx, &ground.server.id, None, Some(record.gateway_port)).await?;
    instance::insert(&mut tx, &record).await.map_err(|error| match error {
        store::Error::Taken => Error::conflict("an instance with this id exists, or existed, already"),
        other => other.into(),
    })?;
    let config_hash = if wish.keeps_llm { String::new() } else { document.hash() };
    instance::set_adopted(&mut tx, &record.id, &version.to_string(), &config_hash, wish.keeps_llm, &user).await?;
    let mut detail = format!("adopted {} of {user} on {}, port {}", wish.key, ground.server.name, record.gateway_port);
    if let Some(holder) = &holder {
        let locked = binding::lock_holder(&mut tx, &holder.id).await?.ok_or(Kind::NotFound)?;
        let locked_instance = instance::lock(&mut tx, &record.id).await?.ok_or(Kind::NotFound)?;
        bind(app, &mut tx, &locked, &locked_instance, Origin::Assigned, None).await?;
        detail += &format!("; assigned to {}", holder.email);
    }
    let task = match wish.keeps_llm {
        true => {
            detail += "; nothing is written, and it keeps its own model provider";
            None
        }
        false => {
            detail += "; its configuration is reconciled";
            let payload = ReconcileInstance { instance_id: record.id.clone(), restart: wish.restart };
            Some(task::enqueue(app, &mut tx, &payload, &by.operator, None).await?)
        }
    };
    audit::record(app, &mut tx, by, AuditEvent::info(Action::InstanceCreate, &record.id, &detail)).await?;
    tx.notify(Notice::new(Topic::Instance, &record.id)).await?;
    tx.commit().await?;
    Ok(task)
}

/// A server as it is at one moment.
struct Ground {
    server: Server,
    host: Host,
    found: Vec<Discovered>,
}

impl Ground {
    async fn find(app: &App, id: &ServerId) -> Result<Ground> {
        let server = server::find(&app.db, id).await?.ok_or(Kind::NotFound)?;
        let host = host::reach(app, &server).await?;
        let found = discover::discover(app, id).await?.list;
        Ok(Ground { server, host, found })
    }

    /// The record of a gateway that may be adopted.
    async fn candidate(&self, app: &App, by: &By, wish: &Wish) -> Result<Candidate> {
        let found = self.found.iter().find(|one| one.key == wish.key);
        let found = found.ok_or_else(|| Error::conflict("it is not on the server any more"))?;
        if let Some(instance) = &found.instance {
            return Err(Error::conflict(format!("it is the instance {instance}")));
        }
        if let Some(obstacle) = found.obstacle {
            return Err(Error::conflict(obstacle.text()));
        }
        let gateway = &found.gateway;
        let (Runner::Unit { name }, Some(home)) = (&gateway.runner, &gateway.home) else {
            return Err(Error::conflict("it runs in no unit of the system"));
        };
        // Whoever gets it may do on the server whatever that user may.
        if (gateway.user == "root" || gateway.user == self.host.user()) && !by.may(Permission::PlaceInstances) {
            let message = format!("it runs as {}: only a super administrator adopts it", gateway.user);
            return Err(Error::new(Kind::NoAccess, message));
        }
        let document = gateway.config.document().ok_or_else(|| Error::conflict("it has no configuration"))?;
        let port = found.port().and_then(|port| GatewayPort::try_from(i64::from(port)).ok());
        let port = port.ok_or_else(|| Error::conflict("its port is not known, or none that an instance can have"))?;
        let token = document.get_str(discover::TOKEN).unwrap_or_default();
        let holder = match &wish.email {
            None => None,
            Some(email) => Some(self.holder(app, by, email).await?),
        };
        let new = New {
            id: wish.id.clone(),
            name: wish.name.clone(),
            server_id: self.server.id.clone(),
            gateway_port: Some(port),
            gateway_url: None,
            gateway_token: Some(Secret::new(token)),
            model: String::new(),
            config_json: "{}".into(),
            notes: String::new(),
            is_main: false,
            home: home.clone(),
            unit: name.clone(),
            container_id: String::new(),
            provision: false,
        };
        instances::require_free_name(app, &wish.id.id()).await?;
        let record = instances::record(app, new, port)?;
        let record = Instance { isolation: Isolation::Adopted, own_llm: wish.keeps_llm, ..record };
        let version = gateway.version.clone().unwrap_or(Version::TESTED);
        Ok(Candidate { record, document: document.clone(), version, user: gateway.user.clone(), holder })
    }

    /// The employee who gets it. What is adopted is not isolated, so only who may assign such an instance gives it away.
    async fn holder(&self, app: &App, by: &By, email: &Email) -> Result<user::User> {
        by.require(Permission::AssignUnisolated)?;
        let user = user::find_by_email(&app.db, email.as_str()).await?;
        let user = user.ok_or_else(|| Error::conflict(format!("there is no employee {email}")))?;
        match user.status {
            Status::Active => Ok(user),
            Status::Revoked => Err(Error::conflict("the account is revoked")),
        }
    }
}

/// What the reconcile of an adopted gateway would write.
async fn changes(app: &App, ground: &Ground, candidate: &Candidate) -> Result<Vec<Field>> {
    if candidate.record.own_llm {
        return Ok(vec![]);
    }
    let record = Instance {
        openclaw_version: NonEmpty::new(candidate.version.to_string()),
        assigned_user_id: candidate.holder.as_ref().map(|holder| holder.id.clone()),
        ..candidate.record.clone()
    };
    let place = Place::find(&record, &ground.host).await?;
    let assistant =
        Assistant { instance: record, server: ground.server.clone(), host: ground.host.clone(), place, generation: 0 };
    let desired = Desired::planned(app, &assistant, &candidate.version).await?;
    Ok(desired.changes(&candidate.document)?.iter().map(field).collect())
}
