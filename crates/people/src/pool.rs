//! The pools of professions, as administrators manage them.

use base::id::{EntryId, InstanceId, ProfessionId, ServerId};
use base::{Error, Kind, Listing, Page, Result, Sort};
use queue::audit::{self, Action, AuditEvent, By};
use store::binding::{Holder, LockedInstance};
use store::instance::{self, Instance};
use store::pool::{self, Entry};
pub use store::pool::{Listed, PoolFilter, Status};
use store::{Tx, profession};

use crate::App;
use crate::binding::{self, Traces, release};
use crate::holder::refusal;

pub async fn list(app: &App, filter: PoolFilter<'_>, sort: Sort, page: Page) -> Result<Listing<Listed>> {
    Ok(pool::list(&app.db, filter, sort, page).await?)
}

/// Adds an instance without a holder to a profession's pool.
pub async fn add(
    app: &App,
    by: &By,
    profession_id: &ProfessionId,
    instance_id: &InstanceId,
    server_id: Option<&ServerId>,
) -> Result<Listed> {
    let mut tx = app.db.begin().await?;
    let profession = profession::find(&mut tx, profession_id).await?;
    let profession = profession.ok_or_else(|| Error::field("profession_id", "there is no such profession"))?;
    let instance = instance::lock(&mut tx, instance_id).await?;
    let instance = instance.ok_or_else(|| Error::field("instance_id", "there is no such instance"))?;
    if server_id.is_some_and(|server| *server != instance.server_id) {
        return Err(Error::field("server_id", "is not the server of this instance"));
    }
    if instance.pooled {
        return Err(Error::conflict("the instance is in a pool already"));
    }
    if instance.assigned_user_id.is_some() {
        return Err(Error::conflict("the instance is bound to an employee"));
    }
    require_offered(&instance)?;
    let entry = Entry {
        id: EntryId::fresh().clone(),
        profession_id: profession.id,
        instance_id: instance.id.clone(),
        server_id: instance.server_id.clone(),
        status: Status::Idle,
        allocated_user_id: None,
        allocated_at: None,
        created_at: app.clock.now(),
    };
    pool::insert(&mut tx, &entry).await?;
    instance::set_pooled(&mut tx, instance_id, true).await?;
    let detail = format!("{} added to the pool of {}", entry.instance_id, profession.name);
    audit::record(app, &mut tx, by, AuditEvent::info(Action::ConfigChange, &entry.id, &detail)).await?;
    tx.commit().await?;
    show(app, &entry.id).await
}

/// What an administrator's change of status means.
enum Move {
    Status(Status),
    Reclaim,
}

/// The allowed changes of status; this is the only place that decides.
fn movement(from: Status, to: Status) -> Result<Move> {
    match (from, to) {
        (Status::Idle, Status::Maintenance) => Ok(Move::Status(Status::Maintenance)),
        (Status::Maintenance, Status::Idle) => Ok(Move::Status(Status::Idle)),
        (Status::Allocated, Status::Idle) => Ok(Move::Reclaim),
        (from, to) => Err(Error::conflict(format!("an entry cannot go from {} to {}", from.as_str(), to.as_str()))),
    }
}

pub async fn set_status(app: &App, by: &By, id: &EntryId, to: Status) -> Result<Listed> {
    let mut tx = app.db.begin().await?;
    let instance = pool::find(&mut tx, id).await?.ok_or(Kind::NotFound)?.instance_id;
    let LockedInstance { holder, entry, instance } = binding::lock(&mut tx, &instance).await?;
    let mut entry = entry.filter(|entry| entry.id == *id).ok_or(Kind::NotFound)?;
    match movement(entry.status, to)? {
        Move::Reclaim => {
            let holder = holder.ok_or_else(|| Error::internal("an allocated entry of an instance that nobody has"))?;
            reclaim(app, &mut tx, by, &holder, entry, "reclaimed").await?
        }
        Move::Status(status) => {
            if status == Status::Idle {
                require_offered(&instance)?;
            }
            let detail = format!("status: {} → {}", entry.status.as_str(), status.as_str());
            entry.status = status;
            pool::update(&mut tx, &entry).await?;
            audit::record(app, &mut tx, by, AuditEvent::info(Action::ConfigChange, &entry.id, &detail)).await?;
        }
    }
    tx.commit().await?;
    show(app, id).await
}

/// Fails if a pool must not offer the instance.
fn require_offered(instance: &Instance) -> Result<()> {
    match instance.isolation.is_offered() {
        true => Ok(()),
        false => Err(Error::conflict(format!(
            "{}; only a super administrator assigns it",
            refusal(instance.isolation, &instance.runs_as)
        ))),
    }
}

/// Takes an allocated entry back: the entry is idle, or in maintenance if the instance must not be offered again. The
/// binding ends, the token changes, and the cleaning is enqueued. The bootstrap task of the next claim waits until the
/// cleaning is done.
pub(crate) async fn reclaim(
    app: &App,
    tx: &mut Tx,
    by: &By,
    holder: &Holder,
    mut entry: Entry,
    how: &str,
) -> Result<()> {
    let instance = instance::lock(tx, &entry.instance_id).await?.ok_or(Kind::NotFound)?;
    let profession = profession::find(&mut *tx, &entry.profession_id).await?;
    let how = format!("{} {how}, was with {}", profession.map(|p| p.name).unwrap_or_default(), holder.email);
    // An instance that is not isolated must not be offered again.
    entry.status = if instance.isolation.is_withdrawn() { Status::Maintenance } else { Status::Idle };
    entry.allocated_user_id = None;
    entry.allocated_at = None;
    pool::update(tx, &entry).await?;
    release(app, tx, holder, &instance, Traces::Clean, "reclaim").await?;
    audit::record(app, tx, by, AuditEvent::info(Action::Claim, &entry.instance_id, &how)).await
}

/// Removes an entry that is not allocated; the instance stays.
pub async fn remove(app: &App, by: &By, id: &EntryId) -> Result<()> {
    let mut tx = app.db.begin().await?;
    let entry = pool::lock(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    if entry.status == Status::Allocated {
        return Err(Error::conflict("an employee has this entry: reclaim it first"));
    }
    end(app, &mut tx, &entry).await?;
    let detail = format!("{} taken out of the pool", entry.instance_id);
    audit::record(app, &mut tx, by, AuditEvent::info(Action::ConfigChange, &entry.id, &detail)).await?;
    Ok(tx.commit().await?)
}

/// Removes an entry, in the transaction of the change that makes it unnecessary.
pub async fn end(app: &App, tx: &mut Tx, entry: &Entry) -> Result<()> {
    pool::delete(tx, &entry.id, app.clock.now()).await?;
    Ok(instance::set_pooled(tx, &entry.instance_id, false).await?)
}

async fn show(app: &App, id: &EntryId) -> Result<Listed> {
    Ok(pool::show(&app.db, id).await?.ok_or(Kind::NotFound)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_moves_as_the_table_says() {
        let may = |from, to| movement(from, to).is_ok();
        for from in [Status::Idle, Status::Allocated, Status::Maintenance] {
            for to in [Status::Idle, Status::Allocated, Status::Maintenance] {
                let expected = matches!(
                    (from, to),
                    (Status::Idle, Status::Maintenance) | (Status::Maintenance | Status::Allocated, Status::Idle)
                );
                assert_eq!(may(from, to), expected, "{} to {}", from.as_str(), to.as_str());
            }
        }
        assert!(matches!(movement(Status::Allocated, Status::Idle), Ok(Move::Reclaim)), "with all that a release does");
    }
}
