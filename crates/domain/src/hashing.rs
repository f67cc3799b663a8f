//! Password hashing off the threads that answer requests, and never on all cores at once.

use std::sync::Arc;
use std::time::Duration;

use base::password::{self, Verdict};
use base::{Error, Kind, Result, Secret};
use tokio::sync::Semaphore;

/// A login that waited this long is refused with 503 and may try again.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Clone)]
pub struct Hasher {
    permits: Arc<Semaphore>,
    patience: Duration,
}

impl Default for Hasher {
    /// Half of the cores: a storm of logins leaves the other half to everybody else.
    fn default() -> Hasher {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        Hasher { permits: Arc::new(Semaphore::new((cores / 2).max(1))), patience: PATIENCE }
    }
}

impl Hasher {
    /// The same, for callers who would rather wait this long than be refused.
    pub fn with_patience(self, patience: Duration) -> Hasher {
        Hasher { patience, ..self }
    }

    pub async fn hash(&self, password: Secret) -> Result<String> {
        self.run(move || password::hash(&password)).await?
    }

    /// Compares with what is stored; an account without a password costs the same time as any other.
    pub async fn verify(&self, stored: Option<String>, password: Secret) -> Result<Verdict> {
        self.run(move || match stored {
            Some(stored) => password::verify(&stored, &password),
            None => {
                password::burn(&password);
                Verdict::Wrong
            }
        })
        .await
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let permit = tokio::time::timeout(self.patience, self.permits.clone().acquire_owned()).await;
        let busy = Error::new(Kind::Unavailable, "too many people are logging in; try again in a moment");
        let permit = match permit {
            Ok(permit) => permit.map_err(Error::internal)?,
            Err(_) => return Err(busy.retry_after(Duration::from_secs(5))),
        };
        let work = move || {
            let _until_done = permit;
            work()
        };
        tokio::task::spawn_blocking(work).await.map_err(Error::internal)
    }
}
