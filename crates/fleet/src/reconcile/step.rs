//! The steps that change an instance on its server, and their execution. Each is safe to repeat.

use base::{Error, Result};
use remote::host::{Actor, Command, systemd};

use crate::assistant::desired::Desired;
use crate::assistant::{Assistant, archive, config, service, unit, unix_user};
use crate::progress::Progress;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Write the configuration, and record what changed. What must follow is recorded before it is written.
    WriteConfig,
    /// Wait until the running gateway has taken over its configuration; restart it if it does not.
    Reload,
    /// Stop the gateway, free its port, start it.
    Restart,
    /// Start the gateway and wait until it is ready.
    Start,
    /// Stop the gateway and free its port. It is to be started again.
    Stop,
    /// The same, but nobody is to start it again.
    StopForGood,
    /// End everything that the instance's users run, and remove what they left outside of the home.
    Vacate,
    /// Move the home away, to where it is kept for some days.
    PutHomeAway,
    /// Remove the instance's users, whose home was moved away.
    RemoveUser,
    /// Make the user, the home and its folders, as far as they are missing.
    MakeUser,
    /// Write the unit for the version that the instance runs.
    WriteUnit,
    /// Let the unit start with the server.
    EnableUnit,
    /// Remove the unit.
    RemoveUnit,
}

impl Step {
    pub fn as_str(self) -> &'static str {
        match self {
            Step::WriteConfig => "write_config",
            Step::Reload => "reload",
            Step::Restart => "restart",
            Step::Start => "start",
            Step::Stop => "stop",
            Step::StopForGood => "stop_for_good",
            Step::Vacate => "vacate",
            Step::PutHomeAway => "put_home_away",
            Step::RemoveUser => "remove_user",
            Step::MakeUser => "make_user",
            Step::WriteUnit => "write_unit",
            Step::EnableUnit => "enable_unit",
            Step::RemoveUnit => "remove_unit",
        }
    }
}

/// Takes a step of the service.
pub async fn serve(progress: &impl Progress, assistant: &Assistant, step: Step) -> Result<()> {
    match step {
        Step::Reload => {
            if !service::reload(progress, assistant).await? {
                progress.log("the running assistant did not take it over: it is restarted").await?;
                service::restart(progress, assistant).await?;
            }
            Ok(())
        }
        Step::Restart => service::restart(progress, assistant).await,
        Step::Start => service::start(progress, assistant).await,
        Step::Stop => service::stop(progress, assistant).await,
        Step::StopForGood => service::stop_for_good(progress, assistant).await,
        other => Err(Error::internal(format_args!("{other:?} is no step of the service"))),
    }
}

/// What the steps of an operation need.
pub struct Work<'a, P> {
    pub progress: &'a P,
    pub assistant: Assistant,
    /// What is written. An operation that writes nothing has none.
    pub desired: Option<Desired>,
    /// The name under which the home is put away.
    pub archive: String,
}

impl<P: Progress> Work<'_, P> {
    pub async fn take_all(&mut self, steps: &[Step]) -> Result<()> {
        for step in steps {
            self.take(*step).await?;
        }
        Ok(())
    }

    pub async fn take(&mut self, step: Step) -> Result<()> {
        let (progress, app) = (self.progress, self.progress.app());
        let (host, unit_name) = (&self.assistant.host, &self.assistant.place.unit);
        match step {
            Step::Reload | Step::Restart | Step::Start | Step::Stop | Step::StopForGood => {
                serve(progress, &self.assistant, step).await
            }
            Step::WriteConfig => {
                let desired = self.desired()?;
                let edit = |document: &mut openclaw::Document| desired.apply(document);
                config::change(progress, &self.assistant, &desired.version, &edit).await.map(drop)
            }
            Step::Vacate => {
                unix_user::vacate(&self.assistant, &unix_user::old(app, &self.assistant).await?).await?;
                progress.log("nothing of the last holder runs any more, and nothing is left outside of the home").await
            }
            Step::PutHomeAway => {
                archive::put_away(&self.assistant, &self.archive).await?;
                let kept = self.assistant.place.archive();
                progress.log(&format!("what was there is kept in {kept} for {} days", archive::DAYS)).await
            }
            Step::RemoveUser => {
                let old = unix_user::old(app, &self.assistant).await?;
                unix_user::remove(app, &self.assistant, &old).await?;
                self.assistant.place.owner = None;
                Ok(())
            }
            Step::MakeUser => {
                unix_user::make(app, &mut self.assistant).await?;
                let place = &self.assistant.place;
                progress.log(&format!("home {} of {}", place.home, place.owner.as_deref().unwrap_or_default())).await
            }
            Step::WriteUnit => {
                let written = unit::write(app, &self.assistant, &self.desired()?.version).await?;
                progress.log(&format!("unit {unit_name} {}", if written { "written" } else { "is there" })).await
            }
            Step::EnableUnit => Ok(systemd::enable(host, unit_name).await.map(drop)?),
            Step::RemoveUnit => {
                systemd::disable(host, unit_name).await?;
                let remove = Command::script("remove-unit-file", &[r#"rm -f -- "$1" "$1".tidepool-[0-9]*"#]);
                host.succeed(&remove.arg(unit_name.path()).by(Actor::Root)).await?;
                systemd::daemon_reload(host).await?;
                progress.log(&format!("unit {unit_name} removed")).await
            }
        }
    }

    fn desired(&self) -> Result<&Desired> {
        self.desired.as_ref().ok_or_else(|| Error::internal("an operation that writes needs to know what"))
    }

    /// The last part of an operation that started the instance: OpenClaw kept what was written, and all of it is there.
    pub async fn confirm(&self) -> Result<()> {
        let desired = self.desired()?;
        let edit = |document: &mut openclaw::Document| desired.apply(document);
        config::confirm(self.progress.app(), &self.assistant, &desired.version, &edit).await?;
        desired.was_applied(self.progress.app(), &self.assistant).await
    }
}
