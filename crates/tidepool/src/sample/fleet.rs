//! How the demo's assistants are. There are no servers to ask, so the jobs that would wait, and what they would have found is written down.

use base::id::InstanceId;
use base::{Page, Result, Sort};
use domain::App;
use domain::audit::By;
use domain::job::{self, JOBS};
use store::instance::{self, Health, Wanted};

/// Jobs that need no server; the others wait, and say so.
const RUN: &[&str] = &[
    "queueWorker",
    "token_usage_sync",
    "key_validity_check",
    "llm_self_heal",
    "sync_llm_spend",
    "spend_comparison",
    "audit_cleanup",
];
/// The one that is not well.
const ILL: &str = "lis-1-d";

pub async fn state(app: &App, by: &By) -> Result<()> {
    for job in JOBS.iter().filter(|job| !RUN.contains(&job.name)) {
        job::set_paused(app, by, job.name, true).await?;
    }
    let sort = Sort { column: "i.created_at", descending: false };
    for listed in instance::list(&app.db, Wanted::default(), sort, Page::ALL).await?.list {
        let (health, failures) = if listed.instance.id == ILL { (Health::Unhealthy, 3) } else { (Health::Healthy, 0) };
        let id = InstanceId::named(&listed.instance.id);
        instance::set_health(&app.db, &id, health, failures, app.clock.now()).await?;
    }
    Ok(())
}
