//! LLM gateways: sub keys, models, balance and health, for every kind of gateway. One file per kind.
//!
//! The trait knows nothing of HTTP, so that the embedded gateway can implement it too. Amounts are in our units
//! (`base::units`): an adapter converts those of its gateway.

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
mod pace;

pub trait Gateway: Send + Sync {
    fn kind(&self) -> &'static Kind;

    /// Where a chat completion is posted.
    fn chat_url(&self) -> &str;

    /// A check that is cheap for the gateway. A gateway that is down is a result, not an error.
    fn health(&self) -> BoxFuture<'_, Health>;

    /// Whether the gateway takes our management token, by the cheapest call that needs it.
    fn check_admin_token(&self) -> BoxFuture<'_, AdminToken>;

    /// The models that our account may use, each once, in the gateway's order.
    fn models(&self) -> BoxFuture<'_, Result<Vec<String>>>;

    /// Every sub key of our account. The values are missing if the gateway hides them.
    fn keys(&self) -> BoxFuture<'_, Result<Vec<RemoteKey>>>;

    /// The sub key of exactly this name. If there are several, the one that `create_key` would keep.
    fn find_key<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<RemoteKey>>>;

    /// The one sub key of this name: the existing one, unchanged, or a new one. If several exist because callers raced,
    /// the oldest enabled one is kept and the others are deleted.
    fn create_key<'a>(&'a self, new: &'a NewKey) -> BoxFuture<'a, Result<RemoteKey>>;

    /// The sub key as the gateway has it now. The value is missing if the gateway hides it.
    fn read_key<'a>(&'a self, gateway_id: &'a str) -> BoxFuture<'a, Result<Option<RemoteKey>>>;

    /// Enables or disables a sub key, and changes nothing else of it.
    fn set_enabled<'a>(&'a self, gateway_id: &'a str, enabled: bool) -> BoxFuture<'a, Result<()>>;

    /// Deletes a sub key. Succeeds if it does not exist.
    fn delete_key<'a>(&'a self, gateway_id: &'a str) -> BoxFuture<'a, Result<()>>;

    /// Whether the gateway accepts a sub key, by the cheapest call that needs one.
    fn check_key<'a>(&'a self, key: &'a Secret) -> BoxFuture<'a, KeyState>;

    /// The balance of the account that all sub keys draw from.
    fn balance(&self) -> BoxFuture<'_, Result<Balance>>;

    /// What the gateway itself counts for all our keys, apart from its log.
    fn counted(&self) -> BoxFuture<'_, Result<i64>>;
}

/// A kind of foreign gateway.
pub struct Kind {
    /// Its name in the setting `gateway_kind`.
    pub name: &'static str,
    /// How many bytes a sub key's name may have.
    pub name_limit: usize,
    /// Whether its log has a row for a failed request.
    pub logs_failures: bool,
    /// How long after an answer its row may be missing in the log, and the gateway's own counters may lack it.
    pub row_delay: Duration,
    /// Whether it charges fractions of our unit, so that two rounded sums may be one unit apart.
    pub charges_fractions: bool,
    /// The header of an answer that has the request's id in the log.
    pub request_id_header: Option<&'static str>,
    pub open: fn(&Settings) -> Result<Arc<dyn Gateway>>,
}

/// The kinds that are reached over the network. The embedded gateway is not one of them.
pub const KINDS: &[&Kind] = &[&one_api::KIND, &new_api::KIND, &litellm::KIND];

impl Kind {
    pub fn find(name: &str) -> Option<&'static Kind> {
        KINDS.iter().find(|kind| kind.name == name).copied()
    }

    /// Refuses a name that the gateway would refuse or would change.
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
    /// The base URL of `/v1/chat/completions`.
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
    /// The value of the gateway's own units, if it has any.
    pub per_usd: Option<PerUsd>,
}

#[derive(Clone, Debug)]
pub struct NewKey {
    pub name: String,
    /// What it may spend in total; `None` means as much as the account has.
    pub quota: Option<i64>,
    /// The value to create it with, if the gateway accepts one: then a retry finds its key again. Other gateways
    /// generate it.
    pub value: Option<Secret>,
}

#[derive(Clone, Debug)]
pub struct RemoteKey {
    /// The gateway's own name for it.
    pub gateway_id: String,
    pub name: String,
    /// What a caller sends. `None` if the gateway does not show it (any more).
    pub key: Option<Secret>,
    pub status: KeyStatus,
    /// The total quota, and what is left of it; `None` means no limit.
    pub quota: Option<i64>,
    pub remain_quota: Option<i64>,
    pub used_quota: i64,
    /// Whether `used_quota` counts every request: one-api counts nothing of a key without a limit.
    pub is_counted: bool,
}

/// What a gateway says of the management token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminToken {
    Accepted,
    /// It refuses the token, for this reason.
    Refused(String),
    /// Nothing is known, for this reason.
    Unknown(String),
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

/// The result of a call with a sub key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyState {
    Valid,
    /// Unknown, disabled, expired, or (one-api and new-api do not say so) exhausted.
    Invalid,
    /// Its budget, or the account's, is spent.
    Exhausted,
    /// Known, but not allowed: the account is banned, or the address is not on the key's list.
    Denied,
    /// The gateway throttles us: nothing is known of the key.
    Throttled,
    /// Nothing is known of the key, for this reason.
    Unreachable(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Balance {
    /// `None` means no limit.
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
