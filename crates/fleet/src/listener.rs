//! Who answers on an instance's port. Every connection to an instance is proved by its server before the first byte is sent
//! (`remote::host::Tenant`); what holds the port instead is written into the repair ledger, and an alert is raised.

use base::Result;
use remote::host::Error as HostError;
use store::instance::Instance;

use crate::{App, repair};

/// Its word in the ledger.
pub const FOREIGN_LISTENER: &str = "foreign_listener";

/// Writes down what holds the instance's port. Nothing was sent; that it cannot be written down changes nothing about that.
pub async fn note(app: &App, instance: &Instance, error: &HostError) {
    let HostError::Foreign { .. } = error else { return };
    tracing::warn!(instance = instance.id, %error, "nothing was sent to an instance");
    if let Err(error) = repair::alert_only(app, &instance.id, FOREIGN_LISTENER, &error.to_string()).await {
        tracing::error!(instance = instance.id, %error, "a foreign listener was not written down");
    }
}

/// The instance itself answered. What the health check looks at ends its alerts by that; of anything else it is known here alone.
pub async fn proved(app: &App, instance: &Instance) -> Result<()> {
    if instance.is_on_server() {
        return Ok(());
    }
    let mut tx = app.db.begin().await?;
    repair::resolve(app, &mut tx, &instance.id, FOREIGN_LISTENER).await?;
    Ok(tx.commit().await?)
}
