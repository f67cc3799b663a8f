//! The task types whose payload is an instance: `{instance_id}`, some with whom it is for.

use base::Result;
use base::id::InstanceId;
use serde::{Deserialize, Serialize};
use store::Tx;

use super::kind::Payload;

macro_rules! of_instance {
    ($($(#[$meta:meta])* $name:ident = $type:literal { $($field:ident),* })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, Serialize, Deserialize)]
        pub struct $name {
            pub instance_id: String,
            $(pub $field: String,)*
        }

        impl Payload for $name {
            const TYPE: &'static str = $type;

            async fn instance(&self, _: &mut Tx) -> Result<Option<InstanceId>> {
                Ok(Some(InstanceId::named(&self.instance_id)))
            }
        }
    )*};
}

of_instance! {
    /// An employee claimed the instance: write its configuration and guide, start it.
    InitInstance = "init_instance" { user_id }
    /// Copy the model list into the instance's configuration.
    SyncModelsToInstance = "sync_models_to_instance" {}
    /// Write the instance's sub key into its configuration.
    SyncKeyToInstance = "sync_key_to_instance" {}
    /// Make the instance on its server: home, configuration, unit, key, start.
    ProvisionInstance = "provision_instance" {}
    /// Take the instance off its server.
    RetireInstance = "retire_instance" {}
    /// Remove the traces of whoever had the instance; nothing else of the instance runs before.
    CleanInstance = "clean_instance" {}
    /// Bring the stored configuration into the one on the server.
    WriteConfig = "write_config" {}
    /// Stop the instance, free its port, start it.
    RestartInstance = "restart_instance" {}
}
