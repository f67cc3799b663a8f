//! Paces the calls to a gateway's management API: gateways limit them per address, and answer those beyond with 429.
//!
//! One pacer per gateway. Each call takes the next free slot. A gateway that refuses nevertheless makes all calls wait;
//! afterwards they go on at the steady rate, without a burst.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The limit of a gateway, a little below its real one: other programs may call it from the same address.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// How many calls may come at once after a rest.
    pub burst: u32,
    /// The time between calls in the long run.
    pub interval: Duration,
}

/// Whom a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// It switches, makes or deletes a key: somebody waits for it, or must lose access.
    Change,
    /// It only reads. Half of every burst is not for these.
    Read,
    /// A probe, which never waits: there are few.
    Probe,
}

impl Lane {
    /// How long a call waits for its slot, and for a gateway that refuses.
    fn patience(self) -> Duration {
        match self {
            Lane::Change => Duration::from_secs(40),
            Lane::Read => Duration::from_secs(15),
            Lane::Probe => Duration::ZERO,
        }
    }
}

/// The first wait after a refusal that does not say for how long; it doubles with each further one.
const PAUSE: Duration = Duration::from_secs(3);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// After so many refusals in a row calls fail at once until the pause is over.
const MANY_REFUSALS: u32 = 3;

pub struct Pacer {
    limit: Option<Limit>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// When the calls made so far would have ended at the steady rate.
    next: Option<Instant>,
    paused_until: Option<Instant>,
    /// Refusals since the last call that was let in.
    refusals: u32,
}

impl State {
    /// When the next call of this lane may begin.
    fn begins(&self, limit: Option<Limit>, lane: Lane, now: Instant) -> Instant {
        let paused = self.paused_until.unwrap_or(now).max(now);
        let (Some(limit), Some(next)) = (limit, self.next) else { return paused };
        let burst = if lane == Lane::Read { limit.burst / 2 } else { limit.burst };
        let ahead = limit.interval * burst.saturating_sub(1);
        paused.max(next.checked_sub(ahead).unwrap_or(now))
    }
}

/// How long one call may still wait.
pub struct Patience {
    lane: Lane,
    until: Instant,
}

impl Patience {
    pub fn of(lane: Lane) -> Patience {
        Patience { lane, until: Instant::now() + lane.patience() }
    }
}

impl Pacer {
    /// Without a limit, calls wait only after a refusal.
    pub fn new(limit: Option<Limit>) -> Pacer {
        Pacer { limit, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a slot. Fails with the time after which to come again, if that is longer than the call may wait.
    pub async fn slot(&self, patience: &Patience) -> Result<(), Duration> {
        loop {
            let now = Instant::now();
            let Some(at) = self.take(patience.lane, now) else { return Ok(()) };
            if at > patience.until || self.is_refused_for_long(now) {
                return Err(at.saturating_duration_since(now));
            }
            tokio::time::sleep_until(at).await;
        }
    }

    /// Takes a slot, or returns when the next one of this lane is free.
    fn take(&self, lane: Lane, now: Instant) -> Option<Instant> {
        let mut state = self.state();
        let at = state.begins(self.limit, lane, now);
        if at > now {
            return Some(at);
        }
        if let Some(limit) = self.limit {
            state.next = Some(state.next.unwrap_or(now).max(now) + limit.interval);
        }
        None
    }

    /// Whether the gateway has refused call after call: then nobody waits, and tasks come again later.
    fn is_refused_for_long(&self, now: Instant) -> bool {
        let state = self.state();
        state.refusals >= MANY_REFUSALS && state.paused_until.is_some_and(|until| until > now)
    }

    /// The gateway let a call in.
    pub fn accepted(&self) {
        self.state().refusals = 0;
    }

    /// The gateway refused a call, and may have said for how long.
    pub fn refused(&self, asked: Option<Duration>) -> Duration {
        let now = Instant::now();
        let mut state = self.state();
        if let Some(until) = state.paused_until.filter(|until| *until > now) {
            // A call that was under way when another was refused.
            return until - now;
        }
        let pause = asked.unwrap_or((PAUSE * 2u32.pow(state.refusals.min(8))).min(LONGEST_PAUSE));
        state.refusals += 1;
        state.paused_until = Some(now + pause);
        if let Some(limit) = self.limit {
            // No burst after the pause.
            state.next = Some(now + pause + limit.interval * limit.burst);
        }
        pause
    }

    /// Whether a call that was refused may wait for another attempt.
    pub fn may_wait(&self, patience: &Patience, pause: Duration) -> bool {
        Instant::now() + pause <= patience.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pacer() -> Pacer {
        Pacer::new(Some(Limit { burst: 10, interval: Duration::from_millis(100) }))
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_let_in_and_then_the_steady_rate() {
        let pacer = pacer();
        let began = Instant::now();
        for _ in 0..10 {
            pacer.slot(&Patience::of(Lane::Change)).await.unwrap();
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        for _ in 0..3 {
            pacer.slot(&Patience::of(Lane::Change)).await.unwrap();
        }
        assert!(began.elapsed() >= Duration::from_millis(280), "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn readers_leave_half_of_a_burst_to_changes() {
        let pacer = pacer();
        let began = Instant::now();
        for _ in 0..6 {
            pacer.slot(&Patience::of(Lane::Read)).await.unwrap();
        }
        assert!(began.elapsed() >= Duration::from_millis(90), "the sixth waits");
        let changes = Instant::now();
        for _ in 0..4 {
            pacer.slot(&Patience::of(Lane::Change)).await.unwrap();
        }
        assert_eq!(changes.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_makes_all_wait() {
        let pacer = pacer();
        let pause = pacer.refused(Some(Duration::from_millis(150)));
        assert_eq!(pause, Duration::from_millis(150));
        assert!(pacer.refused(None) <= pause, "one that was under way adds nothing");
        let began = Instant::now();
        pacer.slot(&Patience::of(Lane::Change)).await.unwrap();
        assert!(began.elapsed() >= Duration::from_millis(140), "{:?}", began.elapsed());
        // No burst afterwards.
        pacer.slot(&Patience::of(Lane::Change)).await.unwrap();
        assert!(began.elapsed() >= Duration::from_millis(240), "{:?}", began.elapsed());
        // And longer each time, where the gateway does not say for how long.
        assert!(pacer.refused(None) > PAUSE);
        assert!(!pacer.may_wait(&Patience::of(Lane::Read), Duration::from_secs(16)));
    }
}
