//! What unfinished answers of servers and gateways may hold of this process's memory, all together.
//!
//! Each of them has a limit of its own; but there may be thousands, and whoever controls a gateway decides how much it sends. So what
//! is more than usual is taken out of one budget of the process. Where nothing is left of it, the answer that asks for more ends, and
//! the others go on.

use std::sync::atomic::{AtomicUsize, Ordering};

/// What all of them may hold where nothing else is set.
pub const DEFAULT: usize = 256 << 20;
/// What each of them may hold in any case: nobody who sends little is refused for those who send much.
const FREE: usize = 64 << 10;

static LIMIT: AtomicUsize = AtomicUsize::new(DEFAULT);
static HELD: AtomicUsize = AtomicUsize::new(0);

/// Sets what all of them may hold together, for the whole process.
pub fn set_limit(bytes: usize) {
    LIMIT.store(bytes, Ordering::Relaxed);
}

/// How much of it is held now.
pub fn held() -> usize {
    HELD.load(Ordering::Relaxed)
}

/// What the metrics of this mean.
pub fn describe() {
    metrics::describe_gauge!(BYTES, "Bytes that unfinished answers of servers and assistants hold");
    metrics::describe_counter!(REFUSED, "Answers that ended because all of them together held too much");
}

const BYTES: &str = "tidepool_socket_memory_bytes";
const REFUSED: &str = "tidepool_socket_memory_refused_total";

/// What one answer holds. Dropped, it holds nothing.
#[derive(Debug, Default)]
pub struct Share {
    size: usize,
}

impl Share {
    pub fn size(&self) -> usize {
        self.size
    }

    /// Holds so many bytes more; false where there is no room for them.
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

    /// One case: the budget is the process's.
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
