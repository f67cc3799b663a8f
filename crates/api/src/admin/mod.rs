//! The administration API. One file per noun; each has its `routes()`.

mod admin_user;
mod alert;
mod assistant;
mod audit;
mod auth;
mod cell;
mod chat_binding;
mod container;
mod discover;
mod event;
mod guardian;
mod instance;
mod instance_detail;
mod instance_place;
mod job_run;
mod key;
mod llm_stats;
mod marketplace;
mod model;
mod pool;
mod profession;
mod provider;
mod reconcile;
mod repair;
mod request;
mod second_factor;
mod server;
mod spend_day;
mod task;
mod usage;
mod user;
mod user_import;

use utoipa_axum::router::OpenApiRouter;

use crate::state::Shared;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .merge(auth::routes())
        .merge(second_factor::routes())
        .merge(admin_user::routes())
        .merge(user::routes())
        .merge(user_import::routes())
        .merge(server::routes())
        .merge(container::routes())
        .merge(instance::routes())
        .merge(instance_place::routes())
        .merge(assistant::routes())
        .merge(reconcile::routes())
        .merge(discover::routes())
        .merge(cell::routes())
        .merge(chat_binding::routes())
        .merge(profession::routes())
        .merge(pool::routes())
        .merge(task::routes())
        .merge(job_run::routes())
        .merge(guardian::routes())
        .merge(alert::routes())
        .merge(repair::routes())
        .merge(request::routes())
        .merge(event::routes())
        .merge(marketplace::routes())
        .merge(audit::routes())
        .merge(usage::routes())
        .merge(llm_stats::routes())
        .merge(spend_day::routes())
        .merge(key::routes())
        .merge(model::routes())
        .merge(provider::routes())
}
