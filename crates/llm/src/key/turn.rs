//! Who makes a sub key at a foreign gateway, or changes it there, is alone with its name, whatever the process.

use std::time::{Duration, Instant};

use base::{Error, Kind, Result, Secret};
use jiff::SignedDuration;
use remote::llm::{NewKey, RemoteKey};
use store::Db;
use store::lease::{self, Term};

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
    /// None is needed with the embedded gateway, whose keys are our records.
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

    /// Makes the key of this name at the gateway, and answers it with its value. `before` says what was in its place: no two
    /// keys of a name have the same.
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

/// The value that we give a key, where the gateway takes one. It follows from our master key, so whoever comes again because the
/// answer was lost gives the same, and finds the key by it. A key that is not found so is somebody else's, and stays.
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
