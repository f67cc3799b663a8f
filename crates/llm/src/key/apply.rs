//! Makes a foreign gateway agree with our record of a key, and our record with what the gateway says was used.

use base::id::{InstanceId, KeyId};
use base::{Error, Kind, Result};
use queue::audit::{self, Action, AuditEvent, By, Level};
use queue::permission::Permission;
use queue::task::{Context, Payload, Priority, Run};
use serde::{Deserialize, Serialize};
use store::gateway_key::{self, GatewayKey, Status};
use store::notice::{Notice, Topic};
use store::{Tx, usage};

use super::Spent;
use super::turn::Turn;
use crate::App;

/// Makes the gateway agree with our record of a key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApplyKey {
    pub key_id: KeyId,
}

impl Payload for ApplyKey {
    const TYPE: &'static str = "apply_key";
    const PRIORITY: Priority = Priority::Security;
    const PERMISSION: Permission = Permission::ManageKeys;
    const COALESCES: bool = true;

    /// `None`: nothing happens on the instance, so it need not wait for other tasks of the instance.
    async fn instance(&self, _: &mut Tx) -> Result<Option<InstanceId>> {
        Ok(None)
    }
}

impl<A: AsRef<App> + AsRef<queue::App> + Send + Sync> Run<A> for ApplyKey {
    async fn run(self, context: Context<A>) -> Result<String> {
        let app: &App = (*context.app).as_ref();
        if app.upstream.embedded {
            return Ok(AGREES.into());
        }
        let done = agree(app, &self.key_id).await?;
        context.log(&done).await?;
        Ok(done)
    }
}

const AGREES: &str = "the gateway agrees already";
const GONE: &str = "the key is gone";

/// Makes the gateway agree with the record of a key, under the lease on the key's name. If two processes replaced a key
/// at the same time, both would count what the old key used, and both would write their own key to the instance.
pub async fn agree(app: &App, id: &KeyId) -> Result<String> {
    let Some(key) = gateway_key::find(&app.db, id).await? else { return Ok(GONE.into()) };
    let turn = Turn::take(app, &key.name).await?;
    // Read the record again, under its lock: the last holder of the lease may have done the work already, and a
    // transaction that changes the record now must end first.
    let mut tx = app.db.begin().await?;
    let now = gateway_key::lock(&mut tx, id).await?;
    tx.commit().await?;
    match now {
        Some(key) if key.dirty => bring(app, &turn, &key).await,
        Some(_) => Ok(AGREES.into()),
        None => Ok(GONE.into()),
    }
}

async fn bring(app: &App, turn: &Turn, key: &GatewayKey) -> Result<String> {
    let gateway = &app.upstream.gateway;
    let mut done = String::from("status set");
    let mut gateway_id = key.gateway_id.clone();
    let (mut value, mut carried) = (None, 0);
    let old = gateway.read_key(&key.gateway_id).await?;
    // Create a key again if the gateway lost it, unless it is disabled: nobody will use that one again.
    let is_gone = old.is_none() && key.status == Status::Disabled;
    if !is_gone && (key.rotate || old.is_none()) {
        // What the old key used still counts under its name. Delete it first: there must never be two keys of one name.
        carried = match old {
            Some(old) => {
                gateway.delete_key(&key.gateway_id).await?;
                old.used_quota
            }
            None => (key.logged_quota - key.carried_quota).max(0),
        };
        // The new key gets only what is left of the quota. Subtract the gateway's number: it is ahead of the log.
        let used = key.carried_quota - key.quota_from + carried;
        let quota = key.quota.map(|quota| (quota - used).max(0));
        let (made, secret) = turn.make(app, &key.name, &key.gateway_id, quota).await?;
        (gateway_id, value, done) = (made.gateway_id, Some(secret), "key changed".into());
    }
    if is_gone {
        done = "the gateway does not have it any more".into();
    } else {
        gateway.set_enabled(&gateway_id, key.enabled()).await?;
    }
    let mut tx = app.db.begin().await?;
    let Some(mut now) = gateway_key::lock(&mut tx, &key.id).await? else {
        return Ok(GONE.into());
    };
    if let Some(value) = value {
        let sealed = app.sealer.seal(gateway_key::place(&key.id), &value)?;
        gateway_key::set_secret(&mut tx, &key.id, &sealed, &app.sealer.hash(&value), app.clock.now()).await?;
        if let Some(instance) = &key.instance_id {
            super::enqueue_sync_key(app, &mut tx, instance, "key changed").await?;
        }
    }
    // If the record changed meanwhile, it stays dirty and gets another task, whatever happened to the task of that
    // change.
    let changed = now.updated_at != key.updated_at;
    // If our lease ran out, the next holder may have replaced the key and counted its use already.
    if now.gateway_id == key.gateway_id {
        now.carried_quota += carried;
    }
    (now.gateway_id, now.rotate, now.dirty) = (gateway_id, changed && now.rotate, changed);
    if !changed {
        now.updated_at = app.clock.now();
    }
    gateway_key::update(&mut tx, &now).await?;
    if changed {
        super::follow(app, &mut tx, &now, Priority::Security, "changed meanwhile").await?;
    }
    tx.notify(Notice::new(Topic::Key, &key.id)).await?;
    tx.commit().await?;
    Ok(done)
}

/// Reads the key at the gateway, compares its use there with the log, and enqueues writing the key to its instance.
pub async fn sync(app: &App, by: &By, id: &KeyId) -> Result<Spent> {
    let key = gateway_key::find(&app.db, id).await?.ok_or(Kind::NotFound)?;
    app.feed.pull().await;
    // Do not read the key while another process replaces it.
    let _turn = Turn::at_foreign(app, &key.name).await?;
    let key = gateway_key::find(&app.db, id).await?.ok_or(Kind::NotFound)?;
    let found =
        if app.upstream.embedded {
            None
        } else {
            let found = app.upstream.gateway.read_key(&key.gateway_id).await?;
            Some(found.ok_or_else(|| {
                Error::conflict("the gateway has no such key any more: delete this one and make another")
            })?)
        };
    let mut tx = app.db.begin().await?;
    let mut now = gateway_key::lock(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    now.logged_quota = usage::of_all_time(&mut tx, &now.name).await?.quota;
    now.used_quota = found.as_ref().map_or(now.logged_quota - now.carried_quota, |found| found.used_quota);
    (now.last_checked_at, now.updated_at) = (Some(app.clock.now()), app.clock.now());
    if let Some(found) = &found
        && found.enabled() != now.enabled()
    {
        now.dirty = true;
    }
    gateway_key::update(&mut tx, &now).await?;
    if now.dirty {
        super::follow(app, &mut tx, &now, Priority::People, "key sync").await?;
    }
    if let Some(instance) = &now.instance_id {
        super::enqueue_sync_key(app, &mut tx, instance, "key sync").await?;
    }
    let (drift, logged) = (now.drift(), now.logged_quota);
    let (level, detail) = match drift {
        0 => (Level::Info, "in step".to_owned()),
        drift => (Level::Warn, format!("drift: the gateway says {}, the log {logged}, {drift} apart", now.used_quota)),
    };
    if drift != 0 {
        tracing::warn!(key = now.name, used = now.used_quota, logged, "a key's use and the log disagree");
    }
    audit::record(app, &mut tx, by, AuditEvent { action: Action::KeySync, level, target: &now.name, detail: &detail })
        .await?;
    tx.commit().await?;
    super::find(app, id).await
}
