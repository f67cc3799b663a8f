//! The employee API. One file per noun; each has its `routes()`.

mod auth;
mod chat;
mod chat_binding;
mod install;
mod instance;
mod marketplace;
mod me;
mod message;
mod profession;
mod repair;
mod second_factor;
mod socket;
mod usage;

use utoipa_axum::router::OpenApiRouter;

use crate::state::Shared;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .merge(auth::routes())
        .merge(me::routes())
        .merge(second_factor::routes())
        .merge(instance::routes())
        .merge(profession::routes())
        .merge(repair::routes())
        .merge(chat_binding::routes())
        .merge(marketplace::routes())
        .merge(install::routes())
        .merge(usage::routes())
        .merge(chat::routes())
        .merge(message::routes())
        .merge(socket::routes())
}
