//! Time as a value: everything that asks for "now" is handed a clock, so tests can choose the instant.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};

#[derive(Clone, Debug, Default)]
pub struct Clock(Source);

#[derive(Clone, Debug, Default)]
enum Source {
    #[default]
    System,
    Fixed(Arc<AtomicI64>),
}

impl Clock {
    /// A clock that stands still until it is moved.
    pub fn fixed(at: Timestamp) -> Clock {
        Clock(Source::Fixed(Arc::new(AtomicI64::new(at.as_millisecond()))))
    }

    /// The current instant, to the millisecond, as the database keeps it.
    pub fn now(&self) -> Timestamp {
        let ms = match &self.0 {
            Source::System => Timestamp::now().as_millisecond(),
            Source::Fixed(ms) => ms.load(Ordering::SeqCst),
        };
        Timestamp::from_millisecond(ms).unwrap_or_default()
    }

    /// Moves a fixed clock; the system's clock is nobody's to move.
    pub fn advance(&self, by: SignedDuration) {
        if let Source::Fixed(ms) = &self.0 {
            ms.fetch_add(by.as_millis() as i64, Ordering::SeqCst);
        }
    }
}
