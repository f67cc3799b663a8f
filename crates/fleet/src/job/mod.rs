//! What the scheduler runs, one file for each job: `registry` says when each is due.

pub(crate) mod auto_recovery;
pub(crate) mod health_check;
pub(crate) mod key_balance_alert;
pub(crate) mod key_validity_check;
pub(crate) mod llm_self_heal;
pub(crate) mod log_scan;
pub(crate) mod queue_worker;
pub(crate) mod retention;
pub(crate) mod server_metrics;
pub(crate) mod spend_comparison;
pub(crate) mod sync_llm_spend;
pub(crate) mod token_usage_sync;
