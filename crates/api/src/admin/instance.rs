//! Assistant instances, as administrators manage them.

use base::id::{InstanceId, NewInstanceId, ServerId, UserId};
use base::{Error, GatewayPort, Listing, Name, Secret, Sort, Text};
use fleet::adopt;
use fleet::instance::{self, Listed, New, Patch};
use fleet::tenant;
use queue::permission::Permission;
use serde::{Deserialize, Serialize};
use store::instance_health::Layer;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::instance_detail::{InstanceDetail, Secrets, detail};
use super::instance_place::PlaceFound;
use crate::config_json::ConfigJson;
use crate::envelope::Data;
use crate::error::ApiError;
use crate::extract::{Admin, Answer, Body, Paging, Path, Query, State};
use crate::shape::Deleted;
use crate::state::{Api, Shared};
use crate::words::{CellState, Health, Isolation, Runner};

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(health_check))
        .routes(routes!(heartbeat))
        .routes(routes!(list))
        .routes(routes!(show))
        .routes(routes!(create))
        .routes(routes!(update, delete))
        .routes(routes!(assign))
}

#[derive(Serialize, ToSchema)]
pub struct InstanceItem {
    #[schema(example = "assistant-01")]
    id: String,
    #[schema(example = "Research assistant")]
    name: String,
    server_id: String,
    server_name: String,
    container_id: String,
    assigned_user_id: Option<String>,
    assigned_email: Option<String>,
    /// Whether a profession's pool holds it.
    pooled: bool,
    #[schema(example = 18789)]
    gateway_port: i64,
    #[schema(example = "ws://127.0.0.1:18789")]
    gateway_url: String,
    /// Whether it may be dialled at gateway_url itself: that its own gateway answers there cannot be proved.
    unproved_address: bool,
    /// Masked in lists and in the answers to changes, whole in the detail.
    #[schema(example = "…w0rd")]
    gateway_token: String,
    #[schema(example = "claude-sonnet-4-6")]
    model: String,
    health_status: Health,
    health_fail_count: i64,
    total_requests: i64,
    total_tokens: i64,
    last_health_at: Option<String>,
    notes: String,
    is_main: bool,
    /// What starts it on its server.
    runner: Runner,
    /// How it is kept apart on its server: `own` has a Unix user and a home that the platform made for it alone, `none` is not on its
    /// server. All others are assigned by a super administrator only, and are neither listed for employees, claimed nor pooled: `adopted`
    /// (somebody else made its user, home or container: never cleaned or deleted), `shared` (it runs as root or as the login user, or in a home that
    /// is another's too), `opened` (its cell is open for what makes it root), `unknown` (nobody has looked yet).
    isolation: Isolation,
    /// How its program is confined: `confined` runs in its cell, `altered` has a cell in its unit that somebody changed on the server,
    /// `unconfined` runs as its user without one, `foreign` has a unit that is not ours and so no cell, `unknown` is not on its server, or nobody has looked yet.
    cell: CellState,
    /// What its home takes of the disk, as last counted; null before.
    home_bytes: Option<i64>,
    /// Until when an administrator wants the platform to leave it alone; null if nobody does.
    held_until: Option<String>,
    /// The Unix user as last seen; empty before.
    #[schema(example = "assistant-70000")]
    runs_as: String,
    /// An adopted instance that keeps the model provider of its own (beyond the spec): its use is not counted.
    own_llm: bool,
    /// Whether its own page is offered in the embedded window.
    embed_enabled: bool,
    created_at: String,
    updated_at: String,
}

pub(super) fn item(api: &Api, listed: Listed) -> Result<InstanceItem, ApiError> {
    let token = listed.instance.token(&api.app.sealer).map_err(base::Error::from)?.masked();
    Ok(shaped(api, listed, token))
}

pub(super) fn shaped(api: &Api, listed: Listed, gateway_token: String) -> InstanceItem {
    let Listed { instance, server_name, assigned_email, cell, home_bytes, held_until } = listed;
    let held_until = held_until.filter(|until| *until > api.app.clock.now());
    let unproved_address = tenant::is_direct(&instance);
    InstanceItem {
        id: instance.id.into(),
        name: instance.name,
        server_id: instance.server_id.into(),
        server_name,
        container_id: instance.container_id,
        assigned_user_id: instance.assigned_user_id.map(Into::into),
        assigned_email,
        pooled: instance.pooled,
        gateway_port: instance.gateway_port.get(),
        unproved_address,
        gateway_url: instance.gateway_url,
        gateway_token,
        model: instance.model,
        health_status: instance.health_status.into(),
        health_fail_count: instance.health_fail_count,
        total_requests: instance.total_requests,
        total_tokens: instance.total_tokens,
        last_health_at: instance.last_health_at.map(|at| api.zone().show(at)),
        notes: instance.notes,
        is_main: instance.is_main,
        runner: instance.runner.into(),
        isolation: instance.isolation.into(),
        cell: cell.unwrap_or(store::cell::State::Unknown).into(),
        home_bytes,
        held_until: held_until.map(|until| api.zone().show(until)),
        runs_as: instance.runs_as,
        own_llm: instance.own_llm,
        embed_enabled: instance.embed_enabled,
        created_at: api.zone().show(instance.created_at),
        updated_at: api.zone().show(instance.updated_at),
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct InstanceQuery {
    /// Text in id, name, model, server or the user's e-mail.
    q: Option<String>,
    server_id: Option<String>,
    health_status: Option<Health>,
    /// Whether somebody has it.
    assigned: Option<bool>,
    /// Whether a profession's pool holds it.
    pooled: Option<bool>,
    /// Whether employees may claim it and pools may hold it (`isolation` is `own` or `none`).
    offered: Option<bool>,
    /// id, name, server_id, health_status, model, gateway_port, total_tokens, created_at or last_health_at;
    /// a `-` in front turns it around.
    sort: Option<String>,
}

/// All instances, with server, health and gateway.
#[utoipa::path(get, path = "/instances", tag = "instances", params(InstanceQuery, Paging), responses((status = 200, body = Listing<InstanceItem>)))]
async fn list(
    _: Admin,
    api: State,
    Query(query): Query<InstanceQuery>,
    paging: Paging,
) -> Answer<Listing<InstanceItem>> {
    let default = Sort { column: "created_at", descending: false };
    let sort = Sort::asked(query.sort.as_deref(), store::instance::SORTABLE, default)?;
    let filter = instance::InstanceFilter {
        q: query.q.as_deref(),
        server_id: query.server_id.as_deref(),
        health_status: query.health_status.map(Into::into),
        assigned: query.assigned,
        pooled: query.pooled,
        offered: query.offered,
    };
    let found = instance::list(&api.app, filter, sort, paging.page(50)?).await?;
    let list = found.list.into_iter().map(|i| item(&api, i)).collect::<Result<_, _>>()?;
    Ok(Data(Listing { list, total: found.total }))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Shown {
    /// `masked` hides the token as lists do (beyond the spec); `whole`, which is the default of whoever may see secrets, writes an audit
    /// entry `secret.reveal`.
    #[param(inline)]
    secrets: Option<Secrets>,
}

/// One instance: with its configuration, whole token, history and pool entry.
///
/// The answers to changes have it masked; the one to its creation has it whole.
#[utoipa::path(get, path = "/instances/{id}", tag = "instances", params(("id" = String, Path), Shown), responses((status = 200, body = InstanceDetail)))]
async fn show(
    who: Admin,
    api: State,
    Path(id): Path<InstanceId>,
    Query(shown): Query<Shown>,
) -> Answer<InstanceDetail> {
    let (id, secrets) = (id, shown.secrets.unwrap_or_else(|| Secrets::of(&who.by)));
    if secrets == Secrets::Whole {
        who.by.require(Permission::SeeSecrets)?;
        instance::reveal(&api.app, &who.by, &id).await?;
    }
    detail(&api, &who.by, &id, secrets).await
}

#[derive(Deserialize, ToSchema)]
pub struct NewInstance {
    /// Also the name of its token at the LLM gateway, which may allow fewer characters.
    id: NewInstanceId,
    name: Name<100>,
    server_id: String,
    /// At least 10 away from every other instance of the server; the next free one when omitted.
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    gateway_port: Option<GatewayPort>,
    /// `ws://127.0.0.1:<gateway_port>` when omitted.
    gateway_url: Option<Name<255>>,
    /// Generated when omitted.
    #[schema(value_type = Option<String>, format = Password, min_length = 1, max_length = 255)]
    gateway_token: Option<Name<255>>,
    #[serde(default)]
    model: Text<100>,
    /// A JSON object, or a text that holds one.
    #[serde(default)]
    config_json: ConfigJson,
    #[serde(default)]
    notes: Text<10000>,
    /// The instance that lives in the SSH user's own home: it exists already, and is not made with `provision`. Only a super administrator
    /// gives this, `home`, `unit` or `container_id`.
    #[serde(default)]
    is_main: bool,
    #[serde(default)]
    home: Text<500>,
    #[serde(default)]
    unit: Text<100>,
    /// The container that it runs in, where it is no service: only what Docker publishes for that one answers in its name.
    #[serde(default)]
    container_id: Text<100>,
    /// Also make it on its server, if nothing is on its port there (beyond the spec): enqueues provision_instance. It gets a Unix user of
    /// its own; where that cannot be made, the task fails.
    #[serde(default)]
    provision: bool,
    /// Of a gateway that is found on its port: whether it keeps the model provider of its own (beyond the spec). If not, it gets a key and
    /// the models of our LLM gateway.
    #[serde(default = "yes")]
    #[schema(default = true)]
    keeps_llm: bool,
    /// Of a gateway that is found on its port: whether what needs a restart is brought at once (beyond the spec).
    #[serde(default)]
    restart: bool,
}

fn yes() -> bool {
    true
}

/// An instance that was made.
#[derive(Serialize, ToSchema)]
pub struct MadeInstance {
    #[serde(flatten)]
    pub instance: InstanceDetail,
    #[serde(flatten)]
    pub place: PlaceFound,
}

/// Makes an instance.
///
/// Its server is looked at, if `gateway_port` is given and the caller may adopt: a gateway of OpenClaw on that port is adopted. If nothing is
/// there, `provision` makes it. Otherwise the record stays, on no server, and is offered to nobody. One that answers at its
/// own `gateway_url` needs no server.
#[utoipa::path(post, path = "/assistant-instances", tag = "instances", request_body = NewInstance, responses((status = 200, body = MadeInstance)))]
async fn create(who: Admin, api: State, Body(body): Body<NewInstance>) -> Answer<MadeInstance> {
    let (id, keeps_llm, restart) = (body.id.id(), body.keeps_llm, body.restart);
    let new = New {
        id: body.id,
        name: body.name.into(),
        server_id: ServerId::named(body.server_id),
        gateway_port: body.gateway_port,
        gateway_url: body.gateway_url.map(gateway_url).transpose()?,
        gateway_token: body.gateway_token.map(|t| Secret::new(t.as_str())),
        model: body.model.into(),
        config_json: body.config_json.into_text(),
        notes: body.notes.into(),
        is_main: body.is_main,
        home: body.home.into(),
        unit: body.unit.into(),
        container_id: body.container_id.into(),
        provision: body.provision,
    };
    let made = adopt::record::create(&api.app, &who.by, new, keeps_llm, restart).await?;
    let Data(instance) = detail(&api, &who.by, &id, Secrets::of(&who.by)).await?;
    Ok(Data(MadeInstance { instance, place: made.into() }))
}

/// An address that a browser opens a socket to, and no other kind. Loopback is the server's own; a name is looked at when
/// it is dialled.
fn gateway_url(url: Name<255>) -> Result<String, Error> {
    let read = url::Url::parse(url.as_str()).ok();
    let read = read.filter(|u| matches!(u.scheme(), "ws" | "wss" | "http" | "https") && u.has_host());
    let read = read.ok_or_else(|| Error::field("gateway_url", "must begin with ws://, wss://, http:// or https://"))?;
    match remote::address::literal(&read) {
        Some(ip) if !ip.is_loopback() && !remote::address::is_elsewhere(ip) => {
            Err(Error::field("gateway_url", "is no address that an instance can have"))
        }
        _ => Ok(url.as_str().to_owned()),
    }
}

#[derive(Deserialize, ToSchema)]
pub struct InstancePatch {
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    name: Option<Name<100>>,
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    model: Option<Text<100>>,
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    gateway_port: Option<GatewayPort>,
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    gateway_url: Option<Name<255>>,
    #[schema(nullable = false, value_type = Option<String>, format = Password, min_length = 1, max_length = 255)]
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    gateway_token: Option<Name<255>>,
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    config_json: Option<ConfigJson>,
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    notes: Option<Text<10000>>,
    /// Whether its own page is offered in the embedded window.
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    embed_enabled: Option<bool>,
}

/// An instance after a change.
#[derive(Serialize, ToSchema)]
#[schema(as = ChangedInstance)]
pub struct Changed {
    #[serde(flatten)]
    pub instance: InstanceDetail,
    /// The task that brings the change to the server; null if nothing of it concerns the server, or the instance is on none.
    pub task_id: Option<String>,
}

/// Changes an instance. A change of its model, port, address, token or configuration is brought to its server by a task.
#[utoipa::path(patch, path = "/assistant-instances/{id}", tag = "instances", params(("id" = String, Path)), request_body = InstancePatch, responses((status = 200, body = Changed)))]
async fn update(
    who: Admin,
    api: State,
    Path(id): Path<InstanceId>,
    Body(body): Body<InstancePatch>,
) -> Answer<Changed> {
    let patch = Patch {
        name: body.name.map(Into::into),
        model: body.model.map(Into::into),
        gateway_port: body.gateway_port,
        gateway_url: body.gateway_url.map(gateway_url).transpose()?,
        gateway_token: body.gateway_token.map(|t| Secret::new(t.as_str())),
        config_json: body.config_json.map(ConfigJson::into_text),
        notes: body.notes.map(Into::into),
        embed_enabled: body.embed_enabled,
    };
    let task = instance::update(&api.app, &who.by, &id, patch).await?;
    let Data(instance) = detail(&api, &who.by, &id, Secrets::Masked).await?;
    Ok(Data(Changed { instance, task_id: task.map(Into::into) }))
}

/// Deletes an instance (soft): its binding and pool entry end, its port is free, its host is told.
///
/// Refused (409) while an employee has it from the pool.
#[utoipa::path(delete, path = "/assistant-instances/{id}", tag = "instances", params(("id" = String, Path)), responses((status = 200, body = Deleted)))]
async fn delete(who: Admin, api: State, Path(id): Path<String>) -> Answer<Deleted> {
    instance::delete(&api.app, &who.by, &InstanceId::named(id.clone())).await?;
    Ok(Data(Deleted { id }))
}

#[derive(Deserialize, ToSchema)]
pub struct Assign {
    /// `null` takes the instance from whoever has it.
    #[schema(required = true)]
    #[serde(deserialize_with = "crate::shape::given")]
    user_id: Option<Option<Text<64>>>,
}

/// Gives the instance to an employee, or takes it back.
///
/// Repeating it is harmless. Refused (409) when somebody else has it, or a profession's pool. One whose `isolation` is neither `own` nor
/// `none` is given by a super administrator only (403).
#[utoipa::path(patch, path = "/instances/{id}/assign", tag = "instances", params(("id" = String, Path)), request_body = Assign, responses((status = 200, body = InstanceDetail)))]
async fn assign(
    who: Admin,
    api: State,
    Path(id): Path<InstanceId>,
    Body(body): Body<Assign>,
) -> Answer<InstanceDetail> {
    let user = body.user_id.flatten().map(|u| UserId::named(u.as_str()));
    instance::assign(&api.app, &who.by, &id, user.as_ref()).await?;
    detail(&api, &who.by, &id, Secrets::Masked).await
}

#[derive(Serialize, ToSchema)]
pub struct HealthReport {
    id: String,
    name: String,
    server_id: String,
    health_status: Health,
    health_fail_count: i64,
    /// What decided: ssh, service, http, websocket, key, or none where nothing was asked.
    #[schema(example = "key")]
    layer: String,
    detail: String,
    /// Of the handshake and one call; null where it did not come to that.
    latency_ms: Option<i64>,
}

#[derive(Serialize, ToSchema)]
pub struct HealthReports {
    checked_at: String,
    list: Vec<HealthReport>,
}

/// Checks all instances now and answers how each is.
///
/// It is the same check as the one every five minutes: the service over SSH, then /healthz, a WebSocket handshake with one call,
/// and the sub key at the LLM gateway. Only where SSH does not get there is the instance asked by its own address, for 5 s.
#[utoipa::path(get, path = "/instances/health-check", tag = "instances", responses((status = 200, body = HealthReports)))]
async fn health_check(_: Admin, api: State) -> Answer<HealthReports> {
    let reports = fleet::health::check(&api.app).await?.reports;
    let list = reports.into_iter().map(|report| HealthReport {
        id: report.id.into(),
        name: report.name,
        server_id: report.server_id.into(),
        health_status: report.status.into(),
        health_fail_count: report.fails,
        layer: report.layer.map_or("", Layer::as_str).to_owned(),
        detail: report.detail,
        latency_ms: report.latency_ms,
    });
    Ok(Data(HealthReports { checked_at: api.zone().show(api.app.clock.now()), list: list.collect() }))
}

/// One check of an instance.
#[derive(Serialize, ToSchema)]
pub struct Heartbeat {
    checked_at: String,
    /// The state that followed from it.
    health_status: Health,
    /// What decided: ssh, service, http, websocket, key, or none where nothing was asked.
    layer: String,
    latency_ms: Option<i64>,
}

#[derive(Serialize, ToSchema)]
pub struct Heartbeats {
    /// Oldest first.
    list: Vec<Heartbeat>,
}

/// The last 60 checks of an instance (beyond the spec), those of a day at most.
#[utoipa::path(get, path = "/instances/{id}/heartbeat", tag = "instances", params(("id" = String, Path)), responses((status = 200, body = Heartbeats)))]
async fn heartbeat(_: Admin, api: State, Path(id): Path<InstanceId>) -> Answer<Heartbeats> {
    let beats = fleet::health::beats(&api.app, &id).await?;
    let list = beats.into_iter().map(|beat| Heartbeat {
        checked_at: api.zone().show(beat.created_at),
        health_status: beat.status.into(),
        layer: beat.layer.as_str().to_owned(),
        latency_ms: beat.latency_ms,
    });
    Ok(Data(Heartbeats { list: list.collect() }))
}
