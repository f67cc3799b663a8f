//! No part of the platform may panic, whatever a test does to it.

use std::sync::{Mutex, Once, PoisonError};

use crate::evidence;

/// What panicked in this process, without the tests' own assertions.
static PANICS: Mutex<Vec<String>> = Mutex::new(vec![]);

/// Fails its test when a part of the platform panicked during its life.
pub struct NoPanic;

impl NoPanic {
    pub fn watch() -> NoPanic {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let usual = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                let ours = |file: &str| file.contains("/tests/") || file.contains("/testkit/");
                if panic.location().is_some_and(|at| !ours(at.file())) {
                    PANICS.lock().unwrap_or_else(PoisonError::into_inner).push(panic.to_string());
                }
                usual(panic);
                evidence::show_log();
            }));
        });
        NoPanic
    }
}

impl Drop for NoPanic {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let panics = PANICS.lock().unwrap_or_else(PoisonError::into_inner).clone();
            assert!(panics.is_empty(), "the platform panicked: {panics:#?}");
        }
    }
}
