//! The open sockets of this process: counts them in total and by user, and ends them when the process stops.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::id::UserId;
use base::{Error, Kind, Result};
use tokio::sync::watch;

use super::End;

/// Limit for one user, who has a few tabs and devices. Every socket is a connection to a server and may hold a frame of
/// 25 MB.
pub const MOST_OF_A_USER: usize = 16;
/// Limit for all users together, who share the descriptors and the memory of this process.
pub const MOST: usize = 10_000;
/// How often the visitor of a socket is checked if no notice triggers a check before.
const LOOK: Duration = Duration::from_secs(15);

pub struct Sockets {
    open: Arc<Open>,
    stop: watch::Sender<bool>,
    look: Duration,
}

struct Open {
    /// The number of sockets by user.
    of: Mutex<HashMap<String, usize>>,
    /// Changed only while `of` is locked.
    all: watch::Sender<usize>,
}

impl Open {
    fn of(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Sockets {
    fn default() -> Sockets {
        let open = Open { of: Mutex::default(), all: watch::channel(0).0 };
        Sockets { open: Arc::new(open), stop: watch::channel(false).0, look: LOOK }
    }
}

/// One socket's place. Dropping it frees the place.
pub struct Place {
    open: Arc<Open>,
    user: String,
}

impl Sockets {
    /// Sets how often visitors are checked without a notice.
    pub fn looked_at_every(mut self, look: Duration) -> Sockets {
        self.look = look;
        self
    }

    pub(super) fn look(&self) -> Duration {
        self.look
    }

    /// Refuses one more socket if a limit is reached.
    pub fn check(&self, user: &UserId) -> Result<()> {
        let of = self.open.of();
        self.room(of.get(user.as_str()).copied().unwrap_or_default())
    }

    pub fn enter(&self, user: &UserId) -> Result<Place> {
        let mut of = self.open.of();
        self.room(of.get(user.as_str()).copied().unwrap_or_default())?;
        *of.entry(user.as_str().to_owned()).or_default() += 1;
        self.open.all.send_modify(|all| *all += 1);
        metrics::gauge!("tidepool_sockets").increment(1.0);
        Ok(Place { open: self.open.clone(), user: user.as_str().to_owned() })
    }

    fn room(&self, own: usize) -> Result<()> {
        let message = if own >= MOST_OF_A_USER {
            format!("at most {MOST_OF_A_USER} connections of one person at a time")
        } else if self.count() >= MOST {
            tracing::warn!(most = MOST, "as many sockets are open as may be");
            "too many people are connected at present".to_owned()
        } else {
            return Ok(());
        };
        Err(Error::new(Kind::TooManyRequests, message).retry_after(Duration::from_secs(5)))
    }

    /// The number of open sockets.
    pub fn count(&self) -> usize {
        *self.open.all.borrow()
    }

    /// Ends all sockets because the process stops.
    pub fn close(&self) {
        self.stop.send_replace(true);
    }

    /// Returns when no socket is open.
    pub async fn emptied(&self) {
        // This cannot fail: the sender lives as long as `self`.
        self.open.all.subscribe().wait_for(|all| *all == 0).await.ok();
    }

    pub(super) async fn closing(&self) -> End {
        let mut stop = self.stop.subscribe();
        // This cannot fail: the sender lives as long as `self`.
        stop.wait_for(|stop| *stop).await.ok();
        End::new(End::RESTART, "the platform is restarting")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut of = self.open.of();
        if let Some(count) = of.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                of.remove(&self.user);
            }
        }
        self.open.all.send_modify(|all| *all -= 1);
        metrics::gauge!("tidepool_sockets").decrement(1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn places_are_limited_of_one_and_of_all_and_come_back() {
        let sockets = Sockets::default();
        let user = |n: usize| UserId::named(format!("u{n}"));
        let mut places: Vec<Place> = (0..MOST).map(|n| sockets.enter(&user(n / MOST_OF_A_USER)).unwrap()).collect();
        let full = sockets.enter(&user(MOST)).err().unwrap();
        assert_eq!(
            (full.kind, full.client.as_ref()),
            (Kind::TooManyRequests, "too many people are connected at present")
        );
        assert!(sockets.check(&user(0)).err().unwrap().client.contains("of one person"));
        places.pop();
        assert!(sockets.enter(&user(0)).is_err(), "still as many as one may have");
        drop(sockets.enter(&user(MOST)).unwrap());
        places.clear();
        sockets.emptied().await;
        assert_eq!((sockets.count(), sockets.open.of().len()), (0, 0));
    }
}
