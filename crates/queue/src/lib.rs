//! The engine below the product: tasks and their workers, jobs and their scheduler, and the audit log, alerts and
//! events that every change goes through. It knows no task and no job by name: the crates above register them.

pub mod alert;
pub mod audit;
pub mod csv_file;
pub mod event;
pub mod job;
mod lease_guard;
pub mod permission;
pub mod replica;
pub mod task;
pub mod task_admin;
pub mod throttle;
pub mod worker;

use std::sync::Arc;

use base::{Clock, Zone};
use remote::webhook::Webhooks;
use store::Db;
use store::seal::Sealer;

/// The dependencies that every function of this crate takes. Each crate above has an `App` of its own, which contains
/// the one of the crate below.
pub struct App {
    pub db: Db,
    pub clock: Clock,
    pub zone: Zone,
    pub sealer: Arc<Sealer>,
    pub audit_retention_days: i64,
    /// Where alerts may be delivered to.
    pub webhooks: Webhooks,
}

#[cfg(any(test, feature = "testing"))]
impl App {
    /// An `App` with defaults. A test overrides what it needs: `App { …, ..App::for_tests(db, clock)? }`.
    pub fn for_tests(db: Db, clock: Clock) -> base::Result<App> {
        let sealer = Arc::new(Sealer::new(&Sealer::generate()?)?);
        Ok(App { db, clock, zone: Zone::UTC, sealer, audit_retention_days: 90, webhooks: Webhooks::default() })
    }
}

impl AsRef<App> for App {
    fn as_ref(&self) -> &App {
        self
    }
}
