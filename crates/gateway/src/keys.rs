//! A cache of sub keys for the hot path. A notice that a key changed drops it from the cache.
//!
//! An entry is valid for two seconds. After one second it is refreshed in the background, so that a request with a key
//! in steady use never waits. While the database does not answer, an entry of the last minute is used.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base::id::UserId;
use base::{Clock, Secret, Zone};
use jiff::Timestamp;
use llm::quota::Subject;
use store::gateway_key::{self, Holder, Status};
use store::notice::{Notice, Topic};
use store::seal::Sealer;
use store::{Db, Error};
use tokio::sync::broadcast;

/// The name of the platform's own key.
pub const PLATFORM: &str = "admin-token";

/// No key is longer than this.
const MOST_KEY: usize = 256;
/// Characters of a key's hash that its fingerprint has.
const FINGERPRINT: usize = 22;
/// How often a read is tried while notices of changes arrive during it.
const READS: usize = 3;
/// Size of the key cache, negative entries included; see `make_room`.
const MOST_KNOWN: usize = 20_000;

#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// An older entry is refreshed in the background.
    pub soft: Duration,
    /// An older entry is refreshed before it is used.
    pub hard: Duration,
    /// An older entry is not used even while the database does not answer.
    pub stale: Duration,
    /// How long a request waits for the database before it uses an expired entry.
    pub patience: Duration,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            soft: Duration::from_secs(1),
            hard: Duration::from_secs(2),
            stale: Duration::from_secs(60),
            patience: Duration::from_secs(2),
        }
    }
}

/// The holder of a key, and its quotas.
#[derive(Debug)]
pub struct Caller {
    pub key_id: String,
    /// The token name in the request log.
    pub name: Arc<str>,
    instance_id: Option<String>,
    /// Tells this secret from any other that the key has or had.
    pub fingerprint: Arc<str>,
    /// Why the key is refused, if it is.
    pub refused: Option<Refused>,
    quota: Option<Subject>,
    user: Option<(UserId, i64)>,
    /// The user's quota of the day, computed once a day.
    today: Mutex<Option<Subject>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    Disabled,
    UserRevoked,
    QuotaSpent,
}

impl Caller {
    fn new(holder: Holder, hash: &str) -> Caller {
        let revoked = holder.user_revoked || holder.user_status.as_deref().is_some_and(|status| status != "active");
        let refused = match holder.status {
            Status::Disabled => Some(Refused::Disabled),
            Status::Active if revoked => Some(Refused::UserRevoked),
            Status::Active if holder.quota_spent => Some(Refused::QuotaSpent),
            Status::Active => None,
        };
        Caller {
            name: holder.name.into(),
            instance_id: holder.instance_id.map(Into::into),
            fingerprint: hash.get(..FINGERPRINT).unwrap_or(hash).into(),
            refused,
            quota: holder.quota.map(|limit| Subject::Key { id: holder.key_id.clone(), limit }),
            user: holder.user_id.zip(holder.quota_daily).filter(|(_, limit)| *limit > 0),
            key_id: holder.key_id.into(),
            today: Mutex::new(None),
        }
    }

    pub fn is_platform(&self) -> bool {
        self.instance_id.is_none() && &*self.name == PLATFORM
    }

    /// The key's own quota, in units.
    pub fn quota(&self) -> Option<&Subject> {
        self.quota.as_ref()
    }

    /// The daily quota of the instance's user, in tokens.
    pub fn quota_of_user(&self, now: Timestamp, zone: &Zone) -> Option<Subject> {
        let (id, limit) = self.user.as_ref()?;
        let mut today = self.today.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(subject @ Subject::User { midnight, resets_at, .. }) = &*today
            && (*midnight..*resets_at).contains(&now)
        {
            return Some(subject.clone());
        }
        let (midnight, resets_at) = (zone.midnight(now), zone.next_midnight(now));
        let subject = Subject::User { id: id.clone(), limit: *limit, midnight, resets_at };
        *today = Some(subject.clone());
        Some(subject)
    }
}

/// A cache entry of one key.
struct Known {
    /// `None`: the key does not exist.
    caller: Option<Arc<Caller>>,
    /// `None`: the key was not read yet.
    read_at: Option<Instant>,
    /// Locked while the key is read, so that only one request reads it.
    reading: Arc<tokio::sync::Mutex<()>>,
}

pub struct Keys {
    db: Db,
    clock: Clock,
    sealer: Arc<Sealer>,
    timing: Timing,
    known: Mutex<HashMap<String, Known>>,
    /// Counts the notices of changes: a result whose read began before the last notice may be old.
    changes: AtomicU64,
}

/// The database does not answer, and the cache has no usable entry.
#[derive(Debug)]
pub struct NotNow;

impl Keys {
    pub fn new(db: Db, clock: Clock, sealer: Arc<Sealer>, timing: Timing) -> Arc<Keys> {
        Arc::new(Keys { db, clock, sealer, timing, known: Mutex::default(), changes: AtomicU64::new(0) })
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds the holder of a key; `None` if the key does not exist.
    pub async fn caller(self: &Arc<Keys>, key: &str) -> Result<Option<Arc<Caller>>, NotNow> {
        if key.is_empty() || key.len() > MOST_KEY {
            return Ok(None);
        }
        let hash = self.sealer.hash(&Secret::new(key));
        let reading = {
            let mut known = self.known();
            make_room(&mut known);
            let Known { caller, read_at, reading } = known.entry(hash.clone()).or_insert_with(|| Known {
                caller: None,
                read_at: None,
                reading: Arc::new(tokio::sync::Mutex::new(())),
            });
            let age = read_at.map(|at| self.clock.since(at));
            if let Some(age) = age.filter(|age| *age < self.timing.hard) {
                if age >= self.timing.soft
                    && let Ok(reading) = reading.clone().try_lock_owned()
                {
                    let keys = self.clone();
                    tokio::spawn(async move {
                        keys.read(&hash).await.ok();
                        drop(reading);
                    });
                }
                return Ok(caller.clone());
            }
            reading.clone()
        };
        let waited = tokio::time::timeout(self.timing.patience, self.read_by_one(&hash, &reading)).await;
        match waited {
            Ok(Ok(caller)) => Ok(caller),
            _ => self.believed(&hash),
        }
    }

    /// Reads a key, unless another request has just done so.
    async fn read_by_one(&self, hash: &str, reading: &tokio::sync::Mutex<()>) -> Result<Option<Arc<Caller>>, Error> {
        let _reading = reading.lock().await;
        if let Some(known) = self.known().get(hash)
            && known.read_at.is_some_and(|at| self.clock.since(at) < self.timing.hard)
        {
            return Ok(known.caller.clone());
        }
        self.read(hash).await
    }

    async fn read(&self, hash: &str) -> Result<Option<Arc<Caller>>, Error> {
        let mut last = None;
        for _ in 0..READS {
            let (began, changes) = (self.clock.instant(), self.changes.load(Ordering::Acquire));
            let read = gateway_key::holder(&self.db, hash).await;
            if let Err(error) = &read {
                tracing::warn!(%error, "a key could not be read");
            }
            last = read?.map(|holder| Arc::new(Caller::new(holder, hash)));
            let mut known = self.known();
            // If a notice arrived during the read, it may be about this key: read it again.
            if self.changes.load(Ordering::Acquire) == changes {
                if let Some(known) = known.get_mut(hash) {
                    known.caller.clone_from(&last);
                    known.read_at = Some(began);
                }
                break;
            }
        }
        Ok(last)
    }

    /// The last entry, while the database does not answer.
    fn believed(&self, hash: &str) -> Result<Option<Arc<Caller>>, NotNow> {
        let known = self.known();
        match known.get(hash) {
            Some(&Known { caller: Some(ref caller), read_at: Some(at), .. })
                if self.clock.since(at) < self.timing.stale =>
            {
                Ok(Some(caller.clone()))
            }
            _ => Err(NotNow),
        }
    }

    /// Drops the entries that may have changed. Negative ones always go: the change may have created their key.
    fn forget(&self, changed: impl Fn(&Caller) -> bool) {
        let mut known = self.known();
        self.changes.fetch_add(1, Ordering::AcqRel);
        known.retain(|_, known| known.caller.as_deref().is_some_and(|caller| !changed(caller)));
    }

    /// Drops entries as notices of changes arrive. Never returns.
    pub async fn keep(&self, mut notices: broadcast::Receiver<Notice>) {
        loop {
            match notices.recv().await {
                Ok(Notice { topic: Topic::Key, id }) => self.forget(|caller| caller.key_id == id),
                Ok(Notice { topic: Topic::Instance, id }) => {
                    self.forget(|caller| caller.instance_id.as_deref() == Some(id.as_str()));
                }
                Ok(Notice { topic: Topic::Anything, .. }) => self.forget(|_| true),
                Ok(_) => {}
                // Some notices were lost: they may have been about any key.
                Err(broadcast::error::RecvError::Lagged(_)) => self.forget(|_| true),
                Err(broadcast::error::RecvError::Closed) => return std::future::pending().await,
            }
        }
    }
}

/// Keeps the cache small: clients can invent any number of keys. Negative entries go first, then all.
fn make_room(known: &mut HashMap<String, Known>) {
    if known.len() < MOST_KNOWN {
        return;
    }
    known.retain(|_, known| known.caller.is_some());
    if known.len() >= MOST_KNOWN {
        known.clear();
    }
}
