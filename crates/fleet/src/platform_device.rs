//! The platform as a device of gateways in containers. Such a gateway sees Docker's address and not its own loopback, so
//! the token alone gives no scopes there. The platform approves its own device from inside of the container.

use std::time::Duration;

use base::id::InstanceId;
use base::{Error, Kind, Result};
use openclaw::frame::{Device, Devices, Scope};
use openclaw::program;
use queue::audit::{self, Action, AuditEvent, By};
use remote::host::{Actor, Command, Host};
use store::instance::{Instance, Runner};
use store::seal::Sealer;

use crate::App;

/// For one command of OpenClaw, which takes a second, and half a minute on a busy server.
const LIMIT: Duration = Duration::from_secs(45);

/// The device that the platform shows an instance's gateway; `None` where the token is enough.
pub fn of(sealer: &Sealer, instance: &Instance) -> Result<Option<Device>> {
    let needs_one = instance.runner == Runner::Container;
    needs_one.then(|| Device::from_seed(&sealer.derive("device", instance.id.as_str()))).transpose()
}

/// Approves the platform's own device at the gateway of a container: only this one, and only for what the platform does
/// there.
pub async fn approve(app: &App, host: &Host, instance: &Instance) -> Result<()> {
    let Some(device) = of(&app.sealer, instance)? else {
        return Err(Error::new(Kind::Gateway, "the gateway wants the platform to be an approved device"));
    };
    let listed = inside(host, instance, &program::LIST_DEVICES.map(str::to_owned)).await?;
    let devices: Devices = serde_json::from_str(&listed).map_err(|error| odd(error.to_string()))?;
    let mut waiting = devices.pending.into_iter().filter(|pending| pending.device_id == device.id());
    // Another replica may have approved it.
    let Some(pending) = waiting.find(|pending| pending.asks_only_for(Scope::LET_CHAT)) else { return Ok(()) };
    inside(host, instance, &program::approve_device(&pending.request_id)?).await?;
    record(app, &instance.id).await
}

async fn record(app: &App, instance: &InstanceId) -> Result<()> {
    let detail = "the platform was approved as a device of the gateway in its container";
    audit::record_alone(app, &By::system(), AuditEvent::info(Action::InstanceUpdate, instance.as_str(), detail)).await
}

/// What OpenClaw's program prints inside of the instance's container.
async fn inside(host: &Host, instance: &Instance, args: &[String]) -> Result<String> {
    let actor = Actor::Container(instance.container_id.clone());
    let command = Command::new(program::NAME).args(args.iter().cloned()).limit(LIMIT).by(actor);
    Ok(host.run(&command).await?.ok("openclaw devices")?.text())
}

fn odd(why: String) -> Error {
    Error::new(Kind::Gateway, "the gateway in the container does not list its devices").with_operator(why)
}
