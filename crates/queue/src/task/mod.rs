//! Tasks: work that may outlive a request, stored in the database and run by any worker (`worker`).
//!
//! The payload struct is the type of task: `Payload` describes it, `Run` does the work. The crates above register the
//! types.

mod enqueue;
mod kind;
mod of_instance;

pub use store::task::{Status, Task};

pub(crate) use enqueue::{Asked, insert, subject};
pub use enqueue::{enqueue, enqueue_at};
pub(crate) use kind::Checked;
pub use kind::{Context, Payload, Priority, Run, TaskType};
