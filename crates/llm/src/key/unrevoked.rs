//! Revocations that a foreign gateway has not followed yet: keys that should not open it any more, and still do.

use std::time::Duration;

use base::Result;
use base::id::UserId;
use queue::alert::{self, Rule};
use store::gateway_key::{self, Unrevoked};

use crate::App;

/// How many keys are looked at.
const MOST: i64 = 200;
/// A change that reaches the gateway within this time is no news.
const QUICK: jiff::SignedDuration = jiff::SignedDuration::from_secs(30);
/// Other changes are worth an alert after this time.
const LONG: jiff::SignedDuration = jiff::SignedDuration::from_mins(2);
/// How many keys an alert names.
const NAMED: usize = 10;

/// Raises one alert for all keys that should not open the gateway any more and still do, and one for all other changes
/// that it has not followed; resolves each when there is none.
pub async fn alert_unrevoked(app: &App) -> Result<()> {
    if app.upstream.embedded {
        return Ok(());
    }
    let message = unrevoked(app).await?;
    alert::set_extent(app, Rule::KeyNotRevoked, "keys", message.as_deref()).await?;
    let now = app.clock.now();
    let mut keys = gateway_key::unapplied(&app.db, MOST).await?;
    keys.retain(|key| now.duration_since(key.updated_at).abs() >= LONG);
    let message = summary(app, &keys, "have a change that has not reached the LLM gateway");
    alert::set_extent(app, Rule::TaskDead, "key changes", message.as_deref()).await.map(drop)
}

/// Which keys should not open the gateway any more and still do, and why; `None` if there is none.
pub async fn unrevoked(app: &App) -> Result<Option<String>> {
    let now = app.clock.now();
    let mut keys = gateway_key::unrevoked(&app.db, gateway_key::Of::All, MOST).await?;
    let is_quick = |key: &Unrevoked| now.duration_since(key.updated_at).abs() < QUICK;
    keys.retain(|key| !key.problem.is_empty() || key.state == gateway_key::ON || !is_quick(key));
    Ok(summary(app, &keys, "still open the LLM gateway although revoked or switched off here"))
}

/// How many, since when, which and why.
fn summary(app: &App, keys: &[Unrevoked], what: &str) -> Option<String> {
    let first = keys.first()?;
    let names: Vec<&str> = keys.iter().take(NAMED).map(|key| key.name.as_str()).collect();
    let more = if keys.len() > NAMED { ", …" } else { "" };
    let why = keys.iter().map(|key| key.problem.as_str()).find(|problem| !problem.is_empty());
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    let since = app.zone.show(first.updated_at);
    let (count, names) = (keys.len(), names.join(", "));
    Some(format!("{count} sub keys {what}, the first since {since}: {names}{more}{why}"))
}

/// How long a revocation waits for the gateway to follow before it answers that it does not hold yet.
const PATIENCE: Duration = Duration::from_secs(2);
const AGAIN_SOON: Duration = Duration::from_millis(50);

/// The keys of a user that was just revoked which still open the gateway. Waits a moment: as a rule it follows at once.
pub async fn unrevoked_of(app: &App, user: &UserId) -> Result<Vec<Unrevoked>> {
    if app.upstream.embedded {
        return Ok(vec![]);
    }
    let began = std::time::Instant::now();
    loop {
        let keys = gateway_key::unrevoked(&app.db, gateway_key::Of::User(user), MOST).await?;
        let is_over = keys.iter().all(|key| !key.problem.is_empty());
        if is_over || began.elapsed() >= PATIENCE {
            return Ok(keys);
        }
        tokio::time::sleep(AGAIN_SOON).await;
    }
}
