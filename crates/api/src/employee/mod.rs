//! The employee API. One file per noun; each has its `routes()`.

mod auth;
mod install;
mod marketplace;
mod me;

use utoipa_axum::router::OpenApiRouter;

use crate::state::Shared;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .merge(auth::routes())
        .merge(me::routes())
        .merge(marketplace::routes())
        .merge(install::routes())
}
