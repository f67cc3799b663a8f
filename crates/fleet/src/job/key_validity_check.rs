//! key_validity_check: checks that the LLM gateway accepts every sub key, and that every instance has its own.

use std::sync::Arc;

use base::Result;

use crate::{App, key_check};

pub async fn run(app: Arc<App>) -> Result<String> {
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
