//! Who makes a sub key at a foreign gateway, or changes it there, is alone with its name, whatever the process.

use std::time::{Duration, Instant};

use base::{Error, Kind, Result, Secret};
use jiff::SignedDuration;
use remote::llm::{NewKey, RemoteKey};
use store::{Db, lease};

use super::fresh_value;
use crate::App;

/// Longer than all calls of a turn can take: each has ten seconds.
const LONGEST: SignedDuration = SignedDuration::from_secs(150);
/// How long somebody waits for the turn, and how often it is asked for.
const PATIENCE: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_millis(100);

/// Given back when it is dropped; that of a process that died runs out.
pub(super) struct Turn {
    db: Db,
    name: String,
    holder: String,
}

impl Turn {
    pub async fn take(app: &App, key: &str) -> Result<Turn> {
        let turn = Turn { db: app.db.clone(), name: format!("key:{key}"), holder: base::id::fresh() };
        let began = Instant::now();
        loop {
            let now = app.clock.now();
            if lease::hold(&turn.db, &turn.name, &turn.holder, now, now + LONGEST).await? {
                return Ok(turn);
            }
            if began.elapsed() > PATIENCE {
                return Err(Error::new(Kind::Unavailable, "the sub key is being changed by somebody else"));
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Makes the key of this name at the gateway, and answers it with its value.
    ///
    /// Nobody else is at it, and our records have no key of that name that is to stay: one that is there and whose value the
    /// gateway does not tell was made by a call whose answer was lost, and nobody can ever use it. It makes room.
    pub async fn make(&self, app: &App, name: &str, quota: Option<i64>) -> Result<(RemoteKey, Secret)> {
        let gateway = &app.llm.gateway;
        let new = NewKey { name: name.to_owned(), quota, value: Some(fresh_value()?) };
        let mut made = gateway.create_key(&new).await?;
        if made.key.is_none() {
            tracing::warn!(name, deleted = made.gateway_id, "a sub key whose value nobody knows is made anew");
            gateway.delete_key(&made.gateway_id).await?;
            made = gateway.create_key(&new).await?;
        }
        let value = made.key.take().ok_or_else(|| {
            Error::from(Kind::Gateway).with_operator(format_args!("the gateway does not tell the key named {name}"))
        })?;
        Ok((made, value))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let (db, name, holder) = (self.db.clone(), std::mem::take(&mut self.name), std::mem::take(&mut self.holder));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = lease::release(&db, &name, &holder).await {
                    tracing::warn!(%error, name, "a turn is not given back; it runs out by itself");
                }
            });
        }
    }
}
