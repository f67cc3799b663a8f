//! Where an instance is: looking for its gateway on its server, moving it into a cell, and back.

use base::id::InstanceId;
use fleet::adopt::record::{self, Found};
use fleet::cell_move;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::extract::{Admin, Answer, Body, Path, State};
use crate::shape::Enqueued;
use crate::state::Shared;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default().routes(routes!(adopt_instance)).routes(routes!(move_into_cell)).routes(routes!(move_back))
}

/// What was found of an instance on its server.
#[derive(Serialize, ToSchema)]
pub struct PlaceFound {
    found: Place,
    /// Why nothing was adopted; null if something was.
    #[schema(example = "no gateway of OpenClaw has port 18789 on the server")]
    found_detail: Option<String>,
    /// The task that writes its configuration, or makes it on its server; null if there is none.
    task_id: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A gateway on its port was adopted.
    Adopted,
    /// It answers at its own address.
    Answers,
    /// Nothing is there: a task makes it.
    Provisioning,
    /// Nothing is there that could be adopted: it is on no server, and offered to nobody.
    Nothing,
    /// Nobody looked: it has no port of its own choice, its place was named, or the caller may not adopt.
    NotLooked,
}

impl From<Found> for PlaceFound {
    fn from(found: Found) -> PlaceFound {
        let (found, found_detail, task) = match found {
            Found::Adopted(task) => (Place::Adopted, None, task),
            Found::Answers => (Place::Answers, None, None),
            Found::Provisioning(task, why) => (Place::Provisioning, why, Some(task)),
            Found::Nothing { why, .. } => (Place::Nothing, Some(why), None),
            Found::NotLooked => (Place::NotLooked, None, None),
        };
        PlaceFound { found, found_detail, task_id: task.map(|task| task.to_string()) }
    }
}

#[derive(Deserialize, ToSchema)]
pub struct InstanceAdoption {
    /// It keeps the model provider of its own: nothing is written, and its use is not counted. Otherwise it gets a key and the models of
    /// our LLM gateway.
    keeps_llm: bool,
    /// Whether what needs a restart is brought at once. Otherwise it waits for the next restart, or for a person.
    #[serde(default)]
    restart: bool,
}

/// Looks on the server for the gateway of an instance that is on none yet, and adopts it (beyond the spec).
#[utoipa::path(post, path = "/assistant-instances/{id}/adopt", tag = "instances", params(("id" = String, Path)), request_body = InstanceAdoption, responses(
    (status = 200, body = PlaceFound),
    (status = 409, description = "the instance is on its server already"),
))]
async fn adopt_instance(
    who: Admin,
    api: State,
    Path(id): Path<InstanceId>,
    Body(body): Body<InstanceAdoption>,
) -> Answer<PlaceFound> {
    let found = record::find(&api.app, &who.by, &id, body.keeps_llm, body.restart).await?;
    Ok(Data(found.into()))
}

#[derive(Deserialize, ToSchema)]
pub struct CellMove {
    /// Whether it keeps the model provider of its own. Otherwise it gets a key and the models of our LLM gateway. As it is if omitted.
    #[serde(default)]
    keeps_llm: Option<bool>,
}

/// Moves an adopted assistant into a cell of its own (beyond the spec): a task stops it, copies its state into a home that the platform makes,
/// with a Unix user of its own, and starts it there. Whoever chats is interrupted for that time. What was adopted stays as it was, stopped, and
/// is gone back to if the assistant does not start in its cell.
#[utoipa::path(post, path = "/instances/{id}/move-into-cell", tag = "instances", params(("id" = String, Path)), request_body = CellMove, responses(
    (status = 200, body = Enqueued),
    (status = 409, description = "it is in a container, at an address of its own, or not adopted"),
))]
async fn move_into_cell(
    who: Admin,
    api: State,
    Path(id): Path<InstanceId>,
    Body(body): Body<CellMove>,
) -> Answer<Enqueued> {
    let task = cell_move::into_cell(&api.app, &who.by, &id, body.keeps_llm).await?;
    Ok(Data(task.into()))
}

/// Moves an assistant back to where it was before it was moved into a cell (beyond the spec). What was said since stays behind, kept for seven
/// days with its home. It is refused if somebody else has it since.
#[utoipa::path(post, path = "/instances/{id}/move-back", tag = "instances", params(("id" = String, Path)), responses(
    (status = 200, body = Enqueued),
    (status = 409, description = "it was not moved, or somebody else has it since"),
))]
async fn move_back(who: Admin, api: State, Path(id): Path<InstanceId>) -> Answer<Enqueued> {
    let task = cell_move::back(&api.app, &who.by, &id).await?;
    Ok(Data(task.into()))
}
