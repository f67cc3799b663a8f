//! The model providers that the embedded gateway asks: records, and those that the configuration names. Both look the same
//! to whoever asks them; only records can be edited (`edit`).

mod check;
mod edit;
pub mod preset;
pub mod scrub;
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
    /// Its proxy cannot be unsealed: it is off, since it must not be asked without the proxy.
    pub is_unreadable: bool,
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

/// Every provider: those of the configuration, then the records by name. What cannot be unsealed is left out, and holds up
/// no other.
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
        let opened = |key: &provider::ProviderKey| match key.key(sealer) {
            Ok(secret) => {
                Some(Key { id: key.id.clone(), hint: key.hint.clone(), secret, created_at: Some(key.created_at) })
            }
            Err(error) => {
                tracing::warn!(id = key.id.as_str(), %error, "a provider's key cannot be unsealed and is left out");
                None
            }
        };
        let keys = of_it.filter_map(opened).collect();
        let proxy = record.proxy_url(sealer);
        if let Err(error) = &proxy {
            tracing::warn!(id = record.id.as_str(), %error, "a provider is off: its proxy cannot be unsealed");
        }
        let is_unreadable = proxy.is_err();
        all.push(Provider {
            proxy: proxy.unwrap_or_default(),
            is_unreadable,
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
            enabled: record.enabled && !is_unreadable,
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

#[cfg(test)]
mod tests {
    use super::*;
    use base::Clock;
    use jiff::SignedDuration;
    use queue::audit::By;
    use store::args;
    use store::provider::Counted;
    use testkit::Database;

    async fn site() -> (App, Database) {
        let (database, clock) = (Database::sqlite(), Clock::manual("2026-11-15T12:10:00Z".parse().unwrap()));
        let engine = queue::App::for_tests(database.migrated().await, clock).unwrap();
        (App::for_tests(engine).unwrap(), database)
    }

    async fn made(app: &App) -> Provider {
        let new = NewProvider {
            name: "groq".into(),
            kind: ProviderKind::Compatible,
            preset: "groq".into(),
            base_url: None,
            protocols: None,
            enabled: true,
            connect_seconds: None,
            answer_seconds: None,
            proxy: None,
            keys: vec![Secret::new("a-key-of-nobody-0001"), Secret::new("a-key-of-nobody-0002")],
        };
        let id = create(app, &By::system(), new).await.unwrap();
        find(app, &id).await.unwrap()
    }

    async fn counts(app: &App, of: &Provider, succeeded: i64, failed: i64) {
        let now = app.clock.now();
        let counted = Counted {
            provider_id: of.id.clone(),
            key_id: of.keys[0].id.clone(),
            succeeded,
            failed,
            last_success_at: (succeeded > 0).then_some(now),
            last_failure: (failed > 0).then_some((now, Failure::Late)),
        };
        let mut tx = app.db.begin().await.unwrap();
        provider::add_health(&mut tx, &counted, now).await.unwrap();
        tx.commit().await.unwrap();
    }

    #[tokio::test]
    async fn health_is_summed_and_grows_old() {
        let (app, _database) = site().await;
        let of = made(&app).await;
        let state = async || {
            let listed = list(&app).await.unwrap();
            let recent = listed.health.first().map(|health| health.recent(listed.at));
            (listed.state(&of), recent)
        };
        assert_eq!(state().await, (State::Unknown, None));
        counts(&app, &of, 5, 0).await;
        counts(&app, &of, 15, 1).await;
        assert_eq!(state().await, (State::Ok, Some((20, 1))));
        app.clock.advance(SignedDuration::from_mins(30));
        counts(&app, &of, 0, 9).await;
        assert_eq!(state().await, (State::Degraded, Some((20, 10))));
        app.clock.advance(SignedDuration::from_mins(30));
        assert_eq!(state().await, (State::Failing, Some((0, 9))));
        let health = list(&app).await.unwrap().health.remove(0);
        let last = (health.last_success_at.unwrap(), health.last_failure_at.unwrap(), health.failure);
        assert_eq!(last.0, "2026-11-15T12:10:00Z".parse().unwrap());
        assert_eq!((last.1, last.2), ("2026-11-15T12:40:00Z".parse().unwrap(), Some(Failure::Late)));
        app.clock.advance(SignedDuration::from_mins(30));
        assert_eq!(state().await, (State::Unknown, Some((0, 0))));
    }

    #[tokio::test]
    async fn a_later_end_of_a_cooling_stays_and_what_is_over_is_forgotten() {
        let (app, _database) = site().await;
        let of = made(&app).await;
        let now = app.clock.now();
        let cool = async |minutes: i64| {
            let cooling = Cooling {
                key_id: of.keys[0].id.clone(),
                model: String::new(),
                reason: Failure::KeyRefused,
                until_at: now + SignedDuration::from_mins(minutes),
            };
            let mut tx = app.db.begin().await.unwrap();
            provider::cool(&mut tx, &cooling, app.clock.now()).await.unwrap();
            tx.commit().await.unwrap();
        };
        cool(30).await;
        cool(10).await;
        let listed = list(&app).await.unwrap();
        assert_eq!(listed.coolings.len(), 1);
        assert_eq!(listed.coolings[0].until_at, now + SignedDuration::from_mins(30));
        assert_eq!(listed.state(&of), State::Degraded);
        // An edit ends it.
        update(&app, &By::system(), &of.id, Patch { answer_seconds: Some(60), ..Patch::default() }).await.unwrap();
        assert!(list(&app).await.unwrap().coolings.is_empty());
        cool(30).await;
        app.clock.advance(SignedDuration::from_mins(30));
        assert!(list(&app).await.unwrap().coolings.is_empty());
    }

    /// Such as one that was written with another master key, or came here by hand.
    #[tokio::test]
    async fn what_cannot_be_unsealed_holds_up_no_other_and_can_be_replaced() {
        let (app, _database) = site().await;
        let of = made(&app).await;
        app.db.run("UPDATE provider_key SET secret = 'broken' WHERE id = ?", args![&of.keys[0].id]).await.unwrap();
        let left = find(&app, &of.id).await.unwrap();
        assert_eq!((left.keys.len(), &left.keys[0].id, left.enabled), (1, &of.keys[1].id, true));
        add_key(&app, &By::system(), &of.id, &Secret::new("a-key-of-nobody-0003")).await.unwrap();
        app.db.run("UPDATE provider SET proxy = 'broken' WHERE id = ?", args![&of.id]).await.unwrap();
        let off = list(&app).await.unwrap();
        assert_eq!((off.providers[0].is_unreadable, off.state(&off.providers[0])), (true, State::Off));
        let Err(error) = test(&app, &By::system(), &of.id, Trial::default()).await else {
            panic!("asked past its proxy")
        };
        assert!(error.client.contains("proxy"), "{}", error.client);
        update(&app, &By::system(), &of.id, Patch { proxy: Some(None), ..Patch::default() }).await.unwrap();
        let again = find(&app, &of.id).await.unwrap();
        assert!(again.enabled && !again.is_unreadable && again.proxy.is_none() && again.keys.len() == 2);
    }

    #[tokio::test]
    async fn what_the_configuration_names_goes_before_a_record() {
        let (mut app, _database) = site().await;
        made(&app).await;
        app.providers.file = read_file("[[providers]]\nname = \"groq\"\nkind = \"openai\"\n").unwrap();
        let listed = list(&app).await.unwrap();
        let shown: Vec<_> = listed.providers.iter().map(|of| (of.source, of.is_overridden)).collect();
        assert_eq!(shown, [(Source::File, false), (Source::Record, true)]);
        assert_eq!(listed.state(&listed.providers[0]), State::NoKey);
        assert_eq!(listed.state(&listed.providers[1]), State::Off);
    }
}
