//! Bring a marketplace item onto an instance, or take it off again, as its install record wishes.

use base::Result;
use base::id::{InstallId, InstanceId};
use serde::{Deserialize, Serialize};
use store::Tx;

use super::kind::Payload;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApplyMarketplaceItem {
    pub install_id: String,
}

impl Payload for ApplyMarketplaceItem {
    const TYPE: &'static str = "apply_marketplace_item";

    async fn instance(&self, tx: &mut Tx) -> Result<Option<InstanceId>> {
        Ok(Some(crate::install::instance_of(tx, &InstallId::named(&self.install_id)).await?))
    }
}
