//! key_balance_alert: raises an alert if the balance of the gateway's account, or of a sub key with a quota, is below a
//! threshold in dollars. The job is paused until an administrator switches it on.

use std::sync::Arc;

use base::{Page, Result, Sort, When};
use queue::alert::{self, Rule};
use store::gateway_key;

use super::Job;
use crate::App;

pub(super) const JOB: Job =
    Job { paused: true, ..Job::new("key_balance_alert", "Key balance", When::hourly(0), |app, _| Box::pin(run(app))) };

const PER_USD: f64 = 500_000.0;

async fn run(app: Arc<App>) -> Result<String> {
    let Some(least) = alert::threshold(&app, Rule::KeyBalanceLow).await? else { return Ok("the rule is off".into()) };
    let mut low = vec![];
    let balance = app.upstream.gateway.balance().await?;
    let mut look = vec![("gateway".to_owned(), balance.remain)];
    let sort = Sort { column: "created_at", descending: false };
    for key in gateway_key::list(&app.db, None, sort, Page::ALL).await?.list {
        // The key of a deleted instance spends nothing any more.
        if key.status == gateway_key::Status::Active {
            look.push((format!("key:{}", key.name), key.quota.map(|quota| quota - key.used())));
        }
    }
    let looked_at = look.iter().map(|(subject, _)| subject.clone()).collect();
    for (subject, remain) in look {
        let left = remain.map(|remain| remain as f64 / PER_USD);
        let trouble = left.filter(|left| *left < least).map(|left| format!("{subject} has ${left:.2} left"));
        alert::set_state(&app, Rule::KeyBalanceLow, &subject, trouble.as_deref()).await?;
        low.extend(trouble);
    }
    alert::resolve_others(&app, Rule::KeyBalanceLow, &looked_at).await?;
    Ok(if low.is_empty() { "every balance is above the threshold".into() } else { low.join("; ") })
}
