//! The embedded gateway as an adapter: its keys are our own records.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base::id::KeyId;
use base::{Clock, Kind as ErrorKind, Result, Secret};
use futures_util::future::BoxFuture;
use remote::llm::{AdminToken, Balance, Gateway, Health, KeyState, KeyStatus, Kind, NewKey, RemoteKey, Settings};
use store::gateway_key::{self, GatewayKey, Status};
use store::seal::Sealer;
use store::{Db, model};

use super::fresh_value;

/// Our own gateway takes any name that an instance may have.
pub static KIND: Kind = Kind {
    name: "embedded",
    name_limit: 100,
    logs_failures: true,
    row_delay: Duration::from_secs(3),
    charges_fractions: false,
    request_id_header: None,
    open: cannot_be_opened,
};

fn cannot_be_opened(_: &Settings) -> Result<Arc<dyn Gateway>> {
    Err(base::Error::internal("the embedded gateway is opened where it lives"))
}

pub struct Embedded {
    pub db: Db,
    pub clock: Clock,
    pub sealer: Arc<Sealer>,
    pub http: reqwest::Client,
    /// The address below which `/v1/chat/completions` is.
    pub url: String,
    chat_url: String,
}

impl Embedded {
    pub fn new(db: Db, clock: Clock, sealer: Arc<Sealer>, http: reqwest::Client, url: &str) -> Embedded {
        let url = url.trim_end_matches('/').to_owned();
        let chat_url = format!("{url}/v1/chat/completions");
        Embedded { db, clock, sealer, http, url, chat_url }
    }

    fn shown(&self, key: GatewayKey) -> Result<RemoteKey> {
        let used = key.used();
        Ok(RemoteKey {
            key: Some(key.key(&self.sealer)?),
            status: match (key.enabled(), key.quota) {
                (false, _) => KeyStatus::Disabled,
                (true, Some(quota)) if used >= quota => KeyStatus::Exhausted,
                (true, _) => KeyStatus::Enabled,
            },
            remain_quota: key.quota.map(|quota| (quota - used).max(0)),
            quota: key.quota,
            used_quota: used,
            is_counted: true,
            gateway_id: key.id.into(),
            name: key.name,
        })
    }

    async fn changed(&self, id: &str, change: impl FnOnce(&mut GatewayKey)) -> Result<()> {
        let mut tx = self.db.begin().await?;
        let id = base::id::KeyId::named(id);
        let mut key = gateway_key::lock(&mut tx, &id).await?.ok_or(ErrorKind::NotFound)?;
        change(&mut key);
        key.updated_at = self.clock.now();
        gateway_key::update(&mut tx, &key).await?;
        tx.notify(store::notice::Notice::new(store::notice::Topic::Key, id.as_str())).await?;
        Ok(tx.commit().await?)
    }

    async fn create(&self, new: &NewKey) -> Result<RemoteKey> {
        KIND.check_name(&new.name)?;
        if let Some(key) = gateway_key::named(&self.db, &new.name).await? {
            return self.shown(key);
        }
        let (id, value) = (base::id::KeyId::fresh(), fresh_value()?);
        let now = self.clock.now();
        let key = GatewayKey {
            id: id.clone(),
            instance_id: None,
            name: new.name.clone(),
            gateway_id: String::new(),
            secret: self.sealer.seal(gateway_key::place(id.as_str()), &value)?,
            status: Status::Active,
            user_revoked: false,
            quota_spent: false,
            quota: new.quota,
            used_quota: 0,
            logged_quota: 0,
            carried_quota: 0,
            quota_from: 0,
            dirty: false,
            rotate: false,
            last_checked_at: None,
            created_at: now,
            updated_at: now,
        };
        let mut tx = self.db.begin().await?;
        match gateway_key::insert(&mut tx, &key, &self.sealer.hash(&value)).await {
            Ok(()) => {
                gateway_key::set_logged(&mut tx, &key.id).await?;
                tx.commit().await?;
                self.shown(key)
            }
            Err(store::Error::Taken) => {
                drop(tx);
                self.shown(gateway_key::named(&self.db, &new.name).await?.ok_or(ErrorKind::Conflict)?)
            }
            Err(other) => Err(other.into()),
        }
    }

    async fn look(&self) -> Health {
        let began = Instant::now();
        let answer = self.http.get(format!("{}/healthz", self.url)).timeout(std::time::Duration::from_secs(5)).send();
        let detail = match answer.await {
            Ok(answer) if answer.status().is_success() => String::new(),
            Ok(answer) => format!("it answered {}", answer.status()),
            Err(error) => error.without_url().to_string(),
        };
        Health {
            ok: detail.is_empty(),
            detail,
            version: None,
            latency_ms: began.elapsed().as_millis() as i64,
            per_usd: Some(base::PerUsd::USUAL),
        }
    }
}

impl Gateway for Embedded {
    fn kind(&self) -> &'static Kind {
        &KIND
    }

    fn chat_url(&self) -> &str {
        &self.chat_url
    }

    fn health(&self) -> BoxFuture<'_, Health> {
        Box::pin(self.look())
    }

    /// Its keys are our records.
    fn check_admin_token(&self) -> BoxFuture<'_, AdminToken> {
        Box::pin(async { AdminToken::Accepted })
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<String>>> {
        Box::pin(async {
            let models = model::all(&self.db).await?;
            Ok(models.into_iter().filter(|m| m.enabled).map(|m| m.id).collect())
        })
    }

    fn keys(&self) -> BoxFuture<'_, Result<Vec<RemoteKey>>> {
        Box::pin(async {
            let sort = base::Sort { column: "created_at", descending: false };
            let keys = gateway_key::list(&self.db, None, sort, base::Page::ALL).await?;
            keys.list.into_iter().map(|key| self.shown(key)).collect()
        })
    }

    fn find_key<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<RemoteKey>>> {
        Box::pin(async move { gateway_key::named(&self.db, name).await?.map(|key| self.shown(key)).transpose() })
    }

    fn create_key<'a>(&'a self, new: &'a NewKey) -> BoxFuture<'a, Result<RemoteKey>> {
        Box::pin(self.create(new))
    }

    fn read_key<'a>(&'a self, gateway_id: &'a str) -> BoxFuture<'a, Result<Option<RemoteKey>>> {
        Box::pin(async move {
            let key = gateway_key::find(&self.db, &base::id::KeyId::named(gateway_id)).await?;
            key.map(|key| self.shown(key)).transpose()
        })
    }

    fn set_enabled<'a>(&'a self, gateway_id: &'a str, enabled: bool) -> BoxFuture<'a, Result<()>> {
        let status = if enabled { Status::Active } else { Status::Disabled };
        Box::pin(self.changed(gateway_id, move |key| key.status = status))
    }

    fn delete_key<'a>(&'a self, gateway_id: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let mut tx = self.db.begin().await?;
            gateway_key::delete(&mut tx, &KeyId::named(gateway_id), self.clock.now()).await?;
            tx.notify(store::notice::Notice::new(store::notice::Topic::Key, gateway_id)).await?;
            Ok(tx.commit().await?)
        })
    }

    fn check_key<'a>(&'a self, key: &'a Secret) -> BoxFuture<'a, KeyState> {
        Box::pin(async move {
            match gateway_key::holder(&self.db, &self.sealer.hash(key)).await {
                Ok(Some(holder)) if holder.enabled() => match gateway_key::named(&self.db, &holder.name).await {
                    Ok(Some(key)) if key.quota.is_some_and(|quota| key.used() >= quota) => KeyState::Exhausted,
                    _ => KeyState::Valid,
                },
                Ok(_) => KeyState::Invalid,
                Err(error) => KeyState::Unreachable(error.to_string()),
            }
        })
    }

    fn balance(&self) -> BoxFuture<'_, Result<Balance>> {
        Box::pin(async {
            let mut used = store::usage::Sums::default();
            store::usage::totals(&self.db).await?.iter().for_each(|total| used += total.sums);
            Ok(Balance { remain: None, used: used.quota() })
        })
    }

    fn counted(&self) -> BoxFuture<'_, Result<i64>> {
        Box::pin(async { Ok(self.balance().await?.used) })
    }
}
