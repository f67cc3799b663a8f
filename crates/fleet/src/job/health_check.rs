//! health_check: checks all instances of the fleet.

use std::sync::Arc;

use base::{Result, When};
use store::instance::Health;

use super::Job;
use crate::{App, health};

pub(super) const JOB: Job = Job::new("health_check", "Health check", When::minutes(5), |app, _| Box::pin(run(app)));

async fn run(app: Arc<App>) -> Result<String> {
    let health::Checked { reports, unwritten } = health::check(&app).await?;
    let of = |status: Health| reports.iter().filter(|r| r.status == status).count();
    let mut summary = format!("{} instances: {} healthy", reports.len(), of(Health::Healthy));
    for status in [Health::Unhealthy, Health::KeyInvalid, Health::RateLimited, Health::Unknown] {
        if of(status) > 0 {
            summary += &format!(", {} {}", of(status), status.as_str());
        }
    }
    if !unwritten.is_empty() {
        summary += &format!("; not written down: server {}", unwritten.join(", "));
    }
    Ok(summary)
}
