//! Makes a foreign gateway agree with our record of a key, and our record with what the gateway says was used.

use base::id::{InstanceId, KeyId};
use base::{Error, Kind, Result};
use queue::audit::{self, Action, AuditEvent, By, Level};
use queue::permission::Permission;
use queue::task::{Context, Payload, Priority, Run};
use remote::llm::RemoteKey;
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
    // One alert tells of all keys that the gateway does not switch: `alert_unrevoked`.
    const ALERTS_WHEN_DEAD: bool = false;

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
/// How many characters of an error are kept.
const LONGEST_PROBLEM: usize = 300;

/// Makes the gateway agree with the record of a key, under the lease on the key's name. If two processes replaced a key
/// at the same time, both would count what the old key used, and both would write their own key to the instance.
pub async fn agree(app: &App, id: &KeyId) -> Result<String> {
    let Some(key) = gateway_key::find(&app.db, id).await? else { return Ok(GONE.into()) };
    let agreed = agree_in_turn(app, id, &key.name).await;
    if let Err(error) = &agreed {
        // Whoever looks at the key sees why the gateway has not followed.
        let problem: String = error.to_string().chars().take(LONGEST_PROBLEM).collect();
        gateway_key::set_problem(&app.db, id, &problem).await?;
    }
    agreed
}

async fn agree_in_turn(app: &App, id: &KeyId, name: &str) -> Result<String> {
    let turn = Turn::take(app, name).await?;
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
    // Most changes only switch a key: that is one call, since gateways limit calls.
    let is_switched = !key.rotate && is_there(gateway.set_enabled(&key.gateway_id, key.enabled()).await)?;
    if !is_switched {
        let old = if key.rotate { gateway.read_key(&key.gateway_id).await? } else { None };
        // Create a key again if the gateway lost it, unless it is disabled: nobody will use that one again.
        if old.is_none() && key.status == Status::Disabled {
            done = "the gateway does not have it any more".into();
        } else {
            // What the old key used still counts under its name. Delete it first: there must never be two keys of one
            // name.
            let logged = (key.logged_quota - key.carried_quota).max(0);
            carried = match old {
                Some(old) => {
                    gateway.delete_key(&key.gateway_id).await?;
                    if old.is_counted { old.used_quota } else { logged }
                }
                None => logged,
            };
            // The new key gets only what is left of the quota. Subtract the gateway's number: it is ahead of the log.
            let used = key.carried_quota - key.quota_from + carried;
            let quota = key.quota.map(|quota| (quota - used).max(0));
            let (made, secret) = turn.make(app, &key.name, &key.gateway_id, quota).await?;
            if made.enabled() != key.enabled() {
                gateway.set_enabled(&made.gateway_id, key.enabled()).await?;
            }
            (gateway_id, value, done) = (made.gateway_id, Some(secret), "key changed".into());
        }
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
    gateway_key::set_applied(&mut tx, &now.id, if key.enabled() { "valid" } else { gateway_key::OFF }).await?;
    if changed {
        super::follow(app, &mut tx, &now, Priority::Security, "changed meanwhile").await?;
    }
    tx.notify(Notice::new(Topic::Key, &key.id)).await?;
    tx.commit().await?;
    Ok(done)
}

/// Whether the gateway has the key that it was to switch.
fn is_there(switched: Result<()>) -> Result<bool> {
    match switched {
        Ok(()) => Ok(true),
        Err(error) if error.kind == Kind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// What the gateway counts of a key, and what the log sums up to, at about the same time.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    pub gateway: i64,
    pub log: i64,
}

/// By how much two counts are apart that both lag a little, from two readings of both with a pause in between that is
/// longer than the lag. Whatever happened before the first reading is in both counts of the second. So only what the
/// first reading of one has beyond the second of the other is a difference that stays.
pub fn apart(first: Counted, second: Counted) -> std::ops::RangeInclusive<i64> {
    let (least, most) = (first.gateway - second.log, second.gateway - first.log);
    least..=most.max(least)
}

/// Reads the key at the gateway, compares its use there with the log, and enqueues writing the key to its instance.
pub async fn sync(app: &App, by: &By, id: &KeyId) -> Result<Spent> {
    let mut read = read(app, id).await?;
    let drift = match read.counted {
        None => None,
        Some(first) if is_close(app, first) => Some(0),
        Some(first) => {
            // One of the two may only be late.
            tokio::time::sleep(app.upstream.gateway.kind().row_delay).await;
            read = self::read(app, id).await?;
            let zero_if_close =
                |second: Counted| if is_close(app, second) { 0 } else { nearest(&apart(first, second), 0) };
            read.counted.map(zero_if_close)
        }
    };
    record(app, by, id, read, drift).await?;
    super::find(app, id).await
}

/// The number of a range that is nearest to another.
pub fn nearest(range: &std::ops::RangeInclusive<i64>, to: i64) -> i64 {
    to.clamp(*range.start(), *range.end())
}

fn is_close(app: &App, counted: Counted) -> bool {
    let tolerance = i64::from(app.upstream.gateway.kind().charges_fractions);
    (counted.gateway - counted.log).abs() <= tolerance
}

struct Read {
    found: Option<RemoteKey>,
    /// `None` where the two cannot be compared: our own gateway has one count, one-api counts nothing of a token
    /// without a limit, and a log that cannot be read says nothing.
    counted: Option<Counted>,
}

async fn read(app: &App, id: &KeyId) -> Result<Read> {
    let key = gateway_key::find(&app.db, id).await?.ok_or(Kind::NotFound)?;
    if app.upstream.embedded {
        app.feed.pull().await;
        return Ok(Read { found: None, counted: None });
    }
    // Do not read the key while another process replaces it.
    let _turn = Turn::take(app, &key.name).await?;
    let key = gateway_key::find(&app.db, id).await?.ok_or(Kind::NotFound)?;
    let found = app.upstream.gateway.read_key(&key.gateway_id).await?;
    let lost = || Error::conflict("the gateway has no such key any more: delete this one and make another");
    let found = found.ok_or_else(lost)?;
    let as_of = app.feed.pull().await;
    let log = usage::of_all_time(&app.db, &key.name).await?.quota();
    let counted =
        (found.is_counted && !as_of.stale).then_some(Counted { gateway: found.used_quota + key.carried_quota, log });
    Ok(Read { found: Some(found), counted })
}

async fn record(app: &App, by: &By, id: &KeyId, read: Read, drift: Option<i64>) -> Result<()> {
    let mut tx = app.db.begin().await?;
    let mut now = gateway_key::lock(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    let logged = usage::of_all_time(&mut tx, &now.name).await?.quota();
    now.used_quota = read.found.as_ref().map_or(logged - now.carried_quota, |found| found.used_quota);
    (now.last_checked_at, now.updated_at) = (Some(app.clock.now()), app.clock.now());
    if let Some(found) = &read.found {
        if found.enabled() != now.enabled() {
            now.dirty = true;
        }
        let state = match (now.enabled(), found.enabled()) {
            (true, true) => "valid",
            (true, false) => "invalid",
            (false, true) => gateway_key::ON,
            (false, false) => gateway_key::OFF,
        };
        gateway_key::set_state(&mut tx, id, state, app.clock.now()).await?;
    }
    gateway_key::update(&mut tx, &now).await?;
    gateway_key::set_drift(&mut tx, id, drift).await?;
    if now.dirty {
        super::follow(app, &mut tx, &now, Priority::People, "key sync").await?;
    }
    if let Some(instance) = &now.instance_id {
        super::enqueue_sync_key(app, &mut tx, instance, "key sync").await?;
    }
    let (level, detail) = match drift {
        None => (Level::Info, "read; its use cannot be compared with the log".to_owned()),
        Some(0) => (Level::Info, "in step".to_owned()),
        Some(drift) => {
            let used = now.used_quota;
            (Level::Warn, format!("drift: the gateway says {used}, the log {logged}, {drift} apart"))
        }
    };
    if level == Level::Warn {
        tracing::warn!(key = now.name, used = now.used_quota, logged, "a key's use and the log disagree");
    }
    audit::record(app, &mut tx, by, AuditEvent { action: Action::KeySync, level, target: &now.name, detail: &detail })
        .await?;
    Ok(tx.commit().await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_difference_that_stays_is_one() {
        let at = |gateway, log| Counted { gateway, log };
        let drift = |first, second| nearest(&apart(first, second), 0);
        assert_eq!(drift(at(100, 120), at(120, 120)), 0, "the counter was late");
        assert_eq!(drift(at(120, 100), at(140, 120)), 0, "the log was late, and more was used meanwhile");
        assert_eq!(drift(at(120, 100), at(120, 100)), 20, "the log lacks something");
        assert_eq!(drift(at(100, 120), at(100, 130)), -20, "the counter does");
        assert_eq!(drift(at(150, 100), at(200, 140)), 10, "what is certain of it");
    }
}
