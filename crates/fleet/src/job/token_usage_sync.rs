//! token_usage_sync: copies the sums of the gateway's log, which is read continuously, into the instances' totals.

use std::sync::Arc;

use base::Result;

use crate::App;

pub async fn run(app: Arc<App>) -> Result<String> {
    let as_of = app.feed.pull().await;
    let copied = store::usage::copy_totals(&app.db).await?;
    let stale =
        if as_of.stale { "; the gateway's log cannot be read now, these are the last known numbers" } else { "" };
    Ok(format!("totals of {copied} instances changed{stale}"))
}
