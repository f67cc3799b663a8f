//! A server as it is at one moment, and the record that each of its gateways would get.

use base::id::{ServerId, TaskId};
use base::{Email, Error, GatewayPort, Kind, NonEmpty, Result, Secret};
use openclaw::config::Bind;
use openclaw::discover::Runner;
use openclaw::{Document, Version};
use people::binding::bind;
use queue::audit::By;
use queue::permission::Permission;
use queue::task;
use remote::host::Host;
use store::Tx;
use store::binding::{self, Origin};
use store::instance::{self, Instance, Isolation, Runner as RunBy};
use store::server::{self, Server};
use store::user::{self, Status};

use super::Wish;
use crate::assistant::desired::Desired;
use crate::assistant::{Assistant, Place};
use crate::discover::{self, Discovered, EmailSource};
use crate::instance::{self as instances, New};
use crate::reconcile::compare::{Field, field};
use crate::task::ReconcileInstance;
use crate::{App, host};

/// A server as it is at one moment.
pub(super) struct Ground {
    pub server: Server,
    host: Host,
    all: Vec<Discovered>,
    is_complete: bool,
}

/// A gateway that can be adopted, with the record that it would get.
pub(super) struct Candidate {
    pub record: Instance,
    /// Its configuration as it is.
    document: Document,
    version: Version,
    pub user: String,
    holder: Option<user::User>,
}

impl Ground {
    pub async fn find(app: &App, id: &ServerId) -> Result<Ground> {
        let server = server::find(&app.db, id).await?.ok_or(Kind::NotFound)?;
        let host = host::reach(app, &server).await?;
        let found = discover::discover(app, id, &EmailSource::default()).await?;
        Ok(Ground { server, host, all: found.list, is_complete: found.is_complete })
    }

    /// What discovery calls so; `None` also if more than one is called so, as a user may start a gateway twice.
    pub fn found(&self, key: &str) -> Option<&Discovered> {
        let mut all = self.all.iter().filter(|one| one.key == key);
        all.next().filter(|_| all.next().is_none())
    }

    /// What listens on this port; `None` if nothing does, or more than one says so.
    pub fn at_port(&self, port: GatewayPort) -> Option<&Discovered> {
        let has_socket = |one: &&Discovered| one.gateway.listens.iter().any(|socket| socket.port() == port.number());
        let mut all = self.all.iter().filter(|one| one.port() == Some(port.number())).filter(has_socket);
        all.next().filter(|_| all.next().is_none())
    }

    /// Whether the server was looked at as a whole, and no gateway says that it has this port.
    pub fn is_free(&self, port: GatewayPort) -> bool {
        self.is_complete && self.all.iter().all(|one| one.port() != Some(port.number()) || !one.gateway.is_running)
    }

    /// The record of a gateway that may be adopted.
    pub async fn candidate(&self, app: &App, by: &By, wish: &Wish) -> Result<Candidate> {
        let found = self.found(&wish.key);
        let found = found.ok_or_else(|| Error::conflict("it is not on the server any more"))?;
        if let Some(instance) = &found.instance {
            return Err(Error::conflict(format!("it is the instance {instance}")));
        }
        if let Some(obstacle) = found.obstacle {
            return Err(Error::conflict(obstacle.text()));
        }
        let gateway = &found.gateway;
        // Whoever gets it may do on the server whatever that user may.
        if (gateway.user == "root" || gateway.user == self.host.user()) && !by.may(Permission::PlaceInstances) {
            let message = format!("it runs as {}: only a super administrator adopts it", gateway.user);
            return Err(Error::new(Kind::NoAccess, message));
        }
        let keeps_llm = wish.keeps_llm || found.is_only_observed();
        let (runner, unit, container) = match &gateway.runner {
            Runner::Unit { name } => (RunBy::Unit, name.clone(), String::new()),
            Runner::UserUnit { name, .. } => (RunBy::UserUnit, name.clone(), String::new()),
            // By its name it is found also when it was made again from a newer image.
            Runner::Container { name, .. } => (RunBy::Container, String::new(), name.clone()),
            Runner::Process { .. } => (RunBy::Process, String::new(), String::new()),
            Runner::Home => return Err(Error::conflict(discover::Obstacle::Home.text())),
        };
        if runner == RunBy::Container && !keeps_llm && Bind::for_url(&app.assistants.gateway_url) == Bind::Loopback {
            let message = "a container cannot reach our LLM gateway at a loopback address: set gateway_public_url, or let it keep its own provider";
            return Err(Error::conflict(message));
        }
        let home = gateway.home.clone().ok_or_else(|| Error::conflict(discover::Obstacle::HomeUnknown.text()))?;
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
            home,
            unit,
            container_id: container,
            provision: false,
        };
        instances::require_free_name(app, &wish.id.id()).await?;
        let record = instances::record(app, new, port)?;
        let record = Instance { runner, isolation: Isolation::Adopted, own_llm: keeps_llm, ..record };
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

    /// What the reconcile of an adopted gateway would write.
    pub async fn changes(&self, app: &App, candidate: &Candidate) -> Result<Vec<Field>> {
        if candidate.record.own_llm {
            return Ok(vec![]);
        }
        let record = Instance {
            openclaw_version: NonEmpty::new(candidate.version.to_string()),
            assigned_user_id: candidate.holder.as_ref().map(|holder| holder.id.clone()),
            ..candidate.record.clone()
        };
        let place = Place::find(&record, &self.host).await?;
        let assistant =
            Assistant { instance: record, server: self.server.clone(), host: self.host.clone(), place, generation: 0 };
        let desired = Desired::planned(app, &assistant, &candidate.version).await?;
        Ok(desired.changes(&candidate.document)?.iter().map(field).collect())
    }
}

impl Candidate {
    /// Records what was found of the gateway, gives it to its employee, and enqueues the task that writes its
    /// configuration, if something is to be written.
    pub async fn settle(
        &self,
        app: &App,
        tx: &mut Tx,
        by: &By,
        restart: bool,
        detail: &mut String,
    ) -> Result<Option<TaskId>> {
        let (id, keeps_llm) = (&self.record.id, self.record.own_llm);
        let config_hash = if keeps_llm { String::new() } else { self.document.hash() };
        instance::set_adopted(tx, id, &self.version.to_string(), &config_hash, keeps_llm, &self.user).await?;
        if let Some(holder) = &self.holder {
            let locked = binding::lock_holder(tx, &holder.id).await?.ok_or(Kind::NotFound)?;
            let locked_instance = instance::lock(tx, id).await?.ok_or(Kind::NotFound)?;
            bind(app, tx, &locked, &locked_instance, Origin::Assigned, None).await?;
            *detail += &format!("; assigned to {}", holder.email);
        }
        if self.record.runner == RunBy::Process {
            *detail += "; nothing starts it: it is only observed";
        }
        if keeps_llm {
            *detail += "; nothing is written, and it keeps its own model provider";
            return Ok(None);
        }
        *detail += "; its configuration is reconciled";
        let payload = ReconcileInstance { instance_id: id.clone(), restart };
        task::enqueue(app, tx, &payload, &by.operator, None).await.map(Some)
    }
}
