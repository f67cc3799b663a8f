//! Bring the stored configuration into the one on the server.

use base::Result;
use base::id::{InstanceId, TaskId};
use store::Tx;
use store::instance::Instance;

use super::WriteConfig;
use super::kind::{Context, Run};
use super::queue::enqueue;
use crate::assistant::{Assistant, config, install, settings};
use crate::{App, chat_binding};

/// Has the configuration written, where the instance is on its server already.
pub(crate) async fn enqueue_write_config(
    app: &App,
    tx: &mut Tx,
    instance: &Instance,
    source: &str,
) -> Result<Option<TaskId>> {
    if !instance.is_on_server() {
        return Ok(None);
    }
    enqueue(app, tx, &WriteConfig { instance_id: instance.id.clone() }, source, None).await.map(Some)
}

impl Run for WriteConfig {
    async fn run(self, context: Context) -> Result<String> {
        let summary = self.work(&context).await?;
        chat_binding::clear_again(&context, &self.instance_id).await?;
        Ok(summary)
    }
}

impl WriteConfig {
    async fn work(&self, context: &Context) -> Result<String> {
        let app = &context.app;
        let assistant = Assistant::open(app, &InstanceId::named(&self.instance_id)).await?;
        let version = install::of_instance(app, &assistant).await?;
        let (all, wishes) = (settings::of(app, &assistant).await?, settings::wishes(&assistant.instance)?);
        let edit = |document: &mut openclaw::Document| {
            settings::merge(document, &wishes)?;
            all.apply(document, &version).map(drop)
        };
        let written = config::bring(context, &assistant, &version, &edit).await?;
        Ok(if written { "the configuration is written" } else { "the configuration is as it should be" }.into())
    }
}
