//! Binds an instance to a user, and releases it: every claim, assignment and reclaim consists of these two. Binding,
//! holder, tokens and cleaning always change together, in one transaction.

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

/// Locks an instance together with its holder and its pool entry.
pub async fn lock(tx: &mut Tx, id: &InstanceId) -> Result<LockedInstance> {
    let changing = || Error::conflict("the instance is changing hands at this very moment; try again");
    match binding::lock_with_holder(tx, id).await {
        Ok(locked) => Ok(locked.ok_or(Kind::NotFound)?),
        Err(store::Error::Taken) => Err(changing()),
        Err(other) => Err(other.into()),
    }
}

/// Binds an instance without a holder to a user. The caller has locked the row of the instance.
pub async fn bind(
    app: &App,
    tx: &mut Tx,
    holder: &Holder,
    instance: &Instance,
    origin: Origin,
    profession: Option<&ProfessionId>,
) -> Result<()> {
    let (id, user) = (instance.id.clone(), holder.id());
    binding::insert(tx, &user, &id, origin, profession, app.clock.now()).await.map_err(|e| match e {
        store::Error::Taken => Error::conflict("the instance is bound to somebody already"),
        other => other.into(),
    })?;
    instance::set_holder(tx, &id, Some(&user)).await?;
    key::bound(app, tx, &id, holder).await?;
    // Remove what another user left before the new one gets the instance: rotate the gateway token, end the bots, clean
    // the home.
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

/// What happens to the last holder's traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traces {
    /// Removed now: anybody may get the instance next.
    Clean,
    /// Kept for the same user; removed before anybody else gets it.
    Keep,
}

/// Releases an instance from its holder; the binding stays as history. The caller has locked the rows of the instance
/// and of the holder. So a revocation of the holder comes either before or after, and cannot switch off the next
/// holder's key.
pub async fn release(
    app: &App,
    tx: &mut Tx,
    _holder: &Holder,
    instance: &Instance,
    traces: Traces,
    source: &str,
) -> Result<()> {
    let id = instance.id.clone();
    let now = app.clock.now();
    binding::end(tx, &id, now).await?;
    instance::set_holder(tx, &id, None).await?;
    // The last holder may know the key, and no user's quota limits it now.
    key::rotate(app, tx, &id, "instance released").await?;
    if traces == Traces::Clean {
        rotate_token(app, tx, instance).await?;
        chat_binding::end_all(app, tx, &id, source).await?;
        if clean(app, tx, instance, source).await? {
            // No other task of the instance runs before the cleaning is done, so the traces need not be remembered.
            instance::set_traces(tx, &id, None).await?;
        }
    } else {
        chat_binding::silence_all(tx, &id).await?;
    }
    Ok(tx.notify(Notice::new(Topic::Instance, id.as_str())).await?)
}

/// Sets a new gateway token. The old one is invalid as soon as the new one is on the host; one that never gets there would
/// lock out whoever has the instance next.
async fn rotate_token(app: &App, tx: &mut Tx, instance: &Instance) -> Result<()> {
    if !instance.takes_token() {
        return Ok(());
    }
    let sealed = app.sealer.seal(token_place(&instance.id), &random_token()?)?;
    Ok(instance::set_token(tx, &instance.id, &sealed).await?)
}

/// Enqueues the cleaning, if the platform made the instance's user and home. Otherwise the traces stay, and only a
/// super administrator may give the instance to another user. Returns whether the cleaning is enqueued.
async fn clean(app: &App, tx: &mut Tx, instance: &Instance, source: &str) -> Result<bool> {
    if !instance.isolation.may_be_cleaned() {
        return Ok(false);
    }
    // The installed items are deleted with the workspace.
    store::install::remove_all(tx, &instance.id, app.clock.now()).await?;
    let payload = CleanInstance { instance_id: instance.id.clone() };
    task::enqueue(app, tx, &payload, source, None).await?;
    Ok(true)
}
