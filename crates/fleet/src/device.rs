//! Approves browsers that connect directly to an instance. A gateway accepts a device from another machine only after
//! its approval. The platform approves the device of the instance's holder, and only for chat.

use base::id::InstanceId;
use base::{Error, Kind, Result};
use openclaw::frame::{Devices, Request, Scope};
use people::holder;
use people::session::Employee;
use queue::audit::{self, Action, AuditEvent, By};
use queue::throttle::SOCKET;
use store::server;

use crate::rpc::Rpc;
use crate::{App, host};

/// Approves the device with this pending request at the gateway of the employee's own instance.
pub async fn approve(
    app: &App,
    by: &By,
    who: &Employee,
    instance: &InstanceId,
    request: &str,
    device: &str,
) -> Result<()> {
    let own = holder::own(app, &who.id, instance).await?;
    SOCKET.hit(app, who.id.as_str()).await?;
    let place = server::find(&app.db, &own.server_id).await?.ok_or(Kind::NotFound)?;
    // Use only the server's connection: from its own machine, the gateway accepts the token without a device.
    let host = host::reach(app, &place).await?;
    let mut rpc = Rpc::open(app, &host, &own, Scope::LET_CHAT).await?;
    let devices: Devices = rpc.call(Request::devices).await?;
    let found = devices.pending.into_iter().find(|one| one.request_id == request && one.device_id == device);
    let pending = found.ok_or_else(|| Error::new(Kind::NotFound, "no such device waits at the instance"))?;
    if !pending.only_chats() {
        return Err(Error::new(Kind::NoAccess, "the device asks for more than to chat"));
    }
    rpc.require(|id| Request::device_approve(id, request)).await?;
    let detail = format!("device {} may chat, on behalf of {}", pending.device_id, by.on_behalf_of);
    audit::record_alone(app, by, AuditEvent::info(Action::InstanceUpdate, instance.as_str(), &detail)).await
}
