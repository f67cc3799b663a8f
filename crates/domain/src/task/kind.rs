//! What a type of task is: its name, the shape of its payload, and who runs it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use base::id::InstanceId;
use base::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use store::Tx;
use store::task::{Held, Task};
use store::task_log;

use crate::App;
use crate::audit::By;
use crate::permission::Permission;

/// A task's payload: an object of ids, never of secrets.
pub trait Payload: Serialize + DeserializeOwned + Send + Sync + 'static {
    const TYPE: &'static str;

    /// The instance it is about: no two tasks of one instance run at the same time.
    fn instance(&self, tx: &mut Tx) -> impl Future<Output = Result<Option<InstanceId>>> + Send;

    /// What whoever asks for it by name must be allowed to do.
    fn permission(&self) -> Permission;
}

/// A payload that can be run.
pub trait Run: Payload {
    /// Does the work; run twice, the result is the same. Answers what was done.
    fn run(self, context: Context) -> impl Future<Output = Result<String>> + Send;
}

/// What a running task is handed.
pub struct Context {
    pub app: Arc<App>,
    pub task: Task,
    pub held: Held,
}

impl Context {
    /// What the task does is done by the platform, in the name of whoever asked for it.
    pub fn by(&self) -> By {
        By::system().named(&self.task.operator)
    }

    /// Writes a step into the task's log.
    pub async fn log(&self, line: &str) -> Result<()> {
        Ok(task_log::write(&self.app.db, &self.task.id, self.held.attempt, line, self.app.clock.now()).await?)
    }
}

type Eventually<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// A payload that was read: what is kept of it, and the instance it is about.
pub(super) struct Checked {
    pub payload: String,
    pub instance: Option<InstanceId>,
    pub permission: Permission,
}

/// One line of the list of types.
#[derive(Clone, Copy)]
pub struct TaskType {
    pub name: &'static str,
    pub other_name: Option<&'static str>,
    /// Reads a payload.
    pub(super) check: for<'a> fn(Value, &'a mut Tx) -> Eventually<'a, Checked>,
    /// What a kept payload needs.
    pub(super) permission: fn(Value) -> Result<Permission>,
    pub(super) run: fn(Value, Context) -> Eventually<'static, String>,
}

impl TaskType {
    pub const fn run_by<R: Run>() -> TaskType {
        TaskType { name: R::TYPE, other_name: None, check: check::<R>, permission: permission::<R>, run: run::<R> }
    }

    pub const fn also_named(self, other: &'static str) -> TaskType {
        TaskType { other_name: Some(other), ..self }
    }

    pub fn is_named(&self, name: &str) -> bool {
        self.name == name || self.other_name == Some(name)
    }
}

fn check<P: Payload>(payload: Value, tx: &mut Tx) -> Eventually<'_, Checked> {
    Box::pin(async move {
        let payload: P = serde_json::from_value(payload).map_err(|e| Error::field("payload", e))?;
        // Only what the type knows is kept: a payload is shown to everybody who may see the queue.
        let kept = serde_json::to_string(&payload).map_err(Error::internal)?;
        let permission = payload.permission();
        Ok(Checked { payload: kept, instance: payload.instance(tx).await?, permission })
    })
}

fn permission<P: Payload>(payload: Value) -> Result<Permission> {
    let payload: P = serde_json::from_value(payload).map_err(Error::internal)?;
    Ok(payload.permission())
}

fn run<R: Run>(payload: Value, context: Context) -> Eventually<'static, String> {
    Box::pin(async move {
        let payload: R = serde_json::from_value(payload).map_err(Error::internal)?;
        payload.run(context).await
    })
}
