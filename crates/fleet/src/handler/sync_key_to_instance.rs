//! Write the instance's sub key into its configuration.

use base::{Error, Result};
use llm::task::SyncKeyToInstance;
use openclaw::config::{PROVIDER, set_key};
use queue::task::Run;

use crate::App;
use crate::assistant::{Assistant, config, install, settings};
use crate::task::Context;

impl Run<App> for SyncKeyToInstance {
    async fn run(self, context: Context) -> Result<String> {
        let app = &context.app;
        let Some(assistant) = Assistant::find(app, &self.instance_id).await? else {
            return Ok("the instance is on no server: there is nothing to write to".into());
        };
        let version = install::of_instance(app, &assistant).await?;
        let access = settings::access(app, &assistant.instance).await?;
        let access = access.ok_or_else(|| Error::conflict("no model is enabled"))?;
        let edit = |document: &mut openclaw::Document| {
            // A key alone is no access: where there was none, it is given whole.
            if document.has(["models", "providers", PROVIDER, "baseUrl"]) {
                set_key(document, &access.key)
            } else {
                access.apply(document, &version)
            }
        };
        let written = config::bring(&context, &assistant, &version, &edit).await?;
        Ok(if written { "the key is on the instance" } else { "the key was there" }.into())
    }
}
