//! What a worker holds: the tasks that run, and those that ended but are not written down yet.

use std::collections::HashMap;

use store::task::Held;
use tokio::task::AbortHandle;

#[derive(Default)]
pub(super) struct Holding(HashMap<String, (Held, AbortHandle)>);

impl Holding {
    /// Holds an attempt. An older attempt of the same task that still runs here was lost without our knowing: it ends.
    pub fn add(&mut self, held: Held, run: AbortHandle) {
        if let Some((_, older)) = self.0.insert(held.id.clone(), (held, run)) {
            older.abort();
        }
    }

    /// Ends an attempt that is not ours any more.
    pub fn abandon(&mut self, lost: &Held) {
        if self.has(lost)
            && let Some((_, run)) = self.0.remove(&lost.id)
        {
            run.abort();
        }
    }

    /// Holds it no more; a later attempt of the same task stays held.
    pub fn release(&mut self, ended: &Held) {
        if self.has(ended) {
            self.0.remove(&ended.id);
        }
    }

    /// Holds no more what this run was to do: it ended without saying how, and nobody will.
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
