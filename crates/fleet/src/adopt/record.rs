//! Brings a record that was made without a look at its server together with the gateway that has its port there. What
//! answers at an address of its own needs no look.

use std::time::Duration;

use base::id::{InstanceId, NewInstanceId, TaskId};
use base::{Error, Kind, Result};
use openclaw::config::Bind;
use openclaw::frame::{Request, Scope};
use queue::audit::{self, Action, AuditEvent, By};
use queue::permission::Permission;
use store::instance::{self, Instance, Isolation, Runner};
use store::notice::{Notice, Topic};
use store::server;
use tokio::time::timeout;

use super::Wish;
use super::ground::Ground;
use crate::instance::{self as instances, New};
use crate::relay::reach::{self, Port};
use crate::rpc::Rpc;
use crate::{App, tenant};

/// For how long whoever makes a record waits for its server.
const LOOK: Duration = Duration::from_secs(20);
const ASK: Duration = Duration::from_secs(15);

/// What came of looking for a record's gateway.
pub enum Found {
    /// A gateway on its port was adopted; the task writes its configuration, if something is to be written.
    Adopted(Option<TaskId>),
    /// It answers at an address of its own.
    Answers,
    /// Nothing that could be adopted was found, and why. The record stays, and is offered to nobody.
    Nothing {
        why: String,
        /// The server was looked at as a whole, and no gateway has the port: one can be made there.
        is_free: bool,
    },
    /// Nothing was found, and a task makes it on its server; why nothing was adopted.
    Provisioning(TaskId, Option<String>),
    /// Nobody looked.
    NotLooked,
}

/// Makes a record, looks on its server for the gateway that has its port, and adopts that. If there is none, the instance
/// is made there, if that is wanted.
pub async fn create(app: &App, by: &By, new: New, keeps_llm: bool, restart: bool) -> Result<Found> {
    let may_look = !new.names_a_place() && by.may(Permission::AdoptInstances);
    // A port that was not asked for says nothing about who has it on the server.
    let has_port = new.gateway_port.is_some();
    let is_direct = new.gateway_url.as_deref().is_some_and(|url| Bind::for_url(url) == Bind::Lan);
    let (id, provision) = (new.id.id(), new.provision);
    if !may_look || !(has_port || is_direct) {
        return Ok(match instances::create(app, by, new).await? {
            Some(task) => Found::Provisioning(task, None),
            None => Found::NotLooked,
        });
    }
    instances::create(app, by, New { provision: false, ..new }).await?;
    let found = match has_port {
        true => find(app, by, &id, keeps_llm, restart).await?,
        false => at_its_address(app, by, &id, "nothing answers at its address".into(), true).await?,
    };
    match found {
        Found::Nothing { why, is_free: true } if provision => {
            Ok(Found::Provisioning(instances::provision(app, by, &id).await?, Some(why)))
        }
        found => Ok(found),
    }
}

/// Looks for the gateway of a record that is on no server yet, and adopts it.
pub async fn find(app: &App, by: &By, id: &InstanceId, keeps_llm: bool, restart: bool) -> Result<Found> {
    let instance = instance::find(&app.db, id).await?.ok_or(Kind::NotFound)?;
    if instance.is_there() {
        return Err(Error::conflict("the instance is on its server already"));
    }
    let looked = timeout(LOOK, on_server(app, by, &instance, keeps_llm, restart)).await;
    let (why, is_free) =
        match looked.unwrap_or_else(|_| Err(Error::new(Kind::TimedOut, "the server did not answer in time"))) {
            Ok(found @ (Found::Adopted(_) | Found::Answers)) => return Ok(found),
            Ok(Found::Nothing { why, is_free }) => (why, is_free),
            Ok(Found::Provisioning(..) | Found::NotLooked) => return Err(Error::internal("a look provisions nothing")),
            Err(error) if error.kind == Kind::Internal => return Err(error),
            Err(error) => (error.client.into_owned(), false),
        };
    at_its_address(app, by, id, why, is_free).await
}

/// Looks for its gateway at an address of its own; `why` and `is_free` are what the look at its server said.
async fn at_its_address(app: &App, by: &By, id: &InstanceId, why: String, is_free: bool) -> Result<Found> {
    let instance = instance::find(&app.db, id).await?.ok_or(Kind::NotFound)?;
    match tenant::is_direct(&instance) && answers(app, &instance).await {
        true => set_answers(app, by, &instance).await,
        false => Ok(Found::Nothing { why, is_free }),
    }
}

async fn on_server(app: &App, by: &By, instance: &Instance, keeps_llm: bool, restart: bool) -> Result<Found> {
    let ground = Ground::find(app, &instance.server_id).await?;
    let Some(found) = ground.at_port(instance.gateway_port) else {
        let why = format!("no gateway of OpenClaw has port {} on the server", instance.gateway_port);
        return Ok(Found::Nothing { why, is_free: ground.is_free(instance.gateway_port) });
    };
    let wish = Wish {
        key: found.key.clone(),
        id: NewInstanceId::parse(instance.id.as_str())?,
        name: instance.name.clone(),
        email: None,
        keeps_llm,
        restart,
    };
    let candidate = match ground.candidate(app, by, &wish).await {
        Ok(candidate) => candidate,
        Err(error) if matches!(error.kind, Kind::Conflict | Kind::NoAccess) => {
            return Ok(Found::Nothing { why: error.client.into_owned(), is_free: false });
        }
        Err(error) => return Err(error),
    };
    let mut tx = app.db.begin().await?;
    server::lock(&mut tx, &instance.server_id).await?.ok_or(Kind::NotFound)?;
    let now = instance::lock(&mut tx, &instance.id).await?.ok_or(Kind::NotFound)?;
    if now.is_there() || now.gateway_port != instance.gateway_port {
        return Err(Error::conflict("the instance was changed meanwhile"));
    }
    require_adoptable(by, &now)?;
    // What the record says of model and configuration is what it is to have; its token is what the gateway has.
    let record = Instance {
        name: now.name,
        model: now.model,
        notes: now.notes,
        config_json: now.config_json,
        embed_enabled: now.embed_enabled,
        ..candidate.record.clone()
    };
    instance::update(&mut tx, &record).await?;
    instance::set_place(&mut tx, &record).await?;
    let mut detail = format!("adopted {} of {} on {}", wish.key, candidate.user, ground.server.name);
    let task = candidate.settle(app, &mut tx, by, restart, &mut detail).await?;
    audit::record(app, &mut tx, by, AuditEvent::info(Action::InstanceUpdate, &record.id, &detail)).await?;
    tx.notify(Notice::new(Topic::Instance, &record.id)).await?;
    tx.commit().await?;
    Ok(Found::Adopted(task))
}

/// What is adopted is not isolated: a record that somebody has, or that a pool has, gets such a place only from whoever may
/// assign one. And its configuration may have any command run there.
fn require_adoptable(by: &By, record: &Instance) -> Result<()> {
    if record.pooled {
        return Err(Error::conflict("a profession's pool holds the instance: take it out of the pool first"));
    }
    if record.assigned_user_id.is_some() {
        by.require(Permission::AssignUnisolated)?;
    }
    if record.config_json != "{}" {
        by.require(Permission::SeeSecrets)?;
    }
    Ok(())
}

/// Whether its gateway does the handshake and answers one call at its own address.
async fn answers(app: &App, instance: &Instance) -> bool {
    let asked = async {
        let road = reach::reach(app, instance, Port::Gateway).await?;
        let mut rpc = Rpc::over(app, road, instance, Scope::LOOK).await?;
        Ok::<(), Error>(rpc.require_answer(Request::health).await?)
    };
    matches!(timeout(ASK, asked).await, Ok(Ok(())))
}

async fn set_answers(app: &App, by: &By, instance: &Instance) -> Result<Found> {
    let mut tx = app.db.begin().await?;
    let now = instance::lock(&mut tx, &instance.id).await?.ok_or(Kind::NotFound)?;
    if now.is_there() {
        return Err(Error::conflict("the instance was changed meanwhile"));
    }
    require_adoptable(by, &now)?;
    // Somebody else made it, and nothing of it can be changed from here: its provider is its own.
    let record = Instance { runner: Runner::Address, isolation: Isolation::Adopted, own_llm: true, ..now };
    instance::set_place(&mut tx, &record).await?;
    let detail = "it answers at its own address: it is used as it is, and nothing is written there";
    audit::record(app, &mut tx, by, AuditEvent::info(Action::InstanceUpdate, &record.id, detail)).await?;
    tx.notify(Notice::new(Topic::Instance, &record.id)).await?;
    tx.commit().await?;
    Ok(Found::Answers)
}
