//! Move an adopted assistant into a cell: it is stopped, its state is copied into a home that the platform makes, and it starts there as
//! a Unix user of its own. What was adopted stays as it was, stopped. A move that fails, or that a worker did not finish, goes back to it,
//! once: it is not tried again, since every try interrupts people.

use base::{Error, Kind, NonEmpty, Result};
use openclaw::{Document, Layout, Version};
use queue::audit::{self, Action, AuditEvent, Level};
use queue::task::Run;
use remote::host::home::archive::Archive;
use remote::host::runner::Runner;
use remote::host::{ports, systemd};
use store::instance::{self, Instance, Isolation, Runner as RunBy};
use store::moved_from::{self, MoveState, MovedFrom};
use store::server;

use super::move_back::go_back;
use crate::App;
use crate::assistant::archive::DAYS;
use crate::assistant::desired::Desired;
use crate::assistant::{Assistant, config, health, install, isolation, place, service, trial};
use crate::cell_move::require_movable;
use crate::reconcile::operation;
use crate::reconcile::step::{Step, Work};
use crate::task::{Context, MoveIntoCell};

impl Run<App> for MoveIntoCell {
    async fn run(self, context: Context) -> Result<String> {
        let app = &context.app;
        let id = &self.instance_id;
        match moved_from::find(&app.db, id).await? {
            Some(moved) if moved.task_id == context.task.id && moved.state == MoveState::Ended => {
                return Err(Error::conflict("this move failed and was taken back; see the first attempt"));
            }
            Some(moved) if moved.task_id == context.task.id => {
                context.log("an attempt was broken off: back to where it was").await?;
                go_back(&context, &moved).await?;
                return Err(Error::conflict("the move was broken off and taken back"));
            }
            Some(moved) if moved.state != MoveState::Ended => {
                return Err(Error::conflict("it was moved into a cell already"));
            }
            _ => {}
        }
        let old = Assistant::open(app, id).await?;
        require_movable(&old.instance)?;
        let version = install::of_instance(app, &old).await?;
        let said = install::ensure(app, &old.server, &old.host, &version).await?;
        context.log(&said.to_string()).await?;
        require_whole(&old).await?;
        let home = place::free_home(app, &old.host, &old.instance.server_id).await?;

        let moved = begin(&context, &old, &version).await?;
        let done = async {
            stop(&context, &old).await?;
            let record = take_place(&context, &old, home, self.keeps_llm, &version).await?;
            settle(&context, &old, record, &version).await
        };
        match done.await {
            Ok(home) => {
                let detail = format!("moved from {} into a cell in {home}", old.place.home);
                record(&context, Level::Info, &old, &detail).await?;
                Ok(format!("runs OpenClaw {version} in a cell in {home}; what was in {} stays there", old.place.home))
            }
            Err(error) => {
                context.log(&format!("the move failed: {}", error.client)).await?;
                let moved = moved_from::find(&app.db, id).await?.unwrap_or(moved);
                go_back(&context, &moved).await?;
                let message = format!("the move into a cell failed and was taken back: {}", error.client);
                record(&context, Level::Error, &old, &message).await?;
                Err(Error::new(error.kind, message).with_operator(error.operator.unwrap_or_default()))
            }
        }
    }
}

/// Only the state folder is copied. A configuration that names other files of the home would lose them.
async fn require_whole(old: &Assistant) -> Result<()> {
    let found = config::read(old).await?.ok_or_else(|| Error::conflict("the configuration is gone"))?;
    let Some(path) = found.document.outside_of_state(&old.place.home, &old.place.state_dir()) else { return Ok(()) };
    let message =
        format!("its setting {path} leads outside of .openclaw, which alone is moved: move that into it first");
    Err(Error::conflict(message))
}

/// Records where it is, before anything is done. From here on an attempt that is broken off is taken back.
async fn begin(context: &Context, old: &Assistant, version: &Version) -> Result<MovedFrom> {
    let (app, before) = (&context.app, &old.instance);
    let is_enabled = service::state(old).await?.is_enabled;
    let moved = MovedFrom {
        instance_id: before.id.clone(),
        task_id: context.task.id.clone(),
        state: MoveState::Stopping,
        user_id: before.assigned_user_id.clone(),
        runner: before.runner,
        home: old.place.home.clone(),
        unit: before.unit.clone(),
        is_enabled,
        isolation: before.isolation,
        runs_as: before.runs_as.clone(),
        version: version.to_string(),
        config_hash: before.config_hash.clone(),
        own_llm: before.own_llm,
        moved_at: app.clock.now(),
    };
    let mut tx = app.db.begin().await?;
    let now = instance::lock(&mut tx, &before.id).await?.ok_or(Kind::NotFound)?;
    if now.home != before.home || now.unit != before.unit || now.runner != before.runner {
        return Err(Error::conflict("the instance was changed meanwhile"));
    }
    moved_from::begin(&mut tx, &moved).await?;
    tx.commit().await?;
    Ok(moved)
}

/// Stops what was adopted, so that it does not start with the server either.
async fn stop(context: &Context, old: &Assistant) -> Result<()> {
    match &old.place.runner {
        Runner::Unit(unit) => {
            service::stop(context, old).await?;
            systemd::disable(&old.host, unit).await?;
            Ok(())
        }
        Runner::Process { port, user, state_dir } => {
            let ended = ports::end_gateway(&old.host, *port, user, state_dir).await?;
            context.log(&format!("ended {ended} processes of its gateway, which nothing starts")).await?;
            match ports::look(&old.host, *port).await?.owners.first() {
                None => Ok(()),
                Some(other) => {
                    let message = format!("port {port} is held by what is not known to be its gateway");
                    Err(Error::conflict(message).with_operator(other.describe()))
                }
            }
        }
        Runner::Container { .. } => Err(Error::conflict("it runs in a container: its image is somebody else's")),
    }
}

/// Gives the record its home in the cell.
async fn take_place(
    context: &Context,
    old: &Assistant,
    home: String,
    keeps_llm: Option<bool>,
    version: &Version,
) -> Result<Instance> {
    let (app, before) = (&context.app, &old.instance);
    let mut tx = app.db.begin().await?;
    // Homes are given out under the server's lock, like ports.
    server::lock(&mut tx, &before.server_id).await?.ok_or(Kind::NotFound)?;
    place::require_free(&mut tx, &before.server_id, &home).await?;
    let now = instance::lock(&mut tx, &before.id).await?.ok_or(Kind::NotFound)?;
    let record = Instance {
        home: NonEmpty::new(home),
        unit: None,
        runner: RunBy::Unit,
        isolation: Isolation::Unknown,
        own_llm: keeps_llm.unwrap_or(before.own_llm),
        ..now
    };
    instance::set_place(&mut tx, &record).await?;
    instance::set_adopted(&mut tx, &record.id, &version.to_string(), "", record.own_llm, "").await?;
    moved_from::set_state(&mut tx, &record.id, MoveState::Moved).await?;
    tx.commit().await?;
    Ok(instance::find(&app.db, &before.id).await?.ok_or(Kind::NotFound)?)
}

/// Makes its new place, brings its state there, and starts it. Answers where that is.
async fn settle(context: &Context, old: &Assistant, record: Instance, version: &Version) -> Result<String> {
    let app = &context.app;
    let assistant = Assistant::of(app, record).await?;
    let assistant = assistant.ok_or_else(|| Error::internal("an instance without a home"))?;
    if assistant.place.owner.is_some() {
        return Err(Error::conflict("somebody made a home in its place meanwhile"));
    }
    let mut work = Work { progress: context, assistant, desired: None, archive: context.task.id.to_string() };
    work.take(Step::MakeUser).await?;
    let place = &work.assistant.place;
    let owner = place.owner.clone().unwrap_or_default();
    let login = work.assistant.host.user().to_owned();
    let seen = isolation::Seen { login, home_owner: Some(owner.clone()), unit_user: Some(owner.clone()) };
    if isolation::record(app, &work.assistant.instance, &seen).await? != Isolation::Own {
        return Err(Error::conflict("its new home is not its own alone"));
    }
    let copy = Archive::of(&work.assistant.host, &place.home, DAYS);
    copy.bring_state(&format!("move-{}", context.task.id), &old.place.home).await?;
    context.log(&format!("its state was copied from {} to {}, for user {owner}", old.place.home, place.home)).await?;
    follow_state(context, &work.assistant, version, &old.place.home).await?;
    work.desired = Some(Desired::of(app, &work.assistant, version).await?);
    work.take_all(&operation::provision()).await?;
    // Its old unit may have had a key in its environment.
    health::chat(&work.assistant, version, trial::CHAT).await?;
    context.log("it answered a chat").await?;
    work.confirm().await?;
    Ok(work.assistant.place.home.clone())
}

/// Its configuration may name files of its state folder, which were copied with it.
async fn follow_state(context: &Context, assistant: &Assistant, version: &Version, old: &str) -> Result<()> {
    let (from, to) = (Layout::of(old).state_dir(), assistant.place.state_dir());
    let edit = |document: &mut Document| document.relocate(&from, &to);
    config::change(context, assistant, version, &edit).await.map(drop)
}

async fn record(context: &Context, level: Level, old: &Assistant, detail: &str) -> Result<()> {
    let by = context.by();
    let event = AuditEvent { action: Action::InstanceUpdate, level, target: &old.instance.id, detail };
    audit::record_alone(&context.app, &by, event).await
}
