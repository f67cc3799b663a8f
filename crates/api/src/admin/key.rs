//! Sub keys of the LLM gateway.

use base::id::{InstanceId, KeyId};
use base::money::Spend;
use base::{Error, Listing, Name, Sort, Text};
use llm::key::{self, New, Spent};
use llm::log_watch;
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
    /// Whether it opens the gateway at present, as far as is known.
    enabled: bool,
    /// What our records want: on or off.
    desired: Switch,
    /// What the gateway last said: on, off, or unknown.
    actual: Switch,
    /// The gateway has not followed the last change yet.
    pending: bool,
    /// Why it has not, where that is known; else empty.
    problem: String,
    /// Off because its instance's user is revoked.
    user_revoked: bool,
    /// Off because its user's daily quota is spent, or cannot be counted: see `log_silent`.
    quota_spent: bool,
    /// Its user's daily quota cannot be counted, because the gateway's log says nothing, and the setting
    /// `keys_off_without_log` has such keys switched off meanwhile.
    log_silent: bool,
    /// Quota units in all (500000 are one dollar); null means no limit.
    quota: Option<i64>,
    /// What the gateway says was used, when it was last asked.
    used_quota: i64,
    /// What the request log sums up to.
    logged_quota: i64,
    /// What the gateway says was used under this name, less what the log sums up to, when they were last compared
    /// (POST /keys/{id}/sync): anything but 0 is drift. null where they cannot be compared: before the first check, with the
    /// embedded gateway, for a one-api token without a limit, and while the log cannot be read.
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

fn item(api: &Api, spent: Spent, log_silent: bool) -> Result<KeyItem, ApiError> {
    let is_on = spent.is_on(api.app.upstream.embedded);
    let Spent { key, observed, today, month } = spent;
    let masked = key.key(&api.app.sealer).map_err(Error::from)?.masked();
    let pending = key.dirty && !api.app.upstream.embedded;
    Ok(KeyItem {
        // A change that has not arrived: it is as it was before, where nothing else is known.
        enabled: is_on.unwrap_or(key.enabled() != pending),
        desired: if key.enabled() { Switch::On } else { Switch::Off },
        actual: is_on.map_or(Switch::Unknown, |on| if on { Switch::On } else { Switch::Off }),
        pending,
        problem: observed.problem,
        log_silent: log_silent && key.quota_spent,
        drift_quota: observed.drift,
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

/// Whether a key opens the gateway.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Switch {
    On,
    Off,
    Unknown,
}

/// The sub keys that the platform keeps, masked.
#[utoipa::path(get, path = "/keys", tag = "keys", params(KeyQuery, Paging), responses((status = 200, body = Listing<KeyItem>)))]
async fn list(_: Admin, api: State, Query(query): Query<KeyQuery>, paging: Paging) -> Answer<Listing<KeyItem>> {
    let newest = Sort { column: "created_at", descending: true };
    let sort = Sort::asked(query.sort.as_deref(), store::gateway_key::SORTS, newest)?;
    api.app.feed.pull().await;
    let keys = key::list(&api.app, query.q.as_deref(), sort, paging.page(50)?).await?;
    let log_silent = log_watch::holds_keys(&api.app).await?;
    let list = keys.list.into_iter().map(|spent| item(&api, spent, log_silent)).collect::<Result<Vec<_>, _>>()?;
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
    let log_silent = log_watch::holds_keys(&api.app).await?;
    Ok(Data(MadeKey { key: item(&api, made, log_silent)?, secret }))
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
/// `drift_quota` and recorded as a warning. Both may be late by some seconds, so where they differ they are read again after
/// that time (3 s, litellm 15 s), and only a difference that stays is drift.
#[utoipa::path(post, path = "/keys/{id}/sync", tag = "keys", params(("id" = String, Path)), responses((status = 200, body = KeyItem)))]
async fn sync(who: Admin, api: State, Path(id): Path<KeyId>) -> Answer<KeyItem> {
    let synced = key::sync(&api.app, &who.by, &id).await?;
    let log_silent = log_watch::holds_keys(&api.app).await?;
    Ok(Data(item(&api, synced, log_silent)?))
}
