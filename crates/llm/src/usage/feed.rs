//! Where rows of the request log come from, and how fresh what we know is.

use futures_util::future::BoxFuture;
use jiff::Timestamp;

/// Until when the numbers are known to be whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsOf {
    pub at: Timestamp,
    /// The log cannot be read at present: these are the last known numbers.
    pub stale: bool,
}

/// Brings what is new in the gateway's log into ours.
pub trait Feed: Send + Sync {
    /// Called before an answer: takes in what is new, or says since when it could not.
    fn pull(&self) -> BoxFuture<'_, AsOf>;

    /// Why the last pull failed, for the operator.
    fn trouble(&self) -> Option<String> {
        None
    }
}

/// A process without a part in it: others write the log into the database they share.
pub struct Local(pub base::Clock);

impl Feed for Local {
    fn pull(&self) -> BoxFuture<'_, AsOf> {
        Box::pin(async { AsOf { at: self.0.now(), stale: false } })
    }
}
