//! One request of the LLM gateway with all that is known of it.

use llm::request_log;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::usage::{RequestDetail, detail};
use crate::envelope::Data;
use crate::extract::{Admin, Answer, Path, State};
use crate::state::Shared;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default().routes(routes!(one_request))
}

#[derive(Serialize, ToSchema)]
pub struct OneRequest {
    #[serde(flatten)]
    detail: RequestDetail,
    /// The instance whose key it was made with; null for other keys.
    instance_id: Option<String>,
}

/// One request with all that is known of it (beyond the spec): `id` is the one of the lists of requests.
#[utoipa::path(get, path = "/llm-request-logs/{id}", tag = "usage", params(("id" = i64, Path)), responses((status = 200, body = OneRequest), (status = 404, description = "no such request, or it is not kept any more")))]
async fn one_request(_: Admin, api: State, Path(id): Path<i64>) -> Answer<OneRequest> {
    let (item, instance_id) = request_log::find(&api.app, id).await?;
    Ok(Data(OneRequest { detail: detail(&api, item), instance_id: instance_id.map(Into::into) }))
}
