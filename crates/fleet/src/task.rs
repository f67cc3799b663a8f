//! The payloads of this crate's tasks, which are about servers and instances. `handler` runs them and those of the
//! crates below; `registry` lists all.

use std::sync::Arc;

use base::id::{InstallId, InstanceId, ServerId};
use base::{Error, Result};
use openclaw::Version;
use openclaw::version::Support;
use queue::audit::By;
use queue::permission::Permission;
use queue::task::{Payload, Priority};
use serde::{Deserialize, Serialize};
use store::{Tx, install, server};

use crate::App;
use crate::progress::Progress;

/// Why the platform does not provision the main instance.
pub const NOT_MAIN: &str = "the main instance would run as the login user: the platform does not make it";

/// The context of a running task of this crate.
pub type Context = queue::task::Context<App>;

impl Progress for Context {
    fn app(&self) -> &Arc<App> {
        &self.app
    }

    fn by(&self) -> By {
        Context::by(self)
    }

    async fn log(&self, line: &str) -> Result<()> {
        Context::log(self, line).await
    }
}

queue::of_instance! {
    /// Make the instance on its server: home, configuration, unit, key, start.
    ProvisionInstance = "provision_instance" {} for ManageInstances at Fleet, raises;
    /// Take the instance off its server.
    RetireInstance = "retire_instance" {} for ManageInstances at Fleet;
    /// Stop the instance, free its port, start it.
    RestartInstance = "restart_instance" {} for ManageInstances at People;
    /// Move an assistant back to where it was before it was moved into a cell.
    MoveBack = "move_back" {} for PlaceInstances at Fleet;
}

/// Move an adopted assistant into a cell: what was adopted stays, stopped, and is gone back to if it does not start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MoveIntoCell {
    pub instance_id: InstanceId,
    /// Whether it keeps its own model provider; as it is if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeps_llm: Option<bool>,
}

impl Payload for MoveIntoCell {
    const TYPE: &'static str = "move_into_cell";
    const PRIORITY: Priority = Priority::Fleet;
    const PERMISSION: Permission = Permission::AdoptInstances;

    async fn instance(&self, _: &mut Tx) -> Result<Option<InstanceId>> {
        Ok(Some(self.instance_id.clone()))
    }
}

/// Bring what our records want to the instance.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReconcileInstance {
    pub instance_id: InstanceId,
    /// Whether it may be restarted for that; otherwise what needs a restart waits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restart: bool,
}

impl Payload for ReconcileInstance {
    const TYPE: &'static str = "reconcile_instance";
    const PRIORITY: Priority = Priority::Fleet;
    const PERMISSION: Permission = Permission::ManageInstances;
    const COALESCES: bool = true;

    async fn instance(&self, _: &mut Tx) -> Result<Option<InstanceId>> {
        Ok(Some(self.instance_id.clone()))
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApplyMarketplaceItem {
    pub install_id: InstallId,
}

impl Payload for ApplyMarketplaceItem {
    const TYPE: &'static str = "apply_marketplace_item";
    const PRIORITY: Priority = Priority::People;
    const PERMISSION: Permission = Permission::ManageMarketplace;

    async fn instance(&self, tx: &mut Tx) -> Result<Option<InstanceId>> {
        Ok(Some(instance_of(tx, &self.install_id).await?))
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConfineInstance {
    pub instance_id: InstanceId,
    /// `false` takes the instance out of its cell. If omitted, it stays as it is and takes over the current limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confined: Option<bool>,
}

impl Payload for ConfineInstance {
    const TYPE: &'static str = "confine_instance";
    const PRIORITY: Priority = Priority::Fleet;
    const PERMISSION: Permission = Permission::ManageInstances;

    async fn instance(&self, _: &mut Tx) -> Result<Option<InstanceId>> {
        Ok(Some(self.instance_id.clone()))
    }

    fn permission(&self) -> Permission {
        if self.confined == Some(false) { Permission::OpenCells } else { Self::PERMISSION }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PrepareServer {
    pub server_id: ServerId,
}

impl Payload for PrepareServer {
    const TYPE: &'static str = "prepare_server";
    const PRIORITY: Priority = Priority::Fleet;
    const PERMISSION: Permission = Permission::ManageServers;

    async fn instance(&self, tx: &mut Tx) -> Result<Option<InstanceId>> {
        let found = server::find(&mut *tx, &self.server_id).await?;
        found.ok_or_else(|| Error::field("payload.server_id", "there is no such server"))?;
        Ok(None)
    }

    fn server(&self) -> Option<ServerId> {
        Some(self.server_id.clone())
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UpgradeInstance {
    pub instance_id: InstanceId,
    /// The configured version if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

impl Payload for UpgradeInstance {
    const TYPE: &'static str = "upgrade_instance";
    const PRIORITY: Priority = Priority::Fleet;
    const PERMISSION: Permission = Permission::ManageInstances;

    async fn instance(&self, _: &mut Tx) -> Result<Option<InstanceId>> {
        if let Some(version) = &self.version {
            parse_version(version)?;
        }
        Ok(Some(self.instance_id.clone()))
    }
}

pub(crate) fn parse_version(version: &str) -> Result<Version> {
    let version: Version = version.parse().map_err(|why: String| Error::field("version", why))?;
    if version.support() == Support::TooOld {
        return Err(Error::field("version", format_args!("must be {} or later", Version::OLDEST)));
    }
    Ok(version)
}

/// Carry out a repair that was recorded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RepairInstance {
    pub instance_id: InstanceId,
    pub repair_id: i64,
}

impl Payload for RepairInstance {
    const TYPE: &'static str = "repair_instance";
    const PRIORITY: Priority = Priority::Fleet;
    const PERMISSION: Permission = Permission::ManageInstances;

    async fn instance(&self, _: &mut Tx) -> Result<Option<InstanceId>> {
        Ok(Some(self.instance_id.clone()))
    }
}

/// The instance that an install is for.
pub(crate) async fn instance_of(tx: &mut Tx, id: &InstallId) -> Result<InstanceId> {
    let record = install::find(tx, id).await?;
    Ok(record.ok_or_else(|| Error::field("payload.install_id", "there is no such install"))?.instance_id)
}
