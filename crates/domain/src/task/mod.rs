//! What may outlive a request: tasks, kept in the database and run by any worker.
//!
//! The payload struct is the task. To add a type: a file beside this one, one line in `TYPES`.

mod apply_marketplace_item;
mod bootstrap_profession_instance;
mod clean_instance;
mod clear_webhook;
mod confine_instance;
mod holding;
mod init_instance;
mod kind;
mod of_instance;
mod prepare_server;
mod provision_instance;
mod queue;
mod restart_instance;
mod retire_instance;
mod room;
mod sync_key_to_instance;
mod sync_models_to_instance;
mod upgrade_instance;
mod worker;
mod write_config;

use crate::alert::DeliverAlert;
use crate::key::ApplyKey;
use crate::repair::RepairInstance;
pub use apply_marketplace_item::ApplyMarketplaceItem;
pub use bootstrap_profession_instance::BootstrapProfessionInstance;
pub use clear_webhook::ClearWebhook;
pub use confine_instance::ConfineInstance;
pub use kind::{Context, Payload, Priority, Run, TaskType};
pub use of_instance::{
    CleanInstance, InitInstance, ProvisionInstance, RestartInstance, RetireInstance, SyncKeyToInstance,
    SyncModelsToInstance, WriteConfig,
};
pub use prepare_server::PrepareServer;
pub use provision_instance::NOT_MAIN;
pub use queue::{TaskFilter, cancel, cancel_with, create, enqueue, enqueue_at, list, log_of, retry, show};
pub use store::task::{Status, Task};
pub use upgrade_instance::UpgradeInstance;
pub use worker::{MOST_ATTEMPTS, Timing, Worker};
pub(crate) use write_config::enqueue_write_config;

/// Every type there is.
pub const TYPES: &[TaskType] = &[
    TaskType::run_by::<InitInstance>(),
    TaskType::run_by::<BootstrapProfessionInstance>(),
    TaskType::run_by::<ApplyMarketplaceItem>(),
    TaskType::run_by::<SyncModelsToInstance>().also_named("sync_models"),
    TaskType::run_by::<SyncKeyToInstance>(),
    TaskType::run_by::<ProvisionInstance>(),
    TaskType::run_by::<RetireInstance>(),
    TaskType::run_by::<CleanInstance>(),
    TaskType::run_by::<PrepareServer>(),
    TaskType::run_by::<RestartInstance>(),
    TaskType::run_by::<WriteConfig>(),
    TaskType::run_by::<UpgradeInstance>(),
    TaskType::run_by::<ConfineInstance>(),
    TaskType::run_by::<ApplyKey>(),
    TaskType::run_by::<DeliverAlert>(),
    TaskType::run_by::<RepairInstance>(),
    TaskType::run_by::<ClearWebhook>(),
];
