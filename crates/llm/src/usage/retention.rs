//! Requests are kept for the retention period, in whole local days; their sums stay for ever.

use std::time::Duration;

use base::Result;
use jiff::{SignedDuration, ToSpan as _};
use store::{quota_grant, request_log, unlogged_request, usage};

use crate::App;

/// Rows per statement, and the pause after it, in which others can write.
const BATCH: i64 = 1000;
const PAUSE: Duration = Duration::from_millis(10);
/// A grant that was not changed for this long belongs to a past day or to a dead process, and an answer that the log
/// does not have by then is one that the gateway lost.
const GRANT: SignedDuration = SignedDuration::from_hours(48);

/// Deletes requests that are older than the retention period. Returns how many.
pub async fn forget_old(app: &App) -> Result<u64> {
    let now = app.clock.now();
    let first = app.zone.date(now).saturating_sub(app.audit_retention_days.days());
    // A longer period does not bring deleted rows back, so never move this time backwards.
    let kept = usage::rows_since(&app.db).await?;
    // Ignore a time in the future: a clock that was once ahead must not hide all rows for ever.
    let since = app.zone.start(first).max(if kept > now { jiff::Timestamp::UNIX_EPOCH } else { kept });
    usage::keep_rows_since(&app.db, since).await?;
    let mut gone = 0;
    loop {
        match request_log::delete_before(&app.db, since, BATCH).await? {
            0 => break,
            some => gone += some,
        }
        tokio::time::sleep(PAUSE).await;
    }
    quota_grant::forget_before(&app.db, now - GRANT).await?;
    unlogged_request::forget_before(&app.db, now - GRANT).await?;
    Ok(gone)
}
