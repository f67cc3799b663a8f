//! Giving an instance to somebody, and taking it back: the two moves that every claim, assignment and
//! reclaim is made of. Binding, holder, tokens and cleaning always change together, in one transaction.

use base::id::{InstanceId, ProfessionId};
use base::secret::random_token;
use base::{Error, Kind, Result};
use llm::key;
use queue::task;
use store::Tx;
use store::binding::{self, Holder, LockedInstance, Origin};
use store::instance::{self, Instance, token_place};
use store::notice::{Notice, Topic};

use crate::task::CleanInstance;
use crate::{App, chat_binding};

/// Locks an instance with whoever has it and its pool entry.
pub async fn lock(tx: &mut Tx, id: &InstanceId) -> Result<LockedInstance> {
    let changing = || Error::conflict("the instance is changing hands at this very moment; try again");
    match binding::lock_with_holder(tx, id).await {
        Ok(locked) => Ok(locked.ok_or(Kind::NotFound)?),
        Err(store::Error::Taken) => Err(changing()),
        Err(other) => Err(other.into()),
    }
}

/// Gives an instance that nobody has to a user. The caller holds the instance's row.
pub async fn bind(
    app: &App,
    tx: &mut Tx,
    holder: &Holder,
    instance: &Instance,
    origin: Origin,
    profession: Option<&ProfessionId>,
) -> Result<()> {
    let (id, user) = (instance.id(), holder.id());
    binding::insert(tx, &user, &id, origin, profession, app.clock.now()).await.map_err(|e| match e {
        store::Error::Taken => Error::conflict("the instance is bound to somebody already"),
        other => other.into(),
    })?;
    instance::set_holder(tx, &id, Some(&user)).await?;
    key::bound(app, tx, &id, holder).await?;
    // What somebody else left behind goes before the new user comes: the token they knew, their bots, their traces.
    if instance.traces_of.as_deref().is_some_and(|of| of != user.as_str()) {
        rotate_token(app, tx, instance).await?;
        chat_binding::end_all(app, tx, &id, "bind").await?;
        clean(app, tx, instance, "bind").await?;
    } else {
        chat_binding::wake_all(tx, &id).await?;
    }
    instance::set_traces(tx, &id, Some(&user)).await?;
    Ok(tx.notify(Notice::new(Topic::Instance, id.as_str())).await?)
}

/// What happens to the traces of whoever had the instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traces {
    /// Removed now: the instance goes back to all.
    Clean,
    /// Kept for the same user; removed before anybody else gets it.
    Keep,
}

/// Takes an instance from whoever has it; the history of the binding stays. The caller holds the instance's row, and the holder's:
/// of a revocation at the same moment, one comes after the other, and the next holder's key is not switched off.
pub async fn release(
    app: &App,
    tx: &mut Tx,
    _holder: &Holder,
    instance: &Instance,
    traces: Traces,
    source: &str,
) -> Result<()> {
    let id = instance.id();
    let now = app.clock.now();
    binding::end(tx, &id, now).await?;
    instance::set_holder(tx, &id, None).await?;
    // Whoever had it may know its key, and nobody's quota binds it now.
    key::rotate(app, tx, &id, "instance released").await?;
    if traces == Traces::Clean {
        rotate_token(app, tx, instance).await?;
        chat_binding::end_all(app, tx, &id, source).await?;
        if clean(app, tx, instance, source).await? {
            // The cleaning holds back whatever comes next: nothing is left for that to remember.
            instance::set_traces(tx, &id, None).await?;
        }
    } else {
        chat_binding::silence_all(tx, &id).await?;
    }
    Ok(tx.notify(Notice::new(Topic::Instance, id.as_str())).await?)
}

/// A new gateway token: the old one is worth nothing once it is on the host.
async fn rotate_token(app: &App, tx: &mut Tx, instance: &Instance) -> Result<()> {
    let sealed = app.sealer.seal(token_place(&instance.id), &random_token()?)?;
    Ok(instance::set_token(tx, &instance.id(), &sealed).await?)
}

/// Has the traces removed, where the platform made what they are in; otherwise they stay, and only a super administrator gives the
/// instance to anybody else. Answers whether they go.
async fn clean(app: &App, tx: &mut Tx, instance: &Instance, source: &str) -> Result<bool> {
    if !instance.isolation.may_be_cleaned() {
        return Ok(false);
    }
    // Their items go with the workspace.
    store::install::remove_all(tx, &instance.id(), app.clock.now()).await?;
    let payload = CleanInstance { instance_id: instance.id.clone() };
    task::enqueue(app, tx, &payload, source, None).await?;
    Ok(true)
}
