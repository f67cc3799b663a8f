//! Requests are kept for the retention period, in whole local days; their sums stay for ever.

use std::time::Duration;

use base::Result;
use jiff::{SignedDuration, ToSpan as _};
use store::{quota_grant, request_log, usage};

use crate::App;

/// Rows per statement, and the pause in which others get their turn.
const BATCH: i64 = 1000;
const PAUSE: Duration = Duration::from_millis(10);
/// A grant that nobody touched for so long is of a day that is over, or of a process that is.
const GRANT: SignedDuration = SignedDuration::from_hours(48);

/// Deletes what is older than the retention period; answers how many requests went.
pub async fn forget_old(app: &App) -> Result<u64> {
    let now = app.clock.now();
    let first = app.zone.date(now).saturating_sub(app.audit_retention_days.days());
    // What is gone does not come back with a longer period.
    let kept = usage::rows_since(&app.db).await?;
    // A clock that was ahead once must not hide everything for ever.
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
    Ok(gone)
}
