//! Who may answer on an instance's ports, derived from its record alone.

use base::Result;
use openclaw::config::Bind;
use openclaw::sweep;
use openclaw::unit::Name;
use remote::host::Tenant;
use remote::host::systemd::Unit;
use store::instance::{Instance, Runner};

/// The name of the instance's unit.
pub fn unit(instance: &Instance) -> Result<Name> {
    instance.unit.as_deref().map_or_else(|| Name::of_instance(&instance.id), Name::parse)
}

/// Whose sockets may answer on the instance's ports.
pub fn tenant(instance: &Instance) -> Result<Tenant> {
    // A replica of an older release writes no runner beside a container.
    let unit = match instance.runner {
        _ if !instance.container_id.is_empty() => {
            return Ok(Tenant::Container { id: instance.container_id.clone() });
        }
        Runner::Container => return Ok(Tenant::Container { id: instance.container_id.clone() }),
        Runner::Unit => Some(Unit::parse(unit(instance)?.as_str())?),
        // A user's own units and processes are that user's.
        Runner::UserUnit | Runner::Process | Runner::Address => None,
    };
    Ok(Tenant::Service { home: instance.home.as_deref().unwrap_or_default().to_owned(), unit })
}

/// What runs the instance, as a sweep asks about it.
pub fn runner(instance: &Instance) -> Result<sweep::Runner> {
    Ok(match instance.runner {
        Runner::Unit | Runner::Address => sweep::Runner::Unit(unit(instance)?),
        Runner::UserUnit => sweep::Runner::UserUnit(unit(instance)?),
        Runner::Container => sweep::Runner::Container(instance.container_id.clone()),
        Runner::Process => sweep::Runner::Process,
    })
}

/// Where the instance is to listen; `None` if that is not ours to say.
pub fn bind(instance: &Instance) -> Option<Bind> {
    (instance.runner != Runner::Container).then(|| Bind::for_url(&instance.gateway_url))
}

/// Whether the instance has an address of its own, at which it may be dialled without its server.
pub fn is_direct(instance: &Instance) -> bool {
    Bind::for_url(&instance.gateway_url) == Bind::Lan
}
