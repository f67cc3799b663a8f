//! Bring what our records want to the instance. Without `restart`, what needs a restart waits.

use base::Result;
use queue::audit::{self, Action, AuditEvent};
use queue::task::Run;

use crate::App;
use crate::assistant::desired::Desired;
use crate::assistant::{Assistant, config, install, unit};
use crate::reconcile::compare::{UnitState, compare, fingerprint};
use crate::reconcile::{self, Brought, Restarts, Wish, hold, pass};
use crate::task::{Context, ReconcileInstance};

impl Run<App> for ReconcileInstance {
    async fn run(self, context: Context) -> Result<String> {
        let app = &context.app;
        let Some(assistant) = Assistant::find(app, &self.instance_id).await? else {
            return Ok("the instance is on no server: there is nothing to do".into());
        };
        // A person who asks for it by name decides over a hold.
        let is_asked = context.task.source != pass::SOURCE;
        if let Some(held) = hold::refusal(app, &self.instance_id).await?.filter(|_| !is_asked) {
            return Ok(held);
        }
        let done =
            if self.restart { with_restart(&context, &assistant).await } else { hot(&context, &assistant).await };
        if let Err(error) = &done {
            let generation = store::reconcile::find(&app.db, &self.instance_id).await?.generation;
            let document = config::read(&assistant).await.ok().flatten().map(|found| found.document);
            let state = fingerprint(generation, document.as_ref());
            store::reconcile::add_failure(&app.db, &self.instance_id, &state, &error.client).await?;
        }
        done
    }
}

async fn hot(context: &Context, assistant: &Assistant) -> Result<String> {
    let app = &context.app;
    let version = install::of_instance(app, assistant).await?;
    // The pass makes no key: an administrator may have deleted it to end its use.
    let desired = match context.task.source == pass::SOURCE {
        true => Desired::known(app, assistant, &version).await?,
        false => Desired::of(app, assistant, &version).await?,
    };
    Ok(match reconcile::bring_within(context, assistant, &desired, Restarts::Wait).await? {
        Brought { waits: true, .. } => "what needs a restart waits for one".into(),
        Brought { done: true, .. } => "it is as our records want it".into(),
        Brought { done: false, .. } => "it was as our records want it".into(),
    })
}

/// Everything, the unit too if somebody changed it on the server.
async fn with_restart(context: &Context, assistant: &Assistant) -> Result<String> {
    let app = &context.app;
    let version = install::of_instance(app, assistant).await?;
    let differs = compare(app, assistant).await?;
    let desired = Desired::of(app, assistant, &version).await?;
    if differs.unit == UnitState::Changed {
        // The restart is recorded first: a gateway must not go on under the unit that somebody else wrote.
        reconcile::prepare_restart(app, assistant, &version, &|document| desired.apply(document)).await?;
        let detail = "its unit was changed on the server: the platform's is put back";
        context.log(detail).await?;
        let event = AuditEvent::warn(Action::InstanceUpdate, &assistant.instance.id, detail);
        audit::record_alone(app, &context.by(), event).await?;
        unit::write(app, assistant, &version).await?;
    }
    let done = reconcile::bring(context, assistant, &desired, Wish::Run).await?;
    Ok(if done { "it is as our records want it" } else { "it was as our records want it" }.into())
}
