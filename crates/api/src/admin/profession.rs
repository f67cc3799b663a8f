//! Professions.

use base::id::{ItemId, ProfessionId};
use base::{Error, Listing, Name, Sort, Text};
use fleet::profession::{self, New, Patch, Stocked};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::extract::{Admin, Answer, Body, Paging, Path, Query, State};
use crate::shape::{Deleted, given};
use crate::state::{Api, Shared};
use crate::words::Flag;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default().routes(routes!(list, create)).routes(routes!(show, update, delete))
}

#[derive(Serialize, ToSchema)]
pub struct ProfessionItem {
    id: String,
    #[schema(example = "Data analyst")]
    name: String,
    #[schema(example = "data-analyst")]
    code: String,
    #[schema(example = "📊")]
    icon: String,
    #[schema(example = "Turns questions into charts")]
    tagline: String,
    description: String,
    role_pack_id: Option<String>,
    sort_order: i64,
    is_official: Flag,
    is_active: Flag,
    created_at: String,
    /// Entries with status idle whose instance employees may be offered.
    stock_idle: i64,
    /// Those of them that an employee can claim now: on an active server, neither `unhealthy` nor `key_invalid`, and
    /// with no set-up or cleaning that was given up (beyond the spec).
    stock_ready: i64,
    stock_allocated: i64,
    stock_total: i64,
}

fn item(api: &Api, stocked: Stocked) -> ProfessionItem {
    let p = stocked.profession;
    ProfessionItem {
        id: p.id.into(),
        name: p.name,
        code: p.code,
        icon: p.icon,
        tagline: p.tagline,
        description: p.description,
        role_pack_id: p.role_pack_id.map(Into::into),
        sort_order: p.sort_order,
        is_official: p.is_official.into(),
        is_active: p.is_active.into(),
        created_at: api.zone().show(p.created_at),
        stock_idle: stocked.idle,
        stock_ready: stocked.ready,
        stock_allocated: stocked.allocated,
        stock_total: stocked.total,
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ProfessionQuery {
    /// Text in name, code or tagline.
    q: Option<String>,
    /// 1: listed ones only; 0: delisted ones only.
    #[param(minimum = 0, maximum = 1)]
    is_active: Option<u8>,
    /// sort_order, name, code or created_at; a `-` in front turns it around.
    sort: Option<String>,
}

/// All professions with their stock, by sort_order, then created_at.
#[utoipa::path(get, path = "/professions", tag = "professions", params(ProfessionQuery, Paging), responses((status = 200, body = Listing<ProfessionItem>)))]
async fn list(
    _: Admin,
    api: State,
    Query(query): Query<ProfessionQuery>,
    paging: Paging,
) -> Answer<Listing<ProfessionItem>> {
    let active = match query.is_active {
        None => None,
        Some(flag @ 0..=1) => Some(flag == 1),
        Some(_) => return Err(Error::field("is_active", "must be 0 or 1").into()),
    };
    let sort = match query.sort.as_deref() {
        None => None,
        text => {
            let unused = Sort { column: "sort_order", descending: false };
            Some(Sort::asked(text, store::profession::SORTABLE, unused)?)
        }
    };
    let found = profession::list(&api.app, query.q.as_deref(), active, None, sort, paging.page(20)?).await?;
    Ok(Data(found.map(|p| item(&api, p))))
}

/// One profession (beyond the spec).
#[utoipa::path(get, path = "/professions/{id}", tag = "professions", params(("id" = String, Path)), responses((status = 200, body = ProfessionItem)))]
async fn show(_: Admin, api: State, Path(id): Path<ProfessionId>) -> Answer<ProfessionItem> {
    let found = profession::show(&api.app, &id).await?;
    Ok(Data(item(&api, found)))
}

#[derive(Deserialize, ToSchema)]
pub struct NewProfession {
    name: Name<100>,
    /// Unique without regard to case; never changes.
    code: Name<100>,
    icon: Name<20>,
    tagline: Name<200>,
    #[serde(default)]
    description: Text<10000>,
    /// A marketplace item of type role_pack.
    role_pack_id: Option<Name<100>>,
    #[serde(default)]
    sort_order: i64,
    #[serde(default)]
    is_official: Option<Flag>,
    /// 1 when omitted.
    #[serde(default)]
    is_active: Option<Flag>,
}

/// Makes a profession.
#[utoipa::path(post, path = "/professions", tag = "professions", request_body = NewProfession, responses((status = 200, body = ProfessionItem)))]
async fn create(who: Admin, api: State, Body(body): Body<NewProfession>) -> Answer<ProfessionItem> {
    let new = New {
        name: body.name.into(),
        code: body.code.into(),
        icon: body.icon.into(),
        tagline: body.tagline.into(),
        description: body.description.into(),
        role_pack_id: body.role_pack_id.map(ItemId::named),
        sort_order: body.sort_order,
        is_official: body.is_official.is_some_and(Flag::get),
        is_active: body.is_active.is_none_or(Flag::get),
    };
    let created = profession::create(&api.app, &who.by, new).await?;
    Ok(Data(item(&api, created)))
}

#[derive(Deserialize, ToSchema)]
pub struct ProfessionPatch {
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    name: Option<Name<100>>,
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    icon: Option<Name<20>>,
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    tagline: Option<Name<200>>,
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    description: Option<Text<10000>>,
    /// `null` takes the role pack away.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 100)]
    role_pack_id: Option<Option<Name<100>>>,
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    sort_order: Option<i64>,
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    is_official: Option<Flag>,
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    is_active: Option<Flag>,
}

/// Changes a profession; its code cannot change.
#[utoipa::path(patch, path = "/professions/{id}", tag = "professions", params(("id" = String, Path)), request_body = ProfessionPatch, responses((status = 200, body = ProfessionItem)))]
async fn update(
    who: Admin,
    api: State,
    Path(id): Path<ProfessionId>,
    Body(body): Body<ProfessionPatch>,
) -> Answer<ProfessionItem> {
    let patch = Patch {
        name: body.name.map(Into::into),
        icon: body.icon.map(Into::into),
        tagline: body.tagline.map(Into::into),
        description: body.description.map(Into::into),
        role_pack_id: body.role_pack_id.map(|pack| pack.map(ItemId::named)),
        sort_order: body.sort_order,
        is_official: body.is_official.map(Flag::get),
        is_active: body.is_active.map(Flag::get),
    };
    let updated = profession::update(&api.app, &who.by, &id, patch).await?;
    Ok(Data(item(&api, updated)))
}

/// Delists a profession (soft: is_active becomes 0).
#[utoipa::path(delete, path = "/professions/{id}", tag = "professions", params(("id" = String, Path)), responses((status = 200, body = Deleted)))]
async fn delete(who: Admin, api: State, Path(id): Path<String>) -> Answer<Deleted> {
    let delist = Patch { is_active: Some(false), ..Patch::default() };
    profession::update(&api.app, &who.by, &ProfessionId::named(id.clone()), delist).await?;
    Ok(Data(Deleted { id }))
}
