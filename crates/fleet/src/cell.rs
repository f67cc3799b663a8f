//! Cells as administrators manage them: how instances are confined, their limits and openings. Also records what sweeps
//! find out about cells.

use base::cell::{Effective, Limits, Openings};
use base::id::{InstanceId, TaskId};
use base::{Error, Kind, Result};
use jiff::SignedDuration;
use queue::alert::{self, Rule};
use queue::audit::{self, Action, AuditEvent, By, Changes};
use queue::task;
pub use store::cell::Subject;
use store::cell::{self, State};
use store::instance::{self, Instance, Runner};
use store::{Tx, profession, server};

use crate::App;
use crate::assistant::cell as on_server;
use crate::sweep::{Looked, Member, Post};
use crate::task::ConfineInstance;

/// How many instances one request may confine.
pub const MOST_AT_ONCE: usize = 200;

/// What is known of an instance's cell.
pub struct Shown {
    pub cell: cell::Cell,
    /// The limits that are set for the instance itself.
    pub own: Limits,
    /// The limits in effect.
    pub limits: Effective,
}

pub async fn show(app: &App, id: &InstanceId) -> Result<Shown> {
    let instance = instance::find(&app.db, id).await?.ok_or(Kind::NotFound)?;
    let own = cell::limits(&app.db, Subject::Instance(id)).await?;
    let limits = on_server::limits(&app.db, &instance).await?.effective();
    Ok(Shown { cell: cell::find(&app.db, id).await?, own, limits })
}

/// Enqueues a task that puts an instance into its cell or takes it out.
pub async fn confine(app: &App, by: &By, id: &InstanceId, confined: bool) -> Result<TaskId> {
    let mut tx = app.db.begin().await?;
    let task = enqueue(app, &mut tx, by, id, Some(confined)).await?;
    tx.commit().await?;
    Ok(task)
}

/// Confines many instances: all of them, or none if one of them cannot be confined.
pub async fn confine_all(app: &App, by: &By, ids: &[InstanceId]) -> Result<Vec<TaskId>> {
    if ids.is_empty() || ids.len() > MOST_AT_ONCE {
        return Err(Error::field("instance_ids", format_args!("must name 1 to {MOST_AT_ONCE} instances")));
    }
    let mut tx = app.db.begin().await?;
    // Lock in the order of ids, as all code that locks several instances does, to avoid deadlocks.
    let mut ids: Vec<&InstanceId> = ids.iter().collect();
    ids.sort_by_key(|id| id.as_str());
    let mut tasks = vec![];
    for id in ids {
        tasks.push(enqueue(app, &mut tx, by, id, Some(true)).await?);
    }
    tx.commit().await?;
    Ok(tasks)
}

async fn enqueue(app: &App, tx: &mut Tx, by: &By, id: &InstanceId, confined: Option<bool>) -> Result<TaskId> {
    let instance = instance::lock(tx, id).await?.ok_or(Kind::NotFound)?;
    require_unit(tx, &instance).await?;
    let payload = ConfineInstance { instance_id: instance.id.clone(), confined };
    let task = task::enqueue(app, tx, &payload, &by.operator, None).await?;
    let (detail, is_less_safe) = match confined {
        Some(true) => ("asked to run in its cell", false),
        Some(false) => ("asked to run outside of its cell", true),
        None => ("asked to take over the limits of its cell", false),
    };
    let event = match is_less_safe {
        true => AuditEvent::warn(Action::InstanceUpdate, &instance.id, detail),
        false => AuditEvent::info(Action::InstanceUpdate, &instance.id, detail),
    };
    audit::record(app, tx, by, event).await?;
    Ok(task)
}

/// Refuses an instance that has no unit of ours.
async fn require_unit(tx: &mut Tx, instance: &Instance) -> Result<()> {
    if !instance.is_on_server() || instance.is_main || instance.runner != Runner::Unit {
        return Err(Error::conflict(format!("{} has no unit of ours on its server: it has no cell", instance.id)));
    }
    match cell::find(&mut *tx, &instance.id).await?.state {
        State::Foreign => Err(Error::conflict(format!("the unit of {} is not ours: it has no cell", instance.id))),
        State::Unknown | State::Unconfined | State::Confined | State::Altered => Ok(()),
    }
}

/// Sets what a cell leaves open. The caller is a super administrator, because most openings let an instance become root
/// on its server.
pub async fn open(app: &App, by: &By, id: &InstanceId, openings: Openings) -> Result<Option<TaskId>> {
    let mut tx = app.db.begin().await?;
    let instance = instance::lock(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    let cell = cell::find(&mut tx, id).await?;
    let before = cell.openings();
    // A task changes the unit. If that task failed, a request with the same openings tries it again.
    let is_in_a_cell = matches!(cell.state, State::Confined | State::Altered);
    let is_written = !is_in_a_cell || cell.openings_written() == openings;
    if before == openings && is_written {
        return Ok(None);
    }
    if openings.is_root() && instance.pooled {
        return Err(Error::conflict("a pool holds it: take it out of the pool before its cell is opened"));
    }
    if before != openings {
        cell::set_openings(&mut tx, id, &openings).await?;
        let detail = Changes::default().field("openings", &named(&before), &named(&openings)).text();
        let event = match openings.is_root() {
            true => AuditEvent::warn(Action::InstanceUpdate, &instance.id, &detail),
            false => AuditEvent::info(Action::InstanceUpdate, &instance.id, &detail),
        };
        audit::record(app, &mut tx, by, event).await?;
    }
    // Otherwise the instance would be offered until its next health check.
    if openings.is_root() && instance.isolation.is_offered() {
        instance::set_isolation(&mut tx, id, instance::Isolation::Opened, &instance.runs_as).await?;
    }
    let task = match cell.state {
        State::Confined | State::Altered => Some(enqueue(app, &mut tx, by, id, None).await?),
        State::Unknown | State::Foreign | State::Unconfined => None,
    };
    tx.commit().await?;
    Ok(task)
}

fn named(openings: &Openings) -> String {
    let text = openings.to_string();
    if text.is_empty() { "none".to_owned() } else { text }
}

/// The limits that are set for the subject itself.
pub async fn limits(app: &App, subject: Subject<'_>) -> Result<Limits> {
    let mut tx = app.db.begin().await?;
    require(&mut tx, subject).await?;
    Ok(cell::limits(&mut tx, subject).await?)
}

/// Sets the limits of a subject. The confined instances that they apply to take them over without a restart.
pub async fn set_limits(app: &App, by: &By, subject: Subject<'_>, limits: Limits) -> Result<Limits> {
    if let Some((field, why)) = limits.refusal() {
        return Err(Error::field(field, why));
    }
    let mut tx = app.db.begin().await?;
    let (action, target) = require(&mut tx, subject).await?;
    let before = cell::limits(&mut tx, subject).await?;
    if before == limits {
        return Ok(limits);
    }
    cell::set_limits(&mut tx, subject, &limits).await?;
    let number = |value: Option<i64>| value.map_or_else(|| "not set".to_owned(), |value| value.to_string());
    let changes = Changes::default()
        .field("memory_mib", &number(before.memory_mib), &number(limits.memory_mib))
        .field("cpu_percent", &number(before.cpu_percent), &number(limits.cpu_percent))
        .field("tasks", &number(before.tasks), &number(limits.tasks))
        .field("disk_mib", &number(before.disk_mib), &number(limits.disk_mib));
    audit::record(app, &mut tx, by, AuditEvent::info(action, &target, &changes.text())).await?;
    for id in cell::confined_of(&mut tx, subject).await? {
        let payload = ConfineInstance { instance_id: id.clone(), confined: None };
        task::enqueue(app, &mut tx, &payload, &by.operator, None).await?;
    }
    tx.commit().await?;
    Ok(limits)
}

/// Checks that the subject exists; returns how the audit log names it.
async fn require(tx: &mut Tx, subject: Subject<'_>) -> Result<(Action, String)> {
    let found = match subject {
        Subject::Instance(id) => instance::find(&mut *tx, id).await?.map(|one| (Action::InstanceUpdate, one.id.into())),
        Subject::Server(id) => server::find(&mut *tx, id).await?.map(|one| (Action::ServerAction, one.id.into())),
        Subject::Profession(id) => profession::find(&mut *tx, id).await?.map(|one| (Action::ConfigChange, one.code)),
    };
    Ok(found.ok_or(Kind::NotFound)?)
}

/// Records what a sweep found out about a server's cells and the sizes of its homes.
pub async fn observe(app: &App, post: &Post, looked: &Looked) -> Result<()> {
    for (number, member) in post.instances.iter().enumerate().filter(|(_, member)| !member.busy) {
        let Some(answer) = looked.of(number).filter(|answer| answer.complete) else { continue };
        let known = member.cell.as_ref().map_or(State::Unknown, |cell| cell.state);
        if let Some(state) = on_server::seen_in(answer, member.cell.as_ref()).filter(|state| *state != known) {
            note_state(app, &member.instance, known, state).await?;
        }
        match answer.home_bytes.and_then(|bytes| i64::try_from(bytes).ok()) {
            Some(bytes) => note_disk(app, &member.instance, bytes).await?,
            None if answer.home_owner.is_some() => note_uncounted(app, member).await?,
            None => {}
        }
    }
    Ok(())
}

async fn note_state(app: &App, instance: &Instance, before: State, state: State) -> Result<()> {
    let mut tx = app.db.begin().await?;
    if instance::lock(&mut tx, &instance.id).await?.is_none() || store::task::is_busy(&mut tx, &instance.id).await? {
        return Ok(());
    }
    cell::set_state(&mut tx, &instance.id, state).await?;
    // The unit was changed by hand, by a user with root on the server.
    if before == State::Confined {
        let detail = match state {
            State::Altered => {
                "its unit is altered: it is not what was written, or files beside it change it".to_owned()
            }
            _ => format!("its cell is gone from its unit: {}", state.as_str()),
        };
        audit::record(app, &mut tx, &By::system(), AuditEvent::warn(Action::InstanceUpdate, &instance.id, &detail))
            .await?;
    }
    Ok(tx.commit().await?)
}

/// How long the size of a home may be unknown before an alert is raised. It is measured every half hour.
const UNCOUNTED: SignedDuration = SignedDuration::from_hours(2);

/// Raises an alert if a home could not be measured for too long. A home with so many files may be of any size.
async fn note_uncounted(app: &App, member: &Member) -> Result<()> {
    let instance = &member.instance;
    let last = member.cell.as_ref().and_then(|cell| cell.measured_at).unwrap_or(instance.created_at);
    if app.clock.now().duration_since(last) < UNCOUNTED {
        return Ok(());
    }
    let message = format!("what the home of {} takes of the disk could not be counted for two hours", instance.name);
    let mut tx = app.db.begin().await?;
    if instance::lock(&mut tx, &instance.id).await?.is_none() {
        return Ok(());
    }
    alert::raise(app, &mut tx, Rule::DiskOverLimit, &format!("instance:{}", instance.id), &message).await?;
    Ok(tx.commit().await?)
}

async fn note_disk(app: &App, instance: &Instance, bytes: i64) -> Result<()> {
    let most = on_server::limits(&app.db, instance).await?.effective().disk_mib;
    let used = bytes >> 20;
    let mut tx = app.db.begin().await?;
    if instance::lock(&mut tx, &instance.id).await?.is_none() {
        return Ok(());
    }
    cell::set_home_bytes(&mut tx, &instance.id, bytes, app.clock.now()).await?;
    let subject = format!("instance:{}", instance.id);
    match used > most {
        true => {
            let message = format!("the home of {} takes {used} MiB of disk; its limit is {most}", instance.name);
            alert::raise(app, &mut tx, Rule::DiskOverLimit, &subject, &message).await?;
        }
        false => {
            alert::resolve(app, &mut tx, Rule::DiskOverLimit, &subject).await?;
        }
    }
    Ok(tx.commit().await?)
}
