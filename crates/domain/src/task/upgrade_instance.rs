//! Let the instance run another OpenClaw: accepted when it is ready and has answered a chat, else everything is as it was before.

use std::time::Duration;

use base::id::InstanceId;
use base::{Error, Result};
use openclaw::Version;
use openclaw::version::Support;
use serde::{Deserialize, Serialize};
use store::{Tx, instance};

use super::kind::{Context, Payload, Run};
use crate::assistant::{Assistant, archive, config, debt, health, install, service, unit};
use crate::audit::{self, Action, By, Deed, Level};

/// The first message to a cold assistant takes its time.
const CHAT: Duration = Duration::from_secs(90);

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UpgradeInstance {
    pub instance_id: String,
    /// The set one when omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

impl Payload for UpgradeInstance {
    const TYPE: &'static str = "upgrade_instance";

    async fn instance(&self, _: &mut Tx) -> Result<Option<InstanceId>> {
        if let Some(version) = &self.version {
            parse(version)?;
        }
        Ok(Some(InstanceId::named(&self.instance_id)))
    }
}

fn parse(version: &str) -> Result<Version> {
    let version: Version = version.parse().map_err(|why: String| Error::field("version", why))?;
    if version.support() == Support::TooOld {
        return Err(Error::field("version", format_args!("must be {} or later", Version::OLDEST)));
    }
    Ok(version)
}

impl Run for UpgradeInstance {
    async fn run(self, context: Context) -> Result<String> {
        let app = &context.app;
        let target = match &self.version {
            Some(version) => parse(version)?,
            None => app.assistants.version.clone(),
        };
        let assistant = Assistant::open(app, &InstanceId::named(&self.instance_id)).await?;
        service::state(&assistant).await?;
        let current = install::of_instance(app, &assistant).await?;
        if current == target {
            return Ok(format!("it runs {target} already"));
        }
        let name = format!("upgrade-{}", context.task.id);
        if let Some(kept) = archive::find(&assistant, &name).await? {
            // An attempt of this very task. What its unit starts tells how far that came; what is owed may have been paid since.
            let before: Version = kept.version.parse().map_err(|why: String| Error::internal(why))?;
            if current != before {
                // Until it is accepted the record says what was before; another upgrade was, since this one was taken back.
                return Err(Error::conflict(format!("another upgrade, to {current}, was made since")));
            }
            if !unit::starts(&assistant, &before).await? {
                context.log("an attempt was broken off: back to before it").await?;
                back(&context, &assistant, &name).await?;
                return Err(Error::conflict("the upgrade was broken off and taken back"));
            }
            // One that was taken back is not made again: it would only be down again.
            if kept.used {
                if debt::of(app, &assistant).await?.owed.is_start() {
                    run_again(&context, &assistant, &kept).await?;
                }
                return Err(Error::conflict("this upgrade failed and was taken back; see the first attempt"));
            }
            // It may have run since the copy was begun: there is nothing to go back to, and the copy may be torn.
            archive::discard(&assistant, &name).await?;
        }
        // What an attempt or a task before this had stopped runs, whatever becomes of this one; unless it is the cure.
        if let Err(down) = config::settle(&context, &assistant).await {
            context.log(&format!("it does not start as it is: {}", down.client)).await?;
        }
        let said = install::ensure(app, &assistant.server, &assistant.host, &target).await?;
        context.log(&said.to_string()).await?;
        let found = config::read(&assistant).await?.ok_or_else(|| Error::conflict("the configuration is gone"))?;
        config::require_valid(&assistant, &target, &found.document).await?;
        let old_unit = own_unit(&assistant, &current).await?;

        if let Err(error) = take_snapshot(&context, &assistant, &name, &current, &old_unit).await {
            // Nothing was changed yet: it goes on as it was. What is left of the copy is in nobody's way, but for its size.
            for done in [archive::discard(&assistant, &name).await, service::start(&context, &assistant).await] {
                if let Err(why) = done {
                    context.log(&format!("what was begun could not be undone: {}", why.client)).await?;
                }
            }
            return Err(error);
        }
        match switch(&context, &assistant, &target).await {
            Ok(()) => {
                instance::set_version(&app.db, &assistant.id(), &target.to_string()).await?;
                tell(&context, &assistant, Level::Info, &format!("upgraded from {current} to {target}")).await?;
                Ok(format!("upgraded from {current} to {target}"))
            }
            Err(error) => {
                context.log(&format!("{target} failed: {}", error.client)).await?;
                back(&context, &assistant, &name).await?;
                let told = format!("the upgrade to {target} failed and was taken back: {}", error.client);
                tell(&context, &assistant, Level::Error, &told).await?;
                Err(Error::new(error.kind, told).with_operator(error.operator.unwrap_or_default()))
            }
        }
    }
}

/// The unit that starts what it runs now.
async fn own_unit(assistant: &Assistant, current: &Version) -> Result<String> {
    let ours = async || Ok::<_, Error>(unit::read(assistant).await?.filter(|text| unit::is_ours(text)));
    let foreign = || Error::conflict("its unit is not ours: it cannot be upgraded from here");
    let there = ours().await?.ok_or_else(foreign)?;
    if unit::starts(assistant, current).await? {
        return Ok(there);
    }
    // A cleaning came into the middle of an attempt: nothing is left of that but its unit.
    unit::write(assistant, current).await?;
    ours().await?.ok_or_else(foreign)
}

/// What is gone back to, of the stopped instance.
async fn take_snapshot(
    context: &Context,
    assistant: &Assistant,
    name: &str,
    current: &Version,
    unit: &str,
) -> Result<()> {
    service::stop(context, assistant).await?;
    archive::snapshot(assistant, name, &current.to_string(), unit).await?;
    context.log(&format!("snapshot {name} of {current} taken")).await
}

async fn switch(context: &Context, assistant: &Assistant, target: &Version) -> Result<()> {
    unit::write(assistant, target).await?;
    service::start(context, assistant).await?;
    health::chat(assistant, target, CHAT).await?;
    context.log("it answered a chat").await
}

/// Everything as it was before: state, unit, version.
async fn back(context: &Context, assistant: &Assistant, name: &str) -> Result<()> {
    let kept = archive::find(assistant, name).await?;
    let kept = kept.ok_or_else(|| Error::internal("the snapshot to go back to is gone"))?;
    service::stop(context, assistant).await?;
    archive::restore(assistant, name).await?;
    context.log(&format!("snapshot {name} of {} put back", kept.version)).await?;
    run_again(context, assistant, &kept).await
}

/// The last part of going back: a worker may have gone away before it.
async fn run_again(context: &Context, assistant: &Assistant, kept: &archive::Snapshot) -> Result<()> {
    unit::put(assistant, &kept.unit).await?;
    instance::set_version(&context.app.db, &assistant.id(), &kept.version).await?;
    service::start(context, assistant).await
}

async fn tell(context: &Context, assistant: &Assistant, level: Level, detail: &str) -> Result<()> {
    let by = By::system().named(&context.task.source);
    let deed = Deed { action: Action::InstanceUpdate, level, target: &assistant.instance.id, detail };
    audit::record_alone(&context.app, &by, deed).await
}
