//! Who runs the tasks that need a server or an assistant, one file for each type. To add one, write its file and add its
//! two lines here. A payload that only administrators ask for by name stands in the same file.

mod apply_marketplace_item;
mod bootstrap_profession_instance;
mod clean_instance;
mod clear_webhook;
mod confine_instance;
mod init_instance;
mod move_back;
mod move_into_cell;
mod prepare_server;
mod provision_instance;
mod reconcile_instance;
mod repair_instance;
mod restart_instance;
mod retire_instance;
mod sync_key_to_instance;
mod sync_models_to_instance;
mod upgrade_instance;
mod write_config;

use llm::key::ApplyKey;
use llm::task::{SyncKeyToInstance, SyncModelsToInstance};
use people::task::{BootstrapProfessionInstance, CleanInstance, ClearWebhook, InitInstance, WriteConfig};
use queue::alert::DeliverAlert;
use queue::task::TaskType;

use crate::App;
use crate::task::{
    ApplyMarketplaceItem, ConfineInstance, MoveBack, MoveIntoCell, PrepareServer, ProvisionInstance, ReconcileInstance,
    RepairInstance, RestartInstance, RetireInstance, UpgradeInstance,
};

/// Every type of task. The crates below run two of them themselves.
pub static TYPES: &[TaskType<App>] = &[
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
    TaskType::run_by::<MoveIntoCell>(),
    TaskType::run_by::<MoveBack>(),
    TaskType::run_by::<ApplyKey>(),
    TaskType::run_by::<DeliverAlert>(),
    TaskType::run_by::<RepairInstance>(),
    TaskType::run_by::<ReconcileInstance>(),
    TaskType::run_by::<ClearWebhook>(),
];
