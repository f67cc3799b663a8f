//! With a foreign gateway, an instance's own spending is stopped by its key: off when its user's day is spent, on
//! again at midnight.

use std::collections::HashMap;
use std::time::Duration;

use base::Result;
use base::id::{InstanceId, UserId};
use store::binding::{self, Of};
use store::{gateway_key, user};

use crate::App;
use crate::usage::spent;

/// How often it is looked at.
const EVERY: Duration = Duration::from_secs(5);

/// Watches for as long as it runs. The embedded gateway refuses by itself and needs no watching.
pub async fn watch_quotas(app: &App) {
    if app.llm.embedded {
        return std::future::pending().await;
    }
    loop {
        tokio::time::sleep(EVERY).await;
        if let Err(error) = look(app).await {
            tracing::warn!(%error, "quotas could not be compared");
        }
        if let Err(error) = remind(app).await {
            tracing::warn!(%error, "keys could not be looked through");
        }
    }
}

/// A key that the gateway does not follow for so long gets another task: the last one may be dead.
const OVERDUE: jiff::SignedDuration = jiff::SignedDuration::from_secs(60);

/// Sees to it that every change reaches the gateway, however long that was away; answers how many tasks were made.
pub async fn remind(app: &App) -> Result<usize> {
    let mut made = 0;
    for key in gateway_key::dirty(&app.db).await? {
        let overdue = app.clock.now().duration_since(key.updated_at).abs() > OVERDUE;
        let payload =
            serde_json::to_string(&super::ApplyKey { key_id: key.id.clone() }).map_err(base::Error::internal)?;
        if !overdue
            || store::task::is_waiting(&app.db, <super::ApplyKey as crate::task::Payload>::TYPE, &payload).await?
        {
            continue;
        }
        let mut tx = app.db.begin().await?;
        super::follow(app, &mut tx, &key, "reminder").await?;
        tx.commit().await?;
        made += 1;
    }
    Ok(made)
}

/// Looks once at every key that belongs to somebody; answers how many were switched.
pub async fn look(app: &App) -> Result<usize> {
    app.feed.pull().await;
    let midnight = app.zone.midnight(app.clock.now());
    let mut spent_up: HashMap<String, bool> = HashMap::new();
    let mut switched = 0;
    for tenure in binding::tenures(&app.db, Of::All).await? {
        let over = match spent_up.get(&tenure.user_id) {
            Some(over) => *over,
            None => {
                let id = UserId::named(&tenure.user_id);
                let limit = user::find(&app.db, &id).await?.map_or(0, |u| u.quota_daily);
                let over = limit > 0 && spent(app, &id, midnight).await? >= limit;
                spent_up.insert(tenure.user_id.clone(), over);
                over
            }
        };
        let instance = InstanceId::named(&tenure.instance_id);
        let Some(key) = gateway_key::of_instance(&app.db, &instance).await? else { continue };
        if key.quota_spent == over {
            continue;
        }
        let mut tx = app.db.begin().await?;
        let id = base::id::KeyId::named(&key.id);
        let Some(mut key) = gateway_key::lock(&mut tx, &id).await? else { continue };
        (key.quota_spent, key.dirty, key.updated_at) = (over, true, app.clock.now());
        gateway_key::update(&mut tx, &key).await?;
        super::follow(app, &mut tx, &key, "daily quota").await?;
        tx.commit().await?;
        switched += 1;
    }
    Ok(switched)
}
