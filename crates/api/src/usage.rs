//! Shapes of usage that both APIs share.

use base::money::Spend;
use base::{Error, Result};
use llm::usage::{AsOf, Day, MAX_DAYS, Sums};
use serde::Serialize;
use utoipa::ToSchema;

use crate::state::Api;

/// Sums over successful requests.
#[derive(Serialize, ToSchema)]
pub struct UsageSums {
    requests: i64,
    prompt_tokens: i64,
    completion_tokens: i64,
    /// prompt_tokens + completion_tokens
    total_tokens: i64,
    /// Quota units / 500000.
    #[schema(example = 0.0125)]
    cost_usd: f64,
    /// The input of the requests of which it is known how much was read from a cache, cached parts included. Providers and
    /// gateways that do not say, and requests from before this was recorded, are not in it.
    known_input_tokens: i64,
    /// Of known_input_tokens, what providers read from their caches.
    cache_read_tokens: i64,
    /// What providers wrote into their caches, as far as they say.
    cache_write_tokens: i64,
    /// Of completion_tokens, what was thinking, as far as providers say.
    reasoning_tokens: i64,
}

impl From<Sums> for UsageSums {
    fn from(sums: Sums) -> UsageSums {
        UsageSums {
            requests: sums.requests,
            prompt_tokens: sums.prompt_tokens,
            completion_tokens: sums.completion_tokens,
            total_tokens: sums.tokens(),
            cost_usd: Spend(sums.quota()).usd(),
            known_input_tokens: sums.known_input_tokens,
            cache_read_tokens: sums.cache_read_tokens,
            cache_write_tokens: sums.cache_write_tokens,
            reasoning_tokens: sums.reasoning_tokens,
        }
    }
}

/// Sums of one local day.
#[derive(Serialize, ToSchema)]
pub struct UsageDay {
    #[schema(example = "2026-11-15")]
    date: String,
    #[serde(flatten)]
    sums: UsageSums,
}

impl From<Day> for UsageDay {
    fn from(day: Day) -> UsageDay {
        UsageDay { date: day.date.to_string(), sums: day.sums.into() }
    }
}

/// How fresh the numbers are.
#[derive(Serialize, ToSchema)]
pub struct Freshness {
    /// Until when the numbers are known to be whole.
    pub as_of: String,
    /// The gateway's log cannot be read at present: these are the last known numbers.
    pub stale: bool,
}

impl Freshness {
    pub fn new(api: &Api, as_of: AsOf) -> Freshness {
        // While the days are rebuilt for another zone, some are of the one before.
        Freshness { as_of: api.zone().show(as_of.at), stale: as_of.stale || api.app.db.days_pending() }
    }
}

/// How many days are asked for: 1 to 366, 30 when nothing is said.
pub fn days(asked: Option<i64>) -> Result<i64> {
    match asked.unwrap_or(30) {
        days if (1..=MAX_DAYS).contains(&days) => Ok(days),
        _ => Err(Error::field("days", format_args!("must be 1 to {MAX_DAYS}"))),
    }
}
