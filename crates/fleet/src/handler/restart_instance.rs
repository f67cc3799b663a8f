//! Stop the instance, free its port, start it. A configuration that would be refused is found before anything is stopped.

use base::{Error, Result};
use queue::task::Run;

use crate::App;
use crate::assistant::{Assistant, config, install, service};
use crate::task::{Context, RestartInstance};

impl Run<App> for RestartInstance {
    async fn run(self, context: Context) -> Result<String> {
        let app = &context.app;
        let assistant = Assistant::open(app, &self.instance_id).await?;
        service::state(&assistant).await?;
        let version = install::of_instance(app, &assistant).await?;
        let found = config::read(&assistant).await?.ok_or_else(|| Error::conflict("the configuration is gone"))?;
        config::require_valid(&assistant, &version, &found.document).await?;
        service::restart(&context, &assistant).await?;
        Ok("restarted".into())
    }
}
