//! Make a server ready for assistants: Node and OpenClaw of the set version, installed and tried.

use base::Result;
use queue::audit::{self, Action, AuditEvent};
use queue::task::Run;

use crate::assistant::install;
use crate::task::{Context, PrepareServer};
use crate::{App, host};

impl Run<App> for PrepareServer {
    async fn run(self, context: Context) -> Result<String> {
        let app = &context.app;
        let server = crate::server::find(app, &self.server_id).await?;
        let host = host::connect(app, &server).await?;
        context.log(&format!("installing OpenClaw {}, unless it is there", app.assistants.version)).await?;
        let said = install::ensure(app, &server, &host, &app.assistants.version).await?;
        let detail = format!("prepared: {said}");
        let by = context.by();
        audit::record_alone(app, &by, AuditEvent::info(Action::ServerAction, &server.id, &detail)).await?;
        Ok(said.to_string())
    }
}
