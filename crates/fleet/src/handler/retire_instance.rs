//! Take the instance off its server: its unit stopped and removed, its home kept for seven days, its user gone with all that it left.
//! A home or user that the platform did not make stays.

use base::{Error, Kind, Result};
use people::{chat_binding, holder};
use queue::task::Run;
use remote::host::runner::Runner;
use store::instance;

use crate::App;
use crate::assistant::{Assistant, isolation, unit};
use crate::reconcile::operation::{self, There, UnitOwner};
use crate::reconcile::step::Work;
use crate::task::{Context, RetireInstance};

impl Run<App> for RetireInstance {
    async fn run(self, context: Context) -> Result<String> {
        let summary = self.work(&context).await?;
        chat_binding::clear_again(&context.app, &context.task, &self.instance_id).await?;
        Ok(summary)
    }
}

impl RetireInstance {
    async fn work(&self, context: &Context) -> Result<String> {
        let app = &context.app;
        let id = self.instance_id.clone();
        if instance::find(&app.db, &id).await?.is_some() {
            return Err(Error::conflict("the instance is not deleted: it is not taken off its server"));
        }
        let instance = instance::find_even_deleted(&app.db, &id).await?.ok_or(Kind::NotFound)?;
        let Some(assistant) = Assistant::of(app, instance).await? else {
            return Ok("it was never on a server".into());
        };
        let what = match &assistant.place.runner {
            Runner::Unit(unit) => format!("unit {unit}"),
            Runner::Container { id } => format!("container {id}"),
            Runner::Process { .. } => "its process".to_owned(),
        };
        let state = assistant.service().await?;
        let isolation = isolation::of(app, &assistant.instance, &assistant.seen(&state)).await?;
        let unit = match state.is_loaded {
            // Nothing starts it, so nobody could start it again.
            _ if matches!(assistant.place.runner, Runner::Process { .. }) => UnitOwner::Stranger,
            false => UnitOwner::Nobody,
            true if unit::read(&assistant).await?.is_some_and(|text| unit::is_ours(&text)) => UnitOwner::Platform,
            true if assistant.instance.is_adopted() => UnitOwner::Adopted,
            true => UnitOwner::Stranger,
        };
        let there = There { unit, has_home: assistant.place.owner.is_some(), is_unit_of_owner: true };
        let runs_as = assistant.seen(&state);
        let mut work = Work { progress: context, assistant, desired: None, archive: context.task.id.to_string() };
        work.take_all(&operation::retire_service(there)).await?;
        match unit {
            UnitOwner::Adopted => context.log(&format!("{what} is not ours: it is stopped, and stays")).await?,
            UnitOwner::Stranger => {
                context.log(&format!("{what} is not ours, and nobody adopted it: it is left alone")).await?;
            }
            UnitOwner::Platform | UnitOwner::Nobody => {}
        }
        if !isolation.may_be_cleaned() {
            let why = holder::refusal(isolation, runs_as.runs_as());
            return Ok(format!("taken off its server; its home stays: {why}"));
        }
        work.take_all(&operation::retire_home(there)).await?;
        Ok("taken off its server".into())
    }
}
