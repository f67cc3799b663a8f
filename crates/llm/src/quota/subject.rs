//! What a quota applies to: its limit, its use, and the refusal when it is used up.

use std::time::Duration;

use base::id::{KeyId, UserId};
use base::{Clock, Error, Kind, Result, Zone};
use jiff::Timestamp;
use store::{Tx, gateway_key, unlogged_request};

use crate::App;
use crate::usage::spent_in;

/// When to try again after a refusal because of what is only reserved.
const RESERVED: Duration = Duration::from_secs(5);

/// What a quota applies to, and its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Tokens of an employee on a local day.
    User { id: UserId, limit: i64, midnight: Timestamp, resets_at: Timestamp },
    /// Quota units of a sub key, for its whole life.
    Key { id: KeyId, limit: i64 },
}

impl Subject {
    /// An employee's quota of today; `None` without a limit.
    pub fn user(app: &App, id: &UserId, limit: i64) -> Option<Subject> {
        let now = app.clock.now();
        let (midnight, resets_at) = (app.zone.midnight(now), app.zone.next_midnight(now));
        (limit > 0).then(|| Subject::User { id: id.clone(), limit, midnight, resets_at })
    }

    /// The name under which grants are stored.
    pub fn name(&self) -> String {
        match self {
            Subject::User { id, midnight, .. } => format!("user:{id}:{}", midnight.as_second()),
            Subject::Key { id, .. } => format!("key:{id}"),
        }
    }

    pub(super) fn limit(&self) -> i64 {
        match self {
            Subject::User { limit, .. } | Subject::Key { limit, .. } => *limit,
        }
    }

    /// The use according to the log. It is read in the transaction that decides: waiting for a second connection would
    /// hold up every writer that waits for this transaction.
    pub(super) async fn logged(&self, tx: &mut Tx, zone: &Zone) -> Result<i64> {
        match self {
            Subject::User { id, midnight, .. } => spent_in(tx, zone, id, *midnight).await,
            Subject::Key { id, .. } => {
                let key = gateway_key::find(tx, id).await?;
                Ok(key.map_or(0, |key| key.used()))
            }
        }
    }

    /// What was answered and is not in the log of a foreign gateway yet.
    pub(super) async fn unlogged(&self, tx: &mut Tx) -> Result<i64> {
        match self {
            Subject::User { id, midnight, .. } => Ok(unlogged_request::tokens_of(tx, id, *midnight).await?),
            // The gateway itself enforces the quota of a key.
            Subject::Key { .. } => Ok(0),
        }
    }

    pub(super) fn refusal(&self, clock: &Clock, zone: &Zone, spent: Spent) -> Error {
        let limit = self.limit();
        let is_used_up = spent.used >= limit;
        let what = match (self, is_used_up) {
            (Subject::User { .. }, true) => "daily quota used up",
            (Subject::User { .. }, false) => "the rest of the daily quota is reserved",
            (Subject::Key { .. }, true) => "the key's quota is used up",
            (Subject::Key { .. }, false) => "the rest of the key's quota is reserved",
        };
        let unit = if matches!(self, Subject::User { .. }) { "tokens" } else { "units" };
        let mut text = format!("{what}: limit {limit} {unit}, used {}", spent.used);
        if spent.reserved > 0 {
            text += &format!(", {} reserved for requests under way", spent.reserved);
        }
        match self {
            Subject::User { resets_at, .. } => {
                text += &format!(", resets at {}", zone.show(*resets_at));
                let midnight = resets_at.duration_since(clock.now()).unsigned_abs();
                // What is only reserved is released when its request is answered.
                let wait = if is_used_up { midnight } else { midnight.min(RESERVED) };
                Error::new(Kind::QuotaUsedUp, text).retry_after(wait)
            }
            Subject::Key { .. } if is_used_up => Error::new(Kind::QuotaUsedUp, text),
            Subject::Key { .. } => Error::new(Kind::QuotaUsedUp, text).retry_after(RESERVED),
        }
    }
}

/// What is gone of a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spent {
    pub used: i64,
    /// For requests that are under way: with a foreign gateway of all processes, with the embedded one of this process.
    pub reserved: i64,
}
