//! Moves adopted assistants into cells of their own, and back. The tasks `move_into_cell` and `move_back` do it.

use base::id::{InstanceId, TaskId};
use base::{Error, Kind, Result};
use openclaw::unit::Name;
use queue::audit::{self, Action, AuditEvent, By};
use queue::task;
use store::instance::{self, Instance, Runner};
use store::moved_from::{self, MoveState, MovedFrom};

use crate::App;
use crate::task::{MoveBack, MoveIntoCell};

/// Enqueues the move of an adopted assistant into a cell. `keeps_llm` says whether it keeps its own model provider; as it
/// is if `None`.
pub async fn into_cell(app: &App, by: &By, id: &InstanceId, keeps_llm: Option<bool>) -> Result<TaskId> {
    let instance = instance::find(&app.db, id).await?.ok_or(Kind::NotFound)?;
    if moved_from::find(&app.db, id).await?.is_some_and(|moved| moved.state != MoveState::Ended) {
        return Err(Error::conflict("it was moved into a cell already"));
    }
    require_movable(&instance)?;
    let payload = MoveIntoCell { instance_id: id.clone(), keeps_llm };
    enqueue(app, by, id, payload, "asked to be moved into a cell").await
}

/// Enqueues the way back.
pub async fn back(app: &App, by: &By, id: &InstanceId) -> Result<TaskId> {
    let instance = instance::find(&app.db, id).await?.ok_or(Kind::NotFound)?;
    let moved = moved_from::find(&app.db, id).await?.filter(|moved| moved.state != MoveState::Ended);
    let moved = moved.ok_or_else(|| Error::conflict("it was not moved into a cell"))?;
    require_same_holder(&instance, &moved)?;
    enqueue(app, by, id, MoveBack { instance_id: id.clone() }, "asked to be moved back to where it was").await
}

async fn enqueue(app: &App, by: &By, id: &InstanceId, payload: impl task::Payload, detail: &str) -> Result<TaskId> {
    let mut tx = app.db.begin().await?;
    instance::lock(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    let task = task::enqueue(app, &mut tx, &payload, &by.operator, None).await?;
    audit::record(app, &mut tx, by, AuditEvent::warn(Action::InstanceUpdate, id.as_str(), detail)).await?;
    tx.commit().await?;
    Ok(task)
}

/// Refuses an instance whose files are not in a home of the server, or that the platform made itself.
pub(crate) fn require_movable(instance: &Instance) -> Result<()> {
    let is_movable = matches!(instance.runner, Runner::Unit | Runner::UserUnit | Runner::Process);
    if instance.runner == Runner::Container {
        return Err(Error::conflict("it runs in a container: its image is somebody else's"));
    }
    if !is_movable || !instance.is_on_server() {
        return Err(Error::conflict("nothing of it is on its server"));
    }
    if instance.unit.as_deref().is_some_and(|unit| is_name_of_cell(instance, unit)) {
        return Err(Error::conflict("its unit has the name that its cell's unit would get: rename it first"));
    }
    if instance.is_main {
        return Err(Error::conflict("the main instance lives in the login user's home, and stays there"));
    }
    if instance.runner == Runner::Unit && instance.unit.is_none() {
        return Err(Error::conflict("the platform made it: it has a cell, or gets one where it is"));
    }
    Ok(())
}

fn is_name_of_cell(instance: &Instance, unit: &str) -> bool {
    let service = |name: Name| name.service();
    let own = Name::of_instance(&instance.id).map(service);
    instance.runner == Runner::Unit && own.is_ok_and(|own| Name::parse(unit).map(service).is_ok_and(|unit| unit == own))
}

/// What is where it was is of whoever had it then: nobody else gets that.
pub(crate) fn require_same_holder(instance: &Instance, moved: &MovedFrom) -> Result<()> {
    match instance.pooled || instance.assigned_user_id != moved.user_id {
        true => Err(Error::conflict("somebody else has it since: what is where it was is not theirs")),
        false => Ok(()),
    }
}
