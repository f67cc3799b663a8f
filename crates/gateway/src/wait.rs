//! Until when models may not be asked, because their provider asked to wait (429 with `Retry-After`).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base::Clock;

/// The longest wait: a provider that asks for more is asked again after this.
pub const MOST_WAIT: Duration = Duration::from_secs(60 * 60);

/// What waits: a model at a provider, with its key there. Free and billed requests have limits of their own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Waiting {
    /// The id of the key, or of a provider without one.
    pub key: Arc<str>,
    pub model: Arc<str>,
    pub is_billed: bool,
}

pub struct Waits {
    clock: Clock,
    zero: Instant,
    /// Milliseconds since `zero` at which the last wait ends; before any wait 0. It spares the lock.
    last: AtomicU64,
    /// There are no more of these than models in the table for each key.
    until: Mutex<HashMap<Waiting, End>>,
}

/// When a wait ends.
#[derive(Clone, Copy)]
struct End {
    /// Milliseconds since `zero`.
    at: u64,
    /// Whether it is written down for other processes, and so ends when somebody deletes it there.
    is_written: bool,
}

impl Waits {
    pub fn new(clock: Clock) -> Waits {
        Waits { zero: clock.instant(), clock, last: AtomicU64::new(0), until: Mutex::default() }
    }

    pub fn now(&self) -> jiff::Timestamp {
        self.clock.now()
    }

    /// How long it may not be asked.
    pub fn left(&self, waiting: &Waiting) -> Option<Duration> {
        let last = self.last.load(Ordering::Acquire);
        if last == 0 {
            return None;
        }
        let passed = self.clock.since(self.zero);
        if Duration::from_millis(last) <= passed {
            return None;
        }
        let end = self.until.lock().unwrap_or_else(PoisonError::into_inner).get(waiting).copied()?;
        let left = Duration::from_millis(end.at).saturating_sub(passed);
        (!left.is_zero()).then_some(left)
    }

    /// The moment that `wait_from` counts from.
    pub fn moment(&self) -> Duration {
        self.clock.since(self.zero)
    }

    /// Has something wait; a longer wait stays.
    pub fn wait(&self, waiting: Waiting, wait: Duration, is_written: bool) {
        self.wait_from(self.moment(), waiting, wait, is_written);
    }

    /// The same for a wait that was read as it was at that moment: time went on while it was read.
    pub fn wait_from(&self, moment: Duration, waiting: Waiting, wait: Duration, is_written: bool) {
        let passed = self.moment();
        let at = u64::try_from((moment + wait.min(MOST_WAIT)).as_millis()).unwrap_or(u64::MAX).max(1);
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.retain(|_, end| Duration::from_millis(end.at) > passed);
        let end = End { at, is_written };
        let known = until.entry(waiting).or_insert(end);
        if known.at < at {
            *known = end;
        }
        drop(until);
        self.last.fetch_max(at, Ordering::AcqRel);
    }

    /// Ends the waits of a key that were written down and are there no more. Those that nobody wrote down stay.
    pub fn keep_only(&self, key: &str, is_there: impl Fn(&str) -> bool) {
        if self.last.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.retain(|waiting, end| !end.is_written || *waiting.key != *key || is_there(&waiting.model));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_wait_is_not_cut_by_a_shorter_one() {
        let clock = Clock::manual("2026-11-15T12:00:00Z".parse().unwrap());
        let waits = Waits::new(clock.clone());
        let of = |key: &str, model: &str| Waiting { key: key.into(), model: model.into(), is_billed: true };
        let (four, mini) = (of("one", "gpt-4o"), of("one", "gpt-4o-mini"));
        assert_eq!(waits.left(&four), None);
        waits.wait(four.clone(), Duration::from_secs(30), true);
        waits.wait(four.clone(), Duration::from_secs(1), false);
        assert_eq!(waits.left(&four), Some(Duration::from_secs(30)));
        assert_eq!(waits.left(&mini), None);
        assert_eq!(waits.left(&of("two", "gpt-4o")), None, "another key");
        assert_eq!(waits.left(&Waiting { is_billed: false, ..four.clone() }), None);
        waits.wait(mini.clone(), Duration::MAX, true);
        assert_eq!(waits.left(&mini), Some(MOST_WAIT));
        clock.advance(jiff::SignedDuration::from_secs(29));
        assert_eq!(waits.left(&four), Some(Duration::from_secs(1)));
        clock.advance(jiff::SignedDuration::from_secs(1));
        assert_eq!(waits.left(&four), None);
    }

    #[test]
    fn a_wait_that_is_read_for_long_does_not_become_longer() {
        let clock = Clock::manual("2026-11-15T12:00:00Z".parse().unwrap());
        let waits = Waits::new(clock.clone());
        let four = Waiting { key: "one".into(), model: "gpt-4o".into(), is_billed: true };
        let moment = waits.moment();
        clock.advance(jiff::SignedDuration::from_secs(29));
        waits.wait_from(moment, four.clone(), Duration::from_secs(30), true);
        assert_eq!(waits.left(&four), Some(Duration::from_secs(1)));
    }

    #[test]
    fn a_written_wait_ends_when_it_is_deleted() {
        let waits = Waits::new(Clock::manual("2026-11-15T12:00:00Z".parse().unwrap()));
        let of = |key: &str, model: &str| Waiting { key: key.into(), model: model.into(), is_billed: true };
        let hour = Duration::from_secs(3600);
        waits.wait(of("one", "gpt-4o"), hour, true);
        waits.wait(of("one", "gpt-4o-mini"), hour, true);
        waits.wait(of("two", "gpt-4o"), hour, true);
        waits.wait(of("one", "short"), Duration::from_secs(1), false);
        waits.keep_only("one", |model| model == "gpt-4o-mini");
        assert_eq!(waits.left(&of("one", "gpt-4o")), None);
        for stays in [of("one", "gpt-4o-mini"), of("two", "gpt-4o"), of("one", "short")] {
            assert!(waits.left(&stays).is_some(), "{stays:?}");
        }
    }
}
