//! Live ways to an own instance: the WebSocket relay and the embedded window, each by a ticket, and straight by a device that is approved.

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::HeaderMap;
use axum::response::Response;
use base::Text;
use base::id::InstanceId;
use base::{Error, Kind};
use fleet::relay::{self, RelayMode};
use fleet::{device, embed};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::error::ApiError;
use crate::extract::{Answer, Body, Caller, Employee, Path, Query, State};
use crate::socket;
use crate::state::Shared;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(ticket))
        .routes(routes!(connect))
        .routes(routes!(embed_ticket))
        .routes(routes!(approve_device))
}

#[derive(Serialize, ToSchema)]
pub struct WsTicket {
    /// For `?ticket=` of GET /me/instances/{id}/ws: once, on any replica.
    ticket: String,
    #[schema(example = "2026-11-15T09:30:30.000+01:00")]
    expires_at: String,
}

/// A ticket for one WebSocket to an own instance, good for 30 s and one use.
#[utoipa::path(post, path = "/me/instances/{id}/ws-ticket", tag = "chat", params(("id" = String, Path)), responses(
    (status = 200, body = WsTicket),
    (status = 404, description = "not one's own instance"),
    (status = 429, description = "120 tickets a minute, or 16 open sockets; Retry-After says when it may work"),
))]
async fn ticket(who: Employee, api: State, Path(id): Path<InstanceId>) -> Answer<WsTicket> {
    let (ticket, expires_at) = relay::ticket(&api.app, &who.0, &id).await?;
    Ok(Data(WsTicket { ticket: ticket.expose().to_owned(), expires_at: api.zone().show(expires_at) }))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Shown {
    /// What POST /me/instances/{id}/ws-ticket answered.
    ticket: Option<String>,
}

/// The WebSocket relay: frames of the instance's gateway, protocol 4, after a handshake that the platform did.
///
/// The first frame is the event `relay.hello` {protocol, server {version}, methods, policy {maxPayload, tickIntervalMs,
/// attachments {maxBytes, maxImageBytes}}}; requests may be sent before it. Taken are requests of the methods chat.*,
/// sessions.list, .create, .patch, .preview, .subscribe and models.list; others are answered FORBIDDEN. A frame has at most
/// 26,214,400 bytes. Closes with 1008 when the login or the binding ends (or a frame is none), 1009 for a frame too long, 1003
/// and 1007 for what is no text, 1011 when the instance is not there, 1012 when it, or the platform, restarts, 1013 while it
/// starts or its server has no place left. A page of another origin is let in to be told so (1008, "origin not allowed"). To go
/// on: a new ticket, `chat.history` (its `inFlightRun` is what is under way); a repeated idempotencyKey runs nothing twice.
#[utoipa::path(get, path = "/me/instances/{id}/ws", tag = "chat", params(("id" = String, Path), Shown), responses(
    (status = 101, description = "a WebSocket"),
    (status = 401, description = "no ticket, or one that was used or is too old"),
    (status = 403, description = "a page of another origin, by plain HTTP"),
    (status = 429, description = "too many open sockets"),
))]
async fn connect(
    api: State,
    Path(id): Path<InstanceId>,
    Query(shown): Query<Shown>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    if let Err(refused) = socket::check_origin(&headers, &api.public_url.origin()) {
        // The ticket is not looked at: whoever stole it by a page of theirs does not spend it.
        return upgrade.map(|upgrade| socket::refuse(upgrade, "origin not allowed")).map_err(|_| refused);
    }
    let ticket = shown.ticket.ok_or_else(|| Error::from(Kind::Unauthorized).with_operator("no ticket"))?;
    let upgrade = upgrade.map_err(|_| Error::new(Kind::BadRequest, "this is for WebSockets"));
    // Taken in any case: what came by plain HTTP stands in logs.
    let admitted = relay::admit(&api.app, &ticket, &id).await;
    let (upgrade, (visitor, place)) = (upgrade?, admitted?);
    Ok(socket::take(api.0, upgrade, visitor, place, RelayMode::Chat))
}

#[derive(Serialize, ToSchema)]
pub struct EmbedTicket {
    /// For the `src` of a frame. A secret: it leads in for an hour, as long as the login holds.
    url: String,
}

/// The address of an own instance's own page, for a frame in the employee web app.
///
/// It is on an origin of this instance's own, another than the API's, and may be framed by the employee origin only. Where the platform
/// has one host for all windows, they share its origin.
#[utoipa::path(post, path = "/me/instances/{id}/embed-ticket", tag = "chat", params(("id" = String, Path)), responses(
    (status = 200, body = EmbedTicket),
    (status = 403, description = "the window is switched off, for all or for this instance"),
    (status = 404, description = "not one's own instance"),
))]
async fn embed_ticket(who: Employee, api: State, Path(id): Path<InstanceId>) -> Answer<EmbedTicket> {
    let url = embed::ticket(&api.app, &who.0, &id).await?;
    Ok(Data(EmbedTicket { url: url.expose().to_owned() }))
}

#[derive(Deserialize, ToSchema)]
pub struct WaitingDevice {
    /// `details.requestId` of the gateway's refusal PAIRING_REQUIRED.
    request_id: Text<200>,
    /// The device's own id: the SHA-256 of its public key, in hex.
    device_id: Text<200>,
}

#[derive(Serialize, ToSchema)]
pub struct ApprovedDevice {
    device_id: String,
}

/// Approves a device of one's own that waits at an own instance's gateway, for a connection straight to its gateway_url.
///
/// For browsers that the gateway refused with PAIRING_REQUIRED, which it does to devices that come from elsewhere than its own
/// machine. Approved is what asks for operator.read and operator.write alone. The relay needs nothing of this.
#[utoipa::path(post, path = "/me/instances/{id}/devices", tag = "chat", params(("id" = String, Path)), request_body = WaitingDevice, responses(
    (status = 200, body = ApprovedDevice),
    (status = 403, description = "the device asks for more than to chat"),
    (status = 404, description = "not one's own instance, or no such device waits there"),
    (status = 503, description = "the instance or its server does not answer"),
))]
async fn approve_device(
    who: Employee,
    api: State,
    caller: Caller,
    Path(id): Path<InstanceId>,
    Body(body): Body<WaitingDevice>,
) -> Answer<ApprovedDevice> {
    let by = caller.0.employee(&who.0.email);
    let (request, device) = (body.request_id.as_str(), body.device_id.as_str());
    device::approve(&api.app, &by, &who.0, &id, request, device).await?;
    Ok(Data(ApprovedDevice { device_id: device.to_owned() }))
}
