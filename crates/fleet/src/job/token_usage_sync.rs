//! token_usage_sync: copies the sums of the gateway's log, which is read continuously, into the instances' totals.

use std::sync::Arc;

use base::{Result, When};

use super::Job;
use crate::App;

pub(super) const JOB: Job = Job::new("token_usage_sync", "Token usage", When::minutes(15), |app, _| Box::pin(run(app)));

async fn run(app: Arc<App>) -> Result<String> {
    let as_of = app.feed.pull().await;
    let copied = store::usage::copy_totals(&app.db).await?;
    let stale =
        if as_of.stale { "; the gateway's log cannot be read now, these are the last known numbers" } else { "" };
    Ok(format!("totals of {copied} instances changed{stale}"))
}
