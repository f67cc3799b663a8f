//! key_validity_check: checks that the LLM gateway accepts every sub key, and that every instance has its own.

use std::sync::Arc;

use base::{Result, When};

use super::Job;
use crate::{App, key_check};

pub(super) const JOB: Job =
    Job::new("key_validity_check", "Key validity", When::minutes(30), |app, _| Box::pin(run(app)));

async fn run(app: Arc<App>) -> Result<String> {
    let checked = key_check::ask_all(&app).await?;
    for one in &checked {
        key_check::note(&app, one).await?;
    }
    let refused: Vec<&str> = checked.iter().filter(|one| one.is_refused()).map(|one| one.key.name.as_str()).collect();
    let rewritten = key_check::rewrite_wrong(&app).await?;
    let mut summary = format!("{} keys asked about, {} refused", checked.len(), refused.len());
    if !refused.is_empty() {
        summary += &format!(": {}", refused.join(", "));
    }
    if !rewritten.is_empty() {
        summary += &format!("; written again to {}", rewritten.join(", "));
    }
    Ok(summary)
}
