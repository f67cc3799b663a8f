//! Remove the traces of whoever had the instance: all that ran or lies outside of the home is removed, the home is moved away and kept for
//! seven days, and the instance begins again with another Unix user. What the platform did not make is left as it is.

use base::id::InstanceId;
use base::{Kind, Result};
use people::task::CleanInstance;
use people::{chat_binding, holder};
use queue::task::Run;
use remote::host::systemd;
use store::instance;

use crate::App;
use crate::assistant::desired::Desired;
use crate::assistant::isolation::{self, Seen};
use crate::assistant::{Assistant, archive, config, install, service, unit, unix_user};
use crate::task::Context;

impl Run<App> for CleanInstance {
    async fn run(self, context: Context) -> Result<String> {
        let summary = clean(&context, &self.instance_id).await?;
        chat_binding::clear_again(&context.app, &context.task, &self.instance_id).await?;
        Ok(summary)
    }
}

async fn clean(context: &Context, id: &InstanceId) -> Result<String> {
    let app = &context.app;
    let instance = instance::find(&app.db, id).await?.ok_or(Kind::NotFound)?;
    let Some(mut assistant) = Assistant::of(app, instance).await? else {
        return Ok("it was never on a server: there is nothing to clean".into());
    };
    let version = install::of_instance(app, &assistant).await?;
    let state = systemd::state(&assistant.host, &assistant.place.unit).await?;
    let has_unit = state.is_loaded;
    let old = unix_user::old(app, &assistant).await?;
    if assistant.place.owner.is_some() || has_unit {
        let isolation = isolation::record(app, &assistant.instance, &assistant.seen(&state)).await?;
        if !isolation.may_be_cleaned() {
            return Ok(format!("it is not cleaned: {}", holder::refusal(isolation, assistant.seen(&state).runs_as())));
        }
    }
    if !has_unit && assistant.place.owner.is_none() && old.is_empty() {
        return Ok("it is not on its server: there is nothing to clean".into());
    }
    if has_unit {
        service::stop(context, &assistant).await?;
    }
    unix_user::vacate(&assistant, &old).await?;
    context.log("nothing of the last holder runs any more, and nothing is left outside of the home").await?;
    archive::put_away(&assistant, &format!("{}-{}", context.task.id, context.task.attempts)).await?;
    context.log(&format!("what was there is kept in {} for {} days", assistant.place.archive(), archive::DAYS)).await?;
    unix_user::remove(app, &assistant, &old).await?;
    assistant.place.owner = None;
    unix_user::make(app, &mut assistant).await?;
    let runs_as = assistant.place.owner.clone().unwrap_or_default();
    context.log(&format!("home {} of {runs_as}", assistant.place.home)).await?;
    if has_unit {
        unit::write(app, &assistant, &version).await?;
    }
    let seen = Seen {
        login: assistant.host.user().to_owned(),
        home_owner: Some(runs_as.clone()),
        unit_user: has_unit.then_some(runs_as),
    };
    isolation::record(app, &assistant.instance, &seen).await?;

    let desired = Desired::of(app, &assistant, &version).await?.without_foreign_bot();
    let edit = |document: &mut openclaw::Document| desired.apply(document);
    config::change(context, &assistant, &version, &edit).await?;
    if has_unit {
        service::start(context, &assistant).await?;
        config::confirm(app, &assistant, &version, &edit).await?;
    }
    Ok("cleaned".into())
}
