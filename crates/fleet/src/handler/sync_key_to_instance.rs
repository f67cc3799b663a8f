//! Write the instance's sub key into its configuration, with everything else that our records want of it.

use base::{Error, Result};
use llm::task::SyncKeyToInstance;
use queue::task::Run;

use crate::App;
use crate::assistant::desired::Desired;
use crate::assistant::{Assistant, access, install};
use crate::reconcile::{self, Wish};
use crate::task::Context;

impl Run<App> for SyncKeyToInstance {
    async fn run(self, context: Context) -> Result<String> {
        let app = &context.app;
        let Some(assistant) = Assistant::find(app, &self.instance_id).await? else {
            return Ok("the instance is on no server: there is nothing to write to".into());
        };
        access::models(app, &assistant.instance).await?.ok_or_else(|| Error::conflict("no model is enabled"))?;
        let version = install::of_instance(app, &assistant).await?;
        let desired = Desired::of(app, &assistant, &version).await?;
        let written = reconcile::bring(&context, &assistant, &desired, Wish::Keep).await?;
        Ok(if written { "the key is on the instance" } else { "the key was there" }.into())
    }
}
