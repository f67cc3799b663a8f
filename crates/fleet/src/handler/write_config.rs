//! Bring the stored configuration into the one on the server.

use base::Result;
use people::chat_binding;
use people::task::WriteConfig;
use queue::task::Run;

use crate::App;
use crate::assistant::desired::Desired;
use crate::assistant::{Assistant, install};
use crate::reconcile::{self, Wish};
use crate::task::Context;

impl Run<App> for WriteConfig {
    async fn run(self, context: Context) -> Result<String> {
        let app = &context.app;
        let assistant = Assistant::open(app, &self.instance_id).await?;
        let version = install::of_instance(app, &assistant).await?;
        let desired = Desired::of(app, &assistant, &version).await?;
        let written = reconcile::bring(&context, &assistant, &desired, Wish::Keep).await?;
        chat_binding::clear_again(app, &context.task, &self.instance_id).await?;
        Ok(if written { "the configuration is written" } else { "the configuration is as it should be" }.into())
    }
}
