//! log_scan: checks the new log lines of all instances against the nine rules.

use std::sync::Arc;

use base::Result;

use crate::{App, repair};

pub async fn run(app: Arc<App>) -> Result<String> {
    let scanned = repair::scan(&app).await?;
    let mut summary = format!("{} instances scanned", scanned.instances);
    for (what, list) in [("repairs begun", &scanned.begun), ("alerted", &scanned.alerted), ("away", &scanned.away)] {
        if !list.is_empty() {
            summary += &format!("; {what}: {}", list.join(", "));
        }
    }
    Ok(summary)
}
