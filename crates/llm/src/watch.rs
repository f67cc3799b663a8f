//! What is looked at all the time with a foreign gateway: daily quotas (the keys of a user are disabled when the user's
//! quota is used up, and enabled again after midnight), its log, and changes of keys that have not reached it.

use std::collections::HashMap;
use std::time::Duration;

use base::Result;
use base::id::{KeyId, UserId};
use queue::task::{Payload as _, Priority};
use store::gateway_key::{self, GatewayKey};
use store::{Tx, binding};
use tokio::sync::watch;

use crate::key::{self, ApplyKey};
use crate::usage::spent_and_unlogged;
use crate::{App, log_watch};

/// How often quotas are compared.
const EVERY: Duration = Duration::from_secs(5);

/// Compares quotas while this process leads: one replica is enough. Runs until it is dropped. The embedded gateway
/// enforces quotas itself and needs none of this.
pub async fn watch_quotas(app: &App, leads: watch::Receiver<bool>) {
    if app.upstream.embedded {
        return std::future::pending().await;
    }
    loop {
        tokio::time::sleep(EVERY).await;
        watch_once(app, &leads).await;
    }
}

/// One round of it; false where another process leads.
pub async fn watch_once(app: &App, leads: &watch::Receiver<bool>) -> bool {
    if !*leads.borrow() {
        return false;
    }
    if let Err(error) = log_watch::look(app).await {
        tracing::warn!(%error, "the gateway's log could not be looked at");
    }
    if let Err(error) = look(app).await {
        tracing::warn!(%error, "quotas could not be compared");
    }
    if let Err(error) = remind(app).await {
        tracing::warn!(%error, "keys could not be looked through");
    }
    if let Err(error) = key::alert_unrevoked(app).await {
        tracing::warn!(%error, "it could not be looked up which revocations do not hold");
    }
    true
}

/// If the gateway has not followed a change of a key for this long, the key gets another task: the last one may be
/// dead.
const OVERDUE: jiff::SignedDuration = jiff::SignedDuration::from_secs(60);
/// The wait after a reminder that is dead: each dead task raises an alert.
const AGAIN: jiff::SignedDuration = jiff::SignedDuration::from_mins(5);
/// The most reminders in one round. The next round enqueues the others.
const REMINDERS: i64 = 200;

/// Enqueues a task for every change that has not reached the gateway, however long the gateway was down. Returns the
/// number of tasks.
pub async fn remind(app: &App) -> Result<usize> {
    let payload = ApplyKey { key_id: KeyId::named("?") };
    let payload = serde_json::to_string(&payload).map_err(base::Error::internal)?;
    let around = payload.split_once('?').unwrap_or_default();
    let now = app.clock.now();
    let (fresh, recent) = (now - OVERDUE..=now + OVERDUE, now - AGAIN..=now + AGAIN);
    let overdue = gateway_key::overdue(&app.db, ApplyKey::TYPE, around, fresh, recent, REMINDERS).await?;
    for key in &overdue {
        let mut tx = app.db.begin().await?;
        key::follow(app, &mut tx, key, Priority::People, gateway_key::REMINDER).await?;
        tx.commit().await?;
    }
    Ok(overdue.len())
}

/// Compares the quotas of all users once, and switches their keys. Returns how many keys were switched.
pub async fn look(app: &App) -> Result<usize> {
    if app.db.days_pending() {
        // Today's sums may still be those of another zone's day.
        return Ok(0);
    }
    app.feed.pull().await;
    let midnight = app.zone.midnight(app.clock.now());
    let mut spent_up: HashMap<UserId, bool> = HashMap::new();
    let mut switched = 0;
    let uncounted = log_watch::holds_keys(app).await?;
    let date = app.zone.date(midnight).to_string();
    for day in gateway_key::spent_days(&app.db, &date, midnight, uncounted).await? {
        let over = match spent_up.get(&day.user_id) {
            Some(over) => *over,
            None => {
                let limit = day.quota_daily;
                // A quota that cannot be counted counts as used up.
                let mut over = limit > 0 && (uncounted || day.at_most >= limit);
                if over && day.is_partial && !uncounted {
                    let (logged, unlogged) = spent_and_unlogged(app, &day.user_id, midnight).await?;
                    over = logged + unlogged >= limit;
                }
                spent_up.insert(day.user_id.clone(), over);
                over
            }
        };
        if day.quota_spent == over {
            continue;
        }
        let mut tx = app.db.begin().await?;
        let Some(mut key) = gateway_key::lock(&mut tx, &day.key_id).await? else { continue };
        if key.quota_spent == over || !is_held_by(&mut tx, &key, &day.user_id).await? {
            continue;
        }
        (key.quota_spent, key.dirty, key.updated_at) = (over, true, app.clock.now());
        gateway_key::update(&mut tx, &key).await?;
        key::follow(app, &mut tx, &key, Priority::People, "daily quota").await?;
        tx.commit().await?;
        switched += 1;
    }
    Ok(switched)
}

/// Whether this user still holds the key's instance. Another holder has a quota of their own.
async fn is_held_by(tx: &mut Tx, key: &GatewayKey, user: &UserId) -> Result<bool> {
    let Some(instance) = &key.instance_id else { return Ok(false) };
    let binding = binding::live(tx, instance).await?;
    Ok(binding.is_some_and(|binding| binding.user_id == *user))
}
