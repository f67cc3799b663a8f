//! Creates keys when they are first needed.

use base::id::InstanceId;
use base::{Error, Kind, Result};
use queue::audit::{self, Action, AuditEvent, By};
use store::binding;
use store::gateway_key::{self, GatewayKey, Status};
use store::notice::{Notice, Topic};

use super::turn::Turn;
use super::{PLATFORM, fresh_value};
use crate::App;

/// The key of an instance. It is created if there is none.
pub async fn of_instance(app: &App, instance: &InstanceId) -> Result<GatewayKey> {
    match gateway_key::of_instance(&app.db, instance).await? {
        Some(key) => Ok(key),
        None => make(app, &By::system(), instance.as_str(), Some(instance), None).await,
    }
}

/// The platform's own key. It is created if there is none.
pub async fn platform(app: &App) -> Result<GatewayKey> {
    match gateway_key::named(&app.db, PLATFORM).await? {
        Some(key) => Ok(key),
        None => make(app, &By::system(), PLATFORM, None, None).await,
    }
}

/// Creates a key at the gateway and stores it. If several callers do so at the same time, all get the same key.
pub(super) async fn make(
    app: &App,
    by: &By,
    name: &str,
    instance: Option<&InstanceId>,
    quota: Option<i64>,
) -> Result<GatewayKey> {
    let now = app.clock.now();
    let same = |key: &GatewayKey| key.instance_id.as_deref() == instance.map(InstanceId::as_str);
    // Hold the lease until the record is written, so that the next holder finds it.
    let turn = Turn::at_foreign(app, name).await?;
    let (gateway_id, value, used_quota) = match &turn {
        None => (String::new(), fresh_value()?, 0),
        Some(turn) => {
            if let Some(made) = gateway_key::named(&app.db, name).await? {
                return Some(made).filter(same).ok_or_else(another);
            }
            let before = gateway_key::ever_named(&app.db, name).await?.to_string();
            let (made, value) = turn.make(app, name, &before, quota).await?;
            (made.gateway_id, value, made.used_quota)
        }
    };
    let id = base::id::KeyId::fresh();
    let key = GatewayKey {
        id: id.clone(),
        instance_id: instance.cloned(),
        name: name.to_owned(),
        gateway_id,
        secret: app.sealer.seal(gateway_key::place(id.as_str()), &value)?,
        status: Status::Active,
        user_revoked: false,
        quota_spent: false,
        quota,
        used_quota,
        logged_quota: 0,
        carried_quota: 0,
        quota_from: 0,
        dirty: false,
        rotate: false,
        last_checked_at: None,
        created_at: now,
        updated_at: now,
    };
    let mut tx = app.db.begin().await?;
    // Lock the user before the key is inserted: a revocation at this moment either sees the key, or is seen here.
    let locked = match instance {
        Some(instance) => binding::lock_with_holder(&mut tx, instance).await?,
        None => None,
    };
    if instance.is_some() && locked.is_none() {
        // The instance was deleted meanwhile, so nothing would ever switch this key off.
        drop(tx);
        if turn.is_some() {
            app.upstream.gateway.delete_key(&key.gateway_id).await?;
        }
        return Err(Kind::NotFound.into());
    }
    match gateway_key::insert(&mut tx, &key, &app.sealer.hash(&value)).await {
        Ok(()) => {}
        Err(store::Error::Taken) => {
            // Another process inserted the key first. PostgreSQL accepts nothing more in a failed transaction.
            drop(tx);
            let made = gateway_key::named(&app.db, name).await?;
            return made.filter(same).ok_or_else(another);
        }
        Err(other) => return Err(other.into()),
    }
    gateway_key::set_logged(&mut tx, &key.id).await?;
    if turn.is_some() {
        gateway_key::set_applied(&mut tx, &key.id, "valid").await?;
    }
    if let Some(holder) = locked.and_then(|locked| locked.holder) {
        super::follow_holder(app, &mut tx, &key, &holder, "user status").await?;
    }
    let detail = match quota {
        Some(quota) => format!("made, quota {quota}"),
        None => "made".to_owned(),
    };
    audit::record(app, &mut tx, by, AuditEvent::info(Action::KeyCreate, name, &detail)).await?;
    tx.notify(Notice::new(Topic::Key, &key.id)).await?;
    tx.commit().await?;
    Ok(gateway_key::find(&app.db, &id).await?.unwrap_or(key))
}

fn another() -> Error {
    Error::conflict("the name is another key's")
}
