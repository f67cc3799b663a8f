//! Lists every task type and every job. To add one, write its file in `handler` or `job` and add a line here.

use std::sync::LazyLock;
use std::time::Duration;

use base::When;
use llm::key::ApplyKey;
use llm::task::{SyncKeyToInstance, SyncModelsToInstance};
use people::task::{BootstrapProfessionInstance, CleanInstance, ClearWebhook, InitInstance, WriteConfig};
use queue::alert::{self, DeliverAlert};
use queue::task::TaskType;
use serde_json::{Value, json};

use crate::App;
use crate::guardian::{self, DIMENSIONS, STUCK_SESSION};
use crate::job::{
    auto_recovery, health_check, key_balance_alert, key_validity_check, llm_self_heal, log_scan, queue_worker,
    retention, server_metrics, spend_comparison, sync_llm_spend, token_usage_sync,
};
use crate::listener::FOREIGN_LISTENER;
use crate::repair::{AUTO_RECOVERY, HANDLERS, SELF_HEAL};
use crate::task::{
    ApplyMarketplaceItem, ConfineInstance, PrepareServer, ProvisionInstance, RepairInstance, RestartInstance,
    RetireInstance, UpgradeInstance,
};

pub type Job = queue::job::Job<App>;

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
    TaskType::run_by::<ApplyKey>(),
    TaskType::run_by::<DeliverAlert>(),
    TaskType::run_by::<RepairInstance>(),
    TaskType::run_by::<ClearWebhook>(),
];

/// The jobs of the spec.
const SPEC: &[Job] = &[
    Job {
        limit: Duration::from_secs(60),
        ..Job::new("queueWorker", "Task queue", When::Seconds(5), |app, _| Box::pin(queue_worker::run(app, TYPES)))
    },
    Job::new("health_check", "Health check", When::minutes(5), |app, _| Box::pin(health_check::run(app))),
    Job::new("auto_recovery", "Auto recovery", When::minutes(10), |app, _| Box::pin(auto_recovery::run(app))),
    Job::new("log_scan", "Log scan", When::minutes(5), |app, _| Box::pin(log_scan::run(app))),
    Job::new("server_metrics", "Server metrics", When::minutes(5), |app, _| Box::pin(server_metrics::run(app))),
    Job::new("token_usage_sync", "Token usage", When::minutes(15), |app, _| Box::pin(token_usage_sync::run(app))),
    Job::new("key_validity_check", "Key validity", When::minutes(30), |app, _| Box::pin(key_validity_check::run(app))),
    Job {
        paused: true,
        ..Job::new("key_balance_alert", "Key balance", When::hourly(0), |app, _| Box::pin(key_balance_alert::run(app)))
    },
    Job::new("llm_self_heal", "LLM self-heal", When::minutes(5), |app, _| Box::pin(llm_self_heal::run(app))),
    Job::new("sync_llm_spend", "LLM spend", When::minutes(10), |app, _| Box::pin(sync_llm_spend::run(app))),
    Job::new("spend_comparison", "Spend comparison", When::Daily { hour: 3, minute: 20 }, |app, _| {
        Box::pin(spend_comparison::run(app))
    }),
    Job::new("audit_cleanup", "Audit cleanup", When::Daily { hour: 0, minute: 10 }, |app, _| {
        Box::pin(retention::run(app))
    }),
];

/// The jobs of the spec, and one for each of the guardian's dimensions.
pub static JOBS: LazyLock<Vec<Job>> = LazyLock::new(|| {
    let of_guardian = DIMENSIONS.iter().map(|dimension| {
        Job::new(dimension.name, dimension.label, dimension.when, |app, name| Box::pin(guardian::run(app, name)))
    });
    SPEC.iter().copied().chain(of_guardian).collect()
});

/// The names of everything that is listed here or in a list of its own, for whoever shows them: `openapi/registry.json`.
pub fn document() -> Value {
    let ledger = [AUTO_RECOVERY, SELF_HEAL, STUCK_SESSION, FOREIGN_LISTENER];
    json!({
        "task_types": TYPES.iter().map(|one| one.name).collect::<Vec<_>>(),
        "jobs": SPEC.iter().map(|one| one.name).collect::<Vec<_>>(),
        "dimensions": DIMENSIONS.iter().map(|one| one.name).collect::<Vec<_>>(),
        "alert_rules": alert::Rule::ALL.iter().map(|one| one.as_str()).collect::<Vec<_>>(),
        "repair_rules": HANDLERS.iter().map(|one| one.rule.as_str()).chain(ledger).collect::<Vec<_>>(),
    })
}
