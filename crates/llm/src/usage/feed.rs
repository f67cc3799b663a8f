//! The source of the request log, and how fresh our copy is.

use futures_util::future::BoxFuture;
use jiff::Timestamp;

/// Up to when the numbers are complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsOf {
    pub at: Timestamp,
    /// The log cannot be read at present: these are the last known numbers.
    pub stale: bool,
}

/// Copies new rows of the gateway's log into ours.
pub trait Feed: Send + Sync {
    /// Called before numbers are returned. Copies new rows, and returns up to when the numbers are complete.
    fn pull(&self) -> BoxFuture<'_, AsOf>;

    /// Why the last pull failed, for the operator.
    fn trouble(&self) -> Option<String> {
        None
    }
}

/// The feed of a process that reads no log: other processes write the rows into the shared database.
pub struct Local(pub base::Clock);

impl Feed for Local {
    fn pull(&self) -> BoxFuture<'_, AsOf> {
        Box::pin(async { AsOf { at: self.0.now(), stale: false } })
    }
}
