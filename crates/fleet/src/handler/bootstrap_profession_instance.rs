//! An employee claimed an instance of the profession pool: make it theirs, with the profession's role pack on it.
//!
//! That its last owner's traces are gone is the queue's to see to: nothing of an instance runs before its cleaning.

use base::Result;
use people::task::BootstrapProfessionInstance;
use queue::task::Run;
use store::{marketplace, pool, profession};

use super::init_instance::init;
use crate::App;
use crate::task::Context;

impl Run<App> for BootstrapProfessionInstance {
    async fn run(self, context: Context) -> Result<String> {
        let app = &context.app;
        let entry = pool::show(&app.db, &self.entry_id).await?;
        let theirs = entry.filter(|e| e.entry.allocated_user_id.as_ref() == Some(&self.user_id));
        let Some(entry) = theirs else { return Ok("the entry is not theirs any more: nothing was done".into()) };
        let profession = profession::find(&app.db, &entry.entry.profession_id).await?;
        let files = match profession.and_then(|p| p.role_pack_id) {
            Some(pack) => {
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
