//! What the platform repaired by itself of the employee's own instances.

use base::Listing;
use base::id::InstanceId;
use fleet::repair;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::extract::{Answer, Employee, Paging, Path, State};
use crate::state::Shared;
use crate::words::RepairStatus;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default().routes(routes!(repairs))
}

/// Without what was seen on the server, which is its administrators'.
#[derive(Serialize, ToSchema)]
pub struct OwnRepair {
    id: i64,
    /// A repair rule, or auto_recovery.
    #[schema(example = "no_api_key")]
    rule: String,
    /// What was done, or is being done.
    action: String,
    /// `alert`: nothing may be done by itself, and an administrator was told.
    status: RepairStatus,
    took_ms: i64,
    #[schema(example = "2026-11-15T09:30:00.000+01:00")]
    created_at: String,
}

/// What was repaired of an own instance since it is one's own, newest first (beyond the spec).
#[utoipa::path(get, path = "/me/instances/{id}/repairs", tag = "instances", params(("id" = String, Path), Paging), responses(
    (status = 200, body = Listing<OwnRepair>),
    (status = 404, description = "not one's own instance"),
))]
async fn repairs(who: Employee, api: State, Path(id): Path<InstanceId>, paging: Paging) -> Answer<Listing<OwnRepair>> {
    let found = repair::own(&api.app, &who.0.id, &id, paging.page(20)?).await?;
    Ok(Data(found.map(|repair| OwnRepair {
        id: repair.id,
        rule: repair.rule,
        action: repair.action,
        status: repair.status.into(),
        took_ms: repair.took_ms,
        created_at: api.zone().show(repair.created_at),
    })))
}
