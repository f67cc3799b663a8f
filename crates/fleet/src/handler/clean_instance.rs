//! Remove the traces of whoever had the instance: all that ran or lies outside of the home is removed, the home is moved away and kept for
//! seven days, and the instance begins again with another Unix user. What the platform did not make is left as it is.

use base::id::InstanceId;
use base::{Kind, Result};
use people::task::CleanInstance;
use people::{chat_binding, holder};
use queue::task::Run;
use store::instance;

use crate::App;
use crate::assistant::desired::Desired;
use crate::assistant::isolation::{self, Seen};
use crate::assistant::{Assistant, install, unit, unix_user};
use crate::reconcile::operation::{self, There, UnitOwner};
use crate::reconcile::step::{Step, Work};
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
    let Some(assistant) = Assistant::of(app, instance).await? else {
        return Ok("it was never on a server: there is nothing to clean".into());
    };
    let version = install::of_instance(app, &assistant).await?;
    let state = assistant.service().await?;
    let has_unit = state.is_loaded;
    let old = unix_user::old(app, &assistant).await?;
    if assistant.place.owner.is_some() || has_unit {
        let isolation = isolation::record(app, &assistant.instance, &assistant.seen(&state)).await?;
        if !isolation.may_be_cleaned() && !is_broken_off(&assistant, &old).await? {
            return Ok(format!("it is not cleaned: {}", holder::refusal(isolation, assistant.seen(&state).runs_as())));
        }
    }
    if !has_unit && assistant.place.owner.is_none() && old.is_empty() {
        return Ok("it is not on its server: there is nothing to clean".into());
    }
    let unit = if has_unit { UnitOwner::Platform } else { UnitOwner::Nobody };
    let there = There { unit, has_home: assistant.place.owner.is_some(), is_unit_of_owner: true };
    let archive = format!("{}-{}", context.task.id, context.task.attempts);
    let mut work = Work { progress: context, assistant, desired: None, archive };
    for step in operation::clean(there) {
        work.take(step).await?;
        if step == Step::MakeUser {
            record_user(app, &work.assistant, has_unit).await?;
            if work.assistant.instance.own_llm {
                // The provider of its own was in what is put away now.
                instance::set_own_llm(&app.db, id, false).await?;
                work.assistant.instance.own_llm = false;
            }
            // Only now: what it takes to make a key must not keep the last holder's home where it is.
            work.desired = Some(Desired::of(app, &work.assistant, &version).await?.without_foreign_bot());
        }
    }
    if has_unit {
        work.confirm().await?;
    }
    Ok("cleaned".into())
}

/// Whether an earlier attempt came as far as a new user and home, and not to the unit that starts it as that user: both are
/// the platform's, although they do not fit together.
async fn is_broken_off(assistant: &Assistant, made: &[unix_user::Old]) -> Result<bool> {
    let is_our_home = made.iter().any(|user| assistant.place.owner.as_ref() == Some(&user.name));
    Ok(is_our_home && unit::read(assistant).await?.is_none_or(|text| unit::is_ours(&text)))
}

/// Records as whom it runs from now on.
async fn record_user(app: &App, assistant: &Assistant, has_unit: bool) -> Result<()> {
    let runs_as = assistant.place.owner.clone().unwrap_or_default();
    let login = assistant.host.user().to_owned();
    let seen = Seen { login, home_owner: Some(runs_as.clone()), unit_user: has_unit.then_some(runs_as) };
    isolation::record(app, &assistant.instance, &seen).await.map(drop)
}
