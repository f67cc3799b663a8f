//! Foreign listeners on an instance's port. Before the first byte is sent over a connection to an instance, the server
//! proves who answers there (`remote::host::Tenant`). If it is another process, that is recorded in the repair ledger
//! and an alert is raised.

use base::Result;
use remote::host::Error as HostError;
use store::instance::Instance;

use crate::{App, repair};

/// The rule's name in the repair ledger.
pub const FOREIGN_LISTENER: &str = "foreign_listener";

/// Records which process has the instance's port. A failure to record it is only logged: nothing was sent in any case.
pub async fn note(app: &App, instance: &Instance, error: &HostError) {
    let HostError::Foreign { .. } = error else { return };
    tracing::warn!(instance = %instance.id, %error, "nothing was sent to an instance");
    if let Err(error) = repair::alert_only(app, &instance.id, FOREIGN_LISTENER, &error.to_string()).await {
        tracing::error!(instance = %instance.id, %error, "a foreign listener was not written down");
    }
}

/// Resolves the alert after the instance itself answered. For an instance on its server the health check does that; any
/// other instance is not checked, so its alert can only be resolved here.
pub async fn proved(app: &App, instance: &Instance) -> Result<()> {
    if instance.is_on_server() {
        return Ok(());
    }
    let mut tx = app.db.begin().await?;
    repair::resolve(app, &mut tx, &instance.id, FOREIGN_LISTENER).await?;
    Ok(tx.commit().await?)
}
