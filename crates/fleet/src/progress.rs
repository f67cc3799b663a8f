//! What work on a host reports: each step, and in whose name it is done. Code that works on a host takes this instead of a task, so that it
//! does not know the task engine.

use std::future::Future;
use std::sync::Arc;

use base::Result;
use queue::audit::By;

use crate::App;

pub trait Progress: Send + Sync {
    fn app(&self) -> &Arc<App>;

    /// Whom the audit log names.
    fn by(&self) -> By;

    /// Records a step.
    fn log(&self, line: &str) -> impl Future<Output = Result<()>> + Send;
}
