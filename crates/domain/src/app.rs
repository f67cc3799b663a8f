//! What everything is handed: the database, the clock, the keys and the parts that are configured.

use std::sync::Arc;

use base::{Clock, Zone};
use remote::host::Hosts;
use remote::jwks::Jwks;
use remote::sso::Provider;
use remote::webhook::Webhooks;
use store::Db;
use store::seal::Sealer;

use crate::assistant;
use crate::bot::Bots;
use crate::embed::Embed;
use crate::hashing::Hasher;
use crate::llm::Llm;
use crate::quota::Quotas;
use crate::relay::Sockets;
use crate::second_factor;
use crate::token::TokenKey;
use crate::usage::Feed;

pub struct App {
    pub db: Db,
    pub clock: Clock,
    pub zone: Zone,
    pub sealer: Arc<Sealer>,
    pub hasher: Hasher,
    pub employee: Side,
    pub admin: Side,
    pub proxy: Option<IdentityProxy>,
    /// Who must have a second factor.
    pub mfa: second_factor::Policy,
    pub audit_retention_days: i64,
    /// What this process holds of quotas.
    pub quotas: Quotas,
    /// The LLM gateway.
    pub llm: Llm,
    /// Brings the gateway's log into ours.
    pub feed: Arc<dyn Feed>,
    /// The servers that this process talks to.
    pub hosts: Hosts,
    pub assistants: assistant::Defaults,
    /// What the servers can do of a cell, as last tried.
    pub cells: assistant::cell::Abilities,
    /// Where alerts may be delivered to.
    pub webhooks: Webhooks,
    /// The sockets that this process carries.
    pub sockets: Sockets,
    /// The instances' own pages, in a window of ours.
    pub embed: Embed,
    pub bots: Bots,
}

/// How one of the two kinds of accounts logs in.
pub struct Side {
    pub tokens: TokenKey,
    pub sso: Option<Provider>,
    pub newcomers: Newcomers,
}

/// For whom an account is made when an identity provider vouches for somebody we do not know.
#[derive(Clone, Debug, Default)]
pub struct Newcomers {
    pub welcome: bool,
    /// The e-mail domains that are welcome; empty means any.
    pub domains: Vec<String>,
    /// A claim that the provider must make of them, and its value.
    pub claim: Option<(String, String)>,
}

/// A proxy in front of us that signs who is there (POST /auth/verify).
pub struct IdentityProxy {
    pub issuer: String,
    pub audience: Option<String>,
    pub keys: Jwks,
}
