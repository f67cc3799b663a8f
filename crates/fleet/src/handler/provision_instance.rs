//! Make the instance on its server: home, Unix user, configuration, unit, key, start.

use base::{Error, Kind, Result};
use queue::task::Run;
use remote::host::metrics;
use store::instance::{self, Instance, Isolation, Runner};

use crate::assistant::desired::Desired;
use crate::assistant::isolation::{self, Seen};
use crate::assistant::{Assistant, install, place};
use crate::reconcile::operation;
use crate::reconcile::step::{Step, Work};
use crate::task::{Context, NOT_MAIN, ProvisionInstance};
use crate::{App, host};

fn refuse_adopted(instance: &Instance) -> Result<()> {
    match instance.runner != Runner::Unit || instance.isolation == Isolation::Adopted {
        true => Err(Error::conflict("it was adopted: the platform makes nothing in its place")),
        false => Ok(()),
    }
}

impl Run<App> for ProvisionInstance {
    async fn run(self, context: Context) -> Result<String> {
        let app = &context.app;
        let id = self.instance_id.clone();
        let instance = instance::find(&app.db, &id).await?.ok_or(Kind::NotFound)?;
        if instance.is_main {
            return Err(Error::conflict(NOT_MAIN));
        }
        refuse_adopted(&instance)?;
        let server = crate::server::find(app, &instance.server_id).await?;
        let host = host::connect(app, &server).await?;

        let memory = metrics::collect(&host).await?.memory_available;
        let mib = |bytes: u64| bytes >> 20;
        context.log(&format!("{} MiB of memory are free", mib(memory))).await?;
        if memory < app.assistants.least_memory {
            let least = mib(app.assistants.least_memory);
            return Err(Error::conflict(format!(
                "the server has {} MiB of memory free; an assistant needs {least}",
                mib(memory)
            )));
        }

        let version = install::version_of(instance.openclaw_version.as_deref());
        let version = version.unwrap_or_else(|| install::desired_version(app, &server));
        let said = install::ensure(app, &server, &host, &version).await?;
        context.log(&said.to_string()).await?;

        let instance = place::give_home(app, &host, &instance).await?;
        // It may have been adopted meanwhile.
        refuse_adopted(&instance)?;
        let assistant = Assistant::of(app, instance).await?;
        let assistant = assistant.ok_or_else(|| Error::internal("an instance without a home"))?;
        let archive = context.task.id.to_string();
        let mut work = Work { progress: &context, assistant, desired: None, archive };
        work.take(Step::MakeUser).await?;
        let assistant = &work.assistant;
        let runs_as = assistant.place.owner.clone().unwrap_or_default();
        let login = assistant.host.user().to_owned();
        let seen = Seen { login, home_owner: Some(runs_as.clone()), unit_user: Some(runs_as.clone()) };
        if isolation::record(app, &assistant.instance, &seen).await? == Isolation::Shared {
            let message =
                "the home is root's, the login user's or another instance's: the platform makes no instance there";
            return Err(Error::conflict(message).with_operator(format_args!("{} of {runs_as}", assistant.place.home)));
        }

        work.desired = Some(Desired::of(app, assistant, &version).await?);
        instance::set_version(&app.db, &id, &version.to_string()).await?;
        work.take_all(&operation::provision()).await?;
        work.confirm().await?;
        Ok(format!("runs OpenClaw {version} in {}", work.assistant.place.home))
    }
}
