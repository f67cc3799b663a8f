//! The marketplace, as employees browse it.

use base::id::{InstanceId, ItemId};
use base::{Listing, Name, Sort};
use fleet::install;
use fleet::marketplace::{self, Item, Looked};
use scanner::Finding;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::extract::{Answer, Body, Employee, Paging, Path, Query, State};
use crate::marketplace::ItemProfession;
use crate::state::{Api, Shared};
use crate::words::{InstallState, ItemScope, ItemType};

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default().routes(routes!(list)).routes(routes!(show)).routes(routes!(install))
}

#[derive(Serialize, ToSchema)]
pub struct OfferedItem {
    #[schema(example = "019aa4f2-6f3b-7c1e-9d55-0f6f1f2b7a11")]
    id: String,
    r#type: ItemType,
    #[schema(example = "Meeting notes")]
    name: String,
    #[schema(example = "Turns a transcript into decisions, actions and open questions.")]
    description: String,
    #[schema(example = "📝")]
    icon: String,
    #[schema(example = "1.0.0")]
    version: String,
    file_count: i64,
    /// Bytes of all files.
    size: i64,
    /// How much looked dangerous in its files: look at the item before installing it.
    finding_count: i64,
    /// Installs that succeeded, each once.
    install_count: i64,
    created_at: String,
    updated_at: String,
}

fn offered(api: &Api, item: Item) -> OfferedItem {
    OfferedItem {
        id: item.id.into(),
        r#type: item.kind.into(),
        name: item.name,
        description: item.description,
        icon: item.icon,
        version: item.version,
        file_count: item.file_count,
        size: item.size,
        finding_count: item.finding_count,
        install_count: item.install_count,
        created_at: api.zone().show(item.created_at),
        updated_at: api.zone().show(item.updated_at),
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ItemQuery {
    r#type: Option<ItemType>,
    /// Text in name or description.
    q: Option<String>,
    /// name, install_count, created_at or updated_at; a `-` in front turns it around.
    sort: Option<String>,
}

/// What is offered, by name.
#[utoipa::path(get, path = "/marketplace/items", tag = "marketplace", params(ItemQuery, Paging),
    responses((status = 200, body = Listing<OfferedItem>)))]
async fn list(_: Employee, api: State, Query(query): Query<ItemQuery>, paging: Paging) -> Answer<Listing<OfferedItem>> {
    let sortable = &["name", "install_count", "created_at", "updated_at"];
    let sort = Sort::asked(query.sort.as_deref(), sortable, Sort { column: "name", descending: false })?;
    let filter =
        marketplace::ItemFilter { q: query.q.as_deref(), kind: query.r#type.map(Into::into), is_active: Some(true) };
    let found = marketplace::list(&api.app, filter, sort, paging.page(50)?).await?;
    Ok(Data(found.map(|item| offered(&api, item))))
}

#[derive(Serialize, ToSchema)]
pub struct ItemDetail {
    #[serde(flatten)]
    item: OfferedItem,
    files: Vec<FilePreview>,
    /// The professions whose role pack it is: it goes onto instances of these only.
    professions: Vec<ItemProfession>,
}

#[derive(Serialize, ToSchema)]
pub struct FilePreview {
    #[schema(example = "skills/meeting-notes/SKILL.md")]
    path: String,
    /// Where the path begins: `config`, the instance's state folder, or `workspace`.
    scope: ItemScope,
    /// Bytes of the whole file.
    size: i64,
    /// The first 4 KiB, with hidden characters written as `\u{…}`.
    preview: String,
    /// What looks dangerous in the whole file.
    findings: Vec<Finding>,
}

impl From<Looked> for FilePreview {
    fn from(looked: Looked) -> FilePreview {
        FilePreview {
            path: looked.file.path,
            scope: looked.file.scope.into(),
            size: looked.file.size,
            preview: looked.file.content,
            findings: looked.findings,
        }
    }
}

/// One item, with the beginning of each file and what looks dangerous in it.
#[utoipa::path(get, path = "/marketplace/items/{id}", tag = "marketplace", params(("id" = String, Path)),
    responses((status = 200, body = ItemDetail)))]
async fn show(_: Employee, api: State, Path(id): Path<ItemId>) -> Answer<ItemDetail> {
    let found = marketplace::preview(&api.app, &id).await?;
    Ok(Data(ItemDetail {
        item: offered(&api, found.item),
        files: found.files.into_iter().map(FilePreview::from).collect(),
        professions: found.professions.into_iter().map(ItemProfession::from).collect(),
    }))
}

#[derive(Deserialize, ToSchema)]
pub struct WantedInstall {
    /// One of the own instances.
    #[schema(value_type = String, min_length = 1, max_length = 100, example = "assistant-01")]
    instance_id: Name<100>,
}

#[derive(Serialize, ToSchema)]
pub struct Installing {
    install_id: String,
    /// Watch it with GET /me/tasks/{id}, or the install with GET /me/installs.
    task_id: String,
    state: InstallState,
}

/// Puts an item on one of the own instances.
///
/// Answers at once; GET /me/installs shows how far it got. Asking again for what is there, or on its way, changes
/// nothing and answers the same record; a changed item is brought anew. Somebody else's instance is 404. A role pack
/// goes onto instances of its own profession only, and no two items put the same file on an instance (409).
#[utoipa::path(post, path = "/marketplace/items/{id}/install", tag = "marketplace", params(("id" = String, Path)),
    request_body = WantedInstall, responses((status = 200, body = Installing)))]
async fn install(
    who: Employee,
    api: State,
    Path(id): Path<ItemId>,
    Body(body): Body<WantedInstall>,
) -> Answer<Installing> {
    let instance = InstanceId::named(body.instance_id.as_str());
    let made = install::ask(&api.app, &who.0, &id, &instance).await?;
    Ok(Data(Installing { install_id: made.id.into(), task_id: made.task_id.into(), state: made.state.into() }))
}
