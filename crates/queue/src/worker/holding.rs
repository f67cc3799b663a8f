//! The attempts that a worker holds: tasks that run, and tasks that ended but whose outcome is not written yet.

use std::collections::HashMap;

use base::id::TaskId;
use store::task::Held;
use tokio::task::AbortHandle;

#[derive(Default)]
pub(super) struct Holding(HashMap<TaskId, (Held, AbortHandle)>);

impl Holding {
    /// Adds an attempt. If an older attempt of the same task still runs here, its lease was lost unnoticed: abort it.
    pub fn add(&mut self, held: Held, run: AbortHandle) {
        if let Some((_, older)) = self.0.insert(held.id.clone(), (held, run)) {
            older.abort();
        }
    }

    /// Aborts an attempt whose lease was lost.
    pub fn abandon(&mut self, lost: &Held) {
        if self.has(lost)
            && let Some((_, run)) = self.0.remove(&lost.id)
        {
            run.abort();
        }
    }

    /// Removes an attempt that ended. A later attempt of the same task stays.
    pub fn release(&mut self, ended: &Held) {
        if self.has(ended) {
            self.0.remove(&ended.id);
        }
    }

    /// Removes the attempt of a run that ended without an outcome.
    pub fn forget(&mut self, run: tokio::task::Id) {
        self.0.retain(|_, (_, ours)| ours.id() != run);
    }

    pub fn has(&self, held: &Held) -> bool {
        self.0.get(&held.id).is_some_and(|(ours, _)| ours == held)
    }

    pub fn all(&self) -> impl Iterator<Item = &Held> {
        self.0.values().map(|(held, _)| held)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
