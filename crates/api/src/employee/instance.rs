//! The employee's instances: seen, claimed, given back, and the tasks that make them ready.

use std::collections::HashMap;
use std::time::Duration;

use base::id::{InstanceId, TaskId};
use base::money::Spend;
use base::{Kind, Listing, Text};
use llm::usage::{Own, Sums, first_day};
use people::claim;
use queue::task_admin;
use serde::{Deserialize, Serialize};
use store::binding::Held;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::error::ApiError;
use crate::extract::{Answer, Body, Employee, Paging, Path, State};
use crate::shape::Deleted;
use crate::state::{Api, Shared};
use crate::usage::Freshness;
use crate::words::{Health, Origin, TaskStatus};

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(list))
        .routes(routes!(available))
        .routes(routes!(claim))
        .routes(routes!(give_back))
        .routes(routes!(replace))
        .routes(routes!(show_task))
}

/// Use since local midnight, from the LLM gateway's request log.
#[derive(Serialize, ToSchema)]
pub struct Today {
    requests: i64,
    total_tokens: i64,
    cost_usd: f64,
}

#[derive(Serialize, ToSchema)]
pub struct OwnInstance {
    #[schema(example = "assistant-01")]
    id: String,
    #[schema(example = "Research assistant")]
    name: String,
    #[schema(example = "ws://127.0.0.1:18789")]
    gateway_url: String,
    /// The owner's own: it opens the instance's gateway.
    gateway_token: String,
    #[schema(example = "claude-sonnet-4-6")]
    model: String,
    status: Health,
    /// How it came to its owner.
    origin: Origin,
    profession_id: Option<String>,
    profession_name: Option<String>,
    last_health_at: Option<String>,
    /// Of a claimed one, for as long as the task is kept. Its status `dead` means that the set-up was given up: POST
    /// /me/instances/{id}/replace gets another one.
    setup: Option<Setup>,
    today: Today,
}

/// The task that set an instance up after its claim.
#[derive(Serialize, ToSchema)]
pub struct Setup {
    task_id: String,
    status: TaskStatus,
}

/// Each of the own instances' sums of today, and until when they are whole.
async fn today(api: &Api, who: &Employee) -> Result<(HashMap<String, Sums>, Freshness), ApiError> {
    let fresh = Freshness::new(api, api.app.feed.pull().await);
    Ok((known_today(api, who).await?, fresh))
}

/// How long a claim's answer waits for the sums.
const KNOWN: Duration = Duration::from_secs(1);

/// The same by what was taken in of the log until now.
async fn known_today(api: &Api, who: &Employee) -> base::Result<HashMap<String, Sums>> {
    let own = Own::of(&api.app, &who.0.id, None).await?;
    let today = first_day(&api.app, 1);
    Ok(own.instances(&api.app, today).await?.into_iter().map(|(id, _, sums)| (id.into(), sums)).collect())
}

fn own(api: &Api, today: &HashMap<String, Sums>, held: Held) -> Result<OwnInstance, ApiError> {
    let instance = held.instance;
    let sums = today.get(instance.id.as_str()).copied().unwrap_or_default();
    let today = Today { requests: sums.requests, total_tokens: sums.tokens(), cost_usd: Spend(sums.quota()).usd() };
    let token = instance.token(&api.app.sealer).map_err(base::Error::from)?;
    Ok(OwnInstance {
        id: instance.id.into(),
        name: instance.name,
        gateway_url: instance.gateway_url,
        gateway_token: token.expose().to_owned(),
        model: instance.model,
        status: instance.health_status.into(),
        origin: held.origin.into(),
        profession_id: held.profession_id.map(Into::into),
        profession_name: held.profession_name,
        last_health_at: instance.last_health_at.map(|at| api.zone().show(at)),
        setup: held.setup.map(|setup| Setup { task_id: setup.task_id.into(), status: setup.status.into() }),
        today,
    })
}

#[derive(Serialize, ToSchema)]
pub struct OwnInstances {
    instances: Vec<OwnInstance>,
    total: i64,
    /// Of the instances' `today`.
    #[serde(flatten)]
    fresh: Freshness,
}

/// The own instances, the first bound first.
#[utoipa::path(get, path = "/me/instances", tag = "instances", responses((status = 200, body = OwnInstances)))]
async fn list(who: Employee, api: State) -> Answer<OwnInstances> {
    let held = claim::held(&api.app, &who.0.id).await?;
    let (today, fresh) = today(&api, &who).await?;
    let instances = held.into_iter().map(|h| own(&api, &today, h)).collect::<Result<Vec<_>, _>>()?;
    let total = instances.len() as i64;
    Ok(Data(OwnInstances { instances, total, fresh }))
}

#[derive(Serialize, ToSchema)]
pub struct IdleInstance {
    id: String,
    name: String,
    model: String,
    status: Health,
    server_name: String,
}

/// Instances that can be claimed, the healthiest first: nobody has them, no profession's pool holds them, and they work.
///
/// Not listed is what is on no server, on a server that is not active, `unhealthy` or `key_invalid`; what only a super
/// administrator may assign; and what could not be set up or cleaned for its last user, until it is cleaned. `unknown`
/// ones are listed, since they are not checked yet, and `rate_limited` ones, since the limit passes.
#[utoipa::path(get, path = "/instances/available", tag = "instances", params(Paging), responses((status = 200, body = Listing<IdleInstance>)))]
async fn available(_: Employee, api: State, paging: Paging) -> Answer<Listing<IdleInstance>> {
    let idle = claim::available(&api.app, paging.page(50)?).await?;
    Ok(Data(idle.map(|i| IdleInstance {
        id: i.id.into(),
        name: i.name,
        model: i.model,
        status: i.health_status.into(),
        server_name: i.server_name,
    })))
}

#[derive(Deserialize, ToSchema)]
pub struct Claim {
    /// The healthiest of GET /instances/available when omitted.
    instance_id: Option<Text<100>>,
}

#[derive(Serialize, ToSchema)]
pub struct Claimed {
    instance: OwnInstance,
    /// Watch it with GET /me/tasks/{id}.
    task_id: String,
}

/// The instance that was just claimed. The claim is done, whatever becomes of this: what it was used for today is what is known already,
/// and nothing where that cannot be read in time.
pub(super) async fn claimed(api: &Api, who: &Employee, held: Held) -> Result<OwnInstance, ApiError> {
    let known = tokio::time::timeout(KNOWN, known_today(api, who)).await;
    let today = known.unwrap_or_else(|_| Err(Kind::TimedOut.into())).unwrap_or_else(|error| {
        tracing::warn!(%error, "a claim is answered without what its instance was used for today");
        HashMap::new()
    });
    own(api, &today, held)
}

/// Claims an idle instance.
///
/// One instance per employee: whoever has one already, in whatever way, is refused (409, 4091). Nothing
/// can be claimed, or the named one cannot: 409, 4092, and `msg` says why, where nobody has it. What can be claimed is
/// what GET /instances/available lists.
#[utoipa::path(post, path = "/me/instances/claim", tag = "instances", request_body = Claim, responses((status = 200, body = Claimed)))]
async fn claim(who: Employee, api: State, Body(body): Body<Claim>) -> Answer<Claimed> {
    let chosen = body.instance_id.map(|id| InstanceId::named(id.as_str()));
    let made = claim::instance(&api.app, &who.0, chosen.as_ref()).await?;
    let instance = claimed(&api, &who, made.held).await?;
    Ok(Data(Claimed { instance, task_id: made.task_id.to_string() }))
}

/// Gives a claimed instance back (beyond the spec); one of a profession's pool is reclaimed.
///
/// What it holds of its user is removed before anybody else gets it. An instance that an administrator
/// assigned is refused (409).
#[utoipa::path(delete, path = "/me/instances/{id}/claim", tag = "instances", params(("id" = String, Path)), responses((status = 200, body = Deleted)))]
async fn give_back(who: Employee, api: State, Path(id): Path<String>) -> Answer<Deleted> {
    claim::give_back(&api.app, &who.0, &InstanceId::named(id.clone())).await?;
    Ok(Data(Deleted { id }))
}

#[derive(Serialize, ToSchema)]
pub struct Replaced {
    instance: OwnInstance,
    /// The entry of the profession's pool; null for an instance without a profession.
    entry_id: Option<String>,
    /// Watch it with GET /me/tasks/{id}.
    task_id: String,
}

/// Exchanges a claimed instance that could not be set up for another one (beyond the spec).
///
/// Only for a claim whose task is `dead`, otherwise 409. The other one is of the same profession, or any that GET
/// /instances/available lists. Both happen at once: where there is no other (409, 4092), the employee keeps the failed
/// one. That is given back as DELETE /me/instances/{id}/claim does: it is cleaned, and offered to nobody before that.
/// Its dead task stays for administrators to see. An instance that an administrator assigned is refused (409).
#[utoipa::path(post, path = "/me/instances/{id}/replace", tag = "instances", params(("id" = String, Path)), responses((status = 200, body = Replaced)))]
async fn replace(who: Employee, api: State, Path(id): Path<String>) -> Answer<Replaced> {
    let made = claim::replace(&api.app, &who.0, &InstanceId::named(id)).await?;
    Ok(Data(Replaced {
        instance: claimed(&api, &who, made.held).await?,
        entry_id: made.entry_id,
        task_id: made.task_id.to_string(),
    }))
}

#[derive(Serialize, ToSchema)]
pub struct Step {
    line: String,
    created_at: String,
}

#[derive(Serialize, ToSchema)]
pub struct OwnTask {
    id: String,
    #[schema(example = "init_instance")]
    r#type: String,
    status: TaskStatus,
    attempts: i64,
    error: String,
    steps: Vec<Step>,
    created_at: String,
    updated_at: String,
}

/// A task that runs on one's own behalf, with its steps (beyond the spec).
#[utoipa::path(get, path = "/me/tasks/{id}", tag = "instances", params(("id" = String, Path)), responses((status = 200, body = OwnTask)))]
async fn show_task(who: Employee, api: State, Path(id): Path<TaskId>) -> Answer<OwnTask> {
    let found = task_admin::show(&api.app, &id).await?;
    if found.user_id.as_deref() != Some(who.0.id.as_str()) {
        return Err(Kind::NotFound.into());
    }
    let lines = task_admin::log_of(&api.app, &id).await?;
    let step = |l: store::task_log::Line| Step { line: l.line, created_at: api.zone().show(l.created_at) };
    Ok(Data(OwnTask {
        id: found.id.into(),
        r#type: found.r#type,
        status: found.status.into(),
        attempts: found.attempts,
        error: found.client_message,
        steps: lines.into_iter().map(step).collect(),
        created_at: api.zone().show(found.created_at),
        updated_at: api.zone().show(found.updated_at),
    }))
}
