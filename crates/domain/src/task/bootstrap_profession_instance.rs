//! An employee claimed an instance of the profession pool: make it theirs.

use base::Result;
use base::id::InstanceId;
use serde::{Deserialize, Serialize};
use store::Tx;

use super::kind::Payload;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BootstrapProfessionInstance {
    pub entry_id: String,
    pub instance_id: String,
    pub user_id: String,
}

impl Payload for BootstrapProfessionInstance {
    const TYPE: &'static str = "bootstrap_profession_instance";

    async fn instance(&self, _: &mut Tx) -> Result<Option<InstanceId>> {
        Ok(Some(InstanceId::named(&self.instance_id)))
    }
}
