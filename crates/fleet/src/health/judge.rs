//! Computes an instance's next health state from the result of a check. The whole table of states is one function.

use store::instance::Health;

/// An instance is unhealthy after this many failures in a row.
pub const MOST_FAILURES: i64 = 3;

/// The result of a check. The first layer that did not pass decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The service is not running; the other layers were not checked.
    Inactive,
    /// It does not answer correctly although it should, or it cannot be reached.
    Failed,
    /// It was started a moment ago, or a task is working on it: it is not expected to answer yet.
    Starting,
    /// It is not on its server yet: there is nothing to check.
    NotThere,
    /// It could not be checked, so nothing is known about it.
    Unknown,
    /// It works, but the LLM gateway refuses its key.
    KeyInvalid,
    /// It works, but its key could not be checked.
    KeyUnknown,
    Passed,
}

/// The state before the check.
#[derive(Clone, Copy, Debug)]
pub struct Before {
    pub status: Health,
    pub fails: i64,
    /// It ran out of memory and was not restarted since. A restart by systemd does not count.
    pub memory_out: bool,
}

/// The next state, and the new number of failures in a row.
pub fn next(before: Before, found: &Found) -> (Health, i64) {
    let Before { status, fails, memory_out } = before;
    let working = || match status {
        _ if memory_out => (Health::Unhealthy, fails),
        // Only a log scan that no longer finds the pattern ends this state.
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
            // An inactive unit makes the instance unhealthy at once.
            assert_eq!(judge(status, 0, Found::Inactive), (Unhealthy, 1));
            assert_eq!(judge(status, 7, Found::Inactive), (Unhealthy, 8));
            // Failures accumulate; the third in a row counts.
            assert_eq!(judge(status, 0, Found::Failed), (status, 1));
            assert_eq!(judge(status, 1, Found::Failed), (status, 2));
            assert_eq!(judge(status, 2, Found::Failed), (Unhealthy, 3));
            assert_eq!(judge(status, 3, Found::Failed), (Unhealthy, 4));
            // While it starts, nothing changes.
            assert_eq!(judge(status, 2, Found::Starting), (status, 2));
            assert_eq!(judge(status, 0, Found::NotThere), (status, 0));
            // A refused key.
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
