//! Copy the model list into the instance's configuration, with everything else that our records want of it.

use base::{Error, Result};
use llm::task::SyncModelsToInstance;
use queue::task::Run;

use crate::App;
use crate::assistant::desired::Desired;
use crate::assistant::{Assistant, access, install};
use crate::reconcile::{self, Wish, hold};
use crate::task::Context;

impl Run<App> for SyncModelsToInstance {
    async fn run(self, context: Context) -> Result<String> {
        let app = &context.app;
        let Some(assistant) = Assistant::find(app, &self.instance_id).await? else {
            return Ok("the instance is on no server: there is nothing to write to".into());
        };
        if let Some(held) = hold::refusal(app, &self.instance_id).await? {
            return Ok(held);
        }
        let models = access::models(app, &assistant.instance).await?;
        let models = models.ok_or_else(|| Error::conflict("no model is enabled"))?;
        if !assistant.instance.model.is_empty() && models.primary != assistant.instance.model {
            let (model, primary) = (&assistant.instance.model, &models.primary);
            context.log(&format!("the model {model} is not enabled: {primary} takes its place")).await?;
        }
        let version = install::of_instance(app, &assistant).await?;
        let desired = Desired::of(app, &assistant, &version).await?;
        let written = reconcile::bring(&context, &assistant, &desired, Wish::Keep).await?;
        let count = models.list.len();
        Ok(if written {
            format!("{count} models are on the instance")
        } else {
            format!("its {count} models were there")
        })
    }
}
