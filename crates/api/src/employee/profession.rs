//! Professions that an employee may claim an instance of.

use base::Listing;
use base::id::ProfessionId;
use fleet::profession;
use people::claim;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::instance::{OwnInstance, claimed};
use crate::envelope::Data;
use crate::extract::{Answer, Employee, Paging, Path, State};
use crate::state::Shared;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default().routes(routes!(list)).routes(routes!(claim_one))
}

#[derive(Serialize, ToSchema)]
pub struct ProfessionOffer {
    id: String,
    #[schema(example = "Data analyst")]
    name: String,
    #[schema(example = "data-analyst")]
    code: String,
    #[schema(example = "📊")]
    icon: String,
    tagline: String,
    description: String,
    /// Entries of the pool that nobody has.
    stock_idle: i64,
    /// Those of them that can be claimed now: on an active server, and neither `unhealthy` nor `key_invalid`, as GET
    /// /instances/available says in full (beyond the spec).
    stock_ready: i64,
    /// Whether one has an instance of it already.
    claimed: bool,
}

/// The listed professions, by sort_order, then created_at.
#[utoipa::path(get, path = "/me/professions", tag = "professions", params(Paging), responses((status = 200, body = Listing<ProfessionOffer>)))]
async fn list(who: Employee, api: State, paging: Paging) -> Answer<Listing<ProfessionOffer>> {
    let asking = Some(&who.0.id);
    let found = profession::list(&api.app, None, Some(true), asking, None, paging.page(50)?).await?;
    Ok(Data(found.map(|stocked| ProfessionOffer {
        id: stocked.profession.id.into(),
        name: stocked.profession.name,
        code: stocked.profession.code,
        icon: stocked.profession.icon,
        tagline: stocked.profession.tagline,
        description: stocked.profession.description,
        stock_idle: stocked.idle,
        stock_ready: stocked.ready,
        claimed: stocked.claimed,
    })))
}

#[derive(Serialize, ToSchema)]
pub struct ProfessionClaimed {
    instance: OwnInstance,
    entry_id: String,
    /// Watch it with GET /me/tasks/{id}.
    task_id: String,
}

/// Claims an instance of a profession.
///
/// The healthiest one that is ready. One per employee and profession (409, 4091); a pool with none ready
/// (`stock_ready` 0) is 409, 4092.
#[utoipa::path(post, path = "/me/professions/{id}/claim", tag = "professions", params(("id" = String, Path)), responses((status = 200, body = ProfessionClaimed)))]
async fn claim_one(who: Employee, api: State, Path(id): Path<ProfessionId>) -> Answer<ProfessionClaimed> {
    let made = claim::profession(&api.app, &who.0, &id).await?;
    Ok(Data(ProfessionClaimed {
        instance: claimed(&api, &who, made.held).await?,
        entry_id: made.entry_id.unwrap_or_default(),
        task_id: made.task_id.to_string(),
    }))
}
