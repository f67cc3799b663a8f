//! The administration API. One file per noun; each has its `routes()`.

mod admin_user;
mod audit;
mod auth;
mod marketplace;
mod user;
pub mod words;

use utoipa_axum::router::OpenApiRouter;

use crate::state::Shared;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .merge(auth::routes())
        .merge(admin_user::routes())
        .merge(user::routes())
        .merge(marketplace::routes())
        .merge(audit::routes())
}
