//! Heartbeats of the loops that a process needs. Each loop records when it last did its work, so that a hanging loop is
//! noticed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A loop without a heartbeat for this long counts as dead. Every loop does its work at least every few seconds.
pub const DEAD_AFTER: Duration = Duration::from_secs(60);

/// The loops of one process, by name. A loop is listed from its first beat until it ends on purpose. A loop that
/// panicked stays listed, and counts as dead a minute later.
#[derive(Clone, Debug, Default)]
pub struct Heartbeats(Arc<Mutex<BTreeMap<&'static str, Instant>>>);

impl Heartbeats {
    /// Records that the loop did its work just now. A loop also calls this once before its first round.
    pub fn beat(&self, name: &'static str) {
        self.beat_at(name, Instant::now());
    }

    pub fn beat_at(&self, name: &'static str, at: Instant) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name, at);
    }

    /// Records that the loop ends on purpose: it is no longer expected to beat.
    pub fn end(&self, name: &'static str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    /// Every loop, and the time since its last beat.
    pub fn ages(&self) -> Vec<(&'static str, Duration)> {
        let beats = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        beats.iter().map(|(name, at)| (*name, at.elapsed())).collect()
    }

    /// The dead loops, and the time since the last beat of each.
    pub fn dead(&self) -> Vec<(&'static str, Duration)> {
        self.ages().into_iter().filter(|(_, age)| *age > DEAD_AFTER).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_is_dead_a_minute_after_its_last_beat_unless_it_ended_on_purpose() {
        let beats = Heartbeats::default();
        let long_ago = Instant::now().checked_sub(DEAD_AFTER + Duration::from_secs(1)).unwrap();
        beats.beat("worker");
        beats.beat_at("scheduler", long_ago);
        beats.beat_at("notices", long_ago);
        let names = |loops: Vec<(&'static str, Duration)>| loops.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(beats.ages()), ["notices", "scheduler", "worker"]);
        assert_eq!(names(beats.dead()), ["notices", "scheduler"]);
        beats.end("notices");
        beats.clone().beat("scheduler");
        assert_eq!(names(beats.dead()), Vec::<&str>::new());
    }
}
