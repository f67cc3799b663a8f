//! Quotas are enforced before the model is called: an upper estimate is reserved, the true number settled afterwards.
//!
//! A subject's use is what the log says plus what all processes were granted and have not written into the log yet. A process
//! takes a grant for a request and, while the limit is far, a block for the next ones, so that most reservations need no
//! database. A grant is given while use is below the limit, and then whole: one request may cross the limit, no more.
//! What a process was granted is reduced by the loader of the log, in the transaction that writes a request's row.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::id::{KeyId, UserId};
use base::{Error, Kind, Result};
use jiff::Timestamp;
use store::{gateway_key, quota_grant};
use tokio::sync::{Mutex, Semaphore};

use crate::App;
use crate::usage::spent;

/// The most that is granted ahead, and the part of what is left that may be.
const BLOCK: i64 = 65_536;
const PART: i64 = 8;
/// A block that nobody used for so long goes back.
const IDLE: Duration = Duration::from_secs(5);
/// Grants that are decided at once. Each needs two connections, so they must not take them all.
const AT_ONCE: usize = 4;

/// Whose quota it is, and how much there is of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Tokens of an employee on a local day.
    User { id: UserId, limit: i64, midnight: Timestamp, resets_at: Timestamp },
    /// Quota units of a sub key, for its whole life.
    Key { id: KeyId, limit: i64 },
}

impl Subject {
    /// An employee's quota of today; `None` without a limit.
    pub fn user(app: &App, id: &UserId, limit: i64) -> Option<Subject> {
        let now = app.clock.now();
        let (midnight, resets_at) = (app.zone.midnight(now), app.zone.next_midnight(now));
        (limit > 0).then(|| Subject::User { id: id.clone(), limit, midnight, resets_at })
    }

    /// The name under which grants are kept.
    pub fn name(&self) -> String {
        match self {
            Subject::User { id, midnight, .. } => format!("user:{id}:{}", midnight.as_second()),
            Subject::Key { id, .. } => format!("key:{id}"),
        }
    }

    fn limit(&self) -> i64 {
        match self {
            Subject::User { limit, .. } | Subject::Key { limit, .. } => *limit,
        }
    }

    /// What the log says was used.
    async fn logged(&self, app: &App) -> Result<i64> {
        match self {
            Subject::User { id, midnight, .. } => spent(app, id, *midnight).await,
            Subject::Key { id, .. } => {
                let key = gateway_key::find(&app.db, id).await?;
                Ok(key.map_or(0, |key| key.logged_quota))
            }
        }
    }

    fn used_up(&self, app: &App, used: i64) -> Error {
        match self {
            Subject::User { limit, resets_at, .. } => {
                let reset = app.zone.show(*resets_at);
                let text = format!("daily quota used up: limit {limit} tokens, used {used}, resets at {reset}");
                let wait = resets_at.duration_since(app.clock.now()).unsigned_abs();
                Error::new(Kind::QuotaUsedUp, text).retry_after(wait)
            }
            Subject::Key { limit, .. } => {
                let text = format!("the key's quota is used up: limit {limit} units, used {used}");
                Error::new(Kind::QuotaUsedUp, text)
            }
        }
    }
}

/// What this process was granted.
pub struct Quotas {
    replica: String,
    accounts: std::sync::Mutex<HashMap<String, Arc<Account>>>,
    deciding: Semaphore,
}

struct Account {
    state: Mutex<State>,
}

struct State {
    /// Granted and neither reserved nor used. Below 0 where requests used more than was estimated.
    free: i64,
    touched: Instant,
    reserved: usize,
}

/// A reserved estimate. Dropped, it is released as if nothing had been used.
pub struct Reservation {
    account: Arc<Account>,
    subject: String,
    estimate: i64,
    settled: bool,
}

impl Quotas {
    /// The replica's name tells its grants from those of other processes.
    pub fn new(replica: impl Into<String>) -> Quotas {
        Quotas { replica: replica.into(), accounts: std::sync::Mutex::default(), deciding: Semaphore::new(AT_ONCE) }
    }

    pub fn replica(&self) -> &str {
        &self.replica
    }

    fn account(&self, subject: &str) -> Arc<Account> {
        let mut accounts = self.accounts.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let fresh = || Account { state: Mutex::new(State { free: 0, touched: Instant::now(), reserved: 0 }) };
        accounts.entry(subject.to_owned()).or_insert_with(|| Arc::new(fresh())).clone()
    }

    /// Reserves an upper estimate, or says that the quota is used up.
    pub async fn reserve(&self, app: &App, subject: &Subject, estimate: i64) -> Result<Reservation> {
        let (name, estimate) = (subject.name(), estimate.max(1));
        let account = self.account(&name);
        // Held while the database is asked: those who come meanwhile find the block.
        let mut state = account.state.lock().await;
        state.touched = Instant::now();
        if state.free < estimate {
            state.free = self.grant(app, subject, &name, state.free, estimate).await?;
        }
        state.free -= estimate;
        state.reserved += 1;
        drop(state);
        Ok(Reservation { account, subject: name, estimate, settled: false })
    }

    /// Takes what is missing for a request, and a block more while there is plenty; answers what is free then.
    async fn grant(&self, app: &App, subject: &Subject, name: &str, free: i64, estimate: i64) -> Result<i64> {
        let _deciding = self.deciding.acquire().await.map_err(Error::internal)?;
        let mut tx = app.db.begin().await?;
        tx.lock_name(name).await?;
        // Grants first: a row that is loaded between the two questions is then counted twice, never missed.
        let granted = quota_grant::granted(&mut tx, name).await?;
        let used = subject.logged(app).await? + granted - free;
        if used >= subject.limit() {
            return Err(subject.used_up(app, used));
        }
        let room = subject.limit() - used - estimate;
        let block = (room / PART).clamp(0, BLOCK);
        let more = estimate - free + block;
        quota_grant::add(&mut tx, name, &self.replica, more, app.clock.now()).await?;
        tx.commit().await?;
        Ok(free + more)
    }

    /// Hands back blocks that lie idle; with `all`, every free one.
    pub async fn hand_back(&self, app: &App, all: bool) -> Result<()> {
        let accounts: Vec<(String, Arc<Account>)> = {
            let accounts = self.accounts.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            accounts.iter().map(|(name, account)| (name.clone(), account.clone())).collect()
        };
        for (name, account) in accounts {
            let mut state = account.state.lock().await;
            if !all && (state.reserved > 0 || state.touched.elapsed() < IDLE) {
                continue;
            }
            if state.free != 0 {
                let mut tx = app.db.begin().await?;
                quota_grant::add(&mut tx, &name, &self.replica, -state.free, app.clock.now()).await?;
                tx.commit().await?;
                state.free = 0;
            }
            if state.reserved == 0 {
                let mut accounts = self.accounts.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                // Nobody else may have it: whoever took it meanwhile goes on with the same one.
                if accounts.get(&name).is_some_and(|kept| Arc::strong_count(kept) == 2) {
                    accounts.remove(&name);
                }
            }
        }
        Ok(())
    }

    /// Hands back idle blocks, for as long as it runs.
    pub async fn keep(&self, app: &App) {
        loop {
            tokio::time::sleep(IDLE / 2).await;
            if let Err(error) = self.hand_back(app, false).await {
                tracing::warn!(%error, "idle quota was not handed back");
            }
        }
    }
}

impl Reservation {
    /// The name under which the grant is kept: the log's loader takes the use off it.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// Settles with what was really used.
    pub async fn settle(mut self, used: i64) {
        self.settled = true;
        let mut state = self.account.state.lock().await;
        state.free += self.estimate - used;
        state.reserved -= 1;
        state.touched = Instant::now();
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        let (account, estimate) = (self.account.clone(), self.estimate);
        let release = move |state: &mut State| {
            state.free += estimate;
            state.reserved -= 1;
        };
        if let Ok(mut state) = self.account.state.try_lock() {
            return release(&mut state);
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { release(&mut *account.state.lock().await) });
        }
    }
}
