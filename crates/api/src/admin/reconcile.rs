//! What our records want of an instance, what is on its server, and what will be done about the difference; and holds.

use base::id::InstanceId;
use base::{Error, Name};
use fleet::instance;
use fleet::reconcile::compare::{self, Comparison, Field, Foreign};
use fleet::reconcile::hold;
use fleet::reconcile::pass::{self, Decision};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use store::reconcile::Reconcile;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::extract::{Admin, Answer, Body, Path, State};
use crate::shape::Enqueued;
use crate::state::{Api, Shared};

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default().routes(routes!(state)).routes(routes!(reconcile)).routes(routes!(hold_instance, end_hold))
}

#[derive(Serialize, ToSchema)]
pub struct StateField {
    /// `service`, `unit`, `unix_user`, `release`, or a path in the configuration.
    #[schema(example = "gateway.port")]
    name: String,
    desired: String,
    observed: String,
    /// What it takes until both agree: `nothing` (they do), `hot` (the running gateway takes it over), `restart`, `start`
    /// (auto_recovery starts it), or `operation` (such as an upgrade or provision_instance).
    #[schema(example = "hot")]
    effect: &'static str,
}

#[derive(Serialize, ToSchema)]
pub struct ForeignSetting {
    path: String,
    /// Secrets are masked.
    value: String,
}

#[derive(Serialize, ToSchema)]
pub struct InstanceHold {
    until: String,
    reason: String,
    by: String,
}

#[derive(Serialize, ToSchema)]
pub struct InstanceState {
    /// Raised by every change of what our records want.
    generation: i64,
    /// The generation that is on the server as a whole.
    applied: i64,
    hold: Option<InstanceHold>,
    /// When the server was asked; null if it never was.
    compared_at: Option<String>,
    /// Why the server could not be asked now; null if it was.
    unreachable: Option<String>,
    /// What our records want, with what is there: the instance as a whole, then what differs in its configuration. Secrets are masked.
    /// Empty if the server could not be asked.
    fields: Vec<StateField>,
    /// Settings on the server that our records say nothing about: they stay as they are. At most 100.
    foreign: Vec<ForeignSetting>,
    /// Whether the configuration is what the platform wrote last, to the byte; null if the server could not be asked.
    untouched: Option<bool>,
    /// What differed when it was last recorded, on one line; empty if nothing did.
    differs: String,
    differs_since: Option<String>,
    /// What a reconcile with a restart would do now, in its order.
    #[schema(example = json!(["write_config", "reload"]))]
    steps: Vec<&'static str>,
    /// What happens next by itself: `nothing`, `reconcile` (with the next pass), `wait` (held, or the first pass of a release), `ask` (a
    /// person must decide, see `ask`), or `unknown` if the server could not be asked.
    next: &'static str,
    /// Why a person must decide.
    ask: Option<&'static str>,
    /// Failures in a row.
    failures: i64,
    /// The last failure.
    error: String,
}

/// What our records want of the instance, what is on its server now, what differs, since when, and what will be done about it (beyond
/// the spec). Nothing is changed: this is the dry run of a reconcile.
///
/// The job `reconcile` compares all instances every five minutes. What a running gateway takes over by itself is brought at once; what
/// needs a restart waits for a person (POST /instances/{id}/reconcile), or for the instance's next restart.
#[utoipa::path(get, path = "/instances/{id}/state", tag = "instances", params(("id" = String, Path)), responses(
    (status = 200, body = InstanceState),
    (status = 409, description = "the instance was never provisioned"),
))]
async fn state(_: Admin, api: State, Path(id): Path<InstanceId>) -> Answer<InstanceState> {
    instance::show(&api.app, &id).await?;
    let recorded = store::reconcile::find(&api.app.db, &id).await.map_err(Error::from)?;
    let assistant = match fleet::assistant::Assistant::open(&api.app, &id).await {
        Ok(assistant) => Ok(assistant),
        Err(error) if error.kind == base::Kind::Conflict => return Err(error.into()),
        Err(error) => Err(error),
    };
    let found = async {
        let assistant = assistant?;
        let comparison = compare::compare(&api.app, &assistant).await?;
        let outlook = pass::outlook(&api.app, &comparison).await?;
        Ok::<_, Error>((comparison, outlook))
    };
    let shown = match found.await {
        Ok((comparison, outlook)) => shaped(&api, recorded, Ok((comparison, outlook))),
        Err(error) => shaped(&api, recorded, Err(error.client.into_owned())),
    };
    Ok(Data(shown))
}

fn shaped(api: &Api, recorded: Reconcile, found: Result<(Comparison, Decision), String>) -> InstanceState {
    let now = api.app.clock.now();
    let show = |at: Timestamp| api.zone().show(at);
    let hold = recorded.held_until.filter(|_| recorded.is_held(now)).map(|until| InstanceHold {
        until: show(until),
        reason: recorded.held_reason.clone(),
        by: recorded.held_by.clone(),
    });
    let mut state = InstanceState {
        generation: recorded.generation,
        applied: recorded.applied,
        hold,
        compared_at: recorded.compared_at.map(show),
        unreachable: None,
        fields: vec![],
        foreign: vec![],
        untouched: None,
        differs: recorded.differs,
        differs_since: recorded.differs_since.map(show),
        steps: vec![],
        next: "unknown",
        ask: None,
        failures: recorded.failures,
        error: recorded.error,
    };
    match found {
        Err(why) => state.unreachable = Some(why),
        Ok((comparison, outlook)) => {
            state.compared_at = Some(show(now));
            state.differs = comparison.summary();
            state.untouched = Some(comparison.is_untouched);
            (state.next, state.ask) = match outlook {
                Decision::Nothing => ("nothing", None),
                Decision::Enqueue => ("reconcile", None),
                Decision::Wait => ("wait", None),
                Decision::Ask(why) => ("ask", Some(why)),
            };
            state.steps = comparison.steps.iter().map(|step| step.as_str()).collect();
            state.fields = comparison.fields.into_iter().map(StateField::from).collect();
            state.foreign = comparison.foreign.into_iter().map(foreign).collect();
        }
    }
    state
}

impl From<Field> for StateField {
    fn from(field: Field) -> StateField {
        let Field { name, desired, observed, effect } = field;
        StateField { name, desired, observed, effect: effect.as_str() }
    }
}

fn foreign(foreign: Foreign) -> ForeignSetting {
    ForeignSetting { path: foreign.path, value: foreign.value }
}

#[derive(Deserialize, ToSchema)]
pub struct ReconcileBody {
    /// Whether the instance may be restarted for what needs a restart. It then also gets its unit back if somebody changed that on the
    /// server, and a hold does not count.
    #[serde(default)]
    restart: bool,
}

/// Has what our records want brought to the instance (beyond the spec): enqueues reconcile_instance, also after five failures.
#[utoipa::path(post, path = "/instances/{id}/reconcile", tag = "instances", params(("id" = String, Path)), request_body = ReconcileBody, responses((status = 200, body = Enqueued)))]
async fn reconcile(
    who: Admin,
    api: State,
    Path(id): Path<InstanceId>,
    Body(body): Body<ReconcileBody>,
) -> Answer<Enqueued> {
    Ok(Data(instance::reconcile(&api.app, &who.by, &id, body.restart).await?.into()))
}

#[derive(Deserialize, ToSchema)]
pub struct HoldBody {
    /// Within the next 30 days.
    #[schema(format = DateTime, example = "2026-11-18T12:00:00Z")]
    until: String,
    #[schema(value_type = String, min_length = 1, max_length = 500)]
    reason: Name<500>,
}

/// Leaves the instance alone until a time (beyond the spec): the platform repairs, restarts and writes nothing there by itself, and offers
/// it to nobody. It is still checked, and what a person asks for by name is done.
#[utoipa::path(put, path = "/instances/{id}/hold", tag = "instances", params(("id" = String, Path)), request_body = HoldBody, responses((status = 200, body = InstanceHold)))]
async fn hold_instance(
    who: Admin,
    api: State,
    Path(id): Path<InstanceId>,
    Body(body): Body<HoldBody>,
) -> Answer<InstanceHold> {
    let until: Timestamp =
        body.until.parse().map_err(|_| Error::field("until", "must be a time such as 2026-11-18T12:00:00Z"))?;
    hold::begin(&api.app, &who.by, &id, until, body.reason.as_str()).await?;
    Ok(Data(InstanceHold {
        until: api.zone().show(until),
        reason: body.reason.as_str().to_owned(),
        by: who.by.operator.clone(),
    }))
}

#[derive(Serialize, ToSchema)]
pub struct HoldEnded {
    held: bool,
}

/// Ends a hold. A repeat changes nothing.
#[utoipa::path(delete, path = "/instances/{id}/hold", tag = "instances", params(("id" = String, Path)), responses((status = 200, body = HoldEnded)))]
async fn end_hold(who: Admin, api: State, Path(id): Path<InstanceId>) -> Answer<HoldEnded> {
    hold::end(&api.app, &who.by, &id).await?;
    Ok(Data(HoldEnded { held: false }))
}
