//! Let the instance run another OpenClaw: accepted when it is ready and has answered a chat, else everything is as it was before.

use base::{Error, Result};
use openclaw::Version;
use queue::audit::{self, Action, AuditEvent, Level};
use queue::task::Run;
use store::instance::{self, Runner};

use crate::App;
use crate::assistant::unit::{self, Confine};
use crate::assistant::{Assistant, archive, config, install, service, trial};
use crate::reconcile;
use crate::task::{Context, UpgradeInstance, parse_version};

impl Run<App> for UpgradeInstance {
    async fn run(self, context: Context) -> Result<String> {
        let app = &context.app;
        let target = match &self.version {
            Some(version) => parse_version(version)?,
            None => app.assistants.version.clone(),
        };
        let assistant = Assistant::open(app, &self.instance_id).await?;
        require_own_unit(&assistant)?;
        service::state(&assistant).await?;
        let current = install::of_instance(app, &assistant).await?;
        if current == target {
            return Ok(format!("it runs {target} already"));
        }
        let name = format!("upgrade-{}", context.task.id);
        if let Some(kept) = archive::find(&assistant, &name).await?
            && kept.version != current.to_string()
        {
            // Until it is accepted the record says what was before; another upgrade was, since this one was taken back.
            return Err(Error::conflict(format!("another upgrade, to {current}, was made since")));
        }
        // One that was taken back is not made again: it would only be down again.
        trial::settle_earlier(&context, &assistant, &context.task.id, &name, "this upgrade").await?;
        // What an attempt or a task before this had stopped runs, whatever becomes of this one; unless it is the cure.
        if let Err(down) = reconcile::finish(&context, &assistant).await {
            context.log(&format!("it does not start as it is: {}", down.client)).await?;
        }
        let said = install::ensure(app, &assistant.server, &assistant.host, &target).await?;
        context.log(&said.to_string()).await?;
        let found = config::read(&assistant).await?.ok_or_else(|| Error::conflict("the configuration is gone"))?;
        config::require_valid(&assistant, &target, &found.document).await?;
        let old_unit = own_unit(app, &assistant, &current).await?;

        let draft = unit::draft(app, &assistant, &target, Confine::Keep).await?;
        trial::begin(&context, &assistant, &context.task.id, &name, &current, &old_unit, &draft.text).await?;
        match switch(&context, &assistant, &target, &draft).await {
            Ok(()) => {
                instance::set_version(&app.db, &assistant.id(), &target.to_string()).await?;
                tell(&context, &assistant, Level::Info, &format!("upgraded from {current} to {target}")).await?;
                trial::over(&context, &assistant).await?;
                Ok(format!("upgraded from {current} to {target}"))
            }
            Err(error) => {
                context.log(&format!("{target} failed: {}", error.client)).await?;
                trial::go_back(&context, &assistant, &name).await?;
                let message = format!("the upgrade to {target} failed and was taken back: {}", error.client);
                tell(&context, &assistant, Level::Error, &message).await?;
                Err(Error::new(error.kind, message).with_operator(error.operator.unwrap_or_default()))
            }
        }
    }
}

/// Refuses what a unit of the system does not run: the platform installs nothing there.
fn require_own_unit(assistant: &Assistant) -> Result<()> {
    match assistant.instance.runner {
        Runner::Unit => Ok(()),
        Runner::Container => {
            Err(Error::conflict("it runs in a container: it is upgraded with its image, which is somebody else's"))
        }
        Runner::UserUnit | Runner::Process | Runner::Address => {
            Err(Error::conflict("what runs it is not ours: it can be upgraded from here once it is moved into a cell"))
        }
    }
}

/// The unit that starts what it runs now.
async fn own_unit(app: &App, assistant: &Assistant, current: &Version) -> Result<String> {
    let ours = async || Ok::<_, Error>(unit::read(assistant).await?.filter(|text| unit::is_ours(text)));
    let foreign = || Error::conflict("its unit is not ours: it cannot be upgraded from here");
    let there = ours().await?.ok_or_else(foreign)?;
    if unit::starts(assistant, current).await? {
        return Ok(there);
    }
    // A cleaning came into the middle of an attempt: nothing is left of that but its unit.
    unit::write(app, assistant, current).await?;
    ours().await?.ok_or_else(foreign)
}

async fn switch(context: &Context, assistant: &Assistant, target: &Version, draft: &unit::Draft) -> Result<()> {
    unit::put_draft(&context.app, assistant, draft).await?;
    trial::accept(context, assistant, target).await
}

async fn tell(context: &Context, assistant: &Assistant, level: Level, detail: &str) -> Result<()> {
    let by = context.by();
    let event = AuditEvent { action: Action::InstanceUpdate, level, target: &assistant.instance.id, detail };
    audit::record_alone(&context.app, &by, event).await
}
