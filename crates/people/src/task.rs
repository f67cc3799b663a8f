//! Tasks for an instance that gets a new holder. A crate that knows servers runs them.

use base::Result;
use base::id::{ChatBindingId, EntryId, InstanceId, TaskId, UserId};
use queue::permission::Permission;
use queue::task::{Payload, Priority, enqueue};
use serde::{Deserialize, Serialize};
use store::Tx;
use store::instance::Instance;

use crate::App;

queue::of_instance! {
    /// An employee claimed the instance: write its configuration and guide, start it.
    InitInstance = "init_instance" { user_id: UserId } for ManagePeople at People, raises;
    /// Remove the traces of the last holder. No other task of the instance runs before that.
    CleanInstance = "clean_instance" {} for ManageInstances at People, raises;
    /// Merge the stored configuration into the file on the server.
    WriteConfig = "write_config" {} for ManageInstances at People, coalesces, raises;
}

/// Enqueues `write_config`, if the instance is on its server already and the platform may write there.
pub async fn enqueue_write_config(app: &App, tx: &mut Tx, instance: &Instance, source: &str) -> Result<Option<TaskId>> {
    if !instance.is_managed() {
        return Ok(None);
    }
    enqueue(app, tx, &WriteConfig { instance_id: instance.id.clone() }, source, None).await.map(Some)
}

/// An employee claimed an instance of a profession's pool: set it up for them, with the profession's role pack.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BootstrapProfessionInstance {
    pub entry_id: EntryId,
    pub instance_id: InstanceId,
    pub user_id: UserId,
}

impl Payload for BootstrapProfessionInstance {
    const TYPE: &'static str = "bootstrap_profession_instance";
    const PRIORITY: Priority = Priority::People;
    const PERMISSION: Permission = Permission::ManagePools;
    const RAISES: bool = true;

    async fn instance(&self, _: &mut Tx) -> Result<Option<InstanceId>> {
        Ok(Some(self.instance_id.clone()))
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClearWebhook {
    pub binding_id: ChatBindingId,
}

impl Payload for ClearWebhook {
    const TYPE: &'static str = "clear_webhook";
    const PRIORITY: Priority = Priority::Security;
    const PERMISSION: Permission = Permission::ManagePeople;

    /// It concerns only the chat platform, so it need not wait for other tasks of the instance.
    async fn instance(&self, _: &mut Tx) -> Result<Option<InstanceId>> {
        Ok(None)
    }
}
