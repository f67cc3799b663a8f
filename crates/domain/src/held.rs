//! Work under a lease: it goes on only while the lease is surely held, by the clock that no process can be frozen out of.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::sync::watch;

/// Does the work until it ends; `None` where the lease was neither `claimed` nor `renewed` within `length`, or nobody is left who
/// renews. The clock is looked at before each step: a process that was frozen, and wakes when somebody else is at it, takes not
/// one step more.
pub(crate) async fn work<W: Future>(
    work: W,
    mut renewed: watch::Receiver<Instant>,
    claimed: Instant,
    length: Duration,
) -> Option<W::Output> {
    let mut work = pin!(work);
    let mut until = claimed + length;
    loop {
        let at = *renewed.borrow_and_update();
        // One that was renewed too late may have been somebody else's by then.
        if at < until {
            until = until.max(at + length);
        }
        let step = poll_fn(|context| match Instant::now() < until {
            true => work.as_mut().poll(context).map(Some),
            false => Poll::Ready(None),
        });
        tokio::select! {
            biased;
            changed = renewed.changed() => if changed.is_err() { return None },
            ended = step => return ended,
            () = tokio::time::sleep_until(until.into()) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn what_is_renewed_goes_on_and_what_is_not_ends() {
        let began = Instant::now();
        let (renewed, renewal) = watch::channel(began);
        let length = Duration::from_secs(2);
        let renew = async {
            for _ in 0..20 {
                tokio::time::sleep(Duration::from_millis(200)).await;
                renewed.send_replace(Instant::now());
            }
            std::future::pending::<()>().await;
        };
        let long = tokio::time::sleep(Duration::from_secs(3));
        tokio::select! {
            ended = work(long, renewal.clone(), began, length) => assert!(ended.is_some()),
            () = renew => {}
        }
        tokio::time::sleep(length).await;
        assert!(
            work(std::future::ready(()), renewal.clone(), Instant::now() - length, length).await.is_none(),
            "it is over"
        );
        let late = watch::channel(Instant::now()).1;
        assert!(work(std::future::ready(()), late, began, length).await.is_none(), "renewed when it was over");
    }

    #[tokio::test]
    async fn who_was_frozen_takes_not_one_step_more() {
        let began = Instant::now();
        let (_renewed, renewal) = watch::channel(began);
        let steps = Arc::new(AtomicUsize::new(0));
        let counted = steps.clone();
        let (say, heard) = tokio::sync::oneshot::channel();
        let task = async move {
            counted.fetch_add(1, Ordering::SeqCst);
            let answer: Result<(), _> = heard.await;
            counted.fetch_add(1, Ordering::SeqCst);
            answer.unwrap();
        };
        let frozen = async {
            // The answer comes, and nothing runs for longer than the lease.
            say.send(()).unwrap();
            std::thread::sleep(Duration::from_millis(600));
        };
        let (ended, ()) = tokio::join!(work(task, renewal, began, Duration::from_millis(500)), frozen);
        assert!(ended.is_none());
        assert_eq!(steps.load(Ordering::SeqCst), 1);
    }
}
