//! The chat-bots of the employee's own instances.

use base::Listing;
use base::id::{ChatBindingId, InstanceId};
use fleet::bot;
use people::chat_binding::{self, Target};
use people::holder;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::extract::{Answer, Body, Caller, Employee, Path, State};
use crate::shape::{BotStatus, ChatBindingItem, ConfigureBot, Deleted, NewChatBinding};
use crate::state::Shared;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(list, create))
        .routes(routes!(delete))
        .routes(routes!(configure))
        .routes(routes!(status))
}

/// The bots of an own instance.
#[utoipa::path(get, path = "/me/instances/{id}/chat-bindings", tag = "chat-bindings", params(("id" = String, Path)), responses((status = 200, body = Listing<ChatBindingItem>)))]
async fn list(who: Employee, api: State, Path(id): Path<InstanceId>) -> Answer<Listing<ChatBindingItem>> {
    holder::own(&api.app, &who.0.id, &id).await?;
    let found = chat_binding::list(&api.app, &id).await?;
    let list = found.into_iter().map(|b| ChatBindingItem::new(&api, b)).collect::<Result<Vec<_>, _>>()?;
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
    Ok(Data(ChatBindingItem::new(&api, made)?))
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
    let chat_id = body.chat_id.map(Into::into);
    let made = bot::configure(&api.app, &by, target, body.bot_token.0, chat_id).await?;
    Ok(Data(ChatBindingItem::new(&api, made)?))
}

/// How the own instance's bot stands.
#[utoipa::path(get, path = "/me/instances/{id}/bot-status", tag = "chat-bindings", params(("id" = String, Path)), responses((status = 200, body = BotStatus)))]
async fn status(who: Employee, api: State, Path(id): Path<InstanceId>) -> Answer<BotStatus> {
    holder::own(&api.app, &who.0.id, &id).await?;
    Ok(Data(bot::status(&api.app, &id).await?.into()))
}
