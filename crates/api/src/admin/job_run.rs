//! The scheduler's jobs and their runs.

use base::{Listing, Sort};
use fleet::App;
use fleet::registry::JOBS;
use queue::job::{self, JobRun, State as JobState};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::extract::{Admin, Answer, Body, Paging, Path, Query, State};
use crate::state::{Api, Shared};
use crate::words::RunStatus;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default().routes(routes!(list)).routes(routes!(run)).routes(routes!(jobs)).routes(routes!(pause))
}

#[derive(Serialize, ToSchema)]
pub struct JobRunItem {
    id: i64,
    #[schema(example = "health_check")]
    job_name: String,
    status: RunStatus,
    duration_ms: i64,
    message: String,
    created_at: String,
}

fn item(api: &Api, run: JobRun) -> JobRunItem {
    JobRunItem {
        id: run.id,
        job_name: run.job_name,
        status: run.status.into(),
        duration_ms: run.duration_ms,
        message: run.message,
        created_at: api.zone().show(run.created_at),
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct JobRunQuery {
    job_name: Option<String>,
    status: Option<RunStatus>,
    /// Text in the job's name or the message.
    q: Option<String>,
    /// created_at, job_name, status or duration_ms; a `-` in front turns it around.
    sort: Option<String>,
}

/// Runs of the scheduler's jobs, newest first.
///
/// `skipped`: the slot came while the run before it was still going on. Kept for 30 days, those of queueWorker for 7.
#[utoipa::path(get, path = "/job-runs", tag = "job-runs", params(JobRunQuery, Paging), responses((status = 200, body = Listing<JobRunItem>)))]
async fn list(_: Admin, api: State, Query(query): Query<JobRunQuery>, paging: Paging) -> Answer<Listing<JobRunItem>> {
    let newest = Sort { column: "created_at", descending: true };
    let sort = Sort::asked(query.sort.as_deref(), store::job_run::SORTABLE, newest)?;
    let filter = job::JobRunFilter {
        job_name: query.job_name.as_deref(),
        status: query.status.map(Into::into),
        q: query.q.as_deref(),
    };
    let found = job::runs(&api.app, filter, sort, paging.page(20)?).await?;
    Ok(Data(found.map(|run| item(&api, run))))
}

/// Runs a job now (beyond the spec), also one that is paused. Answers the run that has begun.
///
/// It is the same run as one by the clock. While another run of the job goes on it is refused (409).
#[utoipa::path(post, path = "/job-runs/{job}/run", tag = "job-runs", params(("job" = String, Path)), responses((status = 200, body = JobRunItem)))]
async fn run(who: Admin, api: State, Path(name): Path<String>) -> Answer<JobRunItem> {
    let begun = job::run_now(&api.app, &JOBS, &who.by, &name).await?;
    Ok(Data(item(&api, begun)))
}

#[derive(Serialize, ToSchema)]
pub struct JobItem {
    #[schema(example = "health_check")]
    name: String,
    #[schema(example = "Health check")]
    label: String,
    #[schema(example = "every 5 min")]
    schedule: String,
    paused: bool,
    last_run: Option<JobRunItem>,
}

fn job_item(api: &Api, state: JobState<App>) -> JobItem {
    JobItem {
        name: state.job.name.to_owned(),
        label: state.job.label.to_owned(),
        schedule: state.job.when.describe(),
        paused: state.paused,
        last_run: state.last.map(|run| item(api, run)),
    }
}

/// All jobs, with their last runs (beyond the spec).
#[utoipa::path(get, path = "/jobs", tag = "job-runs", responses((status = 200, body = Listing<JobItem>)))]
async fn jobs(_: Admin, api: State) -> Answer<Listing<JobItem>> {
    let list: Vec<JobItem> =
        job::states(&api.app, &JOBS).await?.into_iter().map(|state| job_item(&api, state)).collect();
    let total = list.len() as i64;
    Ok(Data(Listing { list, total }))
}

#[derive(Deserialize, ToSchema)]
pub struct JobPatch {
    paused: bool,
}

/// Pauses a job, or switches it on (beyond the spec).
#[utoipa::path(patch, path = "/jobs/{job}", tag = "job-runs", params(("job" = String, Path)), request_body = JobPatch, responses((status = 200, body = JobItem)))]
async fn pause(who: Admin, api: State, Path(name): Path<String>, Body(body): Body<JobPatch>) -> Answer<JobItem> {
    let state = job::set_paused(&api.app, &JOBS, &who.by, &name, body.paused).await?;
    Ok(Data(job_item(&api, state)))
}
