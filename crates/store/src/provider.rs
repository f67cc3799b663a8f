//! The model providers of the embedded gateway: records, their keys, which keys are spared for a while, and what real
//! requests met.

use base::Secret;
use base::id::{ProviderId, ProviderKeyId};
use jiff::{SignedDuration, Timestamp};

use crate::db::{Number, Record as _};
pub use crate::model::Protocol;
use crate::model::ProviderKind;
use crate::seal::{Place, Sealer};
use crate::{Conn, Db, Result, Tx, args, record, word};

word! {
    /// How a provider failed.
    pub enum Failure {
        /// It does not take the key (401, 403).
        KeyRefused = "key_refused",
        /// The account of the key has no credit.
        Spent = "account_spent",
        /// It asked to wait (429).
        RateLimited = "rate_limited",
        /// It cannot be reached.
        Unreachable = "unreachable",
        /// It did not begin to answer in time.
        Late = "late",
        /// It broke the connection, or answered 3xx or 5xx.
        Failed = "failed",
    }
}

record! {
    #[derive(Clone, Debug)]
    pub struct ProviderRecord {
        pub id: ProviderId,
        pub name: String,
        pub kind: ProviderKind,
        /// Empty without one.
        pub preset: String,
        pub base_url: String,
        /// Names with commas between them: see `spoken`.
        pub protocols: String,
        pub enabled: bool,
        pub connect_timeout_ms: i64,
        pub answer_timeout_ms: i64,
        /// Sealed: see `proxy_url`.
        pub proxy: Option<String>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }
}

impl ProviderRecord {
    pub fn proxy_url(&self, sealer: &Sealer) -> Result<Option<Secret>> {
        self.proxy.as_deref().map(|sealed| sealer.open(proxy_place(&self.id), sealed)).transpose()
    }

    pub fn spoken(&self) -> Vec<Protocol> {
        self.protocols.split(',').filter_map(Protocol::parse).collect()
    }
}

/// Protocols as `ProviderRecord::protocols` has them.
pub fn joined(protocols: &[Protocol]) -> String {
    protocols.iter().map(|protocol| protocol.as_str()).collect::<Vec<_>>().join(",")
}

record! {
    #[derive(Clone, Debug)]
    pub struct ProviderKey {
        pub id: ProviderKeyId,
        pub provider_id: ProviderId,
        /// Sealed: see `key`.
        pub secret: String,
        pub hint: String,
        pub place: i64,
        pub created_at: Timestamp,
    }
}

impl ProviderKey {
    pub fn key(&self, sealer: &Sealer) -> Result<Secret> {
        sealer.open(key_place(&self.id), &self.secret)
    }
}

pub fn proxy_place(id: &ProviderId) -> Place<'_> {
    Place { table: "provider", column: "proxy", id }
}

pub fn key_place(id: &ProviderKeyId) -> Place<'_> {
    Place { table: "provider_key", column: "secret", id }
}

record! {
    /// Until when a key is spared.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Cooling {
        pub key_id: ProviderKeyId,
        /// Empty where it holds for all models.
        pub model: String,
        pub reason: Failure,
        pub until_at: Timestamp,
    }
}

record! {
    #[derive(Clone, Debug)]
    pub struct Health {
        pub provider_id: ProviderId,
        /// Empty for a provider without a key.
        pub key_id: ProviderKeyId,
        pub last_success_at: Option<Timestamp>,
        pub last_failure_at: Option<Timestamp>,
        pub failure: Option<Failure>,
        window_at: Timestamp,
        succeeded: i64,
        failed: i64,
        succeeded_before: i64,
        failed_before: i64,
    }
}

impl Health {
    /// How many requests succeeded and failed within the last half hour to hour.
    pub fn recent(&self, now: Timestamp) -> (i64, i64) {
        let began = window(now);
        if self.window_at >= began {
            (self.succeeded + self.succeeded_before, self.failed + self.failed_before)
        } else if self.window_at + WINDOW >= began {
            (self.succeeded, self.failed)
        } else {
            (0, 0)
        }
    }
}

/// What a process counted since it last wrote.
#[derive(Clone, Debug)]
pub struct Counted {
    pub provider_id: ProviderId,
    pub key_id: ProviderKeyId,
    pub succeeded: i64,
    pub failed: i64,
    pub last_success_at: Option<Timestamp>,
    pub last_failure: Option<(Timestamp, Failure)>,
}

const WINDOW: SignedDuration = SignedDuration::from_mins(30);

/// The begin of the half hour that contains a moment.
fn window(at: Timestamp) -> Timestamp {
    let (ms, each) = (at.as_millisecond(), 30 * 60 * 1000);
    Timestamp::from_millisecond(ms - ms.rem_euclid(each)).unwrap_or(at)
}

/// There are no more records than this, and no more keys at one of them.
pub const MOST: i64 = 200;
pub const MOST_KEYS: i64 = 20;

pub async fn all(db: &Db) -> Result<Vec<ProviderRecord>> {
    db.all(&format!("SELECT {} FROM provider ORDER BY name LIMIT ?", ProviderRecord::COLUMNS), args![MOST]).await
}

pub async fn count(tx: &mut Tx) -> Result<i64> {
    let found: Number = Conn::from(tx).one("SELECT COUNT(*) AS n FROM provider", args![]).await?;
    Ok(found.n)
}

/// The record, locked until the transaction ends.
pub async fn lock(tx: &mut Tx, id: &ProviderId) -> Result<Option<ProviderRecord>> {
    let sql = format!("SELECT {} FROM provider WHERE id = ?{}", ProviderRecord::COLUMNS, tx.dialect().for_update());
    tx.first(&sql, args![id]).await
}

/// Fails with `Taken` if the name is in use.
pub async fn insert(tx: &mut Tx, record: &ProviderRecord) -> Result<()> {
    let sql = "INSERT INTO provider (id, name, kind, preset, base_url, protocols, enabled, connect_timeout_ms, answer_timeout_ms, \
        proxy, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let args = args![
        &record.id,
        &record.name,
        record.kind,
        &record.preset,
        &record.base_url,
        &record.protocols,
        record.enabled,
        record.connect_timeout_ms,
        record.answer_timeout_ms,
        record.proxy.as_ref(),
        record.created_at,
        record.updated_at
    ];
    tx.run(sql, args).await.map(drop)
}

/// Writes back the fields that may change.
pub async fn update(tx: &mut Tx, record: &ProviderRecord) -> Result<()> {
    let sql = "UPDATE provider SET base_url = ?, protocols = ?, enabled = ?, connect_timeout_ms = ?, answer_timeout_ms = ?, \
        proxy = ?, updated_at = ? WHERE id = ?";
    let args = args![
        &record.base_url,
        &record.protocols,
        record.enabled,
        record.connect_timeout_ms,
        record.answer_timeout_ms,
        record.proxy.as_ref(),
        record.updated_at,
        &record.id
    ];
    tx.run(sql, args).await.map(drop)
}

/// Deletes the record with its keys and what is known of them.
pub async fn delete(tx: &mut Tx, id: &ProviderId) -> Result<()> {
    delete_keys(tx, id).await?;
    tx.run("DELETE FROM provider_health WHERE provider_id = ?", args![id]).await?;
    tx.run("DELETE FROM provider WHERE id = ?", args![id]).await.map(drop)
}

pub async fn all_keys(db: &Db) -> Result<Vec<ProviderKey>> {
    let sql = format!(
        "SELECT {} FROM provider_key ORDER BY provider_id, place, created_at, id LIMIT ?",
        ProviderKey::COLUMNS
    );
    db.all(&sql, args![MOST * MOST_KEYS]).await
}

/// The keys of a provider, in the order in which they are asked.
pub async fn keys(conn: impl Into<Conn<'_>>, id: &ProviderId) -> Result<Vec<ProviderKey>> {
    let sql = format!(
        "SELECT {} FROM provider_key WHERE provider_id = ? ORDER BY place, created_at, id LIMIT ?",
        ProviderKey::COLUMNS
    );
    conn.into().all(&sql, args![id, MOST_KEYS]).await
}

pub async fn insert_key(tx: &mut Tx, key: &ProviderKey) -> Result<()> {
    let sql = "INSERT INTO provider_key (id, provider_id, secret, hint, place, created_at) VALUES (?, ?, ?, ?, ?, ?)";
    let args = args![&key.id, &key.provider_id, &key.secret, &key.hint, key.place, key.created_at];
    tx.run(sql, args).await.map(drop)
}

pub async fn set_place(tx: &mut Tx, id: &ProviderKeyId, place: i64) -> Result<()> {
    tx.run("UPDATE provider_key SET place = ? WHERE id = ?", args![place, id]).await.map(drop)
}

pub async fn delete_key(tx: &mut Tx, id: &ProviderKeyId) -> Result<()> {
    end_cooling(tx, id).await?;
    tx.run("DELETE FROM provider_health WHERE key_id = ?", args![id]).await?;
    tx.run("DELETE FROM provider_key WHERE id = ?", args![id]).await.map(drop)
}

pub async fn delete_keys(tx: &mut Tx, id: &ProviderId) -> Result<()> {
    for key in keys(&mut *tx, id).await? {
        delete_key(tx, &key.id).await?;
    }
    Ok(())
}

/// What cools down at this moment.
pub async fn coolings(db: &Db, now: Timestamp) -> Result<Vec<Cooling>> {
    let sql =
        format!("SELECT {} FROM provider_cooling WHERE until_at > ? ORDER BY key_id, model LIMIT ?", Cooling::COLUMNS);
    db.all(&sql, args![now, MOST * MOST_KEYS]).await
}

/// Records that a key is spared; a later end stays. Forgets what is over.
pub async fn cool(tx: &mut Tx, cooling: &Cooling, now: Timestamp) -> Result<()> {
    tx.run("DELETE FROM provider_cooling WHERE until_at <= ?", args![now]).await?;
    let sql = "INSERT INTO provider_cooling (key_id, model, reason, until_at) VALUES (?, ?, ?, ?) \
        ON CONFLICT (key_id, model) DO UPDATE SET reason = excluded.reason, until_at = excluded.until_at \
        WHERE provider_cooling.until_at < excluded.until_at";
    tx.run(sql, args![&cooling.key_id, &cooling.model, cooling.reason, cooling.until_at]).await.map(drop)
}

/// The key is asked again, for all models. Returns whether it was spared.
pub async fn end_cooling(tx: &mut Tx, id: &ProviderKeyId) -> Result<bool> {
    Ok(tx.run("DELETE FROM provider_cooling WHERE key_id = ?", args![id]).await? > 0)
}

/// The same for one model, or with an empty one for what all models of the key waited for.
pub async fn end_cooling_of(tx: &mut Tx, id: &ProviderKeyId, model: &str) -> Result<()> {
    tx.run("DELETE FROM provider_cooling WHERE key_id = ? AND model = ?", args![id, model]).await.map(drop)
}

pub async fn health(db: &Db) -> Result<Vec<Health>> {
    let sql = format!("SELECT {} FROM provider_health ORDER BY provider_id, key_id LIMIT ?", Health::COLUMNS);
    db.all(&sql, args![MOST * MOST_KEYS]).await
}

/// Adds what a process counted. A process whose clock is behind adds to the window of the others.
pub async fn add_health(tx: &mut Tx, counted: &Counted, now: Timestamp) -> Result<()> {
    let began = window(now);
    let sql = "INSERT INTO provider_health (provider_id, key_id, last_success_at, last_failure_at, failure, window_at, succeeded, failed) \
        VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (provider_id, key_id) DO UPDATE SET \
        failure = CASE WHEN excluded.last_failure_at IS NOT NULL AND excluded.last_failure_at >= COALESCE(provider_health.last_failure_at, 0) \
            THEN excluded.failure ELSE provider_health.failure END, \
        last_success_at = CASE WHEN COALESCE(excluded.last_success_at, 0) > COALESCE(provider_health.last_success_at, 0) \
            THEN excluded.last_success_at ELSE provider_health.last_success_at END, \
        last_failure_at = CASE WHEN COALESCE(excluded.last_failure_at, 0) > COALESCE(provider_health.last_failure_at, 0) \
            THEN excluded.last_failure_at ELSE provider_health.last_failure_at END, \
        succeeded_before = CASE WHEN provider_health.window_at >= excluded.window_at THEN provider_health.succeeded_before \
            WHEN provider_health.window_at >= ? THEN provider_health.succeeded ELSE 0 END, \
        failed_before = CASE WHEN provider_health.window_at >= excluded.window_at THEN provider_health.failed_before \
            WHEN provider_health.window_at >= ? THEN provider_health.failed ELSE 0 END, \
        succeeded = CASE WHEN provider_health.window_at >= excluded.window_at THEN provider_health.succeeded ELSE 0 END + excluded.succeeded, \
        failed = CASE WHEN provider_health.window_at >= excluded.window_at THEN provider_health.failed ELSE 0 END + excluded.failed, \
        window_at = CASE WHEN provider_health.window_at >= excluded.window_at THEN provider_health.window_at ELSE excluded.window_at END";
    let args = args![
        &counted.provider_id,
        &counted.key_id,
        counted.last_success_at,
        counted.last_failure.map(|(at, _)| at),
        counted.last_failure.map_or("", |(_, failure)| failure.as_str()),
        began,
        counted.succeeded,
        counted.failed,
        began - WINDOW,
        began - WINDOW
    ];
    tx.run(sql, args).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_counts_are_of_two_windows_at_most() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let health = Health {
            provider_id: ProviderId::named("p"),
            key_id: ProviderKeyId::named("k"),
            last_success_at: None,
            last_failure_at: None,
            failure: None,
            window_at: at("2026-11-15T12:00:00Z"),
            succeeded: 3,
            failed: 1,
            succeeded_before: 5,
            failed_before: 0,
        };
        assert_eq!(health.recent(at("2026-11-15T12:29:59Z")), (8, 1));
        assert_eq!(health.recent(at("2026-11-15T12:30:00Z")), (3, 1));
        assert_eq!(health.recent(at("2026-11-15T12:59:59Z")), (3, 1));
        assert_eq!(health.recent(at("2026-11-15T13:00:00Z")), (0, 0));
        assert_eq!(joined(&[Protocol::Chat, Protocol::Messages]), "chat,messages");
    }
}
