//! Putting tasks into the queue, looking at them, and the two moves that people make: retry and cancel.

use base::id::{TaskId, UserId};
use base::{Error, Kind, Listing, Page, Result, Sort};
use serde_json::Value;
use store::notice::{Notice, Topic};
pub use store::task::TaskFilter;
use store::task::{self, Count};
use store::task::{Status, Task};
use store::task_log::{self, Line};
use store::{Tx, instance};

use super::TYPES;
use super::kind::{self, Checked, Payload, Priority, TaskType};
use crate::App;
use crate::alert;
use crate::audit::{self, Action, AuditEvent, By};

/// Puts a task into the queue, in the transaction of what makes it necessary. Workers wake when it commits. Where a waiting task of
/// the same kind is enough, that one is answered; it does not begin before this transaction ends. Whoever enqueues for several
/// instances does so in the order of their ids: two transactions that wait for each other's tasks would otherwise never end.
pub async fn enqueue<P: Payload>(
    app: &App,
    tx: &mut Tx,
    payload: &P,
    source: &str,
    on_behalf_of: Option<&UserId>,
) -> Result<TaskId> {
    let wanted = kind::NewTask::of(payload, tx).await?;
    let asked = Asked { source, operator: source, on_behalf_of };
    insert(app, tx, wanted, asked).await
}

/// The same with another priority than its type's. A waiting task that is joined becomes as urgent.
pub async fn enqueue_at<P: Payload>(
    app: &App,
    tx: &mut Tx,
    priority: Priority,
    payload: &P,
    source: &str,
) -> Result<TaskId> {
    let task = kind::NewTask { priority, ..kind::NewTask::of(payload, tx).await? };
    insert(app, tx, task, Asked { source, operator: source, on_behalf_of: None }).await
}

/// A task that an administrator asks for by name.
pub async fn create(app: &App, by: &By, name: &str, payload: Value, source: Option<&str>) -> Result<Task> {
    let found = TYPES.iter().find(|t| t.is_named(name));
    let TaskType { name, check, .. } = found.ok_or_else(|| {
        let known: Vec<&str> = TYPES.iter().map(|t| t.name).collect();
        Error::field("type", format_args!("unknown; known types: {}", known.join(", ")))
    })?;
    if !payload.is_object() {
        return Err(Error::field("payload", "must be an object"));
    }
    if payload.to_string().contains("\\u0000") {
        return Err(Error::field("payload", "must not contain a NUL character"));
    }
    let mut tx = app.db.begin().await?;
    let Checked { wanted, permission } = check(payload, &mut tx).await?;
    by.require(permission)?;
    if let Some(id) = &wanted.instance
        && instance::find(&mut tx, id).await?.is_none()
    {
        return Err(Error::field("payload.instance_id", "there is no such instance"));
    }
    let asked = Asked { source: source.unwrap_or(&by.operator), operator: &by.operator, on_behalf_of: None };
    let id = insert(app, &mut tx, wanted, asked).await?;
    audit::record(
        app,
        &mut tx,
        by,
        AuditEvent::info(Action::ConfigChange, id.as_str(), &format!("task {name} created")),
    )
    .await?;
    tx.commit().await?;
    show(app, &id).await
}

/// Who wants a task.
struct Asked<'a> {
    /// A label.
    source: &'a str,
    /// As the audit log names them.
    operator: &'a str,
    on_behalf_of: Option<&'a UserId>,
}

/// A payload that is longer than this, which only POST /tasks can give, is no key of an index.
const LONGEST_KEY: usize = 300;
/// How often a waiting task may begin at the very moment at which it is looked for.
const MOST_LOOKS: usize = 10;

async fn insert(app: &App, tx: &mut Tx, wanted: kind::NewTask, asked: Asked<'_>) -> Result<TaskId> {
    let kind::NewTask { name, priority, coalesces, payload, instance, server } = wanted;
    let coalesce_key = (coalesces && payload.len() <= LONGEST_KEY).then(|| format!("{name} {payload}"));
    let id = TaskId::fresh();
    let now = app.clock.now();
    let record = Task {
        id: id.as_str().to_owned(),
        r#type: name.to_owned(),
        payload,
        status: Status::Pending,
        attempts: 0,
        failures: 0,
        error: String::new(),
        told: String::new(),
        result: String::new(),
        source: asked.source.to_owned(),
        operator: asked.operator.to_owned(),
        instance_id: instance.map(|i| i.as_str().to_owned()),
        server_id: server.map(|s| s.as_str().to_owned()),
        priority,
        coalesce_key,
        after_id: None,
        user_id: asked.on_behalf_of.map(|u| u.as_str().to_owned()),
        worker: None,
        lease_until: None,
        next_attempt_at: now,
        created_at: now,
        updated_at: now,
    };
    for _ in 0..MOST_LOOKS {
        if let Some(key) = &record.coalesce_key
            && let Some(waiting) = task::lock_waiting(tx, key).await?
        {
            let id = TaskId::named(waiting.id);
            if record.priority < waiting.priority {
                task::set_priority(tx, &id, record.priority).await?;
                tx.notify(Notice::new(Topic::Task, id.as_str())).await?;
            }
            return Ok(id);
        }
        if task::insert(tx, &record).await? {
            tx.notify(Notice::new(Topic::Task, id.as_str())).await?;
            return Ok(id);
        }
    }
    Err(Error::internal(format_args!("a task {name} could neither be made nor joined")))
}

pub async fn list(app: &App, filter: TaskFilter<'_>, sort: Sort, page: Page) -> Result<(Listing<Task>, Vec<Count>)> {
    Ok((task::list(&app.db, filter, sort, page).await?, task::counts(&app.db).await?))
}

pub async fn show(app: &App, id: &TaskId) -> Result<Task> {
    Ok(task::find(&app.db, id).await?.ok_or(Kind::NotFound)?)
}

pub async fn log_of(app: &App, id: &TaskId) -> Result<Vec<Line>> {
    Ok(task_log::lines(&app.db, id.as_str()).await?)
}

/// Whoever moves a task may do what it does. One whose type or payload nobody knows any more is anybody's who manages tasks.
fn require_permission(by: &By, task: &Task) -> Result<()> {
    let payload = serde_json::from_str(&task.payload).unwrap_or_default();
    let found = TYPES.iter().find(|t| t.is_named(&task.r#type)).and_then(|t| (t.permission)(payload).ok());
    found.map_or(Ok(()), |permission| by.require(permission))
}

/// Failed or dead → pending, with all its attempts before it again.
pub async fn retry(app: &App, by: &By, id: &TaskId) -> Result<Task> {
    let now = app.clock.now();
    let mut tx = app.db.begin().await?;
    let old = task::lock(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    require_permission(by, &old)?;
    match task::retry(&mut tx, id, now).await {
        Ok(true) => {}
        Ok(false) => {
            return Err(Error::conflict(format!("a task that is {} cannot be retried", old.status.as_str())));
        }
        Err(store::Error::Taken) => return Err(Error::conflict("another task that does the same waits already")),
        Err(other) => return Err(other.into()),
    }
    resolve(app, &mut tx, id).await?;
    let line = format!("retried; last error: {}", old.told);
    task_log::write(&mut tx, id.as_str(), old.attempts, &line, now).await?;
    let event = format!("task {} retried", old.r#type);
    audit::record(app, &mut tx, by, AuditEvent::info(Action::ConfigChange, id.as_str(), &event)).await?;
    tx.notify(Notice::new(Topic::Task, id.as_str())).await?;
    tx.commit().await?;
    show(app, id).await
}

/// Pending or failed → dead.
pub async fn cancel(app: &App, by: &By, id: &TaskId) -> Result<Task> {
    let mut tx = app.db.begin().await?;
    let old = task::lock(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    require_permission(by, &old)?;
    if !cancel_with(app, &mut tx, id, &format!("cancelled by {}", by.operator)).await? {
        let message = format!("a task that is {} cannot be cancelled", old.status.as_str());
        return Err(Error::conflict(message));
    }
    let event = format!("task {} cancelled", old.r#type);
    audit::record(app, &mut tx, by, AuditEvent::warn(Action::ConfigChange, id.as_str(), &event)).await?;
    tx.commit().await?;
    show(app, id).await
}

/// Cancels a task together with what made it unnecessary. False when it is not waiting any more.
pub async fn cancel_with(app: &App, tx: &mut Tx, id: &TaskId, why: &str) -> Result<bool> {
    let cancelled = task::cancel(tx, id, why, app.clock.now()).await?;
    if cancelled {
        resolve(app, tx, id).await?;
        tx.notify(Notice::new(Topic::Task, id.as_str())).await?;
    }
    Ok(cancelled)
}

/// Somebody looks after it: the alert that it was given up ends.
async fn resolve(app: &App, tx: &mut Tx, id: &TaskId) -> Result<()> {
    alert::resolve(app, tx, alert::Rule::TaskDead, &subject(id.as_str())).await.map(drop)
}

/// What an alert about a task is about.
pub(super) fn subject(id: &str) -> String {
    format!("task:{id}")
}
