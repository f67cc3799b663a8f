//! Quotas are enforced before the model is called: an estimate is reserved, and settled with the true number
//! afterwards.
//!
//! A subject's use is what the log says, plus what all processes were granted and have not logged yet; with a foreign
//! gateway also what was answered and its log does not have yet. A process takes a grant for a request and, while the
//! limit is far, a block for the next requests. So most reservations need no database. A block is refilled in the
//! background before it is empty, so that few requests wait for it.
//!
//! A grant is given while use is below the limit, and then in full. So one request may cross the limit, but only one,
//! as long as each stays within its estimate. What that request does not use is beyond the limit, so no other request
//! may use it.
//!
//! The loader of the log reduces the grants of a process in the transaction that writes the rows of the requests.

mod subject;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base::{Clock, Error, Result, Zone};
use store::{Db, quota_grant};
use tokio::sync::{Notify, Semaphore};

use crate::App;
use subject::Spent;
pub use subject::Subject;

/// The largest block, and the part of the remaining quota that a block may be.
const BLOCK: i64 = 1 << 20;
const PART: i64 = 8;
/// The wait after a refill that was granted nothing.
const REFILL: Duration = Duration::from_millis(300);
/// A block that is not used for this long is handed back.
const IDLE: Duration = Duration::from_secs(5);
/// How often blocks are checked.
const LOOK: Duration = Duration::from_millis(500);
/// The name of the heartbeat.
const LOOP: &str = "quotas";
/// After a refusal, requests are refused for this long without asking the database.
const REFUSED: Duration = Duration::from_millis(300);
/// How many grants are decided at the same time: they must not use all connections.
const AT_ONCE: usize = 4;

/// The grants of this process.
pub struct Quotas {
    replica: Arc<str>,
    accounts: Mutex<HashMap<String, Arc<Account>>>,
    deciding: Arc<Semaphore>,
    /// Notified when a request used more than was reserved: other processes must learn that soon.
    overdrawn: Arc<Notify>,
    /// Whether to take blocks for the next requests.
    ahead: bool,
}

struct Account {
    clock: Clock,
    overdrawn: Arc<Notify>,
    state: Mutex<State>,
    /// Locked while the database decides. Requests that wait for it then find the new block.
    asking: tokio::sync::Mutex<()>,
}

struct State {
    /// Granted, and neither reserved nor used. Negative if requests used more than was estimated.
    free: i64,
    /// How much of the last grant is beyond the limit.
    beyond: i64,
    /// The limit at the last decision.
    limit: i64,
    /// The size of the last block. A refill starts when less than half of it is left.
    block: i64,
    /// When the next refill may start; `None` while one is running.
    refill_at: Option<Instant>,
    reserved: usize,
    /// What these reservations hold.
    held: i64,
    touched: Instant,
    /// When the quota was last used up according to the database, and the use at that time.
    refused: Option<(Instant, Spent)>,
}

impl Account {
    fn new(clock: Clock, overdrawn: Arc<Notify>) -> Account {
        let now = clock.instant();
        let state = State {
            free: 0,
            beyond: 0,
            limit: 0,
            block: 0,
            refill_at: Some(now),
            reserved: 0,
            held: 0,
            touched: now,
            refused: None,
        };
        Account { clock, overdrawn, state: Mutex::new(state), asking: tokio::sync::Mutex::new(()) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a reservation and releases what was not used of it. Returns whether more is used now than was granted.
    fn release(&self, estimate: i64, used: i64) -> bool {
        let mut state = self.state();
        state.free += estimate - used;
        state.reserved -= 1;
        state.held -= estimate;
        state.touched = self.clock.instant();
        state.refused = None;
        let overdrawn = state.free < 0;
        if overdrawn {
            self.overdrawn.notify_one();
        }
        overdrawn
    }
}

/// A reserved estimate. On drop it is released as if nothing had been used.
pub struct Reservation {
    account: Arc<Account>,
    subject: Arc<str>,
    estimate: i64,
    settled: bool,
}

/// What this process can decide without the database.
enum Known {
    Reserved(Reservation),
    UsedUp(Spent),
    Nothing,
}

impl Quotas {
    /// The replica's name distinguishes its grants from those of other processes.
    pub fn new(replica: impl Into<String>) -> Quotas {
        let deciding = Arc::new(Semaphore::new(AT_ONCE));
        Quotas {
            replica: replica.into().into(),
            accounts: Mutex::default(),
            deciding,
            overdrawn: Arc::default(),
            ahead: true,
        }
    }

    /// Asks the database for every request. It is for foreign gateways: their log, not our grants, shows the use, so
    /// what is left of a grant means nothing.
    pub fn asking_always(self) -> Quotas {
        Quotas { ahead: false, ..self }
    }

    pub fn replica(&self) -> &str {
        &self.replica
    }

    fn accounts(&self) -> MutexGuard<'_, HashMap<String, Arc<Account>>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn account(&self, clock: &Clock, subject: &str) -> Arc<Account> {
        let mut accounts = self.accounts();
        if let Some(account) = accounts.get(subject) {
            return account.clone();
        }
        let new = || Arc::new(Account::new(clock.clone(), self.overdrawn.clone()));
        accounts.entry(subject.to_owned()).or_insert_with(new).clone()
    }

    /// Reserves an estimate. Fails if the quota is used up.
    pub async fn reserve(&self, app: &App, subject: &Subject, estimate: i64) -> Result<Reservation> {
        let name = subject.name();
        let asked = Asked {
            account: self.account(&app.clock, &name),
            name: name.into(),
            subject: subject.clone(),
            estimate: estimate.max(1),
            replica: self.replica.clone(),
            deciding: self.deciding.clone(),
            ahead: self.ahead,
        };
        match asked.known() {
            Known::Reserved(reservation) => {
                if asked.begins_refill() {
                    tokio::spawn(asked.refill(app.db.clone(), app.clock.clone(), app.zone.clone()));
                }
                Ok(reservation)
            }
            Known::UsedUp(spent) => Err(subject.refusal(&app.clock, &app.zone, spent)),
            Known::Nothing => {
                // Run it as a task of its own. If the caller is dropped while it waits, the grant would otherwise be
                // lost and never handed back.
                let asking = asked.ask(app.db.clone(), app.clock.clone(), app.zone.clone());
                tokio::spawn(asking).await.map_err(Error::internal)?
            }
        }
    }

    /// Hands back idle blocks; with `all`, everything that is not reserved.
    pub async fn hand_back(&self, app: &App, all: bool) -> Result<()> {
        let accounts: Vec<(String, Arc<Account>)> =
            self.accounts().iter().map(|(name, account)| (name.clone(), account.clone())).collect();
        for (name, account) in accounts {
            if !all && !account.state().is_to_go_back(app.clock.instant()) {
                continue;
            }
            let asking = account.asking.lock().await;
            let free = std::mem::take(&mut account.state().free);
            if free != 0 {
                let given = async {
                    let mut tx = app.db.begin().await?;
                    quota_grant::add(&mut tx, &name, &self.replica, -free, app.clock.now()).await?;
                    tx.commit().await
                };
                if let Err(error) = given.await {
                    account.state().free += free;
                    return Err(error.into());
                }
            }
            let mut accounts = self.accounts();
            let mut state = account.state();
            if state.reserved == 0 {
                state.beyond = 0;
                // Remove the account only if no other task uses it: that task would go on with an account that new
                // requests cannot see.
                let unused = state.free == 0 && accounts.get(&name).is_some_and(|kept| Arc::strong_count(kept) == 2);
                drop(state);
                if unused {
                    accounts.remove(&name);
                }
            }
            drop(asking);
        }
        Ok(())
    }

    /// Hands back idle blocks until it is dropped.
    pub async fn keep(&self, app: &App) {
        app.db.heartbeats.beat(LOOP);
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = self.overdrawn.notified() => {}
            }
            match self.hand_back(app, false).await {
                Ok(_) => app.db.heartbeats.beat(LOOP),
                Err(error) => tracing::warn!(%error, "idle quota was not handed back"),
            }
        }
    }
}

impl State {
    /// Whether to hand back what is free. That is so if the account is idle; if more was used than granted, which other
    /// processes must learn; or if a request that crossed the limit left something over, because other processes count
    /// that as used.
    fn is_to_go_back(&self, now: Instant) -> bool {
        let idle = self.reserved == 0 && now.saturating_duration_since(self.touched) >= IDLE;
        idle || self.free < 0 || (self.reserved == 0 && self.beyond > 0 && self.free > 0)
    }
}

/// One reservation that is being decided.
struct Asked {
    account: Arc<Account>,
    name: Arc<str>,
    subject: Subject,
    estimate: i64,
    replica: Arc<str>,
    deciding: Arc<Semaphore>,
    ahead: bool,
}

/// What the database decided.
enum Decided {
    Granted { more: i64, block: i64, beyond: i64 },
    UsedUp(Spent),
}

impl Asked {
    fn known(&self) -> Known {
        let mut state = self.account.state();
        if state.limit != self.subject.limit() {
            return Known::Nothing;
        }
        state.touched = self.account.clock.instant();
        if let Some((at, spent)) = state.refused
            && self.account.clock.since(at) < REFUSED
        {
            return Known::UsedUp(spent);
        }
        if !self.ahead || state.free - state.beyond < self.estimate {
            return Known::Nothing;
        }
        Known::Reserved(self.take(&mut state))
    }

    fn take(&self, state: &mut State) -> Reservation {
        state.free -= self.estimate;
        state.reserved += 1;
        state.held += self.estimate;
        let (account, subject) = (self.account.clone(), self.name.clone());
        Reservation { account, subject, estimate: self.estimate, settled: false }
    }

    async fn ask(self, db: Db, clock: Clock, zone: Zone) -> Result<Reservation> {
        let _asking = self.account.asking.lock().await;
        match self.known() {
            Known::Reserved(reservation) => return Ok(reservation),
            Known::UsedUp(spent) => return Err(self.subject.refusal(&clock, &zone, spent)),
            Known::Nothing => {}
        }
        // Take it away from other requests while the database decides about it.
        let free = std::mem::take(&mut self.account.state().free);
        let decided = self.grant(&db, &clock, &zone, free).await;
        let mut state = self.account.state();
        state.free += free;
        state.touched = clock.instant();
        match decided? {
            Decided::Granted { more, block, beyond } => {
                state.free += more;
                state.block = block;
                state.beyond = beyond;
                state.limit = self.subject.limit();
                state.refused = None;
                Ok(self.take(&mut state))
            }
            Decided::UsedUp(spent) => {
                state.limit = self.subject.limit();
                // What is still free was granted under another limit, or is beyond this one.
                state.beyond = i64::MAX / 2;
                state.refused = Some((clock.instant(), spent));
                Err(self.subject.refusal(&clock, &zone, spent))
            }
        }
    }

    /// Takes a grant for what the request still needs and, while much quota is left, a block.
    async fn grant(&self, db: &Db, clock: &Clock, zone: &Zone, free: i64) -> Result<Decided> {
        let _deciding = self.deciding.acquire().await.map_err(Error::internal)?;
        let mut tx = db.begin().await?;
        tx.lock_name(&self.name).await?;
        // The loader of the log takes the same lock, so rows and grants are read in the same state.
        let granted = quota_grant::granted(&mut tx, &self.name).await?;
        // Before the log: a row that comes in between then counts twice in this decision, and not never.
        let unlogged = if self.ahead { 0 } else { self.subject.unlogged(&mut tx).await? };
        let (logged, granted) = (self.subject.logged(&mut tx, zone).await? + unlogged, granted - free);
        let used = logged + granted;
        // A grant of the embedded gateway may be used already, with rows that are not loaded yet. What this process holds for
        // requests under way is not; of what other processes hold nothing is known here.
        let reserved = if self.ahead { self.account.state().held.clamp(0, granted.max(0)) } else { granted };
        let spent = Spent { used: used - reserved, reserved };
        if used >= self.subject.limit() {
            return Ok(Decided::UsedUp(spent));
        }
        let room = self.subject.limit() - used - self.estimate;
        let block = if self.ahead { (room / PART).clamp(0, BLOCK) } else { 0 };
        // Negative if the limit was lowered: then the block shrinks.
        let more = self.estimate + block - free;
        quota_grant::add(&mut tx, &self.name, &self.replica, more, clock.now()).await?;
        tx.commit().await?;
        Ok(Decided::Granted { more, block, beyond: (-room).max(0) })
    }

    /// Whether the block is half empty and no refill runs: then the caller must start one.
    fn begins_refill(&self) -> bool {
        let mut state = self.account.state();
        let is_low = state.free - state.beyond < state.block / 2;
        let begins = self.ahead && is_low && state.refill_at.is_some_and(|at| at <= self.account.clock.instant());
        if begins {
            state.refill_at = None;
        }
        begins
    }

    /// Takes the next block while the rest of this one is still used.
    async fn refill(self, db: Db, clock: Clock, zone: Zone) {
        let _asking = self.account.asking.lock().await;
        let granted = self.grant_ahead(&db, &clock, &zone).await;
        let mut state = self.account.state();
        let more = granted.unwrap_or_else(|error| {
            tracing::warn!(%error, "no quota was granted ahead");
            0
        });
        let now = clock.instant();
        state.refill_at = Some(if more > 0 { now } else { now + REFILL });
        state.free += more;
        state.block = more;
    }

    /// Takes a block as if all grants will be fully used, so that blocks never cross the limit.
    async fn grant_ahead(&self, db: &Db, clock: &Clock, zone: &Zone) -> Result<i64> {
        let _deciding = self.deciding.acquire().await.map_err(Error::internal)?;
        let mut tx = db.begin().await?;
        tx.lock_name(&self.name).await?;
        let used = self.subject.logged(&mut tx, zone).await? + quota_grant::granted(&mut tx, &self.name).await?;
        let block = ((self.subject.limit() - used) / PART).clamp(0, BLOCK);
        if block > 0 {
            quota_grant::add(&mut tx, &self.name, &self.replica, block, clock.now()).await?;
            tx.commit().await?;
        }
        Ok(block)
    }
}

impl Reservation {
    /// The name under which the grant is stored; the loader of the log reduces the grant of that name.
    pub fn subject(&self) -> &Arc<str> {
        &self.subject
    }

    /// Settles with the true use. Returns whether that is more than was granted: then `hand_back` must record it for
    /// the other processes.
    pub fn settle(mut self, used: i64) -> bool {
        self.settled = true;
        self.account.release(self.estimate, used)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.settled {
            self.account.release(self.estimate, 0);
        }
    }
}
