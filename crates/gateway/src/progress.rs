//! How far a request is.

use std::sync::atomic::{AtomicBool, Ordering};

/// How far a request is, known to its ticket and to whoever notices that its client left.
#[derive(Debug, Default)]
pub struct Progress {
    left: AtomicBool,
    asked: AtomicBool,
}

impl Progress {
    /// Whether the client left.
    pub fn has_left(&self) -> bool {
        self.left.load(Ordering::Acquire)
    }

    pub fn leave(&self) {
        self.left.store(true, Ordering::Release);
    }

    /// Whether a provider has the request and may bill it.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }

    pub fn set_asked(&self, asked: bool) {
        self.asked.store(asked, Ordering::Release);
    }
}
