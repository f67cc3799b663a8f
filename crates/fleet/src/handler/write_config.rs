//! Bring the stored configuration into the one on the server.

use base::Result;
use base::id::InstanceId;
use people::chat_binding;
use people::task::WriteConfig;
use queue::task::Run;

use crate::App;
use crate::assistant::{Assistant, config, install, settings};
use crate::task::Context;

impl Run<App> for WriteConfig {
    async fn run(self, context: Context) -> Result<String> {
        let summary = write(&context, &self.instance_id).await?;
        chat_binding::clear_again(&context.app, &context.task, &self.instance_id).await?;
        Ok(summary)
    }
}

async fn write(context: &Context, id: &InstanceId) -> Result<String> {
    let app = &context.app;
    let assistant = Assistant::open(app, id).await?;
    let version = install::of_instance(app, &assistant).await?;
    let (all, wishes) = (settings::of(app, &assistant).await?, settings::wishes(&assistant.instance)?);
    let edit = |document: &mut openclaw::Document| {
        settings::merge(document, &wishes)?;
        all.apply(document, &version).map(drop)
    };
    let written = config::bring(context, &assistant, &version, &edit).await?;
    Ok(if written { "the configuration is written" } else { "the configuration is as it should be" }.into())
}
