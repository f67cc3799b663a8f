//! auto_recovery: restarts unhealthy instances within their budget.

use std::sync::Arc;

use base::{Result, When};

use super::Job;
use crate::{App, recovery};

pub(super) const JOB: Job = Job::new("auto_recovery", "Auto recovery", When::minutes(10), |app, _| Box::pin(run(app)));

async fn run(app: Arc<App>) -> Result<String> {
    let (begun, left) = recovery::recover(&app).await?;
    let mut summary = format!("{} restarts begun", begun.len());
    if !begun.is_empty() {
        summary += &format!(": {}", begun.join(", "));
    }
    if !left.is_empty() {
        summary += &format!("; left to people: {}", left.join(", "));
    }
    Ok(summary)
}
