//! Holds: an administrator wants an instance to be left alone until a time, for a reason. Meanwhile the platform repairs
//! and writes nothing there by itself, and gives it to nobody; what a person asks for by name is done.

use base::id::InstanceId;
use base::{Error, Kind, Result};
use jiff::{SignedDuration, Timestamp};
use queue::audit::{self, Action, AuditEvent, By};
use store::notice::{Notice, Topic};
use store::{instance, reconcile};

use crate::App;

/// The longest hold. A forgotten one must end by itself.
const LONGEST: SignedDuration = SignedDuration::from_hours(30 * 24);

pub async fn begin(app: &App, by: &By, id: &InstanceId, until: Timestamp, reason: &str) -> Result<()> {
    let now = app.clock.now();
    if until <= now || until > now + LONGEST {
        return Err(Error::field("until", "must be within the next 30 days"));
    }
    let mut tx = app.db.begin().await?;
    instance::lock(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    reconcile::hold(&mut tx, id, until, reason, &by.operator).await?;
    let detail = format!("held until {}: {reason}", app.zone.show(until));
    audit::record(app, &mut tx, by, AuditEvent::info(Action::InstanceUpdate, id.as_str(), &detail)).await?;
    tx.notify(Notice::new(Topic::Instance, id.as_str())).await?;
    Ok(tx.commit().await?)
}

/// Ends a hold. A repeat changes nothing.
pub async fn end(app: &App, by: &By, id: &InstanceId) -> Result<()> {
    let mut tx = app.db.begin().await?;
    instance::lock(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    if reconcile::find(&mut tx, id).await?.held_until.is_none() {
        return Ok(());
    }
    reconcile::end_hold(&mut tx, id).await?;
    let event = AuditEvent::info(Action::InstanceUpdate, id.as_str(), "its hold was ended");
    audit::record(app, &mut tx, by, event).await?;
    tx.notify(Notice::new(Topic::Instance, id.as_str())).await?;
    Ok(tx.commit().await?)
}

/// Why a task that nobody asked for by name does nothing now; `None` if the instance is not held.
pub async fn refusal(app: &App, id: &InstanceId) -> Result<Option<String>> {
    let state = reconcile::find(&app.db, id).await?;
    let held = state.held_until.filter(|_| state.is_held(app.clock.now()));
    Ok(held.map(|until| format!("it is held until {} ({}): nothing was done", app.zone.show(until), state.held_reason)))
}
