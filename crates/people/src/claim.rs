//! Employees' actions on instances: list them, claim an idle one or one of a profession, release one, exchange one that
//! could not be set up.
//!
//! Rows are always locked in the order user, pool entry, instance, so that two claims cannot deadlock.

use base::id::{EntryId, InstanceId, ProfessionId, TaskId, UserId};
use base::{Error, Kind, Listing, Page, Result};
use queue::audit::{self, Action, AuditEvent, By};
use queue::task;
use store::binding::{self, Held, Holder, Origin};
use store::instance::{self, Instance};
use store::pool::Entry;
use store::profession::Profession;
use store::ready::{self, Idle, NotReady};
use store::{Tx, instance_health, pool, profession, user};

use crate::App;
use crate::binding::{Traces, bind, release};
use crate::session::Employee;
use crate::task::{BootstrapProfessionInstance, InitInstance};

/// A user's instances, the first bound first.
pub async fn held(app: &App, user: &UserId) -> Result<Vec<Held>> {
    Ok(binding::held(&app.db, user).await?)
}

pub async fn count(app: &App, user: &UserId) -> Result<i64> {
    Ok(binding::count_of(&app.db, user).await?)
}

pub async fn available(app: &App, page: Page) -> Result<Listing<Idle>> {
    Ok(ready::idle(&app.db, page).await?)
}

/// The result of a claim. It is read before the commit, so that nothing can fail after it.
pub struct Claimed {
    pub held: Held,
    pub entry_id: Option<String>,
    pub task_id: TaskId,
}

/// Claims the named instance, or the healthiest idle one that is ready. One instance per employee.
pub async fn instance(app: &App, who: &Employee, chosen: Option<&InstanceId>) -> Result<Claimed> {
    let mut tx = app.db.begin().await?;
    let holder = lock_user(&mut tx, &who.id).await?;
    if binding::count_of(&mut tx, &who.id).await? > 0 {
        return Err(Kind::AlreadyHolds.into());
    }
    let found = match chosen {
        Some(id) => {
            let found = instance::lock(&mut tx, id).await?;
            let found = found.filter(|i| i.assigned_user_id.is_none() && !i.pooled).ok_or(Kind::NoIdleInstance)?;
            require_ready(&mut tx, &found.id).await?;
            found
        }
        None => ready::lock_idle(&mut tx).await?.ok_or(Kind::NoIdleInstance)?,
    };
    let claimed = take_instance(app, &mut tx, who, &holder, &found).await?;
    tx.commit().await?;
    Ok(claimed)
}

/// Claims an entry of a profession's pool. One entry per employee and profession.
pub async fn profession(app: &App, who: &Employee, id: &ProfessionId) -> Result<Claimed> {
    let mut tx = app.db.begin().await?;
    let holder = lock_user(&mut tx, &who.id).await?;
    let profession = profession::find(&mut tx, id).await?.filter(|p| p.is_active).ok_or(Kind::NotFound)?;
    if pool::held_by(&mut tx, id, &who.id).await? {
        return Err(Error::new(Kind::AlreadyHolds, "you already hold an instance of this profession"));
    }
    let entry = pool::lock_idle(&mut tx, id, &[]).await?.ok_or(Kind::NoIdleInstance)?;
    let instance = instance::lock(&mut tx, &entry.instance_id).await?.ok_or(Kind::NoIdleInstance)?;
    let claimed = take_entry(app, &mut tx, Giver::Claim, &holder, &profession, entry, &instance).await?;
    tx.commit().await?;
    Ok(claimed)
}

/// Gives an active user an entry of a profession's pool, as if the user had claimed it. The caller has locked the row
/// of the user, who holds none of this profession. Entries in `but` are passed over. `None` if no other one is ready.
pub(crate) async fn give(
    app: &App,
    tx: &mut Tx,
    by: &By,
    holder: &Holder,
    profession: &Profession,
    but: &[EntryId],
) -> Result<Option<Entry>> {
    let Some(entry) = pool::lock_idle(tx, &profession.id, but).await? else { return Ok(None) };
    let instance = instance::lock(tx, &entry.instance_id).await?.ok_or(Kind::NoIdleInstance)?;
    take_entry(app, tx, Giver::Administrator(by), holder, profession, entry.clone(), &instance).await?;
    Ok(Some(entry))
}

/// Exchanges a claimed instance whose set-up was given up for another one that is ready, of the same profession if it
/// is of one. The employee never has none in between, and keeps the failed one if there is no other.
pub async fn replace(app: &App, who: &Employee, id: &InstanceId) -> Result<Claimed> {
    let mut tx = app.db.begin().await?;
    let holder = lock_user(&mut tx, &who.id).await?;
    // Nobody takes an instance from the employee while the row of the user is locked, so this stays true.
    let failed = binding::held_one(&mut tx, id).await?;
    let failed =
        failed.filter(|held| held.instance.assigned_user_id.as_ref() == Some(&who.id)).ok_or(Kind::NotFound)?;
    if failed.origin == Origin::Assigned {
        return Err(Error::conflict("an administrator assigned this instance; ask one for another"));
    }
    if failed.setup.is_none_or(|setup| setup.status != task::Status::Dead) {
        return Err(Error::conflict("the set-up of this instance was not given up; give it back to claim another"));
    }
    let how = format!("given back by {}, its set-up failed", who.email);
    let claimed = match &failed.profession_id {
        Some(profession_id) => {
            let profession = profession::find(&mut tx, profession_id).await?.filter(|p| p.is_active);
            let profession = profession.ok_or(Kind::NoIdleInstance)?;
            let entry = pool::of_instance(&mut tx, id).await?.ok_or(Kind::NotFound)?;
            let entry = pool::lock(&mut tx, &entry.id).await?.ok_or(Kind::NotFound)?;
            let next = pool::lock_idle(&mut tx, profession_id, &[]).await?.ok_or(Kind::NoIdleInstance)?;
            // Both at once, in the order that everybody uses, because a health check locks many.
            let both = [id.clone(), next.instance_id.clone()];
            let both = instance_health::lock_instances(&mut tx, &both).await?;
            let instance = both.into_iter().find(|i| i.id == next.instance_id).ok_or(Kind::NoIdleInstance)?;
            crate::pool::reclaim(app, &mut tx, &By::system(), &holder, entry, &how).await?;
            take_entry(app, &mut tx, Giver::Claim, &holder, &profession, next, &instance).await?
        }
        None => {
            // Found before the release, which makes the failed one idle.
            let next = ready::lock_idle_beside(&mut tx, id).await?.ok_or(Kind::NoIdleInstance)?;
            let failed = instance::lock(&mut tx, id).await?.ok_or(Kind::NotFound)?;
            release(app, &mut tx, &holder, &failed, Traces::Clean, "replace").await?;
            audit_claim(app, &mut tx, id.as_str(), &how).await?;
            take_instance(app, &mut tx, who, &holder, &next).await?
        }
    };
    tx.commit().await?;
    Ok(claimed)
}

/// Gives a locked instance outside of pools to the employee.
async fn take_instance(
    app: &App,
    tx: &mut Tx,
    who: &Employee,
    holder: &Holder,
    instance: &Instance,
) -> Result<Claimed> {
    bind(app, tx, holder, instance, Origin::Claimed, None).await?;
    let payload = InitInstance { instance_id: instance.id.clone(), user_id: who.id.clone() };
    let task_id = task::enqueue(app, tx, &payload, "claim", Some(&who.id)).await?;
    audit_claim(app, tx, &instance.id, &format!("claimed by {}", who.email)).await?;
    let held = held_one(app, tx, &instance.id).await?;
    Ok(Claimed { held, entry_id: None, task_id })
}

/// Who decided that an employee gets an entry of a pool.
#[derive(Clone, Copy)]
enum Giver<'a> {
    /// The employee, by a claim.
    Claim,
    Administrator(&'a By),
}

/// Gives a locked pool entry, with its locked instance, to the employee.
async fn take_entry(
    app: &App,
    tx: &mut Tx,
    giver: Giver<'_>,
    holder: &Holder,
    profession: &Profession,
    mut entry: Entry,
    instance: &Instance,
) -> Result<Claimed> {
    // A health check may have found something since the pool was read, so check again under the lock.
    require_ready(tx, &instance.id).await?;
    entry.status = pool::Status::Allocated;
    entry.allocated_user_id = Some(holder.id());
    entry.allocated_at = Some(app.clock.now());
    pool::update(tx, &entry).await?;
    bind(app, tx, holder, instance, Origin::Profession, Some(&profession.id)).await?;
    let payload = BootstrapProfessionInstance {
        entry_id: entry.id.clone(),
        instance_id: entry.instance_id.clone(),
        user_id: holder.id(),
    };
    let (source, verb) = match giver {
        Giver::Claim => ("profession claim", "claimed by"),
        Giver::Administrator(by) => (by.operator.as_str(), "given to"),
    };
    let task_id = task::enqueue(app, tx, &payload, source, Some(&holder.id())).await?;
    let detail = format!("{} {verb} {}", profession.name, holder.email);
    match giver {
        Giver::Claim => audit_claim(app, tx, &entry.instance_id, &detail).await?,
        Giver::Administrator(by) => {
            audit::record(app, tx, by, AuditEvent::info(Action::Claim, &entry.instance_id, &detail)).await?
        }
    }
    let held = held_one(app, tx, &instance.id).await?;
    Ok(Claimed { held, entry_id: Some(entry.id.into()), task_id })
}

/// Fails with the reason if the instance does not work well enough to be given out.
async fn require_ready(tx: &mut Tx, id: &InstanceId) -> Result<()> {
    let message = match ready::not_ready(tx, id).await? {
        None => return Ok(()),
        Some(NotReady::NotOffered) => "this instance is given out by administrators only",
        Some(NotReady::NotOnServer) => "this instance is not on its server yet; choose another",
        Some(NotReady::ServerInactive) => "the server of this instance is not in service; choose another",
        Some(NotReady::SetupFailed) => "the last set-up or cleaning of this instance failed; choose another",
        Some(NotReady::Unhealthy) => "this instance is unhealthy; choose another",
        Some(NotReady::KeyInvalid) => "the key of this instance is invalid; choose another",
        Some(NotReady::Held) => "an administrator works on this instance; choose another",
    };
    Err(Error::new(Kind::NoIdleInstance, message))
}

/// Releases a claimed instance. An instance of a pool is reclaimed. Only administrators release an assigned one.
pub async fn give_back(app: &App, who: &Employee, id: &InstanceId) -> Result<()> {
    let mut tx = app.db.begin().await?;
    let holder = lock_user(&mut tx, &who.id).await?;
    // Lock the entry before the instance, as everywhere.
    if let Some(entry) = pool::of_instance(&mut tx, id).await?
        && let Some(entry) = pool::lock(&mut tx, &entry.id).await?
        && entry.allocated_user_id.as_deref() == Some(who.id.as_str())
    {
        let how = format!("given back by {}", who.email);
        crate::pool::reclaim(app, &mut tx, &By::system(), &holder, entry, &how).await?;
        return Ok(tx.commit().await?);
    }
    let instance = instance::lock(&mut tx, id).await?;
    let instance = instance.filter(|i| i.assigned_user_id.as_deref() == Some(who.id.as_str())).ok_or(Kind::NotFound)?;
    let live = binding::live(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    if live.origin == Origin::Assigned {
        return Err(Error::conflict("an administrator assigned this instance; ask one to take it back"));
    }
    release(app, &mut tx, &holder, &instance, Traces::Clean, "give back").await?;
    audit_claim(app, &mut tx, id.as_str(), &format!("given back by {}", who.email)).await?;
    Ok(tx.commit().await?)
}

/// The claimed instance as its holder sees it. Opens its token too, so that a token that cannot be opened fails the
/// claim.
async fn held_one(app: &App, tx: &mut Tx, id: &InstanceId) -> Result<Held> {
    let held = binding::held_one(tx, id).await?;
    let held = held.ok_or_else(|| Error::internal("what was just claimed is not there"))?;
    held.instance.token(&app.sealer)?;
    Ok(held)
}

/// Locks the row of the user, so that two claims of one user run one after the other.
async fn lock_user(tx: &mut Tx, id: &UserId) -> Result<Holder> {
    // The user may have been revoked since the token was checked.
    let found = binding::lock_holder(tx, id).await?;
    Ok(found.filter(|user| user.status == user::Status::Active).ok_or(Kind::Unauthorized)?)
}

/// Records a claim. The operator is the system, because employees are no operators; the detail has their e-mail.
async fn audit_claim(app: &App, tx: &mut Tx, target: &str, detail: &str) -> Result<()> {
    audit::record(app, tx, &By::system(), AuditEvent::info(Action::Claim, target, detail)).await
}
