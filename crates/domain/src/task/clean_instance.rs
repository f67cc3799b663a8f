//! Remove the traces of whoever had the instance: everything is moved away and kept for seven days, and it begins anew, unclaimed.

use base::id::InstanceId;
use base::{Kind, Result};
use openclaw::config::Bot;
use remote::host::systemd;
use store::instance;

use super::CleanInstance;
use super::kind::{Context, Run};
use crate::assistant::{Assistant, archive, config, files, install, service, settings};
use crate::chat_binding;

impl Run for CleanInstance {
    async fn run(self, context: Context) -> Result<String> {
        let told = self.work(&context).await?;
        chat_binding::clear_again(&context, &self.instance_id).await?;
        Ok(told)
    }
}

impl CleanInstance {
    async fn work(&self, context: &Context) -> Result<String> {
        let app = &context.app;
        let instance = instance::find(&app.db, &InstanceId::named(&self.instance_id)).await?.ok_or(Kind::NotFound)?;
        let Some(mut assistant) = Assistant::of(app, instance).await? else {
            return Ok("it was never on a server: there is nothing to clean".into());
        };
        let version = install::of_instance(app, &assistant).await?;
        let has_unit = systemd::state(&assistant.host, &assistant.place.unit).await?.is_loaded;
        if !has_unit && !files::has_state(&assistant).await? {
            return Ok("it is not on its server: there is nothing to clean".into());
        }
        if has_unit {
            service::stop(context, &assistant).await?;
        }
        archive::put_away(&assistant, &context.task.id).await?;
        context
            .log(&format!("what was there is kept in {} for {} days", assistant.place.archive(), archive::DAYS))
            .await?;
        assistant.place.owner = Some(files::make_home(&assistant).await?);

        let mut all = settings::of(app, &assistant).await?;
        all.bot = all.bot.or(Some(Bot::Off));
        let wishes = settings::wishes(&assistant.instance)?;
        let told = |document: &mut openclaw::Document| {
            settings::merge(document, &wishes)?;
            all.apply(document, &version).map(drop)
        };
        config::change(context, &assistant, &version, &told).await?;
        if has_unit {
            service::start(context, &assistant).await?;
            config::confirm(app, &assistant, &version, &told).await?;
        }
        Ok("cleaned".into())
    }
}
