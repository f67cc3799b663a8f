//! Sub keys as the hot path knows them: read from the database, kept for a moment, dropped when somebody says that they changed.
//!
//! A key is known for two seconds at most. In its second second it is read anew in the background, so that a key in steady use
//! never waits. When the database does not answer, what was known last is believed for a minute.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base::id::{KeyId, UserId};
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

/// No key is as long.
const MOST_KEY: usize = 256;
/// How often a key is read again because something changed meanwhile.
const READS: usize = 3;
/// Known keys, unknown ones included; beyond this the oldest knowledge goes.
const MOST_KNOWN: usize = 20_000;

#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// What is older is read anew, in the background.
    pub soft: Duration,
    /// What is older is read anew before it counts.
    pub hard: Duration,
    /// What is older does not count even when the database is away.
    pub stale: Duration,
    /// How long the database may take before what is known counts.
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

/// Whom a key speaks for.
#[derive(Debug)]
pub struct Caller {
    pub key_id: String,
    /// The token name in the log.
    pub name: Arc<str>,
    instance_id: Option<String>,
    /// Why it is refused, if it is.
    pub refused: Option<Refused>,
    quota: Option<Subject>,
    user: Option<(UserId, i64)>,
    /// The user's quota of the day, made once a day.
    today: Mutex<Option<Subject>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    Disabled,
    UserRevoked,
    QuotaSpent,
}

impl Caller {
    fn new(holder: Holder) -> Caller {
        let revoked = holder.user_revoked || holder.user_status.as_deref().is_some_and(|status| status != "active");
        let refused = match holder.status {
            Status::Disabled => Some(Refused::Disabled),
            Status::Active if revoked => Some(Refused::UserRevoked),
            Status::Active if holder.quota_spent => Some(Refused::QuotaSpent),
            Status::Active => None,
        };
        let key = KeyId::named(&holder.key_id);
        Caller {
            name: holder.name.into(),
            instance_id: holder.instance_id,
            refused,
            quota: holder.quota.map(|limit| Subject::Key { id: key, limit }),
            user: holder
                .user_id
                .zip(holder.quota_daily)
                .filter(|(_, limit)| *limit > 0)
                .map(|(id, n)| (UserId::named(id), n)),
            key_id: holder.key_id,
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

    /// The quota of the user whose instance it is, in tokens of today.
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

/// What is known of one key.
struct Known {
    /// `None`: there is no such key.
    caller: Option<Arc<Caller>>,
    /// `None`: never, or not since it changed.
    read_at: Option<Instant>,
    /// Held by whoever reads it.
    reading: Arc<tokio::sync::Mutex<()>>,
}

pub struct Keys {
    db: Db,
    clock: Clock,
    sealer: Arc<Sealer>,
    timing: Timing,
    known: Mutex<HashMap<String, Known>>,
    /// Counts what was said to have changed: what was read before is old.
    changes: AtomicU64,
}

/// The database does not say whose key it is.
#[derive(Debug)]
pub struct NotNow;

impl Keys {
    pub fn new(db: Db, clock: Clock, sealer: Arc<Sealer>, timing: Timing) -> Arc<Keys> {
        Arc::new(Keys { db, clock, sealer, timing, known: Mutex::default(), changes: AtomicU64::new(0) })
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whose key it is; `None` for one that there is not.
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

    /// Reads a key, unless somebody else just did.
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
            last = read?.map(|holder| Arc::new(Caller::new(holder)));
            let mut known = self.known();
            // Something changed while we read, and it may have been this: read it again.
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

    /// What was known last, while the database is away.
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

    /// Forgets what may have changed.
    fn forget(&self, changed: impl Fn(&Caller) -> bool) {
        let mut known = self.known();
        self.changes.fetch_add(1, Ordering::AcqRel);
        known.retain(|_, known| known.caller.as_deref().is_some_and(|caller| !changed(caller)));
    }

    /// Hears what changes, for as long as it runs.
    pub async fn keep(&self, mut notices: broadcast::Receiver<Notice>) {
        loop {
            match notices.recv().await {
                Ok(Notice { topic: Topic::Key, id }) => self.forget(|caller| caller.key_id == id),
                Ok(Notice { topic: Topic::Instance, id }) => {
                    self.forget(|caller| caller.instance_id.as_deref() == Some(id.as_str()));
                }
                Ok(Notice { topic: Topic::Anything, .. }) => self.forget(|_| true),
                Ok(_) => {}
                // Missed some: any key may have been among them.
                Err(broadcast::error::RecvError::Lagged(_)) => self.forget(|_| true),
                Err(broadcast::error::RecvError::Closed) => return std::future::pending().await,
            }
        }
    }
}

/// Keys that there are not can be made up without end.
fn make_room(known: &mut HashMap<String, Known>) {
    if known.len() < MOST_KNOWN {
        return;
    }
    known.retain(|_, known| known.caller.is_some());
    if known.len() >= MOST_KNOWN {
        known.clear();
    }
}
