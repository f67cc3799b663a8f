//! Waiting for what a test means: a row, a line, a state. The limit says only when to give up; how quick the product is, is
//! the subject of other tests.

use std::fmt::Debug;
use std::panic::Location;
use std::time::{Duration, Instant};

/// When a test gives up: far beyond what a busy machine needs, and before nextest ends the test without a word.
pub const LIMIT: Duration = Duration::from_secs(60);

const PAUSE: Duration = Duration::from_millis(10);

/// Waits until the check is true; returns how long that took.
#[track_caller]
pub fn until(what: &str, check: impl AsyncFnMut() -> bool) -> impl Future<Output = Duration> {
    until_within(LIMIT, what, check)
}

#[track_caller]
pub fn until_within(
    limit: Duration,
    what: &str,
    mut check: impl AsyncFnMut() -> bool,
) -> impl Future<Output = Duration> {
    let began = Instant::now();
    until_ok_within(limit, what, async move || if check().await { Ok(began.elapsed()) } else { Err("not yet") })
}

/// Waits until the check has an answer. Its error is what was seen instead; the last one is shown when the time is up.
#[track_caller]
pub fn until_ok<T, Seen: Debug>(what: &str, check: impl AsyncFnMut() -> Result<T, Seen>) -> impl Future<Output = T> {
    until_ok_within(LIMIT, what, check)
}

#[track_caller]
pub fn until_ok_within<T, Seen: Debug>(
    limit: Duration,
    what: &str,
    mut check: impl AsyncFnMut() -> Result<T, Seen>,
) -> impl Future<Output = T> {
    let caller = Location::caller();
    async move {
        let began = Instant::now();
        loop {
            match check().await {
                Ok(value) => return value,
                Err(seen) if began.elapsed() > limit => {
                    panic!("{caller}: waited {limit:?} for: {what}\nlast seen: {seen:#?}")
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_ends_as_soon_as_the_check_has_an_answer() {
        let mut asked = 0;
        let answer = until_ok("the third time", async || {
            asked += 1;
            if asked == 3 { Ok("there") } else { Err(asked) }
        });
        assert_eq!(answer.await, "there");
        assert_eq!(asked, 3);
    }

    #[tokio::test]
    #[should_panic(expected = "last seen: \"four rows\"")]
    async fn it_gives_up_and_shows_what_it_saw() {
        until_ok_within(Duration::from_millis(30), "five rows", async || Err::<(), _>("four rows")).await;
    }
}
