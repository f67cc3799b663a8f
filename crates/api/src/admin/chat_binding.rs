//! Chat-bot bindings of any instance.

use base::Listing;
use base::id::{ChatBindingId, InstanceId};
use domain::chat_binding;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::extract::{Admin, Answer, Body, Path, State};
use crate::shape::{ChatBindingItem, Deleted, NewChatBinding};
use crate::state::Shared;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default().routes(routes!(list, create)).routes(routes!(delete))
}

/// The bots of an instance.
#[utoipa::path(get, path = "/instances/{id}/chat-bindings", tag = "chat-bindings", params(("id" = String, Path)), responses((status = 200, body = Listing<ChatBindingItem>)))]
async fn list(_: Admin, api: State, Path(id): Path<String>) -> Answer<Listing<ChatBindingItem>> {
    let found = chat_binding::list(&api.app, &InstanceId::named(id)).await?;
    let list = found.into_iter().map(|b| ChatBindingItem::new(&api, b)).collect::<Result<Vec<_>, _>>()?;
    let total = list.len() as i64;
    Ok(Data(Listing { list, total }))
}

/// Binds a bot to an instance.
///
/// A token that a live binding has already is refused (409).
#[utoipa::path(post, path = "/instances/{id}/chat-bindings", tag = "chat-bindings", params(("id" = String, Path)), request_body = NewChatBinding, responses((status = 200, body = ChatBindingItem)))]
async fn create(
    who: Admin,
    api: State,
    Path(id): Path<String>,
    Body(body): Body<NewChatBinding>,
) -> Answer<ChatBindingItem> {
    let made = chat_binding::create(&api.app, &who.by, &InstanceId::named(id), body.checked()).await?;
    Ok(Data(ChatBindingItem::new(&api, made)?))
}

/// Takes a bot off an instance.
#[utoipa::path(delete, path = "/instances/{id}/chat-bindings/{bid}", tag = "chat-bindings", params(("id" = String, Path), ("bid" = String, Path)), responses((status = 200, body = Deleted)))]
async fn delete(who: Admin, api: State, Path((id, bid)): Path<(String, String)>) -> Answer<Deleted> {
    chat_binding::delete(&api.app, &who.by, &InstanceId::named(id), &ChatBindingId::named(bid.clone())).await?;
    Ok(Data(Deleted { id: bid }))
}
