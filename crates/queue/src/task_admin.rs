//! Administrators' actions on tasks: create one by its type, list, retry and cancel.

use base::id::TaskId;
use base::{Error, Kind, Listing, Page, Result, Sort};
use serde_json::Value;
use store::notice::{Notice, Topic};
pub use store::task::TaskFilter;
use store::task::{self, Count, Task};
use store::task_log::{self, Line};
use store::{Tx, instance};

use crate::audit::{self, Action, AuditEvent, By};
use crate::task::{Asked, Checked, TaskType, insert, subject};
use crate::{App, alert};

/// Creates a task of the type that an administrator names.
pub async fn create<A>(
    app: &App,
    types: &[TaskType<A>],
    by: &By,
    name: &str,
    payload: Value,
    source: Option<&str>,
) -> Result<Task> {
    let found = types.iter().find(|t| t.is_named(name));
    let TaskType { name, check, .. } = found.ok_or_else(|| {
        let known: Vec<&str> = types.iter().map(|t| t.name).collect();
        Error::field("type", format_args!("unknown; known types: {}", known.join(", ")))
    })?;
    if !payload.is_object() {
        return Err(Error::field("payload", "must be an object"));
    }
    if payload.to_string().contains("\\u0000") {
        return Err(Error::field("payload", "must not contain a NUL character"));
    }
    let mut tx = app.db.begin().await?;
    let Checked { new, permission } = check(payload, &mut tx).await?;
    by.require(permission)?;
    if let Some(id) = &new.instance
        && instance::find(&mut tx, id).await?.is_none()
    {
        return Err(Error::field("payload.instance_id", "there is no such instance"));
    }
    let asked = Asked { source: source.unwrap_or(&by.operator), operator: &by.operator, on_behalf_of: None };
    let id = insert(app, &mut tx, new, asked).await?;
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

pub async fn list(app: &App, filter: TaskFilter<'_>, sort: Sort, page: Page) -> Result<(Listing<Task>, Vec<Count>)> {
    Ok((task::list(&app.db, filter, sort, page).await?, task::counts(&app.db).await?))
}

pub async fn show(app: &App, id: &TaskId) -> Result<Task> {
    Ok(task::find(&app.db, id).await?.ok_or(Kind::NotFound)?)
}

pub async fn log_of(app: &App, id: &TaskId) -> Result<Vec<Line>> {
    Ok(task_log::lines(&app.db, id).await?)
}

/// Requires the permission that the task itself needs. If its type or payload is no longer known, the permission to
/// manage tasks is enough.
fn require_permission<A>(types: &[TaskType<A>], by: &By, task: &Task) -> Result<()> {
    let payload = serde_json::from_str(&task.payload).unwrap_or_default();
    let found = types.iter().find(|t| t.is_named(&task.r#type)).and_then(|t| (t.permission_of)(payload).ok());
    found.map_or(Ok(()), |permission| by.require(permission))
}

/// Failed or dead → pending. The count of attempts starts again at 0.
pub async fn retry<A>(app: &App, types: &[TaskType<A>], by: &By, id: &TaskId) -> Result<Task> {
    let now = app.clock.now();
    let mut tx = app.db.begin().await?;
    let old = task::lock(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    require_permission(types, by, &old)?;
    match task::retry(&mut tx, id, now).await {
        Ok(true) => {}
        Ok(false) => {
            return Err(Error::conflict(format!("a task that is {} cannot be retried", old.status.as_str())));
        }
        Err(store::Error::Taken) => return Err(Error::conflict("another task that does the same waits already")),
        Err(other) => return Err(other.into()),
    }
    resolve(app, &mut tx, id).await?;
    let line = format!("retried; last error: {}", old.client_message);
    task_log::write(&mut tx, id, old.attempts, &line, now).await?;
    let event = format!("task {} retried", old.r#type);
    audit::record(app, &mut tx, by, AuditEvent::info(Action::ConfigChange, id.as_str(), &event)).await?;
    tx.notify(Notice::new(Topic::Task, id.as_str())).await?;
    tx.commit().await?;
    show(app, id).await
}

/// Pending or failed → dead.
pub async fn cancel<A>(app: &App, types: &[TaskType<A>], by: &By, id: &TaskId) -> Result<Task> {
    let mut tx = app.db.begin().await?;
    let old = task::lock(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    require_permission(types, by, &old)?;
    if !cancel_with(app, &mut tx, id, &format!("cancelled by {}", by.operator)).await? {
        let message = format!("a task that is {} cannot be cancelled", old.status.as_str());
        return Err(Error::conflict(message));
    }
    let event = format!("task {} cancelled", old.r#type);
    audit::record(app, &mut tx, by, AuditEvent::warn(Action::ConfigChange, id.as_str(), &event)).await?;
    tx.commit().await?;
    show(app, id).await
}

/// Cancels a task in the transaction of the change that made it unnecessary. Returns false if the task does not wait
/// any more.
pub async fn cancel_with(app: &App, tx: &mut Tx, id: &TaskId, why: &str) -> Result<bool> {
    let cancelled = task::cancel(tx, id, why, app.clock.now()).await?;
    if cancelled {
        resolve(app, tx, id).await?;
        tx.notify(Notice::new(Topic::Task, id.as_str())).await?;
    }
    Ok(cancelled)
}

/// Resolves the alert about a dead task: an administrator has dealt with it, or it is not needed any more.
async fn resolve(app: &App, tx: &mut Tx, id: &TaskId) -> Result<()> {
    alert::resolve(app, tx, alert::Rule::TaskDead, &subject(id.as_str())).await.map(drop)
}
