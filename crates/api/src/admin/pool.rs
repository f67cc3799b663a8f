//! The profession pool and who claimed from it.

use base::id::{EntryId, InstanceId, ProfessionId, ServerId};
use base::{Listing, Sort, Text};
use jiff::civil::Date;
use people::pool::{self, Listed};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::extract::{Admin, Answer, Body, Paging, Path, Query, State};
use crate::shape::Deleted;
use crate::state::{Api, Shared};
use crate::words::{EntryStatus, WantedStatus};

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default().routes(routes!(list, create)).routes(routes!(update, delete)).routes(routes!(claims))
}

#[derive(Serialize, ToSchema)]
pub struct EntryItem {
    id: String,
    profession_id: String,
    profession_name: String,
    profession_icon: String,
    instance_id: String,
    server_id: String,
    status: EntryStatus,
    /// The three are null unless the entry is allocated.
    allocated_user_id: Option<String>,
    allocated_email: Option<String>,
    allocated_at: Option<String>,
    created_at: String,
}

fn item(api: &Api, listed: Listed) -> EntryItem {
    let entry = listed.entry;
    EntryItem {
        id: entry.id.into(),
        profession_id: entry.profession_id.into(),
        profession_name: listed.profession_name,
        profession_icon: listed.profession_icon,
        instance_id: entry.instance_id.into(),
        server_id: entry.server_id.into(),
        status: entry.status.into(),
        allocated_user_id: entry.allocated_user_id.map(Into::into),
        allocated_email: listed.allocated_email,
        allocated_at: entry.allocated_at.map(|at| api.zone().show(at)),
        created_at: api.zone().show(entry.created_at),
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PoolQuery {
    /// Text in instance id, profession or the user's e-mail.
    q: Option<String>,
    status: Option<EntryStatus>,
    profession_id: Option<String>,
    /// created_at, allocated_at, status or instance_id; a `-` in front turns it around.
    sort: Option<String>,
}

/// The pool's entries.
#[utoipa::path(get, path = "/profession-pool", tag = "profession-pool", params(PoolQuery, Paging), responses((status = 200, body = Listing<EntryItem>)))]
async fn list(_: Admin, api: State, Query(query): Query<PoolQuery>, paging: Paging) -> Answer<Listing<EntryItem>> {
    let default = Sort { column: "created_at", descending: false };
    let sort = Sort::asked(query.sort.as_deref(), store::pool::SORTABLE, default)?;
    let filter = pool::PoolFilter {
        q: query.q.as_deref(),
        status: query.status.map(Into::into),
        profession_id: query.profession_id.as_deref(),
        ..pool::PoolFilter::default()
    };
    let found = pool::list(&api.app, filter, sort, paging.page(50)?).await?;
    Ok(Data(found.map(|entry| item(&api, entry))))
}

#[derive(Deserialize, ToSchema)]
pub struct NewEntry {
    profession_id: Text<64>,
    instance_id: Text<100>,
    /// The instance's server, when given.
    server_id: Option<Text<36>>,
}

/// Puts an instance into a profession's pool.
///
/// An instance is pooled once, and one that somebody has is refused (409).
#[utoipa::path(post, path = "/profession-pool", tag = "profession-pool", request_body = NewEntry, responses((status = 200, body = EntryItem)))]
async fn create(who: Admin, api: State, Body(body): Body<NewEntry>) -> Answer<EntryItem> {
    let profession = ProfessionId::named(body.profession_id.as_str());
    let instance = InstanceId::named(body.instance_id.as_str());
    let server = body.server_id.map(|s| ServerId::named(s.as_str()));
    let added = pool::add(&api.app, &who.by, &profession, &instance, server.as_ref()).await?;
    Ok(Data(item(&api, added)))
}

#[derive(Deserialize, ToSchema)]
pub struct EntryPatch {
    status: WantedStatus,
}

/// Changes an entry's status.
///
/// `idle` for an allocated entry is a reclaim: the binding ends, the gateway token changes, cleaning is
/// enqueued. Every other change than idle ↔ maintenance is refused (409).
#[utoipa::path(patch, path = "/profession-pool/{id}", tag = "profession-pool", params(("id" = String, Path)), request_body = EntryPatch, responses((status = 200, body = EntryItem)))]
async fn update(who: Admin, api: State, Path(id): Path<EntryId>, Body(body): Body<EntryPatch>) -> Answer<EntryItem> {
    let updated = pool::set_status(&api.app, &who.by, &id, body.status.into()).await?;
    Ok(Data(item(&api, updated)))
}

/// Takes an entry out of the pool; its instance stays (beyond the spec).
///
/// An allocated entry is refused (409): reclaim it first.
#[utoipa::path(delete, path = "/profession-pool/{id}", tag = "profession-pool", params(("id" = String, Path)), responses((status = 200, body = Deleted)))]
async fn delete(who: Admin, api: State, Path(id): Path<String>) -> Answer<Deleted> {
    pool::remove(&api.app, &who.by, &EntryId::named(id.clone())).await?;
    Ok(Data(Deleted { id }))
}

#[derive(Serialize, ToSchema)]
pub struct ClaimItem {
    user_email: String,
    user_name: String,
    profession_icon: String,
    profession_name: String,
    instance_id: String,
    /// ISO 8601 in UTC.
    #[schema(example = "2026-11-15T09:30:00.000Z")]
    allocated_at: String,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct WantedClaims {
    profession_id: Option<String>,
    user_email: Option<String>,
    /// The first local day.
    #[param(value_type = Option<String>, format = Date)]
    start_date: Option<Date>,
    /// The last local day.
    #[param(value_type = Option<String>, format = Date)]
    end_date: Option<Date>,
    /// Text in instance id, profession or e-mail.
    q: Option<String>,
    /// allocated_at or instance_id; a `-` in front turns it around.
    sort: Option<String>,
}

/// Who has which instance of which profession now, newest first.
#[utoipa::path(get, path = "/profession-claims", tag = "profession-pool", params(WantedClaims, Paging), responses((status = 200, body = Listing<ClaimItem>)))]
async fn claims(_: Admin, api: State, Query(query): Query<WantedClaims>, paging: Paging) -> Answer<Listing<ClaimItem>> {
    let (from, until) = api.zone().range(query.start_date, query.end_date);
    let filter = pool::PoolFilter {
        q: query.q.as_deref(),
        status: Some(pool::Status::Allocated),
        profession_id: query.profession_id.as_deref(),
        user_email: query.user_email.as_deref(),
        allocated_from: from,
        allocated_until: until,
    };
    let newest = Sort { column: "allocated_at", descending: true };
    let sort = Sort::asked(query.sort.as_deref(), &["allocated_at", "instance_id"], newest)?;
    let found = pool::list(&api.app, filter, sort, paging.page(50)?).await?;
    Ok(Data(found.map(|listed| ClaimItem {
        user_email: listed.allocated_email.unwrap_or_default(),
        user_name: listed.allocated_name.unwrap_or_default(),
        profession_icon: listed.profession_icon,
        profession_name: listed.profession_name,
        instance_id: listed.entry.instance_id.into(),
        allocated_at: listed.entry.allocated_at.map(|at| format!("{at:.3}")).unwrap_or_default(),
    })))
}
