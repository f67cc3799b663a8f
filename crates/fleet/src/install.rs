//! Marketplace items on instances. An employee requests an install or a removal, and a task carries it out. Both move
//! the record through one state machine.
//!
//! The record holds the desired state. The task reads it when it starts (`started`), changes the host accordingly and
//! reports the result (`finished`, `failed`). A second run of the task finds nothing to do.

use std::collections::BTreeSet;

use base::id::{InstallId, InstanceId, ItemId, TaskId, UserId};
use base::{Error, Kind, Listing, Page, Result};
use people::holder;
use people::session::Employee;
use queue::audit::{self, Action, AuditEvent, By};
use queue::{task, task_admin};
use serde::{Deserialize, Serialize};
pub use store::install::{Install, Shown, State};
use store::marketplace::{self, File, Item, Scope};
use store::{Tx, binding, install, instance, profession};

use crate::App;
use crate::task::ApplyMarketplaceItem;

/// What happens to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// An employee requests the item, for the first time or again.
    Asked,
    /// An employee requests the item's removal.
    Unasked,
    Started,
    Finished,
    /// No attempt of the task is left.
    GivenUp,
}

/// Where an event leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    State(State),
    /// The record ends.
    Removed,
}

/// How much of an item is, or may be, on the instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum There {
    Nothing,
    /// An install did not finish: some files may be there.
    Parts,
    /// The item was installed, in this version or an older one.
    Whole,
}

/// All allowed state changes are in this function.
fn next(state: State, event: Event, there: There) -> Option<Next> {
    use State::*;
    let to = match (state, event) {
        (Pending | Installed | Failed, Event::Asked) => Pending,
        (Pending | Failed, Event::Unasked) if there == There::Nothing => return Some(Next::Removed),
        (Pending | Failed | Installed, Event::Unasked) => Removing,
        (Pending | Installing | Failed, Event::Started) => Installing,
        (Removing, Event::Started) => Removing,
        (Installing, Event::Finished) => Installed,
        (Removing, Event::Finished) => return Some(Next::Removed),
        (Pending | Installing, Event::GivenUp) => Failed,
        // The item is still there, so the employee may try again.
        (Removing, Event::GivenUp) if there == There::Whole => Installed,
        (Removing, Event::GivenUp) => Failed,
        _ => return None,
    };
    Some(Next::State(to))
}

/// Applies an event to a record; refuses the event if the state does not allow it.
fn step(app: &App, install: &mut Install, event: Event) -> Result<()> {
    let now = app.clock.now();
    let there = match (install.installed_at, install.touched_at) {
        (Some(_), _) => There::Whole,
        (None, Some(_)) => There::Parts,
        (None, None) => There::Nothing,
    };
    let moved = next(install.state, event, there);
    let moved = moved.ok_or_else(|| Error::conflict(refusal(install.state, event)))?;
    install.updated_at = now;
    match moved {
        Next::Removed => install.removed_at = Some(now),
        Next::State(state) => install.state = state,
    }
    if matches!(event, Event::Asked | Event::Unasked | Event::Finished) {
        install.error.clear();
    }
    Ok(())
}

fn refusal(state: State, event: Event) -> String {
    match (state, event) {
        (State::Installing, _) => "it is being installed: wait until that has ended".into(),
        (State::Removing, _) => "it is being removed: wait until that has ended".into(),
        (state, event) => format!("an install that is {} cannot be {event:?}", state.as_str()).to_lowercase(),
    }
}

/// Shown to the employee when there is no more specific error.
const GIVEN_UP: &str = "it could not be brought onto the instance; an administrator can see why in the task queue";

/// Applies `GivenUp` if the task is dead: nothing else would change the record, and it would look unfinished for ever.
fn settle(app: &App, install: &mut Install, task: task::Status) {
    let moving = matches!(install.state, State::Pending | State::Installing | State::Removing);
    if task == task::Status::Dead && moving && step(app, install, Event::GivenUp).is_ok() && install.error.is_empty() {
        install.error = GIVEN_UP.into();
    }
}

/// Where on an instance an item puts a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    pub scope: String,
    pub path: String,
}

impl Place {
    pub fn of(file: &File) -> Place {
        Place { scope: file.scope.as_str().to_owned(), path: file.path.clone() }
    }

    pub fn scope(&self) -> Option<Scope> {
        Scope::parse(&self.scope)
    }
}

fn read_places(text: &str) -> Result<BTreeSet<Place>> {
    serde_json::from_str(text).map_err(Error::internal)
}

fn write_places(places: &BTreeSet<Place>) -> Result<String> {
    serde_json::to_string(places).map_err(Error::internal)
}

/// The items that are, or will be, on the employee's instances.
pub async fn list(app: &App, user: &UserId, instance: Option<&str>, page: Page) -> Result<Listing<Shown>> {
    let found = install::list(&app.db, user, instance, page).await?;
    Ok(found.map(|mut shown| {
        settle(app, &mut shown.install, shown.task_status);
        shown
    }))
}

/// Requests an item for an instance of the employee. A repeat changes nothing while the item is installed or under way,
/// unless there is a newer version: then that one is installed.
pub async fn ask(app: &App, who: &Employee, item: &ItemId, instance: &InstanceId) -> Result<Install> {
    let mut tx = app.db.begin().await?;
    // Lock the instance, so that concurrent requests for it run one after the other.
    let held = lock_own(&mut tx, &who.id, instance).await?;
    let item = marketplace::find(&mut tx, item).await?.filter(|i| i.is_active).ok_or(Kind::NotFound)?;
    require_profession(&mut tx, &item, instance).await?;
    let files = marketplace::previews(&mut tx, &item.id, 0).await?;
    let mut places: BTreeSet<Place> = files.iter().map(Place::of).collect();
    require_free(&mut tx, &item, instance, &places).await?;

    let existing = install::lock_live(&mut tx, &item.id, instance).await?;
    let now = app.clock.now();
    let Some(mut record) = existing else {
        let mut record = Install {
            id: InstallId::fresh(),
            item_id: item.id.clone(),
            item_version: item.version.clone(),
            item_revision: item.revision,
            instance_id: held.id,
            user_id: who.id.clone(),
            // Set by `enqueue`.
            task_id: TaskId::named(""),
            state: State::Pending,
            error: String::new(),
            files: write_places(&places)?,
            created_at: now,
            updated_at: now,
            touched_at: None,
            installed_at: None,
            removed_at: None,
        };
        install::insert(&mut tx, &record).await?;
        // Insert the record first: the queue looks up the instance in it.
        enqueue(app, &mut tx, &mut record, who).await?;
        install::update(&mut tx, &record).await?;
        record_deed(app, &mut tx, who, &record, &format!("{} {} asked for", item.name, item.version)).await?;
        tx.commit().await?;
        return Ok(record);
    };

    let status = task_status(&mut tx, &record).await?;
    settle(app, &mut record, status);
    let same = record.item_version == item.version && record.item_revision == item.revision;
    let current = matches!(record.state, State::Pending | State::Installing | State::Installed);
    if same && current {
        return Ok(record);
    }
    let on_its_way = record.state == State::Pending;
    step(app, &mut record, Event::Asked)?;
    places.extend(read_places(&record.files)?);
    record.files = write_places(&places)?;
    record.item_version = item.version.clone();
    record.item_revision = item.revision;
    record.user_id = who.id.clone();
    // A task that has not started reads the item's files when it starts, so no second task is needed.
    if !on_its_way {
        enqueue(app, &mut tx, &mut record, who).await?;
    }
    install::update(&mut tx, &record).await?;
    record_deed(app, &mut tx, who, &record, &format!("{} {} asked for", item.name, item.version)).await?;
    tx.commit().await?;
    Ok(record)
}

/// Requests the removal of an item. A record whose item never reached the instance ends at once; otherwise a task
/// removes the files.
pub async fn unask(app: &App, who: &Employee, id: &InstallId) -> Result<Install> {
    let mut tx = app.db.begin().await?;
    let found = install::find(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    // Lock the instance before the record. All code locks them in this order, which avoids deadlocks.
    lock_own(&mut tx, &who.id, &found.instance_id).await?;
    let record = install::lock(&mut tx, id).await?.filter(|r| r.removed_at.is_none());
    let mut record = record.ok_or(Kind::NotFound)?;
    let status = task_status(&mut tx, &record).await?;
    settle(app, &mut record, status);
    let was = record.state;
    step(app, &mut record, Event::Unasked)?;
    if matches!(was, State::Pending | State::Failed) {
        let cancelled = task_admin::cancel_with(app, &mut tx, &record.task_id, "not wanted any more").await?;
        // A worker has started the task in the meantime.
        if !cancelled && task_status(&mut tx, &record).await? == task::Status::Processing {
            return Err(Error::conflict(refusal(State::Installing, Event::Unasked)));
        }
    }
    if record.removed_at.is_none() {
        enqueue(app, &mut tx, &mut record, who).await?;
    }
    install::update(&mut tx, &record).await?;
    let item = marketplace::find_even_deleted(&mut tx, &record.item_id).await?;
    let what = format!("removal of {} asked for", item.map_or_else(|| record.item_id.to_string(), |i| i.name));
    record_deed(app, &mut tx, who, &record, &what).await?;
    tx.commit().await?;
    Ok(record)
}

/// What a task has to do for a record.
#[derive(Debug)]
pub enum Wish {
    /// Put these files there, and remove those of an older version.
    Install { item: Box<Item>, files: Vec<File>, stale: Vec<Place> },
    /// Remove everything that may be there.
    Remove { places: Vec<Place> },
    /// The host is as the record says: the record has ended, or an earlier run did the work.
    Nothing,
}

/// Marks the record as started and returns what to do. An install uses the item as it is now, and the record takes over
/// its version.
pub async fn started(app: &App, tx: &mut Tx, id: &InstallId) -> Result<Wish> {
    let record = install::lock(tx, id).await?.filter(|r| r.removed_at.is_none());
    let Some(mut record) = record else { return Ok(Wish::Nothing) };
    if record.state == State::Installed {
        return Ok(Wish::Nothing);
    }
    step(app, &mut record, Event::Started)?;
    let known = read_places(&record.files)?;
    if record.state == State::Removing {
        install::update(tx, &record).await?;
        return Ok(Wish::Remove { places: known.into_iter().collect() });
    }
    // An item may be deleted from the marketplace after the request. It is still installed.
    let item = marketplace::find_even_deleted(&mut *tx, &record.item_id).await?.ok_or(Kind::NotFound)?;
    let files = marketplace::files(&mut *tx, &record.item_id).await?;
    let current: BTreeSet<Place> = files.iter().map(Place::of).collect();
    let stale = known.difference(&current).cloned().collect();
    record.files = write_places(&known.union(&current).cloned().collect())?;
    record.item_version = item.version.clone();
    record.item_revision = item.revision;
    install::update(tx, &record).await?;
    Ok(Wish::Install { item: Box::new(item), files, stale })
}

/// Records that files are about to be written. From now on some of them may be on the instance, even if the task fails.
pub async fn touching(app: &App, tx: &mut Tx, id: &InstallId) -> Result<()> {
    let mut record = install::lock(tx, id).await?.filter(|r| r.removed_at.is_none()).ok_or(Kind::NotFound)?;
    record.touched_at = record.touched_at.or(Some(app.clock.now()));
    Ok(install::update(tx, &record).await?)
}

/// Records that the host is as desired: the item is installed, and counted the first time, or the record ends. `places`
/// are the item's files on the host now.
pub async fn finished(app: &App, tx: &mut Tx, id: &InstallId, places: &[Place]) -> Result<()> {
    let mut record = install::lock(tx, id).await?.filter(|r| r.removed_at.is_none()).ok_or(Kind::NotFound)?;
    step(app, &mut record, Event::Finished)?;
    record.files = write_places(&places.iter().cloned().collect())?;
    record.touched_at = record.touched_at.or(Some(app.clock.now()));
    if record.state == State::Installed && record.removed_at.is_none() && record.installed_at.is_none() {
        record.installed_at = Some(app.clock.now());
        marketplace::count_install(tx, &record.item_id).await?;
    }
    Ok(install::update(tx, &record).await?)
}

/// Records a failed attempt. The employee sees `error`. The state changes only if no attempt is left.
pub async fn failed(app: &App, tx: &mut Tx, id: &InstallId, error: &str, given_up: bool) -> Result<()> {
    let record = install::lock(tx, id).await?.filter(|r| r.removed_at.is_none());
    let Some(mut record) = record else { return Ok(()) };
    if given_up {
        step(app, &mut record, Event::GivenUp)?;
    }
    record.error = error.to_owned();
    record.updated_at = app.clock.now();
    Ok(install::update(tx, &record).await?)
}

/// Locks an instance of the employee. Any other instance is reported as not found.
async fn lock_own(tx: &mut Tx, user: &UserId, id: &InstanceId) -> Result<instance::Instance> {
    holder::held_by(user, instance::lock(tx, id).await?)
}

/// A role pack belongs to a profession: it goes onto instances of that profession only.
async fn require_profession(tx: &mut Tx, item: &Item, instance: &InstanceId) -> Result<()> {
    if item.kind != marketplace::Kind::RolePack {
        return Ok(());
    }
    let live = binding::live(&mut *tx, instance).await?;
    let of = match live.and_then(|b| b.profession_id) {
        Some(id) => profession::find(&mut *tx, &id).await?,
        None => None,
    };
    match of {
        Some(p) if p.role_pack_id.as_ref() == Some(&item.id) => Ok(()),
        _ => Err(Error::conflict("a role pack goes onto instances of its own profession only")),
    }
}

/// Refuses an item that shares a file with another one: removing one item would remove the other's file.
async fn require_free(tx: &mut Tx, item: &Item, instance: &InstanceId, places: &BTreeSet<Place>) -> Result<()> {
    for other in install::live_on(tx, instance).await? {
        if other.item_id == item.id {
            continue;
        }
        if let Some(place) = read_places(&other.files)?.intersection(places).next() {
            let message =
                format!("{} is a file of {}, which is on the instance: remove that first", place.path, other.item_name);
            return Err(Error::conflict(message));
        }
    }
    Ok(())
}

/// Enqueues the task that makes the instance match the record.
async fn enqueue(app: &App, tx: &mut Tx, record: &mut Install, who: &Employee) -> Result<()> {
    let payload = ApplyMarketplaceItem { install_id: record.id.clone() };
    let task_id = task::enqueue(app, tx, &payload, "marketplace", Some(&who.id)).await?;
    record.task_id = task_id.clone();
    Ok(())
}

async fn task_status(tx: &mut Tx, record: &Install) -> Result<task::Status> {
    // If retention has deleted the task, it ended long ago.
    let task = store::task::find(&mut *tx, &record.task_id).await?;
    Ok(task.map_or(task::Status::Done, |t| t.status))
}

/// Records an employee's request in the audit log. Employees are not operators, so the system is the actor and the
/// detail has the employee's e-mail address.
async fn record_deed(app: &App, tx: &mut Tx, who: &Employee, record: &Install, what: &str) -> Result<()> {
    let detail = format!("marketplace: {what} by {}", who.email);
    audit::record(app, tx, &By::system(), AuditEvent::info(Action::InstanceUpdate, &record.instance_id, &detail)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: &[Event] = &[Event::Asked, Event::Unasked, Event::Started, Event::Finished, Event::GivenUp];

    #[test]
    fn the_moves_are_these_and_no_others() {
        let to = |state, event, there| match next(state, event, there) {
            None => "no",
            Some(Next::State(state)) => state.as_str(),
            Some(Next::Removed) => "removed",
        };
        let mut moves = vec![];
        for state in State::ALL {
            for event in EVENTS {
                let mut ends =
                    [There::Nothing, There::Parts, There::Whole].map(|there| to(*state, *event, there)).to_vec();
                // Most moves do not depend on it.
                ends.dedup();
                moves.push(format!("{} {event:?} {}", state.as_str(), ends.join("/")));
            }
        }
        moves.retain(|line| !line.ends_with(" no"));
        let expected = [
            "pending Asked pending",
            "pending Unasked removed/removing",
            "pending Started installing",
            "pending GivenUp failed",
            "installing Started installing",
            "installing Finished installed",
            "installing GivenUp failed",
            "installed Asked pending",
            "installed Unasked removing",
            "failed Asked pending",
            "failed Unasked removed/removing",
            "failed Started installing",
            "removing Started removing",
            "removing Finished removed",
            "removing GivenUp failed/installed",
        ];
        assert_eq!(moves, expected);
    }

    #[test]
    fn places_survive_being_written() {
        let places: BTreeSet<Place> =
            [("config", "a"), ("workspace", "b/c")].map(|(s, p)| Place { scope: s.into(), path: p.into() }).into();
        assert_eq!(read_places(&write_places(&places).unwrap()).unwrap(), places);
    }
}
