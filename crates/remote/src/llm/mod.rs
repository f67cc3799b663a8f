//! LLM gateways: sub keys, models, balance and health, whatever the gateway is. One file per kind.
//!
//! The trait knows nothing of HTTP: the embedded gateway, which is no conversation at all, can be one too. Amounts are
//! in our units (`base::units`): an adapter scales its gateway's.

use std::sync::Arc;
use std::time::Duration;

use base::{Error, PerUsd, Result, Secret};
use futures_util::future::BoxFuture;

mod call;
mod duplicate;
pub mod litellm;
mod management;
pub mod new_api;
pub mod one_api;

pub trait Gateway: Send + Sync {
    fn kind(&self) -> &'static Kind;

    /// Where a chat completion is posted.
    fn chat_url(&self) -> &str;

    /// A look that costs the gateway nothing. A gateway that is down is an answer, not an error.
    fn health(&self) -> BoxFuture<'_, Health>;

    /// The models that our account may use, each once, in the gateway's order.
    fn models(&self) -> BoxFuture<'_, Result<Vec<String>>>;

    /// Every sub key of our account. Without their values, where the gateway hides those.
    fn keys(&self) -> BoxFuture<'_, Result<Vec<RemoteKey>>>;

    /// The sub key of exactly this name. Of several, the one that `create_key` would keep.
    fn find_key<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<RemoteKey>>>;

    /// The one sub key of this name: the one that is there already, as it is, or a new one. However many ask at once,
    /// one is left: of several the oldest enabled one is kept, and the others are deleted.
    fn create_key<'a>(&'a self, new: &'a NewKey) -> BoxFuture<'a, Result<RemoteKey>>;

    /// The sub key as the gateway has it now. Without its value, where the gateway hides it.
    fn read_key<'a>(&'a self, gateway_id: &'a str) -> BoxFuture<'a, Result<Option<RemoteKey>>>;

    /// Lets a sub key work or not, and changes nothing else of it.
    fn set_enabled<'a>(&'a self, gateway_id: &'a str, enabled: bool) -> BoxFuture<'a, Result<()>>;

    /// Deletes a sub key. One that is not there is fine.
    fn delete_key<'a>(&'a self, gateway_id: &'a str) -> BoxFuture<'a, Result<()>>;

    /// Whether a sub key opens the gateway, by the cheapest call that needs one.
    fn check_key<'a>(&'a self, key: &'a Secret) -> BoxFuture<'a, KeyState>;

    /// What is left to the account that all sub keys draw from.
    fn balance(&self) -> BoxFuture<'_, Result<Balance>>;
}

/// A kind of gateway that somebody else runs.
pub struct Kind {
    /// The word of the setting.
    pub name: &'static str,
    /// Bytes that a sub key's name may have.
    pub name_limit: usize,
    /// Whether it has a row for a request that failed.
    pub logs_failures: bool,
    /// How long after an answer its row may still be on its way.
    pub row_delay: Duration,
    pub open: fn(&Settings) -> Result<Arc<dyn Gateway>>,
}

/// The kinds that are reached over a network. The embedded gateway is opened where it lives.
pub const KINDS: &[&Kind] = &[&one_api::KIND, &new_api::KIND, &litellm::KIND];

impl Kind {
    pub fn find(name: &str) -> Option<&'static Kind> {
        KINDS.iter().find(|kind| kind.name == name).copied()
    }

    /// Refuses what the gateway would refuse, or would not keep as it was given.
    pub fn check_name(&self, name: &str) -> Result<()> {
        let limit = self.name_limit;
        if name.is_empty() || name.trim() != name || name.chars().any(char::is_control) {
            return Err(Error::field("name", "must be visible text, without blanks around it"));
        }
        if name.len() > limit {
            return Err(Error::field("name", format_args!("{} takes at most {limit} bytes", self.name)));
        }
        Ok(())
    }
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Where a gateway is and how we may manage it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address below which `/v1/chat/completions` is.
    pub url: String,
    /// The management token. For new-api `<user id>:<token>`; without an id it is root's, 1.
    pub admin_token: Secret,
}

#[derive(Clone, Debug)]
pub struct Health {
    pub ok: bool,
    /// What is wrong, for the operator; empty when nothing is.
    pub detail: String,
    pub version: Option<String>,
    pub latency_ms: i64,
    /// What the gateway's own units are worth, where it has any.
    pub per_usd: Option<PerUsd>,
}

#[derive(Clone, Debug)]
pub struct NewKey {
    pub name: String,
    /// What it may spend in all; `None` is as much as the account has.
    pub quota: Option<i64>,
    /// The value to give it, where the gateway takes one: a repeat then finds its key again. The others make their own.
    pub value: Option<Secret>,
}

#[derive(Clone, Debug)]
pub struct RemoteKey {
    /// The gateway's own name for it.
    pub gateway_id: String,
    pub name: String,
    /// What a caller sends. `None` where the gateway does not tell it (any more).
    pub key: Option<Secret>,
    pub status: KeyStatus,
    /// What it was given in all, and what is left of it; `None` is no limit.
    pub quota: Option<i64>,
    pub remain_quota: Option<i64>,
    pub used_quota: i64,
}

impl RemoteKey {
    pub fn enabled(&self) -> bool {
        self.status == KeyStatus::Enabled
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyStatus {
    Enabled,
    Disabled,
    Expired,
    Exhausted,
}

/// What a call with a sub key came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyState {
    Valid,
    /// Unknown, disabled, expired, or (one-api and new-api do not say so) exhausted.
    Invalid,
    /// Its budget, or the account's, is spent.
    Exhausted,
    /// Known, but not allowed: the account is banned, or the address is not on the key's list.
    Denied,
    /// The gateway asks us to come again later: nothing is known of the key.
    Throttled,
    /// Nothing is known of the key: why.
    Unreachable(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Balance {
    /// `None` is no limit.
    pub remain: Option<i64>,
    pub used: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_measured_in_bytes_and_must_survive_the_gateway() {
        let kind = Kind::find("one-api").unwrap();
        kind.check_name(&"x".repeat(30)).unwrap();
        kind.check_name("%_\\'\"; --").unwrap();
        for bad in ["", " x", "x ", "a\nb", "a\0b", &"x".repeat(31), &"é".repeat(16)] {
            kind.check_name(bad).unwrap_err();
        }
        let refusal = kind.check_name(&"x".repeat(31)).unwrap_err();
        assert_eq!(refusal.client, "name: one-api takes at most 30 bytes");
        assert!(Kind::find("embedded").is_none() && Kind::find("litellm").is_some());
    }
}
