//! Take the instance off its server: its unit stopped and removed, its home kept for seven days, its user gone with all that it left.
//! A home or user that the platform did not make stays.

use base::{Error, Kind, Result};
use people::{chat_binding, holder};
use queue::task::Run;
use remote::host::{Actor, Command, systemd};
use store::instance;

use crate::App;
use crate::assistant::{Assistant, archive, isolation, service, unit, unix_user};
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
        let (host, name) = (&assistant.host, &assistant.place.unit);
        let state = systemd::state(host, name).await?;
        let isolation = isolation::of(app, &assistant.instance, &assistant.seen(&state)).await?;
        if state.is_loaded {
            match unit::read(&assistant).await? {
                Some(text) if unit::is_ours(&text) => {
                    service::stop_for_good(context, &assistant).await?;
                    systemd::disable(host, name).await?;
                    let remove = Command::script("remove-unit-file", &[r#"rm -f -- "$1" "$1".tidepool-[0-9]*"#]);
                    host.succeed(&remove.arg(name.path()).by(Actor::Root)).await?;
                    systemd::daemon_reload(host).await?;
                    context.log(&format!("unit {name} removed")).await?;
                }
                _ if assistant.instance.is_unit_adopted() => {
                    service::stop_for_good(context, &assistant).await?;
                    context.log(&format!("unit {name} is not ours: it is stopped, and stays")).await?;
                }
                _ => context.log(&format!("unit {name} is not ours, and nobody adopted it: it is left alone")).await?,
            }
        }
        if !isolation.may_be_cleaned() {
            let why = holder::refusal(isolation, assistant.seen(&state).runs_as());
            return Ok(format!("taken off its server; its home stays: {why}"));
        }
        let old = unix_user::old(app, &assistant).await?;
        unix_user::vacate(&assistant, &old).await?;
        if assistant.place.owner.is_some() {
            archive::put_away(&assistant, &context.task.id).await?;
            context.log(&format!("what was there is kept in {}", assistant.place.archive())).await?;
        }
        unix_user::remove(app, &assistant, &old).await?;
        Ok("taken off its server".into())
    }
}
