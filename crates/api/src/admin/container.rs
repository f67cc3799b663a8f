//! Containers on servers.

use base::Error;
use base::id::ServerId;
use fleet::container::{self, Container, Verb};
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::extract::{Admin, Answer, Path, State};
use crate::state::{Api, Shared};

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default().routes(routes!(list_containers)).routes(routes!(act_on_container))
}

#[derive(Serialize, ToSchema)]
pub struct ContainerItem {
    id: String,
    #[schema(example = "web")]
    name: String,
    #[schema(example = "nginx:1.29")]
    image: String,
    #[schema(example = "Up 3 hours")]
    status: String,
    #[schema(example = "0.0.0.0:8080->80/tcp")]
    ports: String,
    created_at: Option<String>,
}

fn item(api: &Api, container: Container) -> ContainerItem {
    let created_at: Option<Timestamp> = container.created_at.parse().ok();
    ContainerItem {
        id: container.id,
        name: container.name,
        image: container.image,
        status: container.status,
        ports: container.ports,
        created_at: created_at.map(|at| api.zone().show(at)),
    }
}

#[derive(Serialize, ToSchema)]
pub struct Containers {
    list: Vec<ContainerItem>,
}

/// The containers on a server, read there now.
#[utoipa::path(get, path = "/servers/{id}/containers", tag = "servers", params(("id" = String, Path)), responses(
    (status = 200, body = Containers),
    (status = 409, description = "the server has no SSH key that can be used, or shows another host key than before"),
    (status = 503, description = "the server cannot be reached, or has no working Docker"),
))]
async fn list_containers(_: Admin, api: State, Path(id): Path<ServerId>) -> Answer<Containers> {
    let found = container::list(&api.app, &id).await?;
    Ok(Data(Containers { list: found.into_iter().map(|one| item(&api, one)).collect() }))
}

#[derive(Serialize, ToSchema)]
pub struct ContainerAnswer {
    id: String,
    action: String,
    /// The last 200 lines, of `logs` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    logs: Option<String>,
}

/// Starts, stops or restarts a container, or answers the last 200 lines of its log.
///
/// `action` is start, stop, restart or logs; anything else is 400.
#[utoipa::path(post, path = "/servers/{id}/containers/{cid}/{action}", tag = "servers", params(
    ("id" = String, Path), ("cid" = String, Path, description = "id or name"), ("action" = String, Path),
), responses(
    (status = 200, body = ContainerAnswer),
    (status = 503, description = "the server cannot be reached, or has no working Docker"),
))]
async fn act_on_container(
    who: Admin,
    api: State,
    Path((id, cid, action)): Path<(String, String, String)>,
) -> Answer<ContainerAnswer> {
    let server = ServerId::named(id);
    let verb = match action.as_str() {
        "start" => Verb::Start,
        "stop" => Verb::Stop,
        "restart" => Verb::Restart,
        "logs" => {
            let logs = container::logs(&api.app, &server, &cid).await?;
            return Ok(Data(ContainerAnswer { id: cid, action, logs: Some(logs) }));
        }
        _ => return Err(Error::field("action", "must be start, stop, restart or logs").into()),
    };
    container::act(&api.app, &who.by, &server, &cid, verb).await?;
    Ok(Data(ContainerAnswer { id: cid, action, logs: None }))
}
