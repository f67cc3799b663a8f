//! What may outlive a request: tasks, kept in the database and run by any worker (`worker`).
//!
//! The payload struct is the task: `Payload` says what it is, `Run` does it. Where it is registered, see the crates above.

mod enqueue;
mod kind;
mod of_instance;

pub use store::task::{Status, Task};

pub(crate) use enqueue::{Asked, insert, subject};
pub use enqueue::{enqueue, enqueue_at};
pub(crate) use kind::Checked;
pub use kind::{Context, Payload, Priority, Run, TaskType};
