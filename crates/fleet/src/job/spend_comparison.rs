//! spend_comparison: compares our daily sums of yesterday with the rows of the log and with the gateway's own count.
//! They must agree; a difference is stored and is a warning in the audit log.

use std::sync::Arc;

use base::{Result, When};
use jiff::ToSpan as _;
use llm::key::{Counted, apart, nearest};
use queue::audit::{self, Action, AuditEvent, By};
use store::spend_day::{self, SpendDay};
use store::usage::Sums;
use store::{gateway_key, usage, user_department};

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
    let missed = user_department::record_missed(&app.db, app.clock.now()).await?;
    if missed > 0 {
        tracing::warn!(missed, "departments were changed by an older release and are recorded from now on");
    }
    let date = app.zone.date(app.clock.now()).saturating_sub(1.day());
    let (from, to) = app.zone.span(date);
    let summed = spend_day::summed(&app.db, &date.to_string()).await?;
    let whole = usage::rows_since(&app.db).await? <= from;
    let logged = if whole { Some(spend_day::logged(&app.db.without_limit(), from, to).await?) } else { None };
    let last = spend_day::before(&app.db, &date.to_string()).await?.and_then(|day| day.used_total);
    let gap = gap(&app, last).await?;
    let balance = gap.and_then(|gap| Some(gap - last?));
    let day =
        SpendDay { date: date.to_string(), summed, logged, balance, used_total: gap, created_at: app.clock.now() };
    let drift = day.drift();
    let mut tx = app.db.begin().await?;
    spend_day::write(&mut tx, &day).await?;
    let number = |n: Option<i64>| n.map_or_else(|| "unknown".to_owned(), |n| n.to_string());
    let summary = format!(
        "{date}: sums {summed}, rows {}, the gateway's count apart by {}; drift {}",
        number(logged),
        number(balance),
        number(drift)
    );
    if drift.is_some_and(|drift| drift != 0) {
        audit::record(&app, &mut tx, &By::system(), AuditEvent::warn(Action::KeySync, "spend", &summary)).await?;
    }
    tx.commit().await?;
    Ok(summary)
}

/// What a foreign gateway has counted, less our sums. The embedded gateway has no count of its own. `last` is the gap of
/// the day before, which should not have changed.
async fn gap(app: &App, last: Option<i64>) -> Result<Option<i64>> {
    if app.upstream.embedded {
        return Ok(None);
    }
    let first = counted(app).await?;
    if last.is_none_or(|last| first.gateway - first.log == last) {
        return Ok(Some(first.gateway - first.log));
    }
    // Requests are under way, and one of the two counts may only be late.
    tokio::time::sleep(app.upstream.gateway.kind().row_delay).await;
    app.feed.pull().await;
    let second = counted(app).await?;
    Ok(Some(nearest(&apart(first, second), last.unwrap_or_default())))
}

async fn counted(app: &App) -> Result<Counted> {
    let keys = app.upstream.gateway.keys().await?;
    if keys.iter().any(|key| !key.is_counted) {
        // Some keys are not counted each for itself, but the account that they spend from is. It is ours alone.
        let gateway = app.upstream.gateway.counted().await?;
        let mut log = Sums::default();
        usage::totals(&app.db).await?.iter().for_each(|total| log += total.sums);
        return Ok(Counted { gateway, log: log.quota() });
    }
    let mut both = Counted { gateway: 0, log: 0 };
    for key in keys {
        // What keys of this name that are gone had used is in the sums too.
        let carried = gateway_key::named(&app.db, &key.name).await?.map_or(0, |key| key.carried_quota);
        both.gateway += key.used_quota + carried;
        both.log += usage::of_all_time(&app.db, &key.name).await?.quota();
    }
    Ok(both)
}
