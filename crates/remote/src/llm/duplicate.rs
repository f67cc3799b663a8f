//! Keeps sub keys unique by name, which no gateway enforces: search, create, search again, and delete the surplus.
//!
//! Within a process, callers for the same name wait for each other. Two processes may both create a key; then both see
//! both keys, and decide to keep the same one.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use base::{Error, Kind, Result, Secret};
use tokio::sync::{Mutex, MutexGuard};

use super::{NewKey, RemoteKey};

/// How long after our key was created another one may still appear that counts as older: a database assigns an id
/// before the row is visible, and where keys are ordered by time, two may have the same time.
const DOUBT: Duration = Duration::from_millis(250);

/// The operations on a gateway's keys that an adapter provides.
pub trait Keyring: Sync {
    /// Every key of exactly this name, oldest first.
    fn named(&self, name: &str) -> impl Future<Output = Result<Vec<RemoteKey>>> + Send;

    /// Creates a key. Returns its id and value if the gateway shows the value only now.
    fn make(&self, new: &NewKey) -> impl Future<Output = Result<Option<(String, Secret)>>> + Send;

    fn remove(&self, gateway_id: &str) -> impl Future<Output = Result<()>> + Send;

    /// The value of a key that the list does not show.
    fn reveal(&self, key: &RemoteKey, new: &NewKey) -> impl Future<Output = Result<Option<Secret>>> + Send;
}

pub async fn create(keys: &impl Keyring, names: &Names, new: &NewKey) -> Result<RemoteKey> {
    let _alone = names.lock(&new.name).await;
    let mut found = keys.named(&new.name).await?;
    let mut made = None;
    if found.is_empty() {
        made = keys.make(new).await?;
        tokio::time::sleep(DOUBT).await;
        found = keys.named(&new.name).await?;
    }
    let Some((mut kept, others)) = settle(found) else {
        return Err(Error::from(Kind::Gateway).with_operator("the gateway made a sub key, but does not list it"));
    };
    for other in others {
        tracing::warn!(name = new.name, kept = kept.gateway_id, deleted = other.gateway_id, "two sub keys of one name");
        keys.remove(&other.gateway_id).await?;
    }
    if kept.key.is_none() {
        kept.key = match made {
            Some((id, value)) if id == kept.gateway_id => Some(value),
            _ => keys.reveal(&kept, new).await?,
        };
    }
    Ok(kept)
}

/// Chooses which of several keys of one name to keep: the oldest that is enabled, or else the oldest. Returns the
/// others to delete.
pub fn settle(oldest_first: Vec<RemoteKey>) -> Option<(RemoteKey, Vec<RemoteKey>)> {
    let mut keys = oldest_first;
    let stays = keys.iter().position(RemoteKey::enabled).unwrap_or(0);
    (!keys.is_empty()).then(|| (keys.remove(stays), keys))
}

/// A lock for each name, by its hash: two names can share a lock, and then wait for each other without need.
pub struct Names([Mutex<()>; 64]);

impl Names {
    pub fn new() -> Names {
        Names(std::array::from_fn(|_| Mutex::new(())))
    }

    async fn lock(&self, name: &str) -> MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        self.0[(hasher.finish() % 64) as usize].lock().await
    }
}

#[cfg(test)]
mod tests {
    use super::super::KeyStatus;
    use super::*;

    fn key(id: &str, status: KeyStatus) -> RemoteKey {
        RemoteKey {
            gateway_id: id.into(),
            name: "n".into(),
            key: None,
            status,
            quota: None,
            remain_quota: None,
            used_quota: 0,
            is_counted: true,
        }
    }

    fn settled(keys: Vec<RemoteKey>) -> (String, Vec<String>) {
        let (kept, others) = settle(keys).unwrap();
        (kept.gateway_id, others.into_iter().map(|k| k.gateway_id).collect())
    }

    #[test]
    fn the_oldest_enabled_key_stays() {
        use KeyStatus::{Disabled, Enabled, Exhausted};
        assert!(settle(vec![]).is_none());
        assert_eq!(settled(vec![key("1", Enabled), key("2", Enabled)]), ("1".into(), vec!["2".into()]));
        let mixed = vec![key("1", Disabled), key("2", Enabled), key("3", Enabled)];
        assert_eq!(settled(mixed), ("2".into(), vec!["1".into(), "3".into()]));
        assert_eq!(settled(vec![key("1", Exhausted), key("2", Disabled)]), ("1".into(), vec!["2".into()]));
    }
}
