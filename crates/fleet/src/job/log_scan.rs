//! log_scan: checks the new log lines of all instances against the rules.

use std::sync::Arc;

use base::{Result, When};

use super::Job;
use crate::{App, repair};

pub(super) const JOB: Job = Job::new("log_scan", "Log scan", When::minutes(5), |app, _| Box::pin(run(app)));

async fn run(app: Arc<App>) -> Result<String> {
    let scanned = repair::scan(&app).await?;
    let mut summary = format!("{} instances scanned", scanned.instances);
    for (what, list) in [("repairs begun", &scanned.begun), ("alerted", &scanned.alerted), ("away", &scanned.away)] {
        if !list.is_empty() {
            summary += &format!("; {what}: {}", list.join(", "));
        }
    }
    Ok(summary)
}
