//! Making and changing the records of providers and their keys. Each change is audited in its transaction, never with a key,
//! and told to all processes.

use std::time::Duration;

use base::id::{ProviderId, ProviderKeyId};
use base::{Error, Kind, Result, Secret};
use jiff::Timestamp;
use queue::audit::{self, Action, AuditEvent, By, Changes};
use store::model::{self, ProviderKind};
use store::notice::{Notice, Topic};
use store::provider::{ProviderKey, ProviderRecord};
use store::{Tx, provider as stored};
use url::Url;

use super::preset::{self, Preset};
use super::{DEFAULT_ANSWER, DEFAULT_CONNECT, LONGEST_ANSWER, LONGEST_CONNECT, Protocol, Provider, Source, check};
use crate::App;

pub struct NewProvider {
    pub name: String,
    pub kind: ProviderKind,
    pub preset: String,
    /// That of the preset when omitted.
    pub base_url: Option<String>,
    pub protocols: Option<Vec<Protocol>>,
    pub enabled: bool,
    pub connect_seconds: Option<u64>,
    pub answer_seconds: Option<u64>,
    pub proxy: Option<Secret>,
    pub keys: Vec<Secret>,
}

/// What a PATCH changes; `None` leaves a field as it is.
#[derive(Default)]
pub struct Patch {
    pub base_url: Option<String>,
    pub protocols: Option<Vec<Protocol>>,
    pub enabled: Option<bool>,
    pub connect_seconds: Option<u64>,
    pub answer_seconds: Option<u64>,
    /// `Some(None)` takes the proxy away.
    pub proxy: Option<Option<Secret>>,
}

pub async fn create(app: &App, by: &By, new: NewProvider) -> Result<ProviderId> {
    let allow_local = app.providers.allow_local;
    let name = check::name(&new.name)?;
    let preset = check::preset(new.kind, &new.preset)?;
    let base_url = check::base_url(new.base_url.as_deref().unwrap_or(preset.base_url), allow_local)?;
    let protocols = match new.protocols {
        Some(asked) => check::protocols(preset, asked)?,
        None => check::usual_protocols(preset),
    };
    let connect = timeout("connect_timeout_seconds", new.connect_seconds, DEFAULT_CONNECT, LONGEST_CONNECT)?;
    let answer = timeout("answer_timeout_seconds", new.answer_seconds, DEFAULT_ANSWER, LONGEST_ANSWER)?;
    let proxy = new.proxy.map(|proxy| check::proxy(proxy, allow_local)).transpose()?;
    if new.keys.len() as i64 > stored::MOST_KEYS {
        return Err(Error::field("keys", format_args!("must be at most {}", stored::MOST_KEYS)));
    }
    if let Some(fixed) = app.providers.fixed().iter().find(|fixed| fixed.name == name) {
        return Err(Error::conflict(format!("{name} is named by {} already", fixed.source.place())));
    }
    let (id, now) = (ProviderId::fresh(), app.clock.now());
    let proxy = proxy.map(|proxy| app.sealer.seal(stored::proxy_place(&id), &proxy)).transpose()?;
    let record = ProviderRecord {
        id: id.clone(),
        name,
        kind: new.kind,
        preset: preset.name.to_owned(),
        base_url,
        protocols: stored::joined(&protocols),
        enabled: new.enabled,
        connect_timeout_ms: connect,
        answer_timeout_ms: answer,
        proxy,
        created_at: now,
        updated_at: now,
    };
    let mut tx = app.db.begin().await?;
    if stored::count(&mut tx).await? >= stored::MOST {
        return Err(Error::conflict(format!("there are {} providers already", stored::MOST)));
    }
    stored::insert(&mut tx, &record).await.map_err(|error| match error {
        store::Error::Taken => Error::conflict(format!("there is a provider {} already", record.name)),
        other => other.into(),
    })?;
    for (place, secret) in new.keys.iter().enumerate() {
        put_key(app, &mut tx, &id, secret, place as i64, now).await?;
    }
    let detail = format!("created: {} at {}, {} keys", record.kind.as_str(), record.base_url, new.keys.len());
    tell(app, &mut tx, by, &record.name, &detail).await?;
    tx.commit().await?;
    Ok(id)
}

pub async fn update(app: &App, by: &By, id: &ProviderId, patch: Patch) -> Result<()> {
    refuse_fixed(app, id)?;
    let allow_local = app.providers.allow_local;
    let mut tx = app.db.begin().await?;
    let mut record = stored::lock(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    let preset = known_preset(&record)?;
    let old = record.clone();
    // One that cannot be unsealed differs from every other, so that it can be replaced.
    let old_proxy = old.proxy_url(&app.sealer).ok();
    if let Some(base_url) = &patch.base_url {
        record.base_url = check::base_url(base_url, allow_local)?;
    }
    if let Some(asked) = patch.protocols {
        record.protocols = stored::joined(&check::protocols(preset, asked)?);
    }
    record.enabled = patch.enabled.unwrap_or(record.enabled);
    if patch.connect_seconds.is_some() {
        record.connect_timeout_ms =
            timeout("connect_timeout_seconds", patch.connect_seconds, DEFAULT_CONNECT, LONGEST_CONNECT)?;
    }
    if patch.answer_seconds.is_some() {
        record.answer_timeout_ms =
            timeout("answer_timeout_seconds", patch.answer_seconds, DEFAULT_ANSWER, LONGEST_ANSWER)?;
    }
    let mut proxy_changed = false;
    if let Some(proxy) = patch.proxy {
        let proxy = proxy.map(|proxy| check::proxy(proxy, allow_local)).transpose()?;
        proxy_changed = old_proxy.as_ref() != Some(&proxy);
        if proxy_changed {
            record.proxy = proxy.map(|proxy| app.sealer.seal(stored::proxy_place(id), &proxy)).transpose()?;
        }
    }
    record.updated_at = app.clock.now();
    // Whoever may change the address must not read a key by that: keys that were given for one place are not sent to another. A
    // proxy sees what is not encrypted.
    let seen_by_others = origin(&old.base_url) != origin(&record.base_url)
        || (proxy_changed && record.proxy.is_some() && record.base_url.starts_with("http:"));
    let keys = stored::keys(&mut tx, id).await?;
    if seen_by_others {
        stored::delete_keys(&mut tx, id).await?;
    } else {
        for key in &keys {
            stored::end_cooling(&mut tx, &key.id).await?;
        }
    }
    stored::update(&mut tx, &record).await?;
    let seconds = |ms: i64| (ms / 1000).to_string();
    let changes = Changes::default()
        .field("base_url", &old.base_url, &record.base_url)
        .field("protocols", &old.protocols, &record.protocols)
        .field("enabled", &old.enabled.to_string(), &record.enabled.to_string())
        .field("connect_timeout_seconds", &seconds(old.connect_timeout_ms), &seconds(record.connect_timeout_ms))
        .field("answer_timeout_seconds", &seconds(old.answer_timeout_ms), &seconds(record.answer_timeout_ms))
        .hidden("proxy", proxy_changed);
    let mut detail = changes.text();
    if seen_by_others && !keys.is_empty() {
        detail.push_str(&format!("; {} keys forgotten, since they were given for another address", keys.len()));
    }
    tell(app, &mut tx, by, &record.name, &detail).await?;
    Ok(tx.commit().await?)
}

/// Refused while a model that is offered names it: it would lose its provider unseen.
pub async fn delete(app: &App, by: &By, id: &ProviderId) -> Result<()> {
    refuse_fixed(app, id)?;
    let mut tx = app.db.begin().await?;
    let record = stored::lock(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    let is_named_elsewhere = app.providers.fixed().iter().any(|fixed| fixed.name == record.name);
    let models = model::all(&app.db).await?;
    let of_it: Vec<&str> = models
        .iter()
        .filter(|model| model.enabled && model.provider == record.name && model.kind != ProviderKind::Echo)
        .map(|model| model.id.as_str())
        .collect();
    if !of_it.is_empty() && !is_named_elsewhere {
        let message = format!("models that are offered name it: {}. Switch them off first", of_it.join(", "));
        return Err(Error::conflict(message));
    }
    stored::delete(&mut tx, id).await?;
    tell(app, &mut tx, by, &record.name, "deleted, with its keys").await?;
    Ok(tx.commit().await?)
}

/// Adds a key behind the others.
pub async fn add_key(app: &App, by: &By, id: &ProviderId, secret: &Secret) -> Result<ProviderKeyId> {
    refuse_fixed(app, id)?;
    let mut tx = app.db.begin().await?;
    let record = stored::lock(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    let keys = stored::keys(&mut tx, id).await?;
    if keys.len() as i64 >= stored::MOST_KEYS {
        return Err(Error::conflict(format!("it has {} keys already", stored::MOST_KEYS)));
    }
    for key in &keys {
        if key.key(&app.sealer).is_ok_and(|known| known == *secret) {
            return Err(Error::conflict("it has this key already"));
        }
    }
    let place = keys.last().map_or(0, |last| last.place + 1);
    let made = put_key(app, &mut tx, id, secret, place, app.clock.now()).await?;
    tell(app, &mut tx, by, &record.name, &format!("key {} added", super::hint(secret))).await?;
    tx.commit().await?;
    Ok(made)
}

/// Has a key asked before the others.
pub async fn put_first(app: &App, by: &By, id: &ProviderId, key_id: &ProviderKeyId) -> Result<()> {
    refuse_fixed(app, id)?;
    let mut tx = app.db.begin().await?;
    let record = stored::lock(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    let mut keys = stored::keys(&mut tx, id).await?;
    let at = keys.iter().position(|key| key.id == *key_id).ok_or(Kind::NotFound)?;
    keys[..=at].rotate_right(1);
    for (place, key) in keys.iter().enumerate() {
        stored::set_place(&mut tx, &key.id, place as i64).await?;
    }
    tell(app, &mut tx, by, &record.name, &format!("key {} put first", keys[0].hint)).await?;
    Ok(tx.commit().await?)
}

pub async fn delete_key(app: &App, by: &By, id: &ProviderId, key_id: &ProviderKeyId) -> Result<()> {
    refuse_fixed(app, id)?;
    let mut tx = app.db.begin().await?;
    let record = stored::lock(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    let keys = stored::keys(&mut tx, id).await?;
    let key = keys.iter().find(|key| key.id == *key_id).ok_or(Kind::NotFound)?;
    stored::delete_key(&mut tx, key_id).await?;
    tell(app, &mut tx, by, &record.name, &format!("key {} deleted", key.hint)).await?;
    Ok(tx.commit().await?)
}

async fn put_key(
    app: &App,
    tx: &mut Tx,
    provider_id: &ProviderId,
    secret: &Secret,
    place: i64,
    created_at: Timestamp,
) -> Result<ProviderKeyId> {
    check::key(secret)?;
    let id = ProviderKeyId::fresh();
    let sealed = app.sealer.seal(stored::key_place(&id), secret)?;
    let hint = super::hint(secret);
    let key = ProviderKey { id: id.clone(), provider_id: provider_id.clone(), secret: sealed, hint, place, created_at };
    stored::insert_key(tx, &key).await?;
    Ok(id)
}

/// Refuses to change what the configuration names, and says where that is.
fn refuse_fixed(app: &App, id: &ProviderId) -> Result<()> {
    match app.providers.fixed().iter().find(|fixed| fixed.id == *id) {
        Some(Provider { name, source, .. }) => {
            debug_assert!(*source != Source::Record);
            Err(Error::conflict(format!("{name} cannot be edited here: it comes from {}", source.place())))
        }
        None => Ok(()),
    }
}

fn known_preset(record: &ProviderRecord) -> Result<&'static Preset> {
    preset::find(record.kind, &record.preset)
        .ok_or_else(|| Error::conflict("this release does not know its preset: delete it"))
}

/// Scheme, host and port.
fn origin(url: &str) -> Option<url::Origin> {
    Url::parse(url).ok().map(|url| url.origin())
}

fn timeout(field: &str, seconds: Option<u64>, usual: Duration, longest: Duration) -> Result<i64> {
    let time = seconds.map_or(Ok(usual), |seconds| check::timeout(field, seconds, longest))?;
    Ok(i64::try_from(time.as_millis()).unwrap_or(i64::MAX))
}

/// Audits a change, and tells every process.
async fn tell(app: &App, tx: &mut Tx, by: &By, name: &str, detail: &str) -> Result<()> {
    let target = format!("provider {name}");
    audit::record(app, tx, by, AuditEvent::info(Action::Provider, &target, detail)).await?;
    Ok(tx.notify(Notice::new(Topic::Provider, name)).await?)
}
