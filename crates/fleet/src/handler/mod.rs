//! Who runs the tasks that need a server or an assistant, one file for each type.

mod apply_marketplace_item;
mod bootstrap_profession_instance;
mod clean_instance;
mod clear_webhook;
mod confine_instance;
mod init_instance;
mod prepare_server;
mod provision_instance;
mod repair_instance;
mod restart_instance;
mod retire_instance;
mod sync_key_to_instance;
mod sync_models_to_instance;
mod upgrade_instance;
mod write_config;
