//! Runs a future while its lease is valid. The monotonic clock is checked before each poll, so that a process that was
//! frozen does not go on with work that another process has taken over.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use base::Clock;
use tokio::sync::watch;

/// Runs `work` to its end. `None` if the lease was neither `claimed` nor `renewed` within `length`, or if its renewer
/// is gone.
pub(crate) async fn run<W: Future>(
    work: W,
    renewed: watch::Receiver<Instant>,
    claimed: Instant,
    length: Duration,
) -> Option<W::Output> {
    run_by(&Clock::default(), work, renewed, claimed, length).await
}

/// `run` with a clock that a test can move.
async fn run_by<W: Future>(
    clock: &Clock,
    work: W,
    mut renewed: watch::Receiver<Instant>,
    claimed: Instant,
    length: Duration,
) -> Option<W::Output> {
    let mut work = pin!(work);
    let mut until = claimed + length;
    loop {
        let at = *renewed.borrow_and_update();
        // A renewal after the lease was over does not count: another process may have taken the lease in between.
        if at < until {
            until = until.max(at + length);
        }
        let step = poll_fn(|context| match clock.instant() < until {
            true => work.as_mut().poll(context).map(Some),
            false => Poll::Ready(None),
        });
        tokio::select! {
            biased;
            changed = renewed.changed() => if changed.is_err() { return None },
            ended = step => return ended,
            // The next poll checks the clock.
            () = tokio::time::sleep(until.saturating_duration_since(clock.instant())) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use jiff::{SignedDuration, Timestamp};
    use tokio::sync::oneshot;

    use super::*;

    const LENGTH: Duration = Duration::from_secs(3600);

    fn clock() -> Clock {
        Clock::manual(Timestamp::from_second(1_800_000_000).unwrap())
    }

    #[tokio::test]
    async fn what_is_renewed_goes_on_beyond_its_first_lease() {
        let clock = clock();
        let (renewed, renewal) = watch::channel(clock.instant());
        let (finish, finished) = oneshot::channel();
        let renew = async {
            for _ in 0..3 {
                clock.advance(SignedDuration::from_mins(40));
                renewed.send_replace(clock.instant());
                // The guard is polled first, so it sees each renewal before the next.
                tokio::task::yield_now().await;
            }
            finish.send("two hours later").unwrap();
        };
        let work = async { finished.await.unwrap() };
        let (ended, ()) = tokio::join!(biased; run_by(&clock, work, renewal, clock.instant(), LENGTH), renew);
        assert_eq!(ended, Some("two hours later"));
    }

    #[tokio::test]
    async fn what_is_not_renewed_in_time_ends() {
        let clock = clock();
        let claimed = clock.instant();
        let (renewed, renewal) = watch::channel(claimed);
        clock.advance(SignedDuration::from_mins(60));
        let ready = || std::future::ready(());
        assert_eq!(run_by(&clock, ready(), renewal.clone(), claimed, LENGTH).await, None, "it is over");
        renewed.send_replace(clock.instant());
        assert_eq!(run_by(&clock, ready(), renewal, claimed, LENGTH).await, None, "renewed when it was over");
        // Work that is never woken ends too.
        let (_renewed, renewal) = watch::channel(Instant::now());
        let soon = Duration::from_millis(20);
        assert_eq!(run(std::future::pending::<()>(), renewal, Instant::now(), soon).await, None);
    }

    #[tokio::test]
    async fn work_ends_when_nobody_is_left_who_renews() {
        let clock = clock();
        let (renewed, renewal) = watch::channel(clock.instant());
        let ended = run_by(&clock, std::future::pending::<()>(), renewal, clock.instant(), LENGTH);
        let (ended, ()) = tokio::join!(biased; ended, async move { drop(renewed) });
        assert_eq!(ended, None);
    }

    #[tokio::test]
    async fn who_was_frozen_takes_not_one_step_more() {
        let clock = clock();
        let (_renewed, renewal) = watch::channel(clock.instant());
        let steps = Arc::new(AtomicUsize::new(0));
        let counted = steps.clone();
        let (send, answer) = oneshot::channel();
        let task = async move {
            counted.fetch_add(1, Ordering::SeqCst);
            let answer: Result<(), _> = answer.await;
            counted.fetch_add(1, Ordering::SeqCst);
            answer.unwrap();
        };
        let frozen = async {
            // The response arrives, and then the process is frozen for longer than the lease.
            send.send(()).unwrap();
            clock.advance(SignedDuration::from_mins(61));
        };
        let (ended, ()) = tokio::join!(biased; run_by(&clock, task, renewal, clock.instant(), LENGTH), frozen);
        assert!(ended.is_none());
        assert_eq!(steps.load(Ordering::SeqCst), 1);
    }
}
