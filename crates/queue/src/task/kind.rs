//! What a type of task is: its name, the shape of its payload, and who runs it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use base::id::{InstanceId, ServerId};
use base::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
pub use store::task::Priority;
use store::task::{Held, Task};
use store::{Tx, task_log};

use crate::App;
use crate::audit::By;
use crate::permission::Permission;

/// A task's payload: an object of ids, never of secrets.
pub trait Payload: Serialize + DeserializeOwned + Send + Sync + 'static {
    const TYPE: &'static str;

    /// The priority of every task of this type, unless it is enqueued by `enqueue_at`.
    const PRIORITY: Priority;

    /// What an administrator needs to create a task of this type by name, unless its payload says otherwise.
    const PERMISSION: Permission;

    /// Whether a waiting task also serves later requests with the same payload. The handler must then read what to do
    /// when it starts.
    const COALESCES: bool = false;

    /// Whether it is enqueued because what our records want of its instance has changed. Enqueueing it raises the
    /// instance's generation, so that the change is brought to the server even if every attempt of this task fails.
    const RAISES: bool = false;

    /// Whether a task of this type that is dead raises an alert of its own. A type that says no has another alert, one
    /// for all that failed.
    const ALERTS_WHEN_DEAD: bool = true;

    /// The instance it is about: no two tasks of one instance run at the same time.
    fn instance(&self, tx: &mut Tx) -> impl Future<Output = Result<Option<InstanceId>>> + Send;

    /// The server that it works on, if it is about no instance.
    fn server(&self) -> Option<ServerId> {
        None
    }

    /// The permission that this payload needs.
    fn permission(&self) -> Permission {
        Self::PERMISSION
    }
}

/// A payload with its handler. `A` is the `App` of the crate that runs it.
pub trait Run<A>: Payload {
    /// Does the work. It must be idempotent: a retry runs it again. Returns a summary.
    fn run(self, context: Context<A>) -> impl Future<Output = Result<String>> + Send;
}

/// What a handler gets.
pub struct Context<A> {
    pub app: Arc<A>,
    pub task: Task,
    pub held: Held,
}

impl<A: AsRef<App>> Context<A> {
    /// The task acts with the rights of the platform, in the name of the operator who asked for it.
    pub fn by(&self) -> By {
        By::system().named(&self.task.operator)
    }

    /// Writes a step into the task's log.
    pub async fn log(&self, line: &str) -> Result<()> {
        let app: &App = (*self.app).as_ref();
        Ok(task_log::write(&app.db, &self.task.id, self.held.attempt, line, app.clock.now()).await?)
    }
}

type Eventually<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// A payload that was parsed, as a task to insert and the permission that it needs.
pub(crate) struct Checked {
    pub new: NewTask,
    pub permission: Permission,
}

/// A task that is not yet in the queue.
pub(crate) struct NewTask {
    pub name: &'static str,
    pub priority: Priority,
    pub coalesces: bool,
    pub raises: bool,
    pub payload: String,
    pub instance: Option<InstanceId>,
    pub server: Option<ServerId>,
}

impl NewTask {
    pub async fn of<P: Payload>(payload: &P, tx: &mut Tx) -> Result<NewTask> {
        Ok(NewTask {
            name: P::TYPE,
            priority: P::PRIORITY,
            coalesces: P::COALESCES,
            raises: P::RAISES,
            // Store only the fields that the type knows: everybody who may see the queue sees the payload.
            payload: serde_json::to_string(payload).map_err(Error::internal)?,
            instance: payload.instance(tx).await?,
            server: payload.server(),
        })
    }
}

/// One entry in the list of task types.
pub struct TaskType<A: 'static> {
    pub name: &'static str,
    pub other_name: Option<&'static str>,
    pub permission: Permission,
    pub alerts_when_dead: bool,
    /// Parses a payload that an administrator sent.
    pub(crate) check: for<'a> fn(Value, &'a mut Tx) -> Eventually<'a, Checked>,
    /// The permission that a stored payload needs.
    pub(crate) permission_of: fn(Value) -> Result<Permission>,
    pub(crate) run: fn(Value, Context<A>) -> Eventually<'static, String>,
}

impl<A: Send + Sync> TaskType<A> {
    pub const fn run_by<R: Run<A>>() -> TaskType<A> {
        TaskType {
            name: R::TYPE,
            other_name: None,
            permission: R::PERMISSION,
            alerts_when_dead: R::ALERTS_WHEN_DEAD,
            check: check::<R>,
            permission_of: permission_of::<R>,
            run: run::<A, R>,
        }
    }

    pub const fn also_named(self, other: &'static str) -> TaskType<A> {
        TaskType { other_name: Some(other), ..self }
    }
}

impl<A> Clone for TaskType<A> {
    fn clone(&self) -> TaskType<A> {
        *self
    }
}

impl<A> Copy for TaskType<A> {}

impl<A> TaskType<A> {
    pub fn is_named(&self, name: &str) -> bool {
        self.name == name || self.other_name == Some(name)
    }
}

fn check<P: Payload>(payload: Value, tx: &mut Tx) -> Eventually<'_, Checked> {
    Box::pin(async move {
        let payload: P = serde_json::from_value(payload).map_err(|e| Error::field("payload", e))?;
        Ok(Checked { new: NewTask::of(&payload, tx).await?, permission: payload.permission() })
    })
}

fn permission_of<P: Payload>(payload: Value) -> Result<Permission> {
    let payload: P = serde_json::from_value(payload).map_err(Error::internal)?;
    Ok(payload.permission())
}

fn run<A: Send + Sync + 'static, R: Run<A>>(payload: Value, context: Context<A>) -> Eventually<'static, String> {
    Box::pin(async move {
        let payload: R = serde_json::from_value(payload).map_err(Error::internal)?;
        payload.run(context).await
    })
}
