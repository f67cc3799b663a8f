//! Move an assistant back to where it was before it was moved into a cell. Its cell is taken off the server: what was said there is
//! kept with its home for seven days.

use base::{Error, Kind, NonEmpty, Result};
use queue::audit::{self, Action, AuditEvent};
use queue::task::Run;
use remote::host::runner::Runner;
use remote::host::systemd;
use store::instance::{self, Instance};
use store::moved_from::{self, MoveState, MovedFrom};
use store::server;

use crate::App;
use crate::assistant::pending::{self, Pending};
use crate::assistant::{Assistant, service, unit, unix_user};
use crate::cell_move::require_same_holder;
use crate::reconcile::operation::{self, There, UnitOwner};
use crate::reconcile::step::Work;
use crate::task::{Context, MoveBack};

impl Run<App> for MoveBack {
    async fn run(self, context: Context) -> Result<String> {
        let app = &context.app;
        let moved = moved_from::find(&app.db, &self.instance_id).await?;
        let moved = moved.filter(|moved| moved.state != MoveState::Ended);
        let moved = moved.ok_or_else(|| Error::conflict("it was not moved into a cell"))?;
        let instance = instance::find(&app.db, &self.instance_id).await?.ok_or(Kind::NotFound)?;
        require_same_holder(&instance, &moved)?;
        go_back(&context, &moved).await?;
        let detail = format!("moved back to {}", moved.home);
        let event = AuditEvent::info(Action::InstanceUpdate, self.instance_id.as_str(), &detail);
        audit::record_alone(app, &context.by(), event).await?;
        Ok(detail)
    }
}

/// Takes its cell off the server, and starts it where it was. Each step is safe to repeat, and how far it came is recorded.
pub(super) async fn go_back(context: &Context, moved: &MovedFrom) -> Result<()> {
    let (app, id) = (&context.app, &moved.instance_id);
    if moved.state == MoveState::Moved {
        leave_cell(context, moved).await?;
    }
    let old = Assistant::open(app, id).await?;
    match &old.place.runner {
        Runner::Unit(unit) => {
            if moved.is_enabled {
                systemd::enable(&old.host, unit).await?;
            }
            service::start(context, &old).await?;
        }
        Runner::Process { .. } | Runner::Container { .. } => {
            pending::set(app, &old, Pending::Nothing).await?;
            if !old.service().await?.is_running() {
                context.log("nothing starts it where it was: start it by hand, as it was started before").await?;
            }
        }
    }
    Ok(moved_from::set_state(&app.db, id, MoveState::Ended).await?)
}

/// Takes its cell off the server, and makes the record say that it is where it was.
async fn leave_cell(context: &Context, moved: &MovedFrom) -> Result<()> {
    let (app, id) = (&context.app, &moved.instance_id);
    let cell = Assistant::open(app, id).await?;
    let state = cell.service().await?;
    let is_ours = unit::read(&cell).await?.is_some_and(|text| unit::is_ours(&text));
    let unit = match (state.is_loaded, is_ours) {
        (true, true) => UnitOwner::Platform,
        (true, false) => UnitOwner::Stranger,
        (false, _) => UnitOwner::Nobody,
    };
    // A home in its place that the platform did not make is somebody else's.
    let made = unix_user::old(app, &cell).await?;
    let has_home = cell.place.owner.as_ref().is_some_and(|owner| made.iter().any(|user| user.name == *owner));
    let there = There { unit, has_home, is_unit_of_owner: true };
    let archive = format!("back-{}-{}", context.task.id, context.task.attempts);
    let mut work = Work { progress: context, assistant: cell, desired: None, archive };
    work.take_all(&operation::retire_service(there)).await?;
    work.take_all(&operation::retire_home(there)).await?;

    let mut tx = app.db.begin().await?;
    server::lock(&mut tx, &work.assistant.instance.server_id).await?.ok_or(Kind::NotFound)?;
    let now = instance::lock(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    let record = Instance {
        home: NonEmpty::new(moved.home.clone()),
        unit: moved.unit.clone(),
        runner: moved.runner,
        isolation: moved.isolation,
        own_llm: moved.own_llm,
        ..now
    };
    instance::set_place(&mut tx, &record).await?;
    instance::set_adopted(&mut tx, id, &moved.version, &moved.config_hash, moved.own_llm, &moved.runs_as).await?;
    store::cell::forget(&mut tx, id).await?;
    store::reconcile::set_pending(&mut tx, id, Pending::Start).await?;
    moved_from::set_state(&mut tx, id, MoveState::Back).await?;
    Ok(tx.commit().await?)
}
