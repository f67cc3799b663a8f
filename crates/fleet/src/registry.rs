//! Everything that the product has by name: permissions, types of tasks, jobs, dimensions, rules. Each is listed where its
//! files are.

use std::sync::LazyLock;

use queue::alert;
use queue::permission::Permission;
use queue::task::TaskType;
use serde_json::{Map, Value, json};

use crate::App;
use crate::guardian::{self, DIMENSIONS, STUCK_SESSION};
pub use crate::handler::TYPES;
use crate::job;
pub use crate::job::Job;
use crate::listener::FOREIGN_LISTENER;
use crate::repair::{AUTO_RECOVERY, HANDLERS, SELF_HEAL};

/// Every job, the guardian's dimensions included.
pub static JOBS: LazyLock<Vec<Job>> = LazyLock::new(|| {
    let of_guardian = DIMENSIONS.iter().map(|dimension| {
        Job::new(dimension.name, dimension.label, dimension.when, |app, name| Box::pin(guardian::run(app, name)))
    });
    job::JOBS.iter().copied().chain(of_guardian).collect()
});

/// The names of all, which permission each type of task needs, and which roles have each permission: `openapi/registry.json`,
/// which the web apps are built from.
pub fn document() -> Value {
    let ledger = [AUTO_RECOVERY, SELF_HEAL, STUCK_SESSION, FOREIGN_LISTENER];
    let needed = |one: &TaskType<App>| (one.name.to_owned(), json!(one.permission.as_str()));
    let held = |one: &Permission| {
        let roles: Vec<_> = one.roles().iter().map(|role| role.as_str()).collect();
        (one.as_str().to_owned(), json!(roles))
    };
    json!({
        "permissions": Permission::ALL.iter().map(|one| one.as_str()).collect::<Vec<_>>(),
        "permission_roles": Permission::ALL.iter().map(held).collect::<Map<_, _>>(),
        "task_types": TYPES.iter().map(|one| one.name).collect::<Vec<_>>(),
        "task_permissions": TYPES.iter().map(needed).collect::<Map<_, _>>(),
        "jobs": job::JOBS.iter().map(|one| one.name).collect::<Vec<_>>(),
        "dimensions": DIMENSIONS.iter().map(|one| one.name).collect::<Vec<_>>(),
        "alert_rules": alert::Rule::ALL.iter().map(|one| one.as_str()).collect::<Vec<_>>(),
        "repair_rules": HANDLERS.iter().map(|one| one.rule.as_str()).chain(ledger).collect::<Vec<_>>(),
    })
}
