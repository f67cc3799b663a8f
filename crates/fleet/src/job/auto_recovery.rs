//! auto_recovery: restarts unhealthy instances within their budget.

use std::sync::Arc;

use base::Result;

use crate::{App, recovery};

pub async fn run(app: Arc<App>) -> Result<String> {
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
