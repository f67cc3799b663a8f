//! Who answers on an instance's port. Every connection to an instance is proved by its server before the first byte is sent
//! (`remote::host::Tenant`); what holds the port instead is written into the repair ledger, and an alert is raised.

use base::Result;
use openclaw::config::Bind;
use remote::host::systemd::Unit;
use remote::host::{Error as HostError, Tenant};
use store::instance::Instance;

use crate::App;
use crate::health::sweep;
use crate::repair;

/// Its word in the ledger.
pub const FOREIGN_LISTENER: &str = "foreign_listener";

/// Whose sockets may answer on the instance's ports.
pub fn tenant(instance: &Instance) -> Result<Tenant> {
    if !instance.container_id.is_empty() {
        return Ok(Tenant::Container { id: instance.container_id.clone() });
    }
    let unit = Unit::parse(sweep::unit(instance)?.as_str())?;
    Ok(Tenant::Service { home: instance.home.clone(), unit })
}

/// Whether the instance may be dialled at an address of its own, where no server can be asked who answers.
pub fn is_direct(instance: &Instance) -> bool {
    Bind::for_url(&instance.gateway_url) == Bind::Lan
}

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
