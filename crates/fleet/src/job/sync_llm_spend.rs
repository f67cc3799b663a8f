//! sync_llm_spend: takes in the log and compares budgets with it: a key's quota and a user's daily quota. The spend of
//! today and of this month is always a sum over the log, so no counter has to be reset.

use std::collections::HashSet;
use std::sync::Arc;

use base::{Page, Result, Sort, When};
use llm::usage;
use queue::alert::{self, Rule};
use queue::audit::{self, Action, AuditEvent, By};
use store::gateway_key;
use store::usage::Sums;
use store::user::{self, Status};

use super::Job;
use crate::App;

pub(super) const JOB: Job = Job::new("sync_llm_spend", "LLM spend", When::minutes(10), |app, _| Box::pin(run(app)));

async fn run(app: Arc<App>) -> Result<String> {
    app.feed.pull().await;
    let now = app.clock.now();
    let today = app.zone.date(now);
    let days = store::usage::daily(&app.db, today.first_of_month(), None).await?;
    let (mut of_today, mut of_month) = (Sums::default(), Sums::default());
    for day in &days {
        of_month += day.sums;
        if day.date == today.to_string() {
            of_today += day.sums;
        }
    }
    let near = match alert::threshold(&app, Rule::BudgetNearLimit).await? {
        Some(percent) => budgets(&app, percent).await?,
        None => 0,
    };
    let dollars = |quota: i64| quota as f64 / 500_000.0;
    Ok(format!(
        "today ${:.6}, this month ${:.6}; {near} budgets near their limit",
        dollars(of_today.quota()),
        dollars(of_month.quota())
    ))
}

async fn budgets(app: &App, percent: f64) -> Result<usize> {
    let mut near = 0;
    let mut looked_at = HashSet::new();
    let sort = Sort { column: "created_at", descending: false };
    for key in gateway_key::list(&app.db, None, sort, Page::ALL).await?.list {
        // The key of a deleted instance spends nothing any more.
        let Some(quota) = key.quota.filter(|quota| *quota > 0 && key.status == gateway_key::Status::Active) else {
            continue;
        };
        let subject = format!("key:{}", key.name);
        near += usize::from(budget(app, &subject, key.used(), quota, percent).await?);
        looked_at.insert(subject);
    }
    let filter = user::UserFilter { status: Some(Status::Active), ..user::UserFilter::default() };
    let midnight = app.zone.midnight(app.clock.now());
    for one in user::list(&app.db, filter, Sort { column: "created_at", descending: false }, Page::ALL).await?.list {
        if one.quota_daily > 0 {
            let used = usage::spent(app, &one.id, midnight).await?;
            let subject = format!("user:{}", one.email);
            near += usize::from(budget(app, &subject, used, one.quota_daily, percent).await?);
            looked_at.insert(subject);
        }
    }
    // Resolve the alerts of budgets that no longer exist.
    alert::resolve_others(app, Rule::BudgetNearLimit, &looked_at).await?;
    Ok(near)
}

/// Raises or resolves the alert of one budget. A new alert is also a warning in the audit log.
async fn budget(app: &App, subject: &str, used: i64, limit: i64, percent: f64) -> Result<bool> {
    let share = used as f64 * 100.0 / limit as f64;
    let is_near = share >= percent;
    let mut tx = app.db.begin().await?;
    if is_near {
        let message = format!("{subject} has used {used} of {limit} ({share:.0} %)");
        if alert::raise(app, &mut tx, Rule::BudgetNearLimit, subject, &message).await? {
            audit::record(app, &mut tx, &By::system(), AuditEvent::warn(Action::KeySync, subject, &message)).await?;
        }
    } else {
        alert::resolve(app, &mut tx, Rule::BudgetNearLimit, subject).await?;
    }
    tx.commit().await?;
    Ok(is_near)
}
