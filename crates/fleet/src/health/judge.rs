//! What a look makes of an instance's health: every row of the table of states, as one function.

use store::instance::Health;

/// Unhealthy from this many failures in a row on.
pub const MOST_FAILURES: i64 = 3;

/// What a look came to, layer by layer, at the first that did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The service is not running: no further question.
    Inactive,
    /// It runs, or should, and does not answer as it must; or nobody can get there.
    Failed,
    /// It was started a moment ago and is not expected to answer yet.
    Starting,
    /// It was never brought to a server: there is nothing to look at.
    NotThere,
    /// It could not be looked at, and that says nothing of it.
    Unknown,
    /// It works, and its key opens nothing.
    KeyInvalid,
    /// It works; whether its key does could not be asked.
    KeyUnknown,
    Passed,
}

/// What is known from before.
#[derive(Clone, Copy, Debug)]
pub struct Before {
    pub status: Health,
    pub fails: i64,
    /// It ran out of memory, and its process is still the one of then.
    pub memory_out: bool,
}

/// The state that follows, and the number of failures in a row.
pub fn next(before: Before, found: &Found) -> (Health, i64) {
    let Before { status, fails, memory_out } = before;
    let working = || match status {
        _ if memory_out => (Health::Unhealthy, fails),
        // Until a scan of its log does not find the pattern any more.
        Health::RateLimited => (Health::RateLimited, 0),
        _ => (Health::Healthy, 0),
    };
    match found {
        Found::Inactive => (Health::Unhealthy, fails + 1),
        Found::Failed if fails + 1 >= MOST_FAILURES => (Health::Unhealthy, fails + 1),
        Found::Failed => (status, fails + 1),
        Found::Starting | Found::NotThere => (status, fails),
        Found::Unknown if status == Health::Unhealthy => (status, fails),
        Found::Unknown => (Health::Unknown, fails),
        Found::KeyInvalid if memory_out => (Health::Unhealthy, fails),
        Found::KeyInvalid => (Health::KeyInvalid, 0),
        Found::KeyUnknown if status == Health::KeyInvalid && !memory_out => (Health::KeyInvalid, 0),
        Found::KeyUnknown | Found::Passed => working(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Health::{Healthy, KeyInvalid, RateLimited, Unhealthy, Unknown};

    /// Every row of the spec's table and of the decisions about it.
    #[test]
    fn every_row_of_the_table() {
        let any = [Healthy, Unhealthy, KeyInvalid, Unknown, RateLimited];
        let judge = |status, fails, found| next(Before { status, fails, memory_out: false }, &found);
        for status in any {
            // Inactive: at once, however often.
            assert_eq!(judge(status, 0, Found::Inactive), (Unhealthy, 1));
            assert_eq!(judge(status, 7, Found::Inactive), (Unhealthy, 8));
            // Failures accumulate; the third in a row counts.
            assert_eq!(judge(status, 0, Found::Failed), (status, 1));
            assert_eq!(judge(status, 1, Found::Failed), (status, 2));
            assert_eq!(judge(status, 2, Found::Failed), (Unhealthy, 3));
            assert_eq!(judge(status, 3, Found::Failed), (Unhealthy, 4));
            // A start is waited for.
            assert_eq!(judge(status, 2, Found::Starting), (status, 2));
            assert_eq!(judge(status, 0, Found::NotThere), (status, 0));
            // A key that opens nothing.
            assert_eq!(judge(status, 2, Found::KeyInvalid), (KeyInvalid, 0));
            // A pass ends everything but rate_limited, which a scan ends.
            let passed = if status == RateLimited { RateLimited } else { Healthy };
            assert_eq!(judge(status, 5, Found::Passed), (passed, 0));
            let unasked = if status == KeyInvalid { KeyInvalid } else { passed };
            assert_eq!(judge(status, 5, Found::KeyUnknown), (unasked, 0), "{status:?}");
            let nothing = if status == Unhealthy { Unhealthy } else { Unknown };
            assert_eq!(judge(status, 1, Found::Unknown), (nothing, 1));
        }
        // Out of memory stays unhealthy until the unit was started after the finding.
        for found in [Found::Passed, Found::KeyInvalid, Found::KeyUnknown] {
            for status in any {
                assert_eq!(next(Before { status, fails: 0, memory_out: true }, &found), (Unhealthy, 0));
            }
        }
    }
}
