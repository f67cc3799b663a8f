//! The model providers that the embedded gateway asks: records, and those that the configuration names. Both look the same
//! to whoever asks them; only records can be edited (`edit`).

mod check;
mod edit;
pub mod preset;
mod scrub;
mod settings;
mod trial;

use std::collections::HashSet;
use std::time::Duration;

use base::id::{ProviderId, ProviderKeyId};
use base::{Kind, Result, Secret};
use jiff::Timestamp;
use store::model::ProviderKind;
pub use store::provider::{Cooling, Failure, Health, Protocol};
use store::seal::Sealer;
use store::{Db, provider};

use crate::App;
pub use edit::{NewProvider, Patch, add_key, create, delete, delete_key, put_first, update};
pub use preset::{Oddity, Preset};
pub use settings::{Access, Settings, read_file};
pub use trial::{Trial, Tried, test};

/// The usual timeouts, and the longest: those of the whole gateway are above them.
pub const DEFAULT_CONNECT: Duration = Duration::from_secs(10);
pub const LONGEST_CONNECT: Duration = Duration::from_secs(60);
pub const DEFAULT_ANSWER: Duration = Duration::from_secs(600);
pub const LONGEST_ANSWER: Duration = Duration::from_secs(600);

/// Where a provider comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Record,
    /// The variables TIDEPOOL_PROVIDER_….
    Environment,
    /// TIDEPOOL_PROVIDERS_FILE.
    File,
}

impl Source {
    /// What changes it, for whoever tried to do it here.
    pub fn place(self) -> &'static str {
        match self {
            Source::Record => "this list",
            Source::Environment => "the variables TIDEPOOL_PROVIDER_… of the server",
            Source::File => "the file TIDEPOOL_PROVIDERS_FILE of the server",
        }
    }
}

/// A provider with its keys, ready to be asked.
#[derive(Clone, Debug)]
pub struct Provider {
    pub id: ProviderId,
    /// What models name.
    pub name: String,
    pub kind: ProviderKind,
    pub preset: &'static Preset,
    pub base_url: String,
    pub protocols: Vec<Protocol>,
    pub enabled: bool,
    pub connect: Duration,
    /// Until an answer begins.
    pub answer: Duration,
    pub proxy: Option<Secret>,
    /// In the order in which they are asked.
    pub keys: Vec<Key>,
    pub source: Source,
    /// Whether it may lead to a private address.
    pub allow_private: bool,
    /// The configuration names another of this name, which is asked instead.
    pub is_overridden: bool,
    /// When a record was made and changed.
    pub times: Option<(Timestamp, Timestamp)>,
}

#[derive(Clone, Debug)]
pub struct Key {
    pub id: ProviderKeyId,
    /// The last four characters, behind `…`.
    pub hint: String,
    pub secret: Secret,
    pub created_at: Option<Timestamp>,
}

/// What is shown of a key.
pub fn hint(secret: &Secret) -> String {
    secret.masked()
}

impl Provider {
    /// Where it answers in a protocol; `None` if it is not asked in it.
    pub fn url(&self, protocol: Protocol) -> Option<String> {
        if !self.protocols.contains(&protocol) {
            return None;
        }
        self.preset.url(&self.base_url, protocol)
    }

    /// The proxy without what it is let in by.
    pub fn shown_proxy(&self) -> Option<String> {
        let mut url = url::Url::parse(self.proxy.as_ref()?.expose()).ok()?;
        if !url.username().is_empty() || url.password().is_some() {
            // An http URL takes both.
            url.set_username("***").ok();
            url.set_password(None).ok();
        }
        Some(url.as_str().trim_end_matches('/').to_owned())
    }
}

/// Every provider: those of the configuration, then the records by name.
pub async fn all(db: &Db, sealer: &Sealer, settings: &Settings) -> Result<Vec<Provider>> {
    let mut all = settings.fixed();
    let names: HashSet<String> = all.iter().map(|provider| provider.name.clone()).collect();
    let (records, keys) = (provider::all(db).await?, provider::all_keys(db).await?);
    for record in records {
        let Some(preset) = preset::find(record.kind, &record.preset) else {
            tracing::warn!(name = record.name, preset = record.preset, "a provider of an unknown preset is left out");
            continue;
        };
        let of_it = keys.iter().filter(|key| key.provider_id == record.id);
        let keys = of_it
            .map(|key| {
                let secret = key.key(sealer)?;
                let created_at = Some(key.created_at);
                Ok(Key { id: key.id.clone(), hint: key.hint.clone(), secret, created_at })
            })
            .collect::<Result<Vec<Key>, store::Error>>()?;
        all.push(Provider {
            proxy: record.proxy_url(sealer)?,
            protocols: record.spoken(),
            is_overridden: names.contains(&record.name),
            times: Some((record.created_at, record.updated_at)),
            allow_private: settings.allow_local,
            connect: millis(record.connect_timeout_ms),
            answer: millis(record.answer_timeout_ms),
            source: Source::Record,
            id: record.id,
            name: record.name,
            kind: record.kind,
            base_url: record.base_url,
            enabled: record.enabled,
            preset,
            keys,
        });
    }
    Ok(all)
}

fn millis(number: i64) -> Duration {
    Duration::from_millis(number.unsigned_abs())
}

/// What is known of all providers.
pub struct Listed {
    pub providers: Vec<Provider>,
    pub coolings: Vec<Cooling>,
    pub health: Vec<Health>,
    pub at: Timestamp,
}

pub async fn list(app: &App) -> Result<Listed> {
    let at = app.clock.now();
    Ok(Listed {
        providers: all(&app.db, &app.sealer, &app.providers).await?,
        coolings: provider::coolings(&app.db, at).await?,
        health: provider::health(&app.db).await?,
        at,
    })
}

pub async fn find(app: &App, id: &ProviderId) -> Result<Provider> {
    let found = all(&app.db, &app.sealer, &app.providers).await?.into_iter().find(|provider| provider.id == *id);
    found.ok_or_else(|| Kind::NotFound.into())
}

/// How a provider is doing, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Off,
    /// It needs a key and has none.
    NoKey,
    /// Nobody asked it lately.
    Unknown,
    Ok,
    /// Some keys are spared, or the last request failed and others succeeded.
    Degraded,
    /// Nothing succeeded lately, and something failed.
    Failing,
}

impl State {
    pub fn as_str(self) -> &'static str {
        match self {
            State::Off => "off",
            State::NoKey => "no_key",
            State::Unknown => "unknown",
            State::Ok => "ok",
            State::Degraded => "degraded",
            State::Failing => "failing",
        }
    }
}

impl Listed {
    /// What real requests met at a provider, by key.
    pub fn health_of<'a>(&'a self, id: &'a ProviderId) -> impl Iterator<Item = &'a Health> {
        self.health.iter().filter(move |health| health.provider_id == *id)
    }

    pub fn coolings_of<'a>(&'a self, key: &'a ProviderKeyId) -> impl Iterator<Item = &'a Cooling> {
        self.coolings.iter().filter(move |cooling| cooling.key_id == *key)
    }

    pub fn state(&self, provider: &Provider) -> State {
        if !provider.enabled || provider.is_overridden {
            return State::Off;
        }
        if provider.keys.is_empty() && provider.preset.needs_key {
            return State::NoKey;
        }
        let is_its = |health: &&Health| {
            health.key_id.as_str().is_empty() || provider.keys.iter().any(|key| key.id == health.key_id)
        };
        let (mut succeeded, mut failed) = (0, 0);
        for health in self.health_of(&provider.id).filter(is_its) {
            let (well, badly) = health.recent(self.at);
            succeeded += well;
            failed += badly;
        }
        let cools = provider.keys.iter().any(|key| self.coolings_of(&key.id).next().is_some());
        match (succeeded, failed) {
            (0, 0) if cools => State::Degraded,
            (0, 0) => State::Unknown,
            (0, _) => State::Failing,
            (_, 0) if !cools => State::Ok,
            // A failure among many is none of the provider as a whole.
            _ if cools || failed * 10 > succeeded => State::Degraded,
            _ => State::Ok,
        }
    }
}
