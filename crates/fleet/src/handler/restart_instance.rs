//! Stop the instance, free its port, start it, with everything that our records want. A configuration that would be
//! refused is found before anything is stopped.

use base::Result;
use queue::task::Run;

use crate::App;
use crate::assistant::{Assistant, install};
use crate::reconcile::Restart;
use crate::task::{Context, RestartInstance};

impl Run<App> for RestartInstance {
    async fn run(self, context: Context) -> Result<String> {
        let app = &context.app;
        let assistant = Assistant::open(app, &self.instance_id).await?;
        let version = install::of_instance(app, &assistant).await?;
        Restart::prepare(app, &assistant, &version).await?.go(&context, &assistant).await?;
        Ok("restarted".into())
    }
}
