//! Notices that the log of a foreign gateway says nothing while requests are answered: it cannot be read, or was
//! switched off. Every number that is counted from it, the daily quotas above all, would then stand still.
//!
//! Two things are compared with the log: what we forwarded and saw answered, and what the gateway itself counts for all
//! our keys, which has what assistants ask on their own.

use std::sync::{Mutex, PoisonError};

use base::Result;
use jiff::{SignedDuration, Timestamp};
use queue::alert::{self, Rule};
use store::gateway_state::{self, GatewayState};
use store::model::Purpose;
use store::{unlogged_request, usage_source};

use crate::{App, key, own_request};

/// The name under which the state is kept.
const LOG: &str = "log";
/// The subject of the alert.
const SUBJECT: &str = "gateway log";
/// How long a log may say nothing, beside the delay that its kind is known for.
const GRACE: SignedDuration = SignedDuration::from_secs(60);
/// How often a state that has not changed is written all the same.
const WRITTEN_EVERY: SignedDuration = SignedDuration::from_secs(60);
/// How often the gateway's counter is read.
const COUNTED_EVERY: SignedDuration = SignedDuration::from_secs(55);
/// How often a chat is sent to find out whether the log moves again, while keys are off and nobody else asks.
const PROBE_EVERY: SignedDuration = SignedDuration::from_mins(5);
/// How many models are tried for such a chat, the cheapest first.
const PROBED_MODELS: usize = 3;

/// What one process remembers of the gateway's counter.
#[derive(Default)]
pub struct Memory(Mutex<Remembered>);

#[derive(Clone, Copy, Default)]
struct Remembered {
    counter: Option<Counter>,
    checked_at: Option<Timestamp>,
    probed_at: Option<Timestamp>,
}

#[derive(Clone, Copy)]
struct Counter {
    /// The counter when the log last agreed with it, and that time.
    value: i64,
    at: Timestamp,
    /// When it was first seen to be higher, without any row since.
    ahead_since: Option<Timestamp>,
}

/// What is wrong with the log by the last look of any process.
pub async fn problem(app: &App) -> Result<Option<GatewayState>> {
    if app.upstream.embedded {
        return Ok(None);
    }
    Ok(gateway_state::find(&app.db, LOG).await?.filter(|state| !state.problem.is_empty()))
}

/// Whether keys that a daily quota binds are off, because the quota cannot be counted.
pub async fn holds_keys(app: &App) -> Result<bool> {
    Ok(app.upstream.keys_off_without_log && problem(app).await?.is_some())
}

/// Looks once, records what was found, and raises or resolves the alert.
pub async fn look(app: &App) -> Result<()> {
    if app.upstream.embedded {
        return Ok(());
    }
    let now = app.clock.now();
    let found = find(app, now).await?;
    let text = found.as_deref().unwrap_or_default();
    let known = gateway_state::find(&app.db, LOG).await?;
    let is_known =
        |known: &GatewayState| known.problem == text && now.duration_since(known.checked_at).abs() < WRITTEN_EVERY;
    if !known.as_ref().is_some_and(is_known) {
        let mut tx = app.db.begin().await?;
        gateway_state::set(&mut tx, LOG, text, now).await?;
        tx.commit().await?;
    }
    alert::set_state(app, Rule::GatewayLogSilent, SUBJECT, found.as_deref()).await?;
    if found.is_some() && app.upstream.keys_off_without_log {
        probe(app, now).await;
    }
    Ok(())
}

async fn find(app: &App, now: Timestamp) -> Result<Option<String>> {
    let as_of = app.feed.pull().await;
    if as_of.stale && now.duration_since(as_of.at) >= GRACE {
        let why = app.feed.trouble().unwrap_or_else(|| "it does not answer".to_owned());
        let known = if as_of.at > Timestamp::UNIX_EPOCH { app.zone.show(as_of.at) } else { "never".to_owned() };
        return Ok(Some(format!("the log of the LLM gateway cannot be read, last {known}: {why}")));
    }
    let kind = app.upstream.gateway.kind();
    // A log that no process has looked at cannot be judged.
    let Some(moved_at) = usage_source::moved_at(&app.db, kind.name).await? else { return Ok(None) };
    let grace = SignedDuration::try_from(kind.row_delay).unwrap_or(GRACE) + GRACE;
    let missing = unlogged_request::count_between(&app.db, moved_at, now - grace).await?;
    if missing > 0 {
        let text = format!("the log of the LLM gateway does not move: it lacks {missing} requests that were answered");
        return Ok(Some(text));
    }
    if is_counter_ahead(app, moved_at, now).await {
        let text = "the log of the LLM gateway does not move, while the gateway itself counts more use";
        return Ok(Some(text.to_owned()));
    }
    Ok(None)
}

/// Whether the gateway's own counter has grown for longer than a row may take, and no row came.
async fn is_counter_ahead(app: &App, moved_at: Timestamp, now: Timestamp) -> bool {
    let memory = &app.upstream.log_watch.0;
    let mut remembered = *memory.lock().unwrap_or_else(PoisonError::into_inner);
    let delay = SignedDuration::try_from(app.upstream.gateway.kind().row_delay).unwrap_or(GRACE) + GRACE / 2;
    let is_due = remembered.checked_at.is_none_or(|at| now.duration_since(at).abs() >= COUNTED_EVERY);
    if is_due {
        remembered.checked_at = Some(now);
        match app.upstream.gateway.counted().await {
            Ok(value) => remembered.counter = Some(next(remembered.counter, value, moved_at, now)),
            // The gateway is away: nothing is known, and that is said elsewhere.
            Err(error) => tracing::debug!(%error, "the gateway's counter could not be read"),
        }
    } else if let Some(counter) = &mut remembered.counter
        && moved_at >= counter.at
    {
        counter.ahead_since = None;
    }
    *memory.lock().unwrap_or_else(PoisonError::into_inner) = remembered;
    let ahead_since = remembered.counter.and_then(|counter| counter.ahead_since);
    ahead_since.is_some_and(|since| now.duration_since(since) >= delay)
}

fn next(before: Option<Counter>, value: i64, moved_at: Timestamp, now: Timestamp) -> Counter {
    match before {
        Some(before) if value > before.value && moved_at < before.at => {
            Counter { ahead_since: before.ahead_since.or(Some(now)), ..before }
        }
        _ => Counter { value, at: now, ahead_since: None },
    }
}

/// Sends a short chat with the platform's own key, which no quota binds. Its row shows that the log moves again.
async fn probe(app: &App, now: Timestamp) {
    let memory = &app.upstream.log_watch.0;
    {
        let mut remembered = memory.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.probed_at.is_some_and(|at| now.duration_since(at).abs() < PROBE_EVERY) {
            return;
        }
        remembered.probed_at = Some(now);
    }
    let sent = async {
        let key = key::platform(app).await?.key(&app.sealer)?;
        let mut models = store::model::all(&app.db).await?;
        models.retain(|model| model.enabled && model.purpose == Purpose::Chat);
        models.sort_by(|a, b| a.price.usd().total_cmp(&b.price.usd()));
        let mut last = Ok(());
        for model in models.iter().take(PROBED_MODELS) {
            last = own_request::chat(app, &key, &model.id).await.map(drop);
            if last.is_ok() {
                break;
            }
        }
        last
    };
    if let Err(error) = sent.await {
        tracing::warn!(%error, "no chat could be sent to find out whether the gateway's log moves");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    #[test]
    fn a_counter_is_ahead_from_its_first_growth_without_a_row() {
        let first = next(None, 100, at(-50), at(0));
        let same = next(Some(first), 100, at(-50), at(60));
        assert!(same.ahead_since.is_none() && same.at == at(60), "nobody asked");
        let ahead = next(Some(same), 120, at(-50), at(120));
        assert_eq!(ahead.ahead_since, Some(at(120)));
        let still = next(Some(ahead), 130, at(-50), at(180));
        assert_eq!((still.ahead_since, still.value), (Some(at(120)), 100));
        let moved = next(Some(still), 130, at(170), at(240));
        assert!(moved.ahead_since.is_none() && moved.value == 130, "a row came");
        // A counter that was set back starts from there.
        assert_eq!(next(Some(moved), 0, at(170), at(300)).value, 0);
    }
}
