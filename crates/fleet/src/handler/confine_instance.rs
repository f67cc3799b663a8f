//! Bring an instance into its cell, take it out again, or bring other limits into the cell it has. Limits alone need no restart; for
//! anything else it is stopped, copied and started, and all of it is taken back where it does not come up.

use base::{Error, Result};
use openclaw::Version;
use openclaw::unit::Confinement;
use openclaw::unit::cell::differ_by_limits;
use queue::audit::{self, Action, AuditEvent, Level};
use queue::task::Run;

use crate::App;
use crate::assistant::unit::{self, Confine};
use crate::assistant::{Assistant, install, service, trial, unix_user};
use crate::reconcile;
use crate::task::{ConfineInstance, Context};

impl Run<App> for ConfineInstance {
    async fn run(self, context: Context) -> Result<String> {
        let app = &context.app;
        let assistant = Assistant::open(app, &self.instance_id).await?;
        service::state(&assistant).await?;
        let there = unit::read(&assistant).await?.filter(|text| unit::is_ours(text));
        let there = there.ok_or_else(|| Error::conflict("its unit is not ours: it has no cell"))?;
        let version = install::of_instance(app, &assistant).await?;
        let name = format!("cell-{}", context.task.id);
        trial::settle_earlier(&context, &assistant, &context.task.id, &name, "this change of the cell").await?;
        let confine = match self.confined {
            None => Confine::Keep,
            Some(true) => Confine::Yes,
            Some(false) => Confine::No,
        };
        if confine == Confine::Yes {
            require_own_user(&assistant)?;
        }
        let draft = unit::draft(app, &assistant, &version, confine).await?;
        if draft.text == there {
            unit::put_draft(app, &assistant, &draft).await?;
            return Ok("its unit is as it should be".into());
        }
        if differ_by_limits(&there, &draft.text) {
            unit::put_draft(app, &assistant, &draft).await?;
            tell(&context, &assistant, Level::Info, "the limits of its cell were changed").await?;
            return Ok("its limits were changed, without a restart".into());
        }
        if let Err(down) = reconcile::finish(&context, &assistant).await {
            context.log(&format!("it does not start as it is: {}", down.client)).await?;
        }
        trial::begin(&context, &assistant, &context.task.id, &name, &version, &there, &draft.text).await?;
        let said = match Confinement::of(&draft.text) {
            Confinement::Confined => "it runs in its cell",
            _ => "it runs outside of its cell",
        };
        match switch(&context, &assistant, &version, &draft).await {
            Ok(()) => {
                let level = if confine == Confine::No { Level::Warn } else { Level::Info };
                tell(&context, &assistant, level, said).await?;
                trial::over(&context, &assistant).await?;
                Ok(said.into())
            }
            Err(error) => {
                context.log(&format!("it failed: {}", error.client)).await?;
                trial::go_back(&context, &assistant, &name).await?;
                let text = format!("the change of its cell failed and was taken back: {}", error.client);
                tell(&context, &assistant, Level::Error, &text).await?;
                Err(Error::new(error.kind, text).with_operator(error.operator.unwrap_or_default()))
            }
        }
    }
}

/// A cell keeps users apart: it is of no use to one that runs as root or as the user who logs in.
fn require_own_user(assistant: &Assistant) -> Result<()> {
    match assistant.place.owner.as_deref() {
        Some(owner) if owner != "root" && owner != assistant.host.user() => Ok(()),
        _ => Err(Error::conflict("it does not run as a user of its own: it cannot be confined")),
    }
}

async fn switch(context: &Context, assistant: &Assistant, version: &Version, draft: &unit::Draft) -> Result<()> {
    if Confinement::of(&draft.text) == Confinement::Confined {
        unix_user::close(&context.app, assistant).await?;
    }
    unit::put_draft(&context.app, assistant, draft).await?;
    trial::accept(context, assistant, version).await
}

async fn tell(context: &Context, assistant: &Assistant, level: Level, detail: &str) -> Result<()> {
    let by = context.by();
    let event = AuditEvent { action: Action::InstanceUpdate, level, target: &assistant.instance.id, detail };
    audit::record_alone(&context.app, &by, event).await
}
