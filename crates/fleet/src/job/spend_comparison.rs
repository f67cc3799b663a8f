//! spend_comparison: compares our daily sums of yesterday with the rows of the log and with the gateway's own count.
//! They must agree; a difference is stored and is a warning in the audit log.

use std::sync::Arc;

use base::{Result, When};
use jiff::ToSpan as _;
use queue::audit::{self, Action, AuditEvent, By};
use store::spend_day::{self, SpendDay};
use store::{gateway_key, usage};

use super::Job;
use crate::App;

pub(super) const JOB: Job =
    Job::new("spend_comparison", "Spend comparison", When::Daily { hour: 3, minute: 20 }, |app, _| Box::pin(run(app)));

async fn run(app: Arc<App>) -> Result<String> {
    if app.db.days_pending() {
        return Ok("not compared: the days are being rebuilt for another time zone".into());
    }
    app.feed.pull().await;
    let corrected = usage::recount(&app.db).await?;
    if corrected > 0 {
        tracing::warn!(corrected, "totals of tokens were not the sums of their days");
    }
    let date = app.zone.date(app.clock.now()).saturating_sub(1.day());
    let (from, to) = app.zone.span(date);
    let summed = spend_day::summed(&app.db, &date.to_string()).await?;
    let whole = usage::rows_since(&app.db).await? <= from;
    let logged = if whole { Some(spend_day::logged(&app.db.without_limit(), from, to).await?) } else { None };
    let gap = gap(&app).await?;
    let last = spend_day::before(&app.db, &date.to_string()).await?.and_then(|day| day.used_total);
    let balance = gap.and_then(|gap| Some(gap - last?));
    let day =
        SpendDay { date: date.to_string(), summed, logged, balance, used_total: gap, created_at: app.clock.now() };
    let drift = day.drift();
    let mut tx = app.db.begin().await?;
    spend_day::write(&mut tx, &day).await?;
    let number = |n: Option<i64>| n.map_or_else(|| "unknown".to_owned(), |n| n.to_string());
    let summary = format!(
        "{date}: sums {summed}, rows {}, the gateway's count apart by {}; drift {drift}",
        number(logged),
        number(balance)
    );
    if drift != 0 {
        audit::record(&app, &mut tx, &By::system(), AuditEvent::warn(Action::KeySync, "spend", &summary)).await?;
    }
    tx.commit().await?;
    Ok(summary)
}

/// What a foreign gateway has counted for its keys, less our sums for them. The embedded gateway has no count of its
/// own.
async fn gap(app: &App) -> Result<Option<i64>> {
    if app.upstream.embedded {
        return Ok(None);
    }
    let mut gap = 0;
    for key in app.upstream.gateway.keys().await? {
        // What keys of this name that are gone had used is in the sums too.
        let carried = gateway_key::named(&app.db, &key.name).await?.map_or(0, |key| key.carried_quota);
        gap += key.used_quota + carried - usage::of_all_time(&app.db, &key.name).await?.quota;
    }
    Ok(Some(gap))
}
