//! An employee claimed an instance of the profession pool: make it theirs, with the profession's role pack on it.
//!
//! That its last owner's traces are gone is the queue's to see to: nothing of an instance runs before its cleaning.

use base::Result;
use base::id::{EntryId, InstanceId, ItemId, ProfessionId};
use serde::{Deserialize, Serialize};
use store::{Tx, marketplace, pool, profession};

use super::init_instance::init;
use super::kind::{Context, Payload, Priority, Run};
use crate::permission::Permission;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BootstrapProfessionInstance {
    pub entry_id: String,
    pub instance_id: String,
    pub user_id: String,
}

impl Payload for BootstrapProfessionInstance {
    const TYPE: &'static str = "bootstrap_profession_instance";
    const PRIORITY: Priority = Priority::People;

    async fn instance(&self, _: &mut Tx) -> Result<Option<InstanceId>> {
        Ok(Some(InstanceId::named(&self.instance_id)))
    }

    fn permission(&self) -> Permission {
        Permission::ManagePools
    }
}

impl Run for BootstrapProfessionInstance {
    async fn run(self, context: Context) -> Result<String> {
        let app = &context.app;
        let entry = pool::show(&app.db, &EntryId::named(&self.entry_id)).await?;
        let theirs = entry.filter(|e| e.entry.allocated_user_id.as_deref() == Some(self.user_id.as_str()));
        let Some(entry) = theirs else { return Ok("the entry is not theirs any more: nothing was done".into()) };
        let profession = profession::find(&app.db, &ProfessionId::named(&entry.entry.profession_id)).await?;
        let files = match profession.and_then(|p| p.role_pack_id) {
            Some(pack) => {
                let pack = ItemId::named(pack);
                // A pack that was deleted meanwhile is not handed out any more.
                match marketplace::find(&app.db, &pack).await? {
                    Some(item) => {
                        context.log(&format!("role pack {} {}", item.name, item.version)).await?;
                        marketplace::files(&app.db, &pack).await?
                    }
                    None => vec![],
                }
            }
            None => vec![],
        };
        init(&context, &self.instance_id, &self.user_id, &files).await
    }
}
