//! The lease on a sub key's name: only its holder, of all processes, creates or changes that key at a foreign gateway.

use std::time::{Duration, Instant};

use base::{Error, Kind, Result, Secret};
use jiff::SignedDuration;
use remote::llm::{NewKey, RemoteKey};
use store::Db;
use store::lease::{self, Term};

use crate::App;

/// How long the lease lasts: longer than all calls under it can take, each with its timeout of ten seconds and its wait
/// for a slot.
const LONGEST: SignedDuration = SignedDuration::from_secs(300);
/// How long a caller waits for the lease, and how often it tries.
const PATIENCE: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_millis(100);

/// The lease is released on drop. If the process died, it runs out.
pub(super) struct Turn {
    db: Db,
    name: String,
    holder: String,
}

impl Turn {
    /// `None` with the embedded gateway: its keys are our records, so it needs no lease.
    pub async fn at_foreign(app: &App, key: &str) -> Result<Option<Turn>> {
        if app.upstream.embedded { Ok(None) } else { Turn::take(app, key).await.map(Some) }
    }

    pub async fn take(app: &App, key: &str) -> Result<Turn> {
        let turn = Turn { db: app.db.clone(), name: format!("key:{key}"), holder: base::id::fresh() };
        let began = Instant::now();
        loop {
            if lease::hold(&turn.db, &turn.name, &turn.holder, Term::of(&app.clock, LONGEST)).await? {
                return Ok(turn);
            }
            if began.elapsed() > PATIENCE {
                return Err(Error::new(Kind::Unavailable, "the sub key is being changed by somebody else"));
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Creates the key of this name at the gateway, and returns it with its value. `before` names what it replaces, so
    /// that no two keys of a name get the same value.
    pub async fn make(&self, app: &App, name: &str, before: &str, quota: Option<i64>) -> Result<(RemoteKey, Secret)> {
        let new = NewKey { name: name.to_owned(), quota, value: Some(value_of(app, name, before)) };
        let mut made = app.upstream.gateway.create_key(&new).await?;
        let value = made.key.take().ok_or_else(|| {
            let why =
                "the gateway has a key of this name that this installation did not make: rename or delete it there";
            Error::conflict(why).with_operator(format_args!("the gateway does not tell the key named {name}"))
        })?;
        Ok((made, value))
    }
}

/// The value for a new key, where the gateway accepts one. It is derived from our master key, so a retry after a lost
/// response sends the same value and finds the key by it. A key with another value is not ours and is left alone.
fn value_of(app: &App, name: &str, before: &str) -> Secret {
    let drawn = app.sealer.hash(&Secret::new(format!("sub key {name} after {before}")));
    let letters: String = drawn.chars().filter(char::is_ascii_alphanumeric).collect();
    Secret::new(format!("sk-{letters}"))
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
