//! What is, or shall be, on the own instances.

use base::Listing;
use base::id::InstallId;
use fleet::install::{self, Shown};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::extract::{Answer, Employee, Paging, Path, Query, State};
use crate::state::{Api, Shared};
use crate::words::{InstallState, ItemType};

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default().routes(routes!(list)).routes(routes!(delete))
}

#[derive(Serialize, ToSchema)]
pub struct InstallItem {
    id: String,
    item_id: String,
    item_type: ItemType,
    #[schema(example = "Meeting notes")]
    item_name: String,
    #[schema(example = "📝")]
    item_icon: String,
    /// The version that is, or comes, onto the instance.
    #[schema(example = "1.0.0")]
    item_version: String,
    /// How much looks dangerous in the item's files.
    finding_count: i64,
    /// Whether the item has changed since: installing it again brings the new version.
    update_available: bool,
    #[schema(example = "assistant-01")]
    instance_id: String,
    instance_name: String,
    /// pending → installing → installed or failed; removing until it is gone from the list.
    state: InstallState,
    /// Why the last try failed.
    error: Option<String>,
    task_id: String,
    created_at: String,
    updated_at: String,
    /// When it was on the instance for the first time.
    installed_at: Option<String>,
}

fn item(api: &Api, shown: Shown) -> InstallItem {
    let install = shown.install;
    let changed = |(version, revision)| version != install.item_version || revision != install.item_revision;
    InstallItem {
        update_available: shown.offered.is_some_and(changed),
        id: install.id.into(),
        item_id: install.item_id.into(),
        item_type: shown.item_kind.into(),
        item_name: shown.item_name,
        item_icon: shown.item_icon,
        item_version: install.item_version,
        finding_count: shown.finding_count,
        instance_id: install.instance_id.into(),
        instance_name: shown.instance_name,
        state: install.state.into(),
        error: Some(install.error).filter(|e| !e.is_empty()),
        task_id: install.task_id.into(),
        created_at: api.zone().show(install.created_at),
        updated_at: api.zone().show(install.updated_at),
        installed_at: install.installed_at.map(|at| api.zone().show(at)),
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct InstallQuery {
    /// Of this instance only.
    instance_id: Option<String>,
}

/// What is, or shall be, on the own instances, newest first.
#[utoipa::path(get, path = "/me/installs", tag = "installs", params(InstallQuery, Paging),
    responses((status = 200, body = Listing<InstallItem>)))]
async fn list(
    who: Employee,
    api: State,
    Query(query): Query<InstallQuery>,
    paging: Paging,
) -> Answer<Listing<InstallItem>> {
    let found = install::list(&api.app, &who.0.id, query.instance_id.as_deref(), paging.page(50)?).await?;
    Ok(Data(found.map(|shown| item(&api, shown))))
}

#[derive(Serialize, ToSchema)]
pub struct Removed {
    id: String,
    /// False while a task still has to take the files off the instance.
    removed: bool,
    /// The task that does.
    task_id: Option<String>,
}

/// Takes an item off an instance.
///
/// What was not begun, or failed, is gone at once; what is installed becomes `removing` and leaves the list when its
/// files are gone. 409 while it is being installed or removed.
#[utoipa::path(delete, path = "/me/installs/{id}", tag = "installs", params(("id" = String, Path)),
    responses((status = 200, body = Removed)))]
async fn delete(who: Employee, api: State, Path(id): Path<InstallId>) -> Answer<Removed> {
    let install = install::unask(&api.app, &who.0, &id).await?;
    let removed = install.removed_at.is_some();
    Ok(Data(Removed { id: install.id.into(), removed, task_id: (!removed).then_some(install.task_id.into()) }))
}
