//! Hashes passwords outside of the threads that serve requests, and never on all cores at once. Callers wait in a queue
//! of limited length, of which no single address can take all places.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::password::{self, Verdict};
use base::{Error, Kind, Result, Secret};
use tokio::sync::Semaphore;

/// A login that waited this long is refused with 503 and may try again.
const PATIENCE: Duration = Duration::from_secs(20);
/// How many callers may wait at the same time: enough for a company's morning. A hash takes about 30 ms, and 19 MiB
/// while it runs.
const PLACES: usize = 256;
/// How many of the places one address may take, or one account that changes its password.
const PLACES_OF_ONE: usize = 64;

#[derive(Clone)]
pub struct Hasher {
    permits: Arc<Semaphore>,
    patience: Duration,
    queue: Arc<Mutex<Queue>>,
}

/// The waiting callers, counted by origin.
#[derive(Default)]
struct Queue {
    all: usize,
    by_origin: HashMap<String, usize>,
}

/// A place in the queue, until it is dropped.
struct Waiting {
    queue: Arc<Mutex<Queue>>,
    origin: String,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.all -= 1;
        if let Some(count) = queue.by_origin.get_mut(&self.origin) {
            *count -= 1;
            if *count == 0 {
                queue.by_origin.remove(&self.origin);
            }
        }
    }
}

impl Default for Hasher {
    /// Uses half of the cores, so that many logins at once leave the other half for everything else.
    fn default() -> Hasher {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        Hasher { permits: Arc::new(Semaphore::new((cores / 2).max(1))), patience: PATIENCE, queue: Arc::default() }
    }
}

impl Hasher {
    /// Changes how long a caller waits before it is refused.
    pub fn with_patience(self, patience: Duration) -> Hasher {
        Hasher { patience, ..self }
    }

    pub async fn hash(&self, password: Secret) -> Result<String> {
        self.run("", move || password::hash(&password)).await?
    }

    /// Compares a password with the stored hash. An account without a password takes the same time as any other.
    /// `origin` says who asks.
    pub async fn verify(&self, stored: Option<String>, password: Secret, origin: &str) -> Result<Verdict> {
        self.run(origin, move || match stored {
            Some(stored) => password::verify(&stored, &password),
            None => {
                password::burn(&password);
                Verdict::Wrong
            }
        })
        .await
    }

    async fn run<T: Send + 'static>(&self, origin: &str, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let waiting = self.stand_in_line(origin).ok_or_else(busy)?;
        let permit = tokio::time::timeout(self.patience, self.permits.clone().acquire_owned()).await;
        let permit = permit.map_err(|_| busy())?.map_err(Error::internal)?;
        drop(waiting);
        let work = move || {
            let _until_done = permit;
            work()
        };
        tokio::task::spawn_blocking(work).await.map_err(Error::internal)
    }

    /// `None` if the queue is full, or has too many callers of this origin.
    fn stand_in_line(&self, origin: &str) -> Option<Waiting> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let of_origin = queue.by_origin.get(origin).copied().unwrap_or_default();
        if queue.all >= PLACES || of_origin >= PLACES_OF_ONE {
            return None;
        }
        queue.all += 1;
        *queue.by_origin.entry(origin.to_owned()).or_default() += 1;
        Some(Waiting { queue: self.queue.clone(), origin: origin.to_owned() })
    }
}

fn busy() -> Error {
    let busy = Error::new(Kind::Unavailable, "too many people are logging in; try again in a moment");
    busy.retry_after(Duration::from_secs(5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_origin_leaves_room_for_the_others_and_the_queue_has_an_end() {
        let hasher = Hasher::default();
        let enter =
            |origin: &str, count: usize| (0..count).filter_map(|_| hasher.stand_in_line(origin)).collect::<Vec<_>>();
        let loud = enter("203.0.113.1", 1000);
        assert_eq!(loud.len(), PLACES_OF_ONE);
        let quiet = enter("203.0.113.2", 1);
        assert_eq!(quiet.len(), 1, "another address still gets in");
        let many: Vec<_> = (0..1000).flat_map(|i| enter(&format!("198.51.100.{i}"), 1)).collect();
        assert_eq!(loud.len() + quiet.len() + many.len(), PLACES);
        drop((loud, quiet, many));
        let queue = hasher.queue.lock().unwrap();
        assert!(queue.all == 0 && queue.by_origin.is_empty(), "places are given back");
    }
}
