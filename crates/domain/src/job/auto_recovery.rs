//! auto_recovery: restarts what is unhealthy, within its budget.

use std::sync::Arc;

use base::Result;

use crate::{App, repair};

pub(super) async fn run(app: Arc<App>) -> Result<String> {
    let (begun, left) = repair::recover(&app).await?;
    let mut told = format!("{} restarts begun", begun.len());
    if !begun.is_empty() {
        told += &format!(": {}", begun.join(", "));
    }
    if !left.is_empty() {
        told += &format!("; left to people: {}", left.join(", "));
    }
    Ok(told)
}
