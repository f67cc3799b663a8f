//! Who may answer on an instance's ports, derived from its record alone.

use base::Result;
use openclaw::config::Bind;
use openclaw::unit::Name;
use remote::host::Tenant;
use remote::host::systemd::Unit;
use store::instance::Instance;

/// The name of the instance's unit.
pub fn unit(instance: &Instance) -> Result<Name> {
    instance.unit.as_deref().map_or_else(|| Name::of_instance(&instance.id), Name::parse)
}

/// Whose sockets may answer on the instance's ports.
pub fn tenant(instance: &Instance) -> Result<Tenant> {
    if !instance.container_id.is_empty() {
        return Ok(Tenant::Container { id: instance.container_id.clone() });
    }
    let unit = Unit::parse(unit(instance)?.as_str())?;
    Ok(Tenant::Service { home: instance.home.as_deref().unwrap_or_default().to_owned(), unit })
}

/// Whether the instance has an address of its own, at which it may be dialled without its server.
pub fn is_direct(instance: &Instance) -> bool {
    Bind::for_url(&instance.gateway_url) == Bind::Lan
}
