//! The task types whose payload is an instance: `{instance_id}`, some with whom it is for.

use base::Result;
use base::id::InstanceId;
use serde::{Deserialize, Serialize};
use store::Tx;

use super::kind::{Payload, Priority};
use crate::permission::Permission;

macro_rules! of_instance {
    ($($(#[$meta:meta])* $name:ident = $type:literal { $($field:ident),* } for $permission:ident at $priority:ident$(, $coalesces:ident)?)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, Serialize, Deserialize)]
        pub struct $name {
            pub instance_id: String,
            $(pub $field: String,)*
        }

        impl Payload for $name {
            const TYPE: &'static str = $type;
            const PRIORITY: Priority = Priority::$priority;
            $(const COALESCES: bool = stringify!($coalesces).len() > 0;)?

            async fn instance(&self, _: &mut Tx) -> Result<Option<InstanceId>> {
                Ok(Some(InstanceId::named(&self.instance_id)))
            }

            fn permission(&self) -> Permission {
                Permission::$permission
            }
        }
    )*};
}

of_instance! {
    /// An employee claimed the instance: write its configuration and guide, start it.
    InitInstance = "init_instance" { user_id } for ManagePeople at People
    /// Copy the model list into the instance's configuration.
    SyncModelsToInstance = "sync_models_to_instance" {} for ManageInstances at Background, coalesces
    /// Write the instance's sub key into its configuration.
    SyncKeyToInstance = "sync_key_to_instance" {} for ManageInstances at People, coalesces
    /// Make the instance on its server: home, configuration, unit, key, start.
    ProvisionInstance = "provision_instance" {} for ManageInstances at Fleet
    /// Take the instance off its server.
    RetireInstance = "retire_instance" {} for ManageInstances at Fleet
    /// Remove the traces of whoever had the instance; nothing else of the instance runs before.
    CleanInstance = "clean_instance" {} for ManageInstances at People
    /// Bring the stored configuration into the one on the server.
    WriteConfig = "write_config" {} for ManageInstances at People, coalesces
    /// Stop the instance, free its port, start it.
    RestartInstance = "restart_instance" {} for ManageInstances at People
}
