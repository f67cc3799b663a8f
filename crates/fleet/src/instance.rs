//! Assistant instances, as administrators manage them.

use base::id::{InstanceId, NewInstanceId, ServerId, TaskId, UserId};
use base::secret::random_token;
use base::{Error, GatewayPort, Kind, Listing, NonEmpty, Page, Result, Secret, Sort};
use llm::key;
use people::binding::{Traces, bind, release};
use people::holder;
use people::task::enqueue_write_config;
use queue::audit::{self, Action, AuditEvent, By, Changes};
use queue::permission::Permission;
use queue::task;
use store::binding::{self, LockedInstance, Origin};
use store::instance::{self, token_place};
pub use store::instance::{Health, Instance, InstanceFilter, Isolation, Listed, Runner};
use store::notice::{Notice, Topic};
use store::user::Status;
use store::{Tx, pool, server};

use crate::App;
use crate::task::{NOT_MAIN, ProvisionInstance, ReconcileInstance, RestartInstance, RetireInstance, UpgradeInstance};

pub struct New {
    pub id: NewInstanceId,
    pub name: String,
    pub server_id: ServerId,
    pub gateway_port: Option<GatewayPort>,
    pub gateway_url: Option<String>,
    pub gateway_token: Option<Secret>,
    pub model: String,
    pub config_json: String,
    pub notes: String,
    pub is_main: bool,
    pub home: String,
    pub unit: String,
    /// The container that it runs in; empty for a service.
    pub container_id: String,
    pub provision: bool,
}

impl New {
    /// Whether it sets where the instance runs, and so as which Unix user. Only a super administrator may do that.
    pub(crate) fn names_a_place(&self) -> bool {
        self.is_main || !self.home.is_empty() || !self.unit.is_empty() || !self.container_id.is_empty()
    }

    /// The isolation to record before the first health check.
    fn isolation(&self) -> Isolation {
        if self.is_main {
            Isolation::Shared
        } else if !self.container_id.is_empty() {
            Isolation::Adopted
        } else if self.home.is_empty() {
            Isolation::None
        } else {
            Isolation::Unknown
        }
    }
}

/// What a PATCH changes; `None` leaves a field as it is.
#[derive(Default)]
pub struct Patch {
    pub name: Option<String>,
    pub model: Option<String>,
    pub gateway_port: Option<GatewayPort>,
    pub gateway_url: Option<String>,
    pub gateway_token: Option<Secret>,
    pub config_json: Option<String>,
    pub notes: Option<String>,
    pub embed_enabled: Option<bool>,
}

pub async fn list(app: &App, filter: InstanceFilter<'_>, sort: Sort, page: Page) -> Result<Listing<Listed>> {
    Ok(instance::list(&app.db, filter, sort, page).await?)
}

pub async fn show(app: &App, id: &InstanceId) -> Result<Listed> {
    Ok(instance::show(&app.db, id).await?.ok_or(Kind::NotFound)?)
}

/// Writes an audit entry before the whole token is shown to an administrator.
pub async fn reveal(app: &App, by: &By, id: &InstanceId) -> Result<()> {
    show(app, id).await?;
    audit::record_alone(app, by, AuditEvent::info(Action::SecretReveal, id.as_str(), "the gateway token was shown"))
        .await
}

/// The stored configuration with its secrets masked.
pub fn masked_config(instance: &Instance) -> Result<String> {
    let stored: serde_json::Value = serde_json::from_str(&instance.config_json).map_err(Error::internal)?;
    Ok(openclaw::document::mask(&stored).to_string())
}

/// Makes a record; returns the task that makes the instance on its server, if that is wanted.
pub async fn create(app: &App, by: &By, new: New) -> Result<Option<TaskId>> {
    let id = new.id.id();
    if new.names_a_place() {
        by.require(Permission::PlaceInstances)?;
    }
    if new.is_main && new.provision {
        return Err(Error::field("provision", NOT_MAIN));
    }
    require_free_name(app, &id).await?;
    let mut tx = app.db.begin().await?;
    let server = server::lock(&mut tx, &new.server_id).await?;
    let server = server.ok_or_else(|| Error::field("server_id", "there is no such server"))?;
    let port = free_port(&mut tx, &new.server_id, None, new.gateway_port).await?;
    let provision = new.provision;
    let record = record(app, new, port)?;
    instance::insert(&mut tx, &record).await.map_err(|e| match e {
        store::Error::Taken => Error::conflict("an instance with this id exists, or existed, already"),
        other => other.into(),
    })?;
    let payload = ProvisionInstance { instance_id: record.id.clone() };
    let task = match provision {
        true => Some(task::enqueue(app, &mut tx, &payload, &by.operator, None).await?),
        false => None,
    };
    let detail = format!("on {}, port {}", server.name, record.gateway_port);
    audit::record(app, &mut tx, by, AuditEvent::info(Action::InstanceCreate, &record.id, &detail)).await?;
    tx.notify(Notice::new(Topic::Instance, &record.id)).await?;
    tx.commit().await?;
    Ok(task)
}

/// Enqueues the task that makes an instance on its server.
pub(crate) async fn provision(app: &App, by: &By, id: &InstanceId) -> Result<TaskId> {
    ask(app, by, id, ProvisionInstance { instance_id: id.clone() }, "provision").await
}

/// Refuses an id that a sub key of the LLM gateway has, or that the gateway would not take as a name.
pub(crate) async fn require_free_name(app: &App, id: &InstanceId) -> Result<()> {
    if id.as_str() == key::PLATFORM || store::gateway_key::named(&app.db, id.as_str()).await?.is_some() {
        return Err(Error::conflict("a sub key of the LLM gateway has this name"));
    }
    // Its id is its token's name at the LLM gateway.
    let limit = app.upstream.gateway.kind().name_limit;
    if id.as_str().len() > limit {
        return Err(Error::field("id", format_args!("the LLM gateway takes token names of at most {limit} bytes")));
    }
    Ok(())
}

/// The record of a new instance.
pub(crate) fn record(app: &App, new: New, port: GatewayPort) -> Result<Instance> {
    let (id, isolation, now) = (new.id.id(), new.isolation(), app.clock.now());
    let token = match new.gateway_token {
        Some(token) => token,
        None => random_token()?,
    };
    Ok(Instance {
        gateway_token: app.sealer.seal(token_place(id.as_str()), &token)?,
        id: id.clone(),
        server_id: new.server_id,
        assigned_user_id: None,
        pooled: false,
        name: new.name,
        gateway_port: port,
        gateway_url: new.gateway_url.unwrap_or_else(|| loopback_url(port)),
        model: new.model,
        health_status: Health::Unknown,
        health_fail_count: 0,
        total_requests: 0,
        total_tokens: 0,
        last_health_at: None,
        notes: new.notes,
        config_json: new.config_json,
        is_main: new.is_main,
        isolation,
        runner: if new.container_id.is_empty() { Runner::Unit } else { Runner::Container },
        container_id: new.container_id,
        runs_as: String::new(),
        home: NonEmpty::new(new.home),
        unit: NonEmpty::new(new.unit),
        openclaw_version: None,
        config_hash: String::new(),
        traces_of: None,
        own_llm: false,
        embed_enabled: true,
        created_at: now,
        updated_at: now,
    })
}

/// Changes an instance. If that changes what our records want of it on its server, a task brings it there; returns
/// that task.
pub async fn update(app: &App, by: &By, id: &InstanceId, patch: Patch) -> Result<Option<TaskId>> {
    if patch.config_json.is_some() {
        by.require(Permission::SeeSecrets)?;
    }
    let mut tx = app.db.begin().await?;
    // Ports are allocated under the server's lock, which must be taken before the instance's.
    if patch.gateway_port.is_some() {
        let server = instance::find(&mut tx, id).await?.ok_or(Kind::NotFound)?.server_id;
        server::lock(&mut tx, &server).await?;
    }
    let old = instance::lock(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    let mut new = old.clone();
    if let Some(port) = patch.gateway_port {
        let server = old.server_id.clone();
        new.gateway_port = free_port(&mut tx, &server, Some(id), Some(port)).await?;
        if old.gateway_url == loopback_url(old.gateway_port) {
            new.gateway_url = loopback_url(new.gateway_port);
        }
    }
    new.name = patch.name.unwrap_or(new.name);
    new.model = patch.model.unwrap_or(new.model);
    new.gateway_url = patch.gateway_url.unwrap_or(new.gateway_url);
    new.config_json = patch.config_json.unwrap_or(new.config_json);
    new.notes = patch.notes.unwrap_or(new.notes);
    new.embed_enabled = patch.embed_enabled.unwrap_or(new.embed_enabled);
    if let Some(token) = &patch.gateway_token {
        new.gateway_token = app.sealer.seal(token_place(id.as_str()), token)?;
    }
    new.updated_at = app.clock.now();
    let changes = Changes::default()
        .field("name", &old.name, &new.name)
        .field("model", &old.model, &new.model)
        .field("gateway_port", &old.gateway_port.to_string(), &new.gateway_port.to_string())
        .field("gateway_url", &old.gateway_url, &new.gateway_url)
        // A configuration may contain keys, so the audit log says only that it changed.
        .hidden("config_json", old.config_json != new.config_json)
        .hidden("gateway_token", patch.gateway_token.is_some())
        .field("notes", &old.notes, &new.notes)
        .field("embed_enabled", &old.embed_enabled.to_string(), &new.embed_enabled.to_string());
    instance::update(&mut tx, &new).await?;
    let is_wanted_changed = new.gateway_port != old.gateway_port
        || new.gateway_url != old.gateway_url
        || new.model != old.model
        || new.config_json != old.config_json
        || patch.gateway_token.is_some();
    let task = match is_wanted_changed {
        true => enqueue_write_config(app, &mut tx, &new, &by.operator).await?,
        false => None,
    };
    audit::record(app, &mut tx, by, AuditEvent::info(Action::InstanceUpdate, &new.id, &changes.text())).await?;
    tx.notify(Notice::new(Topic::Instance, &new.id)).await?;
    tx.commit().await?;
    Ok(task)
}

/// Stores the desired configuration, and enqueues a task that writes it if the instance is on its server.
pub async fn set_config(app: &App, by: &By, id: &InstanceId, config_json: String) -> Result<Option<TaskId>> {
    by.require(Permission::SeeSecrets)?;
    let mut tx = app.db.begin().await?;
    let mut instance = instance::lock(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    let changes = Changes::default().hidden("config_json", instance.config_json != config_json);
    instance.config_json = config_json;
    instance.updated_at = app.clock.now();
    instance::update(&mut tx, &instance).await?;
    let task = enqueue_write_config(app, &mut tx, &instance, &by.operator).await?;
    audit::record(app, &mut tx, by, AuditEvent::info(Action::InstanceUpdate, &instance.id, &changes.text())).await?;
    tx.notify(Notice::new(Topic::Instance, &instance.id)).await?;
    tx.commit().await?;
    Ok(task)
}

/// Enqueues a restart of the instance.
pub async fn restart(app: &App, by: &By, id: &InstanceId) -> Result<TaskId> {
    refuse_observed(app, id).await?;
    ask(app, by, id, RestartInstance { instance_id: id.clone() }, "restart").await
}

/// Enqueues a reconcile of the instance, also if it failed too often. What needs a restart waits, unless `restart` allows
/// it.
pub async fn reconcile(app: &App, by: &By, id: &InstanceId, restart: bool) -> Result<TaskId> {
    refuse_observed(app, id).await?;
    store::reconcile::forget_failures(&app.db, id).await?;
    let what = if restart { "reconcile, with a restart," } else { "reconcile" };
    ask(app, by, id, ReconcileInstance { instance_id: id.clone(), restart }, what).await
}

/// Enqueues an upgrade of the instance to the given version of OpenClaw, or to the configured one.
pub async fn upgrade(app: &App, by: &By, id: &InstanceId, version: Option<String>) -> Result<TaskId> {
    ask(app, by, id, UpgradeInstance { instance_id: id.clone(), version }, "upgrade").await
}

/// Refuses an instance that the platform only observes.
async fn refuse_observed(app: &App, id: &InstanceId) -> Result<()> {
    let instance = instance::find(&app.db, id).await?.ok_or(Kind::NotFound)?;
    match instance.is_there() && !instance.is_managed() {
        true => Err(remote::host::Error::OnlyObserved.into()),
        false => Ok(()),
    }
}

async fn ask(app: &App, by: &By, id: &InstanceId, payload: impl task::Payload, what: &str) -> Result<TaskId> {
    let mut tx = app.db.begin().await?;
    instance::find(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    let task = task::enqueue(app, &mut tx, &payload, &by.operator, None).await?;
    let detail = format!("{what} asked for");
    audit::record(app, &mut tx, by, AuditEvent::info(Action::InstanceUpdate, id.as_str(), &detail)).await?;
    tx.commit().await?;
    Ok(task)
}

/// Soft delete: ends the binding, the pool entry and waiting tasks, and enqueues a task that removes the instance from
/// its server.
pub async fn delete(app: &App, by: &By, id: &InstanceId) -> Result<()> {
    let now = app.clock.now();
    let mut tx = app.db.begin().await?;
    let LockedInstance { holder, entry, instance } = people::binding::lock(&mut tx, id).await?;
    match entry {
        Some(entry) if entry.status == pool::Status::Allocated => {
            return Err(Error::conflict("an employee claimed this instance from the pool: reclaim it first"));
        }
        Some(entry) => people::pool::end(app, &mut tx, &entry).await?,
        None => {}
    }
    if let Some(holder) = &holder {
        release(app, &mut tx, holder, &instance, Traces::Keep, &by.operator).await?;
    }
    store::install::remove_all(&mut tx, id, now).await?;
    store::task::cancel_all(&mut tx, id, "the instance was deleted", now).await?;
    people::chat_binding::end_all(app, &mut tx, id, &by.operator).await?;
    instance::delete(&mut tx, id, now).await?;
    crate::repair::resolve_all(app, &mut tx, id).await?;
    key::retire(app, &mut tx, id).await?;
    let payload = RetireInstance { instance_id: id.clone() };
    task::enqueue(app, &mut tx, &payload, &by.operator, None).await?;
    audit::record(app, &mut tx, by, AuditEvent::warn(Action::InstanceDelete, id.as_str(), "instance deleted")).await?;
    tx.notify(Notice::new(Topic::Instance, id.as_str())).await?;
    Ok(tx.commit().await?)
}

/// Assigns the instance to a user, or releases it from its holder. A repeat changes nothing. Only a super administrator
/// may assign an instance that is not isolated on its server.
pub async fn assign(app: &App, by: &By, id: &InstanceId, to: Option<&UserId>) -> Result<()> {
    let mut tx = app.db.begin().await?;
    // The user who gets the instance, or the holder who loses it.
    let (user, holder, instance) = match to {
        Some(user) => {
            let user = binding::lock_holder(&mut tx, user).await?.ok_or(Kind::NotFound)?;
            (Some(user), None, instance::lock(&mut tx, id).await?.ok_or(Kind::NotFound)?)
        }
        None => {
            let locked = people::binding::lock(&mut tx, id).await?;
            (None, locked.holder, locked.instance)
        }
    };
    if instance.pooled {
        return Err(Error::conflict("the instance is in a profession's pool: it can only be claimed"));
    }
    let detail = match (&user, &holder) {
        (Some(user), _) if instance.assigned_user_id.as_ref() == Some(&user.id) => return Ok(()),
        (None, None) => return Ok(()),
        (Some(_), _) if instance.assigned_user_id.is_some() => {
            return Err(Error::conflict("the instance is bound to somebody else"));
        }
        (Some(user), _) => {
            if user.status != Status::Active {
                return Err(Error::conflict("the account is revoked"));
            }
            let why = holder::refusal(instance.isolation, &instance.runs_as);
            if !why.is_empty() && !by.may(Permission::AssignUnisolated) {
                return Err(Error::new(Kind::NoAccess, format!("{why}; only a super administrator assigns it")));
            }
            bind(app, &mut tx, user, &instance, Origin::Assigned, None).await?;
            match why.as_str() {
                "" => format!("assigned to {}", user.email),
                why => format!("assigned to {}, although {why}", user.email),
            }
        }
        (None, Some(holder)) => {
            release(app, &mut tx, holder, &instance, Traces::Keep, &by.operator).await?;
            format!("taken from {}", holder.email)
        }
    };
    // Background work and the bot are switched on only while the instance has a holder.
    // Who has it is no reason to write what was adopted as it is, and to restart it.
    if !instance.is_as_it_was() {
        enqueue_write_config(app, &mut tx, &instance, &by.operator).await?;
    }
    audit::record(app, &mut tx, by, AuditEvent::info(Action::InstanceUpdate, id.as_str(), &detail)).await?;
    Ok(tx.commit().await?)
}

pub async fn history(app: &App, id: &InstanceId) -> Result<Vec<binding::Binding>> {
    Ok(binding::history(&app.db, id).await?)
}

/// Its sub key at the LLM gateway, if it has one yet.
pub async fn key(app: &App, id: &InstanceId) -> Result<Option<key::GatewayKey>> {
    Ok(store::gateway_key::of_instance(&app.db, id).await?)
}

pub async fn pool_entry(app: &App, id: &InstanceId) -> Result<Option<pool::Entry>> {
    Ok(pool::of_instance(&app.db, id).await?)
}

/// The address of a gateway that only its own machine can reach.
fn loopback_url(port: GatewayPort) -> String {
    format!("ws://127.0.0.1:{port}")
}

/// The requested port if it is free; any free port if none is requested. The caller holds the lock on the server's row.
pub(crate) async fn free_port(
    tx: &mut Tx,
    server: &ServerId,
    but: Option<&InstanceId>,
    requested: Option<GatewayPort>,
) -> Result<GatewayPort> {
    let taken = instance::ports(tx, server, but).await?;
    let next = GatewayPort::next(&taken);
    match requested {
        Some(port) if port.fits(&taken) => Ok(port),
        Some(port) => {
            let next = next.map_or_else(|| "none is free".into(), |p| format!("the next free port is {}", p.get()));
            Err(Error::conflict(format!(
                "gateway_port {} is less than {} away from another instance of this server; {next}",
                port.get(),
                GatewayPort::SPACING
            )))
        }
        None => next.ok_or_else(|| Error::conflict("no port is free on this server")),
    }
}
