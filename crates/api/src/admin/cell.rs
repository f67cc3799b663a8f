//! Cells: how instances are confined on their servers, what they may take there, and what is left open for them. All of it is beyond the
//! spec.

use base::cell::{Effective, Limits, Opening, Openings};
use base::id::{InstanceId, ProfessionId, ServerId};
use fleet::cell::{self, Subject};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::extract::{Admin, Answer, Body, Path, State};
use crate::shape::Enqueued;
use crate::state::{Api, Shared};
use crate::words::CellState;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(show_cell))
        .routes(routes!(enter))
        .routes(routes!(leave))
        .routes(routes!(enter_many))
        .routes(routes!(set_openings))
        .routes(routes!(set_own_limits))
        .routes(routes!(server_limits, set_server_limits))
        .routes(routes!(profession_limits, set_profession_limits))
}

/// Limits as one subject sets them. What is null or left out is not set: the next of profession, server and platform decides.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitValues {
    /// Memory in MiB, beyond which the assistant's largest process is ended.
    #[schema(minimum = 256, maximum = 1_048_576, example = 2048)]
    #[serde(default)]
    memory_mib: Option<i64>,
    /// Processor time; 100 is one processor.
    #[schema(minimum = 10, maximum = 100_000, example = 200)]
    #[serde(default)]
    cpu_percent: Option<i64>,
    /// Processes and threads.
    #[schema(minimum = 64, maximum = 1_000_000, example = 512)]
    #[serde(default)]
    tasks: Option<i64>,
    /// What its home may take of the disk, in MiB; beyond that there is an alert.
    #[schema(minimum = 100, maximum = 100_000_000, example = 10_240)]
    #[serde(default)]
    disk_mib: Option<i64>,
}

impl From<Limits> for LimitValues {
    fn from(limits: Limits) -> LimitValues {
        let Limits { memory_mib, cpu_percent, tasks, disk_mib } = limits;
        LimitValues { memory_mib, cpu_percent, tasks, disk_mib }
    }
}

impl From<LimitValues> for Limits {
    fn from(values: LimitValues) -> Limits {
        let LimitValues { memory_mib, cpu_percent, tasks, disk_mib } = values;
        Limits { memory_mib, cpu_percent, tasks, disk_mib }
    }
}

/// The limits that hold.
#[derive(Serialize, ToSchema)]
pub struct HeldLimits {
    memory_mib: i64,
    cpu_percent: i64,
    tasks: i64,
    disk_mib: i64,
}

impl From<Effective> for HeldLimits {
    fn from(limits: Effective) -> HeldLimits {
        let Effective { memory_mib, cpu_percent, tasks, disk_mib } = limits;
        HeldLimits { memory_mib, cpu_percent, tasks, disk_mib }
    }
}

/// What a cell leaves open: `browser` (user namespaces, for Chromium's own sandbox), `devices`, `docker` (the group docker), `sudo`
/// (programs that change their user). An instance with any but `browser` counts as one that runs as root.
#[derive(Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CellOpening {
    Browser,
    Devices,
    Docker,
    Sudo,
}

impl From<Opening> for CellOpening {
    fn from(opening: Opening) -> CellOpening {
        match opening {
            Opening::Browser => CellOpening::Browser,
            Opening::Devices => CellOpening::Devices,
            Opening::Docker => CellOpening::Docker,
            Opening::Sudo => CellOpening::Sudo,
        }
    }
}

impl From<CellOpening> for Opening {
    fn from(opening: CellOpening) -> Opening {
        match opening {
            CellOpening::Browser => Opening::Browser,
            CellOpening::Devices => Opening::Devices,
            CellOpening::Docker => Opening::Docker,
            CellOpening::Sudo => Opening::Sudo,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct CellDetail {
    state: CellState,
    /// What `systemd-analyze security` said when the unit was written last: from 0.0, the safest, to 10.0. Null before.
    #[schema(example = 1.2)]
    score: Option<f64>,
    /// Directives that the server cannot do, and that were left out.
    left_out: Vec<String>,
    /// What the server takes without carrying it out, for lack of a cgroup controller, BPF or quotas; and exceptions that it needs, such as a
    /// cloud's metadata address that is its name server.
    not_enforced: Vec<String>,
    /// What it is asked to leave open.
    openings: Vec<CellOpening>,
    /// What the cell in its unit leaves open. It differs until a task has written the unit, and where that failed.
    openings_written: Vec<CellOpening>,
    /// The limits that hold for it.
    limits: HeldLimits,
    /// What is set for this instance itself.
    own_limits: LimitValues,
    /// What its home takes of the disk, as last counted; null before.
    home_bytes: Option<i64>,
    measured_at: Option<String>,
}

fn shaped(api: &Api, shown: cell::Shown) -> CellDetail {
    let names = |text: &str| text.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    CellDetail {
        state: shown.cell.state.into(),
        score: shown.cell.score.map(|tenths| tenths as f64 / 10.0),
        left_out: names(&shown.cell.left_out),
        not_enforced: names(&shown.cell.not_enforced),
        openings: shown.cell.openings().iter().map(CellOpening::from).collect(),
        openings_written: shown.cell.openings_written().iter().map(CellOpening::from).collect(),
        limits: shown.limits.into(),
        own_limits: shown.own.into(),
        home_bytes: shown.cell.home_bytes,
        measured_at: shown.cell.measured_at.map(|at| api.zone().show(at)),
    }
}

/// How an instance is confined on its server (beyond the spec).
#[utoipa::path(get, path = "/instances/{id}/cell", tag = "instances", params(("id" = String, Path)), responses((status = 200, body = CellDetail)))]
async fn show_cell(_: Admin, api: State, Path(id): Path<InstanceId>) -> Answer<CellDetail> {
    let shown = cell::show(&api.app, &id).await?;
    Ok(Data(shaped(&api, shown)))
}

/// Brings an instance into its cell (beyond the spec): enqueues confine_instance.
///
/// The assistant is stopped, copied and started. It is accepted when it is ready and has answered a chat; otherwise everything is put back.
#[utoipa::path(post, path = "/instances/{id}/cell/enter", tag = "instances", params(("id" = String, Path)), responses(
    (status = 200, body = Enqueued), (status = 409, description = "its unit is not ours"),
))]
async fn enter(who: Admin, api: State, Path(id): Path<InstanceId>) -> Answer<Enqueued> {
    Ok(Data(cell::confine(&api.app, &who.by, &id, true).await?.into()))
}

/// Takes an instance out of its cell (beyond the spec; super administrators only): enqueues confine_instance.
#[utoipa::path(post, path = "/instances/{id}/cell/leave", tag = "instances", params(("id" = String, Path)), responses(
    (status = 200, body = Enqueued), (status = 409, description = "its unit is not ours"),
))]
async fn leave(who: Admin, api: State, Path(id): Path<InstanceId>) -> Answer<Enqueued> {
    Ok(Data(cell::confine(&api.app, &who.by, &id, false).await?.into()))
}

#[derive(Deserialize, ToSchema)]
pub struct EnterMany {
    #[schema(min_items = 1, max_items = 200)]
    instance_ids: Vec<String>,
}

#[derive(Serialize, ToSchema)]
pub struct EnteredMany {
    /// In the order of the instances.
    task_ids: Vec<String>,
}

/// Brings many instances into their cells (beyond the spec): one confine_instance each, for all of them or for none.
#[utoipa::path(post, path = "/cells/enter", tag = "instances", request_body = EnterMany, responses(
    (status = 200, body = EnteredMany), (status = 404, description = "one of them does not exist"),
    (status = 409, description = "the unit of one of them is not ours"),
))]
async fn enter_many(who: Admin, api: State, Body(body): Body<EnterMany>) -> Answer<EnteredMany> {
    let ids: Vec<InstanceId> = body.instance_ids.into_iter().map(InstanceId::named).collect();
    let tasks = cell::confine_all(&api.app, &who.by, &ids).await?;
    Ok(Data(EnteredMany { task_ids: tasks.into_iter().map(|task| task.as_str().to_owned()).collect() }))
}

#[derive(Deserialize, ToSchema)]
pub struct SetOpenings {
    #[schema(max_items = 4)]
    openings: Vec<CellOpening>,
}

/// Says what an instance's cell leaves open (beyond the spec; super administrators only).
///
/// With `devices`, `docker` or `sudo` the instance counts as one that runs as root: it is not listed for employees, claimed or pooled, and
/// an instance that a pool holds is refused. One that runs in its cell is restarted by a task.
#[utoipa::path(put, path = "/instances/{id}/cell/openings", tag = "instances", params(("id" = String, Path)), request_body = SetOpenings, responses(
    (status = 200, body = CellDetail), (status = 409, description = "a pool holds it"),
))]
async fn set_openings(
    who: Admin,
    api: State,
    Path(id): Path<InstanceId>,
    Body(body): Body<SetOpenings>,
) -> Answer<CellDetail> {
    let openings = Openings::of(body.openings.into_iter().map(Opening::from));
    cell::open(&api.app, &who.by, &id, openings).await?;
    let shown = cell::show(&api.app, &id).await?;
    Ok(Data(shaped(&api, shown)))
}

/// Sets the limits of one instance (beyond the spec). A confined one takes them over without a restart.
#[utoipa::path(put, path = "/instances/{id}/cell/limits", tag = "instances", params(("id" = String, Path)), request_body = LimitValues, responses((status = 200, body = CellDetail)))]
async fn set_own_limits(
    who: Admin,
    api: State,
    Path(id): Path<InstanceId>,
    Body(body): Body<LimitValues>,
) -> Answer<CellDetail> {
    cell::set_limits(&api.app, &who.by, Subject::Instance(&id), body.into()).await?;
    let shown = cell::show(&api.app, &id).await?;
    Ok(Data(shaped(&api, shown)))
}

/// The limits that a server sets for its instances (beyond the spec).
#[utoipa::path(get, path = "/servers/{id}/limits", tag = "servers", params(("id" = String, Path)), responses((status = 200, body = LimitValues)))]
async fn server_limits(_: Admin, api: State, Path(id): Path<ServerId>) -> Answer<LimitValues> {
    Ok(Data(cell::limits(&api.app, Subject::Server(&id)).await?.into()))
}

/// Sets them (beyond the spec). Its confined instances take them over without a restart.
#[utoipa::path(put, path = "/servers/{id}/limits", tag = "servers", params(("id" = String, Path)), request_body = LimitValues, responses((status = 200, body = LimitValues)))]
async fn set_server_limits(
    who: Admin,
    api: State,
    Path(id): Path<ServerId>,
    Body(body): Body<LimitValues>,
) -> Answer<LimitValues> {
    let subject = id;
    Ok(Data(cell::set_limits(&api.app, &who.by, Subject::Server(&subject), body.into()).await?.into()))
}

/// The limits that a profession sets for the instances of its pool (beyond the spec).
#[utoipa::path(get, path = "/professions/{id}/limits", tag = "professions", params(("id" = String, Path)), responses((status = 200, body = LimitValues)))]
async fn profession_limits(_: Admin, api: State, Path(id): Path<ProfessionId>) -> Answer<LimitValues> {
    Ok(Data(cell::limits(&api.app, Subject::Profession(&id)).await?.into()))
}

/// Sets them (beyond the spec). Confined instances of its pool take them over without a restart.
#[utoipa::path(put, path = "/professions/{id}/limits", tag = "professions", params(("id" = String, Path)), request_body = LimitValues, responses((status = 200, body = LimitValues)))]
async fn set_profession_limits(
    who: Admin,
    api: State,
    Path(id): Path<ProfessionId>,
    Body(body): Body<LimitValues>,
) -> Answer<LimitValues> {
    let subject = id;
    Ok(Data(cell::set_limits(&api.app, &who.by, Subject::Profession(&subject), body.into()).await?.into()))
}
