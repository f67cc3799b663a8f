//! The guardian: how its dimensions are, and its events.

use base::Sort;
use fleet::guardian::{self, Event};
use fleet::registry::JOBS;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::extract::{Admin, Answer, Paging, Query, State};
use crate::state::{Api, Shared};
use crate::words::{DimensionStatus, EventStatus, RunStatus};

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default().routes(routes!(stats)).routes(routes!(events))
}

#[derive(Serialize, ToSchema)]
pub struct Today {
    total_events: i64,
    success: i64,
    failed: i64,
    /// 0 to 100; null without events.
    success_rate: Option<f64>,
}

#[derive(Serialize, ToSchema)]
pub struct DimensionItem {
    #[schema(example = "guardian_gateway")]
    dimension: String,
    #[schema(example = "LLM gateway")]
    label: String,
    /// healthy: no failure in the last run; warning: failures, all repaired; abnormal: failures left; unknown: it never ran.
    status: DimensionStatus,
    today_total: i64,
    today_success: i64,
    today_failed: i64,
    last_check_at: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct LatestRun {
    #[schema(example = "health_check")]
    job: String,
    label: String,
    status: RunStatus,
    message: String,
    duration_ms: i64,
    ran_at: String,
}

#[derive(Serialize, ToSchema)]
pub struct GuardianStats {
    /// Since local midnight.
    today: Today,
    dimensions: Vec<DimensionItem>,
    /// The latest run of every job that ran.
    job_runs: Vec<LatestRun>,
}

/// How the dimensions are, and the latest run of every job.
#[utoipa::path(get, path = "/guardian/stats", tag = "guardian", responses((status = 200, body = GuardianStats)))]
async fn stats(_: Admin, api: State) -> Answer<GuardianStats> {
    let stats = guardian::stats(&api.app, &JOBS).await?;
    let (success, failed) = stats.standings.iter().fold((0, 0), |(s, f), one| (s + one.success, f + one.failed));
    let total = success + failed;
    let today = Today {
        total_events: total,
        success,
        failed,
        success_rate: (total > 0).then(|| (success as f64 * 10000.0 / total as f64).round() / 100.0),
    };
    let dimensions = stats.standings.into_iter().map(|one| DimensionItem {
        dimension: one.dimension.name.to_owned(),
        label: one.dimension.label.to_owned(),
        status: one.state.into(),
        today_total: one.success + one.failed,
        today_success: one.success,
        today_failed: one.failed,
        last_check_at: one.checked_at.map(|at| api.zone().show(at)),
    });
    let job_runs = stats.runs.into_iter().map(|(job, run)| LatestRun {
        job: job.name.to_owned(),
        label: job.label.to_owned(),
        status: run.status.into(),
        message: run.message,
        duration_ms: run.duration_ms,
        ran_at: api.zone().show(run.created_at),
    });
    Ok(Data(GuardianStats { today, dimensions: dimensions.collect(), job_runs: job_runs.collect() }))
}

#[derive(Serialize, ToSchema)]
pub struct GuardianEvent {
    id: i64,
    dimension: String,
    /// The instance or server; `all` for a run that found nothing.
    target_id: String,
    status: EventStatus,
    problem: String,
    action_taken: String,
    /// JSON.
    #[schema(example = "{\"repaired\":false}")]
    extra: String,
    created_at: String,
}

fn item(api: &Api, event: Event) -> GuardianEvent {
    GuardianEvent {
        id: event.id,
        dimension: event.dimension,
        target_id: event.target_id,
        status: event.status.into(),
        problem: event.problem,
        action_taken: event.action_taken,
        extra: event.extra,
        created_at: api.zone().show(event.created_at),
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct EventQuery {
    dimension: Option<String>,
    status: Option<EventStatus>,
    target_id: Option<String>,
    /// Text in target, problem or action.
    q: Option<String>,
    /// created_at, dimension, target_id or status; a `-` in front turns it around.
    sort: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct GuardianEvents {
    total: i64,
    page: i64,
    page_size: i64,
    list: Vec<GuardianEvent>,
}

/// The guardian's events, newest first. Kept for 30 days.
///
/// A run without findings is one success event; each finding is a failed one.
#[utoipa::path(get, path = "/guardian/events", tag = "guardian", params(EventQuery, Paging), responses((status = 200, body = GuardianEvents)))]
async fn events(_: Admin, api: State, Query(query): Query<EventQuery>, paging: Paging) -> Answer<GuardianEvents> {
    let newest = Sort { column: "created_at", descending: true };
    let sort = Sort::asked(query.sort.as_deref(), guardian::SORTABLE, newest)?;
    let page = paging.page(20)?;
    let filter = guardian::EventFilter {
        dimension: query.dimension.as_deref(),
        status: query.status.map(Into::into),
        target_id: query.target_id.as_deref(),
        q: query.q.as_deref(),
    };
    let found = guardian::events(&api.app, filter, sort, page).await?;
    let list = found.list.into_iter().map(|event| item(&api, event)).collect();
    Ok(Data(GuardianEvents { total: found.total, page: page.number(), page_size: page.limit, list }))
}
