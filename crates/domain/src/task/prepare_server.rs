//! Make a server ready for assistants: Node and OpenClaw of the set version, installed and tried.

use base::id::{InstanceId, ServerId};
use base::{Error, Result};
use serde::{Deserialize, Serialize};
use store::{Tx, server};

use super::kind::{Context, Payload, Priority, Run};
use crate::assistant::install;
use crate::audit::{self, Action, AuditEvent};
use crate::host;
use crate::permission::Permission;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PrepareServer {
    pub server_id: String,
}

impl Payload for PrepareServer {
    const TYPE: &'static str = "prepare_server";
    const PRIORITY: Priority = Priority::Fleet;

    async fn instance(&self, tx: &mut Tx) -> Result<Option<InstanceId>> {
        let found = server::find(&mut *tx, &ServerId::named(&self.server_id)).await?;
        found.ok_or_else(|| Error::field("payload.server_id", "there is no such server"))?;
        Ok(None)
    }

    fn server(&self) -> Option<ServerId> {
        Some(ServerId::named(&self.server_id))
    }

    fn permission(&self) -> Permission {
        Permission::ManageServers
    }
}

impl Run for PrepareServer {
    async fn run(self, context: Context) -> Result<String> {
        let app = &context.app;
        let server = crate::server::find(app, &ServerId::named(&self.server_id)).await?;
        let host = host::connect(app, &server).await?;
        context.log(&format!("installing OpenClaw {}, unless it is there", app.assistants.version)).await?;
        let said = install::ensure(app, &server, &host, &app.assistants.version).await?;
        let detail = format!("prepared: {said}");
        let by = context.by();
        audit::record_alone(app, &by, AuditEvent::info(Action::ServerAction, &server.id, &detail)).await?;
        Ok(said.to_string())
    }
}
