//! Makes a foreign gateway agree with our record of a key, and our record with what the gateway says was used.

use base::id::{InstanceId, KeyId};
use base::{Error, Kind, Result};
use remote::llm::NewKey;
use serde::{Deserialize, Serialize};
use store::gateway_key::{self, GatewayKey};
use store::notice::{Notice, Topic};
use store::{Tx, usage};

use super::{Spent, fresh_value};
use crate::App;
use crate::audit::{self, Action, By, Deed, Level};
use crate::task::{self, Context, Payload, Run, SyncKeyToInstance};

/// The gateway must follow the record of a key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApplyKey {
    pub key_id: String,
}

impl Payload for ApplyKey {
    const TYPE: &'static str = "apply_key";

    /// None: nothing happens on the instance, so it need not wait for what does.
    async fn instance(&self, _: &mut Tx) -> Result<Option<InstanceId>> {
        Ok(None)
    }
}

impl Run for ApplyKey {
    async fn run(self, context: Context) -> Result<String> {
        let app = &context.app;
        let id = KeyId::named(&self.key_id);
        let Some(key) = gateway_key::find(&app.db, &id).await? else { return Ok("the key is gone".into()) };
        if app.llm.embedded || !key.dirty {
            return Ok("the gateway agrees already".into());
        }
        let done = agree(app, &key).await?;
        context.log(&done).await?;
        Ok(done)
    }
}

pub(super) async fn agree(app: &App, key: &GatewayKey) -> Result<String> {
    let gateway = &app.llm.gateway;
    let mut done = String::from("status set");
    let mut gateway_id = key.gateway_id.clone();
    let (mut value, mut carried) = (None, 0);
    let old = gateway.read_key(&key.gateway_id).await?;
    // One that the gateway lost is made anew.
    if key.rotate || old.is_none() {
        // What it used goes on counting under its name. And it goes first: there are never two of one name.
        carried = match old {
            Some(old) => {
                gateway.delete_key(&key.gateway_id).await?;
                old.used_quota
            }
            None => (key.logged_quota - key.carried_quota).max(0),
        };
        // What its predecessors used is not given again.
        let quota = key.quota.map(|quota| (quota - key.carried_quota - carried).max(0));
        let new = NewKey { name: key.name.clone(), quota, value: Some(fresh_value()?) };
        let made = gateway.create_key(&new).await?;
        let told = made
            .key
            .ok_or_else(|| Error::from(Kind::Gateway).with_operator("the gateway does not tell the new key"))?;
        (gateway_id, value, done) = (made.gateway_id, Some(told), "key changed".into());
    }
    gateway.set_enabled(&gateway_id, key.enabled()).await?;
    let mut tx = app.db.begin().await?;
    let Some(mut now) = gateway_key::lock(&mut tx, &KeyId::named(&key.id)).await? else {
        return Ok("the key is gone".into());
    };
    if let Some(value) = value {
        let sealed = app.sealer.seal(gateway_key::place(&key.id), &value)?;
        gateway_key::set_secret(&mut tx, &key.id, &sealed, &app.sealer.hash(&value), app.clock.now()).await?;
        if let Some(instance) = &key.instance_id {
            let payload = SyncKeyToInstance { instance_id: instance.clone() };
            task::enqueue(app, &mut tx, &payload, "key changed", None).await?;
        }
    }
    // What was asked for in the meantime is still to be done, whatever became of the task that was made for it.
    let changed = now.updated_at != key.updated_at;
    now.carried_quota += carried;
    (now.gateway_id, now.rotate, now.dirty) = (gateway_id, changed && now.rotate, changed);
    if !changed {
        now.updated_at = app.clock.now();
    }
    gateway_key::update(&mut tx, &now).await?;
    if changed {
        super::follow(app, &mut tx, &now, "changed meanwhile").await?;
    }
    tx.notify(Notice::new(Topic::Key, &key.id)).await?;
    tx.commit().await?;
    Ok(done)
}

/// Reads the key at the gateway, compares what it says was used with what the log sums up to, and has the key
/// written to its instance.
pub async fn sync(app: &App, by: &By, id: &KeyId) -> Result<Spent> {
    let key = gateway_key::find(&app.db, id).await?.ok_or(Kind::NotFound)?;
    app.feed.pull().await;
    let found =
        if app.llm.embedded {
            None
        } else {
            let found = app.llm.gateway.read_key(&key.gateway_id).await?;
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
        super::follow(app, &mut tx, &now, "key sync").await?;
    }
    if let Some(instance) = &now.instance_id {
        let payload = SyncKeyToInstance { instance_id: instance.clone() };
        task::enqueue(app, &mut tx, &payload, "key sync", None).await?;
    }
    let (drift, logged) = (now.drift(), now.logged_quota);
    let (level, detail) = match drift {
        0 => (Level::Info, "in step".to_owned()),
        drift => (Level::Warn, format!("drift: the gateway says {}, the log {logged}, {drift} apart", now.used_quota)),
    };
    if drift != 0 {
        tracing::warn!(key = now.name, used = now.used_quota, logged, "a key's use and the log disagree");
    }
    audit::record(app, &mut tx, by, Deed { action: Action::KeySync, level, target: &now.name, detail: &detail })
        .await?;
    tx.commit().await?;
    super::find(app, id).await
}
