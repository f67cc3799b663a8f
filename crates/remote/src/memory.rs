//! Limits how much of this process's memory unfinished answers of servers and gateways may hold, all together.
//!
//! Each answer has its own limit, but there may be thousands, and a tenant who controls a gateway decides how much it
//! sends. So each answer may hold a small amount for free, and takes everything beyond from one budget of the process.
//! When the budget is exhausted, the answer that needs more is cut off, and the others go on.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The default of the budget.
pub const DEFAULT: usize = 256 << 20;
/// What each answer may hold without using the budget, so that large answers never cause a small one to be refused.
const FREE: usize = 64 << 10;

static LIMIT: AtomicUsize = AtomicUsize::new(DEFAULT);
static HELD: AtomicUsize = AtomicUsize::new(0);

/// Sets the budget of the whole process.
pub fn set_limit(bytes: usize) {
    LIMIT.store(bytes, Ordering::Relaxed);
}

/// How much of the budget is in use.
pub fn held() -> usize {
    HELD.load(Ordering::Relaxed)
}

pub fn describe() {
    metrics::describe_gauge!(BYTES, "Bytes that unfinished answers of servers and assistants hold");
    metrics::describe_counter!(REFUSED, "Answers that ended because all of them together held too much");
}

const BYTES: &str = "tidepool_socket_memory_bytes";
const REFUSED: &str = "tidepool_socket_memory_refused_total";

/// The memory that one answer holds. Dropping it frees everything.
#[derive(Debug, Default)]
pub struct Share {
    size: usize,
}

impl Share {
    pub fn size(&self) -> usize {
        self.size
    }

    /// Adds bytes; false if there is no room for them.
    #[must_use]
    pub fn grow(&mut self, bytes: usize) -> bool {
        let size = self.size.saturating_add(bytes);
        let more = charge(size) - charge(self.size);
        if more > 0 {
            let limit = LIMIT.load(Ordering::Relaxed);
            let fits = |held: usize| held.checked_add(more).filter(|all| *all <= limit);
            if HELD.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_err() {
                metrics::counter!(REFUSED).increment(1);
                return false;
            }
            metrics::gauge!(BYTES).increment(more as f64);
        }
        self.size = size;
        true
    }

    pub fn shrink(&mut self, bytes: usize) {
        let size = self.size.saturating_sub(bytes);
        let less = charge(self.size) - charge(size);
        if less > 0 {
            HELD.fetch_sub(less, Ordering::Relaxed);
            metrics::gauge!(BYTES).decrement(less as f64);
        }
        self.size = size;
    }

    pub fn clear(&mut self) {
        self.shrink(self.size);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.clear();
    }
}

fn charge(size: usize) -> usize {
    size.saturating_sub(FREE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There is only one test, because the budget is shared by the whole process.
    #[test]
    fn what_is_more_than_usual_is_bounded_and_comes_back() {
        set_limit(1 << 20);
        let before = held();
        let mut small: Vec<Share> = (0..100).map(|_| Share::default()).collect();
        let mut large = Share::default();
        assert!(large.grow(FREE + (1 << 20)) && held() - before == 1 << 20);
        assert!(!large.grow(1), "nothing is left");
        assert_eq!(large.size(), FREE + (1 << 20), "a refusal changes nothing");
        assert!(small.iter_mut().all(|share| share.grow(FREE)), "who holds little is not refused");
        assert!(!small[0].grow(1));
        large.shrink(1000);
        assert!(small[0].grow(1000) && !small[1].grow(1));
        assert!(!large.grow(usize::MAX));
        large.clear();
        drop(large);
        small.clear();
        assert_eq!(held(), before);
        set_limit(DEFAULT);
    }
}
