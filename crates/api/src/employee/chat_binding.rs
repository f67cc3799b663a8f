//! The chat-bots of the employee's own instances.

use base::Listing;
use base::id::{ChatBindingId, InstanceId};
use fleet::{bot, pairing};
use people::chat_binding::{self, Target};
use people::chat_sender;
use people::holder;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::extract::{Answer, Body, Caller, Employee, Path, State};
use crate::shape::{
    AllowSender, BotStatus, ChatBindingItem, ConfigureBot, Deleted, NewChatBinding, PairingRequestItem,
};
use crate::state::Shared;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(list, create))
        .routes(routes!(delete))
        .routes(routes!(configure))
        .routes(routes!(status))
        .routes(routes!(pairing_requests))
        .routes(routes!(refuse))
        .routes(routes!(allow))
        .routes(routes!(remove_sender))
}

/// The bots of an own instance.
#[utoipa::path(get, path = "/me/instances/{id}/chat-bindings", tag = "chat-bindings", params(("id" = String, Path)), responses((status = 200, body = Listing<ChatBindingItem>)))]
async fn list(who: Employee, api: State, Path(id): Path<InstanceId>) -> Answer<Listing<ChatBindingItem>> {
    holder::own(&api.app, &who.0.id, &id).await?;
    let found = chat_binding::list(&api.app, &id).await?;
    let list = ChatBindingItem::list(&api, found).await?;
    let total = list.len() as i64;
    Ok(Data(Listing { list, total }))
}

/// Binds a bot to an own instance, without asking the bot platform; the instance is told by a task.
///
/// A token that a live binding has already is refused (409), and so is a second bot of a platform.
#[utoipa::path(post, path = "/me/instances/{id}/chat-bindings", tag = "chat-bindings", params(("id" = String, Path)), request_body = NewChatBinding, responses((status = 200, body = ChatBindingItem)))]
async fn create(
    who: Employee,
    api: State,
    caller: Caller,
    Path(id): Path<InstanceId>,
    Body(body): Body<NewChatBinding>,
) -> Answer<ChatBindingItem> {
    let by = caller.0.employee(&who.0.email);
    let target = Target { instance: &id, holder: Some(&who.0.id) };
    let made = chat_binding::bind(&api.app, &by, target, body.checked(), api.app.bots.webhooks.is_some()).await?;
    Ok(Data(ChatBindingItem::load(&api, made).await?))
}

/// Takes a bot off an own instance.
///
/// Tasks clear its webhook at the platform and its part of the instance's configuration.
#[utoipa::path(delete, path = "/me/instances/{id}/chat-bindings/{bid}", tag = "chat-bindings", params(("id" = String, Path), ("bid" = String, Path)), responses((status = 200, body = Deleted)))]
async fn delete(who: Employee, api: State, caller: Caller, Path((id, bid)): Path<(String, String)>) -> Answer<Deleted> {
    let id = InstanceId::named(id);
    let by = caller.0.employee(&who.0.email);
    let target = Target { instance: &id, holder: Some(&who.0.id) };
    chat_binding::delete(&api.app, &by, target, &ChatBindingId::named(bid.clone())).await?;
    Ok(Data(Deleted { id: bid }))
}

/// Makes a token the own instance's bot: asks the platform who it is, sets the webhook, writes the binding, has the instance told.
///
/// With an https public URL messages come by a webhook; otherwise none is set and the instance polls. A bot that the
/// instance had before is replaced. A token in use by another instance is 409; one that the platform refuses is 400 with its words.
#[utoipa::path(post, path = "/me/instances/{id}/configure-bot", tag = "chat-bindings", params(("id" = String, Path)), request_body = ConfigureBot, responses(
    (status = 200, body = ChatBindingItem),
    (status = 503, description = "the bot platform cannot be reached"),
))]
async fn configure(
    who: Employee,
    api: State,
    caller: Caller,
    Path(id): Path<InstanceId>,
    Body(body): Body<ConfigureBot>,
) -> Answer<ChatBindingItem> {
    let by = caller.0.employee(&who.0.email);
    let target = Target { instance: &id, holder: Some(&who.0.id) };
    let (token, chat_id) = body.checked()?;
    let made = bot::configure(&api.app, &by, target, token, chat_id).await?;
    Ok(Data(ChatBindingItem::load(&api, made).await?))
}

/// How the own instance's bot stands.
#[utoipa::path(get, path = "/me/instances/{id}/bot-status", tag = "chat-bindings", params(("id" = String, Path)), responses((status = 200, body = BotStatus)))]
async fn status(who: Employee, api: State, Path(id): Path<InstanceId>) -> Answer<BotStatus> {
    holder::own(&api.app, &who.0.id, &id).await?;
    Ok(Data(bot::status(&api.app, &id).await?.into()))
}

/// The people who wrote to an own instance's bot and wait to be allowed, with the pairing code that the bot gave them.
///
/// Read on the instance's server now. A request is open for an hour; OpenClaw keeps three at a time.
#[utoipa::path(get, path = "/me/instances/{id}/chat-bindings/{bid}/pairing-requests", tag = "chat-bindings", params(("id" = String, Path), ("bid" = String, Path)), responses(
    (status = 200, body = Listing<PairingRequestItem>),
    (status = 409, description = "the instance is not on a server that the platform prepared"),
    (status = 503, description = "the server cannot be reached"),
))]
async fn pairing_requests(
    who: Employee,
    api: State,
    Path((id, bid)): Path<(String, String)>,
) -> Answer<Listing<PairingRequestItem>> {
    let id = InstanceId::named(id);
    let target = Target { instance: &id, holder: Some(&who.0.id) };
    let found = pairing::requests(&api.app, target, &ChatBindingId::named(bid)).await?;
    Ok(Data(PairingRequestItem::list(&api, found)))
}

/// Refuses a pairing request: the instance forgets it, and the sender may ask again.
#[utoipa::path(delete, path = "/me/instances/{id}/chat-bindings/{bid}/pairing-requests/{sender_id}", tag = "chat-bindings", params(("id" = String, Path), ("bid" = String, Path), ("sender_id" = String, Path)), responses(
    (status = 200, body = Deleted),
    (status = 409, description = "the instance runs an OpenClaw before 2026.7, which cannot refuse"),
    (status = 503, description = "the server cannot be reached"),
))]
async fn refuse(
    who: Employee,
    api: State,
    caller: Caller,
    Path((id, bid, sender)): Path<(String, String, String)>,
) -> Answer<Deleted> {
    let id = InstanceId::named(id);
    let by = caller.0.employee(&who.0.email);
    let target = Target { instance: &id, holder: Some(&who.0.id) };
    pairing::refuse(&api.app, &by, target, &ChatBindingId::named(bid), &sender).await?;
    Ok(Data(Deleted { id: sender }))
}

/// Allows somebody to write to an own instance's bot, by the code of a pairing request or by their number at the platform.
///
/// A task writes the list into the instance's configuration. From then on the bot answers the listed senders only, and
/// ignores all others.
#[utoipa::path(post, path = "/me/instances/{id}/chat-bindings/{bid}/senders", tag = "chat-bindings", params(("id" = String, Path), ("bid" = String, Path)), request_body = AllowSender, responses(
    (status = 200, body = ChatBindingItem),
    (status = 409, description = "20 senders are allowed already"),
    (status = 503, description = "a code was given, and the server cannot be reached"),
))]
async fn allow(
    who: Employee,
    api: State,
    caller: Caller,
    Path((id, bid)): Path<(String, String)>,
    Body(body): Body<AllowSender>,
) -> Answer<ChatBindingItem> {
    let id = InstanceId::named(id);
    let by = caller.0.employee(&who.0.email);
    let target = Target { instance: &id, holder: Some(&who.0.id) };
    let choice = body.checked()?;
    let (binding, senders) = pairing::allow(&api.app, &by, target, &ChatBindingId::named(bid), choice).await?;
    Ok(Data(ChatBindingItem::new(&api, binding, senders)?))
}

/// Removes somebody who may write to an own instance's bot.
///
/// Without any sender left, the bot gives pairing codes again.
#[utoipa::path(delete, path = "/me/instances/{id}/chat-bindings/{bid}/senders/{sender_id}", tag = "chat-bindings", params(("id" = String, Path), ("bid" = String, Path), ("sender_id" = String, Path)), responses((status = 200, body = Deleted)))]
async fn remove_sender(
    who: Employee,
    api: State,
    caller: Caller,
    Path((id, bid, sender)): Path<(String, String, String)>,
) -> Answer<Deleted> {
    let id = InstanceId::named(id);
    let by = caller.0.employee(&who.0.email);
    let target = Target { instance: &id, holder: Some(&who.0.id) };
    chat_sender::remove(&api.app, &by, target, &ChatBindingId::named(bid), &sender).await?;
    Ok(Data(Deleted { id: sender }))
}
