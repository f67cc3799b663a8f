//! What may outlive a request: tasks, kept in the database and run by any worker.
//!
//! The payload struct is the task. To add a type: a file beside this one, one line in `TYPES`.

mod apply_marketplace_item;
mod bootstrap_profession_instance;
mod kind;
mod of_instance;
mod queue;
mod worker;

use crate::key::ApplyKey;
pub use apply_marketplace_item::ApplyMarketplaceItem;
pub use bootstrap_profession_instance::BootstrapProfessionInstance;
pub use kind::{Context, Payload, Run, TaskType};
pub use of_instance::{
    CleanInstance, InitInstance, ProvisionInstance, RetireInstance, SyncKeyToInstance, SyncModelsToInstance,
};
pub use queue::{Wanted, cancel, cancel_with, create, enqueue, list, log_of, retry, show};
pub use store::task::{Status, Task};
pub use worker::{Timing, Worker};

/// Every type there is.
pub const TYPES: &[TaskType] = &[
    TaskType::of::<InitInstance>(),
    TaskType::of::<BootstrapProfessionInstance>(),
    TaskType::of::<ApplyMarketplaceItem>(),
    TaskType::of::<SyncModelsToInstance>().also_named("sync_models"),
    TaskType::of::<SyncKeyToInstance>(),
    TaskType::of::<ProvisionInstance>(),
    TaskType::of::<RetireInstance>(),
    TaskType::of::<CleanInstance>(),
    TaskType::run_by::<ApplyKey>(),
];
