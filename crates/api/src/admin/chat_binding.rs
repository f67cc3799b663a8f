//! Chat-bot bindings of any instance.

use base::Listing;
use base::id::{ChatBindingId, InstanceId};
use fleet::bot;
use people::chat_binding::{self, Target};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::extract::{Admin, Answer, Body, Path, State};
use crate::shape::{BotStatus, ChatBindingItem, ConfigureBot, Deleted, NewChatBinding};
use crate::state::Shared;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(list, create))
        .routes(routes!(delete))
        .routes(routes!(configure))
        .routes(routes!(status))
}

/// The bots of an instance.
#[utoipa::path(get, path = "/instances/{id}/chat-bindings", tag = "chat-bindings", params(("id" = String, Path)), responses((status = 200, body = Listing<ChatBindingItem>)))]
async fn list(_: Admin, api: State, Path(id): Path<InstanceId>) -> Answer<Listing<ChatBindingItem>> {
    let found = chat_binding::list(&api.app, &id).await?;
    let list = found.into_iter().map(|b| ChatBindingItem::new(&api, b)).collect::<Result<Vec<_>, _>>()?;
    let total = list.len() as i64;
    Ok(Data(Listing { list, total }))
}

/// Binds a bot to an instance, without asking the bot platform; the instance is told by a task.
///
/// A token that a live binding has already is refused (409), and so is a second bot of a platform.
#[utoipa::path(post, path = "/instances/{id}/chat-bindings", tag = "chat-bindings", params(("id" = String, Path)), request_body = NewChatBinding, responses((status = 200, body = ChatBindingItem)))]
async fn create(
    who: Admin,
    api: State,
    Path(id): Path<InstanceId>,
    Body(body): Body<NewChatBinding>,
) -> Answer<ChatBindingItem> {
    let target = Target { instance: &id, holder: None };
    let made = chat_binding::bind(&api.app, &who.by, target, body.checked(), api.app.bots.webhooks.is_some()).await?;
    Ok(Data(ChatBindingItem::new(&api, made)?))
}

/// Takes a bot off an instance.
///
/// Tasks clear its webhook at the platform and its part of the instance's configuration.
#[utoipa::path(delete, path = "/instances/{id}/chat-bindings/{bid}", tag = "chat-bindings", params(("id" = String, Path), ("bid" = String, Path)), responses((status = 200, body = Deleted)))]
async fn delete(who: Admin, api: State, Path((id, bid)): Path<(String, String)>) -> Answer<Deleted> {
    let target = Target { instance: &InstanceId::named(id), holder: None };
    chat_binding::delete(&api.app, &who.by, target, &ChatBindingId::named(bid.clone())).await?;
    Ok(Data(Deleted { id: bid }))
}

/// Makes a token the instance's bot: asks the platform who it is, sets the webhook, writes the binding, has the instance told.
///
/// With an https public URL messages come by a webhook; otherwise none is set and the instance polls. A bot that the
/// instance had before is replaced. A token in use by another instance is 409; one that the platform refuses is 400 with its words.
#[utoipa::path(post, path = "/instances/{id}/configure-bot", tag = "chat-bindings", params(("id" = String, Path)), request_body = ConfigureBot, responses(
    (status = 200, body = ChatBindingItem),
    (status = 503, description = "the bot platform cannot be reached"),
))]
async fn configure(
    who: Admin,
    api: State,
    Path(id): Path<InstanceId>,
    Body(body): Body<ConfigureBot>,
) -> Answer<ChatBindingItem> {
    let chat_id = body.chat_id.map(Into::into);
    let made =
        bot::configure(&api.app, &who.by, Target { instance: &id, holder: None }, body.bot_token.0, chat_id).await?;
    Ok(Data(ChatBindingItem::new(&api, made)?))
}

/// How the instance's bot stands.
#[utoipa::path(get, path = "/instances/{id}/bot-status", tag = "chat-bindings", params(("id" = String, Path)), responses((status = 200, body = BotStatus)))]
async fn status(_: Admin, api: State, Path(id): Path<InstanceId>) -> Answer<BotStatus> {
    Ok(Data(bot::status(&api.app, &id).await?.into()))
}
