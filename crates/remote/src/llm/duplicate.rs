//! Never two sub keys of one name, though no gateway forbids it: look, make, look again, and settle what is found.
//!
//! Within a process callers of one name wait for each other. Two processes may both make one; both then see both, and
//! keep the same.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use base::{Error, Kind, Result, Secret};
use tokio::sync::{Mutex, MutexGuard};

use super::{NewKey, RemoteKey};

/// How long after making one another's may turn up that counts as older: a database gives out an id before its row can be seen, and where keys
/// are told apart by times two may have the same.
const DOUBT: Duration = Duration::from_millis(250);

/// What an adapter can do with its gateway's keys.
pub trait Keyring: Sync {
    /// Every key of exactly this name, oldest first.
    fn named(&self, name: &str) -> impl Future<Output = Result<Vec<RemoteKey>>> + Send;

    /// Makes one. Answers its id and value, where the gateway tells them now and never again.
    fn make(&self, new: &NewKey) -> impl Future<Output = Result<Option<(String, Secret)>>> + Send;

    fn remove(&self, gateway_id: &str) -> impl Future<Output = Result<()>> + Send;

    /// The value of a key whose list entry hides it.
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

/// Which of several keys of one name stays: the oldest that works, or the oldest. The rest may go.
pub fn settle(oldest_first: Vec<RemoteKey>) -> Option<(RemoteKey, Vec<RemoteKey>)> {
    let mut keys = oldest_first;
    let stays = keys.iter().position(RemoteKey::enabled).unwrap_or(0);
    (!keys.is_empty()).then(|| (keys.remove(stays), keys))
}

/// A lock per name, near enough: names that share one wait a little for nothing.
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
