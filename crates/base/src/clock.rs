//! Time as a value: all code that needs "now" receives a clock, so tests can choose the instant.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

#[derive(Clone, Debug, Default)]
pub struct Clock(Source);

#[derive(Clone, Debug, Default)]
enum Source {
    #[default]
    System,
    Fixed(Arc<AtomicI64>),
    Manual(Arc<Manual>),
}

#[derive(Debug)]
struct Manual {
    wall_ms: AtomicI64,
    zero: Instant,
    /// How far the monotonic time has come since `zero`.
    passed_ms: AtomicU64,
}

impl Clock {
    /// A clock whose time of day stands still until it is moved. Its monotonic time is the system's.
    pub fn fixed(at: Timestamp) -> Clock {
        Clock(Source::Fixed(Arc::new(AtomicI64::new(at.as_millisecond()))))
    }

    /// A clock whose time of day and monotonic time both stand still until a test moves them. A cache entry with a
    /// lifetime of two seconds expires only when the test advances the clock.
    pub fn manual(at: Timestamp) -> Clock {
        let wall_ms = AtomicI64::new(at.as_millisecond());
        Clock(Source::Manual(Arc::new(Manual { wall_ms, zero: Instant::now(), passed_ms: AtomicU64::new(0) })))
    }

    /// Whether this is the machine's own clock.
    pub fn is_system(&self) -> bool {
        matches!(self.0, Source::System)
    }

    /// The current instant, to the millisecond, as the database keeps it.
    pub fn now(&self) -> Timestamp {
        let ms = match &self.0 {
            Source::System => Timestamp::now().as_millisecond(),
            Source::Fixed(ms) => ms.load(Ordering::SeqCst),
            Source::Manual(manual) => manual.wall_ms.load(Ordering::SeqCst),
        };
        Timestamp::from_millisecond(ms).unwrap_or_default()
    }

    /// The monotonic time, for the age of cache entries: a step of the system clock does not change it.
    pub fn instant(&self) -> Instant {
        match &self.0 {
            Source::System | Source::Fixed(_) => Instant::now(),
            Source::Manual(manual) => manual.zero + Duration::from_millis(manual.passed_ms.load(Ordering::SeqCst)),
        }
    }

    /// The time since `earlier`, an instant of this clock.
    pub fn since(&self, earlier: Instant) -> Duration {
        self.instant().saturating_duration_since(earlier)
    }

    /// Moves a fixed or manual clock; the system's clock cannot be moved. Monotonic time never goes back.
    pub fn advance(&self, by: SignedDuration) {
        let ms = by.as_millis() as i64;
        match &self.0 {
            Source::System => {}
            Source::Fixed(wall) => {
                wall.fetch_add(ms, Ordering::SeqCst);
            }
            Source::Manual(manual) => {
                manual.wall_ms.fetch_add(ms, Ordering::SeqCst);
                manual.passed_ms.fetch_add(u64::try_from(ms).unwrap_or(0), Ordering::SeqCst);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_when_it_is_moved_and_its_monotonic_time_never_back() {
        let start = Timestamp::from_second(1_800_000_000).unwrap();
        let clock = Clock::manual(start);
        let began = clock.instant();
        assert_eq!((clock.now(), clock.since(began)), (start, Duration::ZERO));
        clock.advance(SignedDuration::from_secs(2));
        assert_eq!(clock.now(), start + SignedDuration::from_secs(2));
        assert_eq!(clock.since(began), Duration::from_secs(2));
        clock.advance(SignedDuration::from_secs(-5));
        assert_eq!(clock.now(), start - SignedDuration::from_secs(3));
        assert_eq!(clock.since(began), Duration::from_secs(2));
    }
}
