//! Sub keys of the LLM gateway.

use base::id::{InstanceId, KeyId};
use base::money::Spend;
use base::{Error, Listing, Name, Sort, Text};
use llm::key::{self, New, Spent};
use queue::permission::Permission;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::error::ApiError;
use crate::extract::{Admin, Answer, Body, Paging, Path, Query, State};
use crate::shape::Deleted;
use crate::state::{Api, Shared};
use crate::words::KeyStatus;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default().routes(routes!(list, create)).routes(routes!(delete)).routes(routes!(sync))
}

#[derive(Serialize, ToSchema)]
pub struct KeyItem {
    id: String,
    instance_id: Option<String>,
    /// The token name in the gateway's log: the instance's id, or a name of its own.
    #[schema(example = "assistant-01")]
    name: String,
    /// Masked: the last four characters.
    #[schema(example = "…w0rd")]
    key: String,
    /// What an administrator wants of it.
    status: KeyStatus,
    /// Whether it opens the gateway at present.
    enabled: bool,
    /// Off because its instance's user is revoked.
    user_revoked: bool,
    /// Off because its user's daily quota is spent.
    quota_spent: bool,
    /// Quota units in all (500000 are one dollar); null means no limit.
    quota: Option<i64>,
    /// What the gateway says was used, when it was last asked.
    used_quota: i64,
    /// What the request log sums up to.
    logged_quota: i64,
    /// What the gateway says was used under this name, less what the log sums up to: anything but 0 is drift. null
    /// before the first check.
    drift_quota: Option<i64>,
    /// US dollars since local midnight.
    spend_today: f64,
    /// US dollars since the first of the month.
    spend_month: f64,
    last_checked_at: Option<String>,
    created_at: String,
}

#[derive(Serialize, ToSchema)]
pub struct MadeKey {
    #[serde(flatten)]
    key: KeyItem,
    /// The key itself, when it has no instance.
    secret: Option<String>,
}

fn item(api: &Api, spent: Spent) -> Result<KeyItem, ApiError> {
    let Spent { key, today, month } = spent;
    let masked = key.key(&api.app.sealer).map_err(Error::from)?.masked();
    Ok(KeyItem {
        enabled: key.enabled(),
        drift_quota: key.last_checked_at.map(|_| key.drift()),
        id: key.id.into(),
        instance_id: key.instance_id.map(Into::into),
        name: key.name,
        key: masked,
        status: key.status.into(),
        user_revoked: key.user_revoked,
        quota_spent: key.quota_spent,
        quota: key.quota,
        used_quota: key.used_quota,
        logged_quota: key.logged_quota,
        spend_today: Spend(today).usd(),
        spend_month: Spend(month).usd(),
        last_checked_at: key.last_checked_at.map(|at| api.zone().show(at)),
        created_at: api.zone().show(key.created_at),
    })
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct KeyQuery {
    /// Text in the name.
    q: Option<String>,
    /// created_at, name or used_quota; a `-` in front turns it around.
    sort: Option<String>,
}

/// The sub keys that the platform keeps, masked.
#[utoipa::path(get, path = "/keys", tag = "keys", params(KeyQuery, Paging), responses((status = 200, body = Listing<KeyItem>)))]
async fn list(_: Admin, api: State, Query(query): Query<KeyQuery>, paging: Paging) -> Answer<Listing<KeyItem>> {
    let newest = Sort { column: "created_at", descending: true };
    let sort = Sort::asked(query.sort.as_deref(), store::gateway_key::SORTS, newest)?;
    api.app.feed.pull().await;
    let keys = key::list(&api.app, query.q.as_deref(), sort, paging.page(50)?).await?;
    let list = keys.list.into_iter().map(|spent| item(&api, spent)).collect::<Result<Vec<_>, _>>()?;
    Ok(Data(Listing { list, total: keys.total }))
}

#[derive(Deserialize, ToSchema)]
pub struct NewKey {
    /// The instance that it is for; its id is the key's name.
    #[schema(value_type = Option<String>, max_length = 100)]
    instance_id: Option<Text<100>>,
    /// A name of its own, for a key without an instance (super_admin).
    #[schema(value_type = Option<String>, max_length = 100)]
    name: Option<Name<100>>,
    /// Quota units in all (500000 are one dollar); no limit when omitted.
    #[schema(minimum = 0)]
    quota: Option<i64>,
}

/// Makes a sub key by hand. Keys of instances are made by themselves at first need.
///
/// A key without an instance is told whole in `secret`, now and never again: somebody must be able to use it.
/// A key without an instance is a super_admin's to make. A name that is taken: 409.
#[utoipa::path(post, path = "/keys", tag = "keys", request_body = NewKey, responses((status = 200, body = MadeKey), (status = 404, description = "no such instance")))]
async fn create(who: Admin, api: State, Body(body): Body<NewKey>) -> Answer<MadeKey> {
    if body.quota.is_some_and(|quota| quota < 0) {
        return Err(Error::field("quota", "must be 0 or more").into());
    }
    if body.instance_id.is_none() {
        who.by.require(Permission::ManageFreeKeys)?;
    }
    let new = New {
        instance_id: body.instance_id.map(|id| InstanceId::named(id.as_str())),
        name: body.name.map(Into::into),
        quota: body.quota,
    };
    let made = key::create(&api.app, &who.by, new).await?;
    let secret = match made.key.instance_id {
        Some(_) => None,
        None => Some(made.key.key(&api.app.sealer).map_err(Error::from)?.expose().to_owned()),
    };
    Ok(Data(MadeKey { key: item(&api, made)?, secret }))
}

/// Deletes a sub key, at the gateway too. One without an instance is a super_admin's to delete.
#[utoipa::path(delete, path = "/keys/{id}", tag = "keys", params(("id" = String, Path)), responses((status = 200, body = Deleted)))]
async fn delete(who: Admin, api: State, Path(id): Path<String>) -> Answer<Deleted> {
    let key_id = KeyId::named(id.clone());
    if key::find(&api.app, &key_id).await?.key.instance_id.is_none() {
        who.by.require(Permission::ManageFreeKeys)?;
    }
    key::delete(&api.app, &who.by, &key_id).await?;
    Ok(Data(Deleted { id }))
}

/// Reads the key at the gateway, compares its use with the log, and writes it to its instance (a task).
///
/// A difference between what the gateway says was used and what the log sums up to is drift: it is answered in
/// `drift_quota` and recorded as a warning.
#[utoipa::path(post, path = "/keys/{id}/sync", tag = "keys", params(("id" = String, Path)), responses((status = 200, body = KeyItem)))]
async fn sync(who: Admin, api: State, Path(id): Path<KeyId>) -> Answer<KeyItem> {
    let synced = key::sync(&api.app, &who.by, &id).await?;
    Ok(Data(item(&api, synced)?))
}
