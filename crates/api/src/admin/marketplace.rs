//! The marketplace, as administrators fill it.

use axum::extract::DefaultBodyLimit;
use base::id::ItemId;
use base::{Error, FilePath, Listing, Name, Sort, Text};
use fleet::marketplace::{self, FIRST_VERSION, Item, New, Patch, Upload, Whole};
use scanner::Finding;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::extract::{Admin, Answer, Body, Paging, Path, Query, State};
use crate::marketplace::ItemProfession;
use crate::shape::Deleted;
use crate::state::{Api, Shared};
use crate::words::{Flag, ItemScope, ItemType};

/// Ten mebibytes of files, written as JSON.
const BODY_LIMIT: usize = 16 * 1024 * 1024;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(list, create))
        .routes(routes!(show, update, delete))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
}

#[derive(Serialize, ToSchema)]
pub struct ListedItem {
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
    /// How much looked dangerous in its files.
    finding_count: i64,
    /// Installs that succeeded, each once.
    install_count: i64,
    is_active: Flag,
    created_at: String,
    updated_at: String,
}

fn listed(api: &Api, item: Item) -> ListedItem {
    ListedItem {
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
        is_active: item.is_active.into(),
        created_at: api.zone().show(item.created_at),
        updated_at: api.zone().show(item.updated_at),
    }
}

#[derive(Serialize, ToSchema)]
pub struct WholeItem {
    #[serde(flatten)]
    item: ListedItem,
    files: Vec<WholeFile>,
    /// The professions whose role pack it is.
    professions: Vec<ItemProfession>,
}

#[derive(Serialize, ToSchema)]
pub struct WholeFile {
    #[schema(example = "skills/meeting-notes/SKILL.md")]
    path: String,
    scope: ItemScope,
    /// Bytes.
    size: i64,
    content: String,
    /// What looks dangerous in it.
    findings: Vec<Finding>,
}

fn whole(api: &Api, found: Whole) -> WholeItem {
    let file = |looked: marketplace::Looked| WholeFile {
        path: looked.file.path,
        scope: looked.file.scope.into(),
        size: looked.file.size,
        content: looked.file.content,
        findings: looked.findings,
    };
    WholeItem {
        item: listed(api, found.item),
        files: found.files.into_iter().map(file).collect(),
        professions: found.professions.into_iter().map(ItemProfession::from).collect(),
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ItemQuery {
    /// Text in name or description.
    q: Option<String>,
    r#type: Option<ItemType>,
    /// 1: offered ones only; 0: the others only.
    #[param(minimum = 0, maximum = 1)]
    is_active: Option<u8>,
    /// name, type, version, install_count, is_active, created_at or updated_at; a `-` in front turns it around.
    sort: Option<String>,
}

/// All items, inactive ones included, without their files.
#[utoipa::path(get, path = "/marketplace-items", tag = "marketplace-items", params(ItemQuery, Paging),
    responses((status = 200, body = Listing<ListedItem>)))]
async fn list(_: Admin, api: State, Query(query): Query<ItemQuery>, paging: Paging) -> Answer<Listing<ListedItem>> {
    let is_active = match query.is_active {
        None => None,
        Some(flag @ 0..=1) => Some(flag == 1),
        Some(_) => return Err(Error::field("is_active", "must be 0 or 1").into()),
    };
    let default = Sort { column: "created_at", descending: true };
    let sort = Sort::asked(query.sort.as_deref(), store::marketplace::SORTABLE, default)?;
    let filter = marketplace::ItemFilter { q: query.q.as_deref(), kind: query.r#type.map(Into::into), is_active };
    let found = marketplace::list(&api.app, filter, sort, paging.page(50)?).await?;
    Ok(Data(found.map(|item| listed(&api, item))))
}

/// One item with the whole contents of its files.
#[utoipa::path(get, path = "/marketplace-items/{id}", tag = "marketplace-items", params(("id" = String, Path)),
    responses((status = 200, body = WholeItem)))]
async fn show(_: Admin, api: State, Path(id): Path<ItemId>) -> Answer<WholeItem> {
    let found = marketplace::show(&api.app, &id).await?;
    Ok(Data(whole(&api, found)))
}

#[derive(Deserialize, ToSchema)]
pub struct NewFile {
    path: FilePath,
    /// Where the path begins: `config`, the instance's state folder, or `workspace`.
    scope: ItemScope,
    /// Text, at most 1 MiB.
    #[schema(example = "---\nname: meeting-notes\ndescription: …\n---\n\n# Meeting notes\n")]
    content: String,
}

impl From<NewFile> for Upload {
    fn from(file: NewFile) -> Upload {
        Upload { scope: file.scope.into(), path: file.path, content: file.content }
    }
}

#[derive(Deserialize, ToSchema)]
pub struct NewItem {
    r#type: ItemType,
    #[schema(value_type = String, min_length = 1, max_length = 100, example = "Meeting notes")]
    name: Name<100>,
    #[serde(default)]
    #[schema(value_type = String, max_length = 2000)]
    description: Text<2000>,
    /// An emoji.
    #[serde(default)]
    #[schema(value_type = String, max_length = 32, example = "📝")]
    icon: Text<32>,
    /// 1.0.0 when omitted.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 50, example = "1.0.0")]
    version: Option<Name<50>>,
    /// 1, the default: offered to employees.
    is_active: Option<Flag>,
    /// At most 200, and 10 MiB in all.
    #[serde(default)]
    files: Vec<NewFile>,
}

/// Makes an item.
///
/// Paths are relative, without `..`, `~`, backslashes or hidden characters, and never lead into `.git`. In scope
/// `config` the assistant's own folders are refused, and `openclaw.json` is a JSON object that is merged into the
/// instance's configuration. Files that look dangerous (hidden Unicode, downloads that are run, places of
/// credentials) are taken and flagged; the findings are shown to whoever wants to install the item.
/// The body may have 16 MiB.
#[utoipa::path(post, path = "/marketplace-items", tag = "marketplace-items", request_body = NewItem,
    responses((status = 200, body = WholeItem)))]
async fn create(who: Admin, api: State, Body(body): Body<NewItem>) -> Answer<WholeItem> {
    let new = New {
        kind: body.r#type.into(),
        name: body.name.into(),
        description: body.description.into(),
        icon: body.icon.into(),
        version: body.version.as_ref().map_or(FIRST_VERSION, Name::as_str).to_owned(),
        is_active: body.is_active.is_none_or(Flag::get),
        files: body.files.into_iter().map(Upload::from).collect(),
    };
    let created = marketplace::create(&api.app, &who.by, new).await?;
    Ok(Data(whole(&api, created)))
}

#[derive(Deserialize, ToSchema)]
pub struct ItemPatch {
    #[schema(nullable = false, value_type = Option<String>, min_length = 1, max_length = 100)]
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    name: Option<Name<100>>,
    #[schema(nullable = false, value_type = Option<String>, max_length = 2000)]
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    description: Option<Text<2000>>,
    #[schema(nullable = false, value_type = Option<String>, max_length = 32)]
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    icon: Option<Text<32>>,
    #[schema(nullable = false, value_type = Option<String>, min_length = 1, max_length = 50, example = "1.0.1")]
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    version: Option<Name<50>>,
    /// 0 takes the item out of the marketplace; what is installed stays.
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    is_active: Option<Flag>,
    /// In the place of all files the item has.
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    files: Option<Vec<NewFile>>,
}

/// Changes an item; its type stays.
///
/// Files, when given, replace all of the item's files. Instances that have it keep what they have until the
/// item is installed on them again.
#[utoipa::path(patch, path = "/marketplace-items/{id}", tag = "marketplace-items", params(("id" = String, Path)),
    request_body = ItemPatch, responses((status = 200, body = WholeItem)))]
async fn update(who: Admin, api: State, Path(id): Path<ItemId>, Body(body): Body<ItemPatch>) -> Answer<WholeItem> {
    let patch = Patch {
        name: body.name.map(Into::into),
        description: body.description.map(Into::into),
        icon: body.icon.map(Into::into),
        version: body.version.map(Into::into),
        is_active: body.is_active.map(Flag::get),
        files: body.files.map(|files| files.into_iter().map(Upload::from).collect()),
    };
    let updated = marketplace::update(&api.app, &who.by, &id, patch).await?;
    Ok(Data(whole(&api, updated)))
}

/// Deletes an item: soft, and what is installed stays. 409 while it is a profession's role pack.
#[utoipa::path(delete, path = "/marketplace-items/{id}", tag = "marketplace-items", params(("id" = String, Path)),
    responses((status = 200, body = Deleted)))]
async fn delete(who: Admin, api: State, Path(id): Path<String>) -> Answer<Deleted> {
    marketplace::delete(&api.app, &who.by, &ItemId::named(id.clone())).await?;
    Ok(Data(Deleted { id }))
}
