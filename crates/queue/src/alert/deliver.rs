//! Delivers an alert to its rule's webhook. It is a task, so that it is retried and survives the process.

use base::id::{AlertId, InstanceId};
use base::{Kind, Result};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::task::{self, Status, Task};
use store::{Tx, alert};

use crate::App;
use crate::permission::Permission;
use crate::task::{Context, Payload, Priority, Run};

pub(super) const RAISED: &str = "raised";
pub(super) const RESOLVED: &str = "resolved";

/// Delivers one event of an alert to the webhook of the alert's rule.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeliverAlert {
    pub alert_id: AlertId,
    /// `raised` or `resolved`.
    pub event: String,
}

impl Payload for DeliverAlert {
    const TYPE: &'static str = "deliver_alert";
    const PRIORITY: Priority = Priority::People;
    const PERMISSION: Permission = Permission::SetAlertRules;

    async fn instance(&self, _: &mut Tx) -> Result<Option<InstanceId>> {
        Ok(None)
    }
}

/// Whether the delivery of `raised`, which comes before this task, is dead: the receiver then never saw the alert. A
/// manual retry of that delivery also reports the end, in `resolved_at`.
async fn was_given_up(app: &App, task: &Task) -> Result<bool> {
    let Some(first) = &task.after_id else { return Ok(false) };
    let first = task::find(&app.db, first).await?;
    Ok(first.is_some_and(|first| first.status == Status::Dead))
}

impl<A: AsRef<App> + Send + Sync> Run<A> for DeliverAlert {
    async fn run(self, context: Context<A>) -> Result<String> {
        let app: &App = (*context.app).as_ref();
        let found = alert::find(&app.db, &self.alert_id).await?.ok_or(Kind::NotFound)?;
        let rule = alert::rule(&app.db, &found.rule).await?;
        let Some(rule) = rule.filter(|rule| rule.enabled) else { return Ok("the rule is off".into()) };
        let (Some(url), Some(key)) = (rule.url(&app.sealer)?, rule.key(&app.sealer)?) else {
            return Ok("the rule has no channel any more".into());
        };
        if self.event == RESOLVED && was_given_up(app, &context.task).await? {
            return Ok("not delivered: the alert itself was never delivered".into());
        }
        let body = json!({
            "event": self.event,
            "id": found.id,
            "rule": found.rule,
            "subject": found.subject,
            "message": found.message,
            "created_at": app.zone.show(found.created_at),
            "resolved_at": found.resolved_at.map(|at| app.zone.show(at)),
        });
        // The task's id is the same in every attempt, so a receiver can detect duplicates.
        let status = app.webhooks.deliver(&url, &key, &context.task.id, app.clock.now(), body.to_string()).await?;
        Ok(format!("delivered: {status}"))
    }
}
