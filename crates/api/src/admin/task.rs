//! The task queue.

use base::id::TaskId;
use base::{Sort, Text};
use fleet::registry::TYPES;
use queue::task::{self, Status};
use queue::task_admin;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::extract::{Admin, Answer, Body, Paging, Path, Query, State};
use crate::state::{Api, Shared};
use crate::words::TaskStatus;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(queue))
        .routes(routes!(queue_retry))
        .routes(routes!(list, create))
        .routes(routes!(show))
        .routes(routes!(retry))
        .routes(routes!(cancel))
}

#[derive(Serialize, ToSchema)]
pub struct TaskItem {
    id: String,
    #[schema(example = "init_instance")]
    r#type: String,
    /// An object of ids.
    #[schema(value_type = Object)]
    payload: Value,
    status: TaskStatus,
    /// Attempts since it was made or last retried by hand; at 5 it is dead.
    attempts: i64,
    error: String,
    result: String,
    /// A label that whoever enqueued it chose; their e-mail, or what made it necessary, when they chose none.
    source: String,
    /// Who asked for it.
    operator: String,
    instance_id: Option<String>,
    /// When it is tried next; null when it is not waiting.
    next_attempt_at: Option<String>,
    created_at: String,
    updated_at: String,
}

fn item(api: &Api, task: task::Task) -> TaskItem {
    let waits = matches!(task.status, Status::Pending | Status::Failed);
    TaskItem {
        id: task.id.into(),
        r#type: task.r#type,
        payload: serde_json::from_str(&task.payload).unwrap_or_default(),
        status: task.status.into(),
        attempts: task.attempts,
        error: task.error,
        result: task.result,
        source: task.source,
        operator: task.operator,
        instance_id: task.instance_id.map(Into::into),
        next_attempt_at: waits.then(|| api.zone().show(task.next_attempt_at)),
        created_at: api.zone().show(task.created_at),
        updated_at: api.zone().show(task.updated_at),
    }
}

#[derive(Default, Serialize, ToSchema)]
pub struct Counts {
    pending: i64,
    processing: i64,
    done: i64,
    failed: i64,
    dead: i64,
}

#[derive(Serialize, ToSchema)]
pub struct Tasks {
    list: Vec<TaskItem>,
    total: i64,
    /// Over all tasks, whatever is asked for.
    counts: Counts,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct TaskQuery {
    status: Option<TaskStatus>,
    r#type: Option<String>,
    instance_id: Option<String>,
    /// Text in id, type, payload, error or source.
    q: Option<String>,
    /// created_at, updated_at, type, status, attempts or next_attempt_at; a `-` in front turns it around.
    sort: Option<String>,
}

async fn found(api: &Api, query: TaskQuery, paging: Paging) -> Answer<Tasks> {
    let newest = Sort { column: "created_at", descending: true };
    let sort = Sort::asked(query.sort.as_deref(), store::task::SORTABLE, newest)?;
    let filter = task_admin::TaskFilter {
        q: query.q.as_deref(),
        status: query.status.map(Into::into),
        types: query.r#type.as_deref(),
        instance_id: query.instance_id.as_deref(),
    };
    let (found, counted) = task_admin::list(&api.app, filter, sort, paging.page(20)?).await?;
    let mut counts = Counts::default();
    for count in counted {
        match count.status {
            Status::Pending => counts.pending = count.n,
            Status::Processing => counts.processing = count.n,
            Status::Done => counts.done = count.n,
            Status::Failed => counts.failed = count.n,
            Status::Dead => counts.dead = count.n,
        }
    }
    let list = found.list.into_iter().map(|t| item(api, t)).collect();
    Ok(Data(Tasks { list, total: found.total, counts }))
}

/// The queue, newest first.
#[utoipa::path(get, path = "/task-queue", tag = "task-queue", params(TaskQuery, Paging), responses((status = 200, body = Tasks)))]
async fn queue(_: Admin, api: State, Query(query): Query<TaskQuery>, paging: Paging) -> Answer<Tasks> {
    found(&api, query, paging).await
}

/// Another name of POST /tasks/{id}/retry.
#[utoipa::path(post, path = "/task-queue/{id}/retry", tag = "task-queue", params(("id" = String, Path)), responses((status = 200, body = TaskItem)))]
async fn queue_retry(who: Admin, api: State, Path(id): Path<TaskId>) -> Answer<TaskItem> {
    let task = task_admin::retry(&api.app, TYPES, &who.by, &id).await?;
    Ok(Data(item(&api, task)))
}

/// The queue; another name of GET /task-queue.
#[utoipa::path(get, path = "/tasks", tag = "tasks", params(TaskQuery, Paging), responses((status = 200, body = Tasks)))]
async fn list(_: Admin, api: State, Query(query): Query<TaskQuery>, paging: Paging) -> Answer<Tasks> {
    found(&api, query, paging).await
}

#[derive(Deserialize, ToSchema)]
pub struct NewTask {
    /// One of the known types; an unknown one is refused with the list of them.
    #[schema(value_type = String, max_length = 50, example = "sync_models_to_instance")]
    r#type: Text<50>,
    #[schema(value_type = Object, example = json!({"instance_id": "assistant-01"}))]
    payload: Value,
    /// A label; the own e-mail when omitted.
    source: Option<Text<100>>,
}

/// Enqueues a task by hand.
///
/// Besides `tasks.manage` it needs the permission of what it does: `prepare_server` that of servers, for example.
/// Payloads are objects: init_instance {instance_id, user_id}; bootstrap_profession_instance {entry_id,
/// instance_id, user_id}; apply_marketplace_item {install_id}; all others {instance_id}.
#[utoipa::path(post, path = "/tasks", tag = "tasks", request_body = NewTask, responses((status = 200, body = TaskItem)))]
async fn create(who: Admin, api: State, Body(body): Body<NewTask>) -> Answer<TaskItem> {
    let source = body.source.as_ref().map(Text::as_str);
    let made = task_admin::create(&api.app, TYPES, &who.by, body.r#type.as_str(), body.payload, source).await?;
    Ok(Data(item(&api, made)))
}

#[derive(Serialize, ToSchema)]
pub struct LogLine {
    attempt: i64,
    line: String,
    created_at: String,
}

#[derive(Serialize, ToSchema)]
pub struct TaskDetail {
    #[serde(flatten)]
    task: TaskItem,
    /// Its steps, oldest first.
    log: Vec<LogLine>,
}

/// One task with its steps.
#[utoipa::path(get, path = "/tasks/{id}", tag = "tasks", params(("id" = String, Path)), responses((status = 200, body = TaskDetail)))]
async fn show(_: Admin, api: State, Path(id): Path<TaskId>) -> Answer<TaskDetail> {
    let task = task_admin::show(&api.app, &id).await?;
    let lines = task_admin::log_of(&api.app, &id).await?;
    let line = |l: store::task_log::Line| LogLine {
        attempt: l.attempt,
        line: l.line,
        created_at: api.zone().show(l.created_at),
    };
    Ok(Data(TaskDetail { task: item(&api, task), log: lines.into_iter().map(line).collect() }))
}

/// Puts a failed or dead task back into the queue, with all its attempts before it.
///
/// Any other state is refused (409). The last error stays in the task's log.
#[utoipa::path(post, path = "/tasks/{id}/retry", tag = "tasks", params(("id" = String, Path)), responses((status = 200, body = TaskItem)))]
async fn retry(who: Admin, api: State, Path(id): Path<TaskId>) -> Answer<TaskItem> {
    let task = task_admin::retry(&api.app, TYPES, &who.by, &id).await?;
    Ok(Data(item(&api, task)))
}

/// Ends a task that waits (beyond the spec): pending or failed becomes dead.
///
/// Any other state is refused (409).
#[utoipa::path(post, path = "/tasks/{id}/cancel", tag = "tasks", params(("id" = String, Path)), responses((status = 200, body = TaskItem)))]
async fn cancel(who: Admin, api: State, Path(id): Path<TaskId>) -> Answer<TaskItem> {
    let task = task_admin::cancel(&api.app, TYPES, &who.by, &id).await?;
    Ok(Data(item(&api, task)))
}
