//! Copy the model list into the instance's configuration.

use base::{Error, Result};
use llm::task::SyncModelsToInstance;
use openclaw::config::{PROVIDER, set_models};
use queue::task::Run;

use crate::App;
use crate::assistant::{Assistant, config, install, settings};
use crate::task::Context;

impl Run<App> for SyncModelsToInstance {
    async fn run(self, context: Context) -> Result<String> {
        let app = &context.app;
        let Some(assistant) = Assistant::find(app, &self.instance_id).await? else {
            return Ok("the instance is on no server: there is nothing to write to".into());
        };
        let version = install::of_instance(app, &assistant).await?;
        let access = settings::access(app, &assistant.instance).await?;
        let access = access.ok_or_else(|| Error::conflict("no model is enabled"))?;
        if !assistant.instance.model.is_empty() && access.primary != assistant.instance.model {
            let (model, primary) = (&assistant.instance.model, &access.primary);
            context.log(&format!("the model {model} is not enabled: {primary} takes its place")).await?;
        }
        let edit = |document: &mut openclaw::Document| {
            if document.has(["models", "providers", PROVIDER, "baseUrl"]) {
                set_models(document, &version, &access.models, &access.primary, &access.fallbacks)
            } else {
                access.apply(document, &version)
            }
        };
        let written = config::bring(&context, &assistant, &version, &edit).await?;
        let count = access.models.len();
        Ok(if written {
            format!("{count} models are on the instance")
        } else {
            format!("its {count} models were there")
        })
    }
}
