//! The state of a request that its ticket shares with the code that notices a disconnect.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the client disconnected, and whether a provider has the request.
#[derive(Debug, Default)]
pub struct Progress {
    left: AtomicBool,
    asked: AtomicBool,
}

impl Progress {
    /// Whether the client disconnected.
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
