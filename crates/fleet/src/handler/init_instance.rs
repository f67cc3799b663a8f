//! An employee claimed the instance: write its configuration and guide, start it.

use std::time::Instant;

use base::id::{InstanceId, UserId};
use base::{Kind, Result};
use people::task::InitInstance;
use queue::task::Run;
use store::marketplace::File;
use store::user;

use super::apply_marketplace_item::bring_files;
use crate::App;
use crate::assistant::desired::Desired;
use crate::assistant::{Assistant, config, files, install, service, unit, unix_user};
use crate::task::Context;

impl Run<App> for InitInstance {
    async fn run(self, context: Context) -> Result<String> {
        init(&context, &self.instance_id, &self.user_id, &[]).await
    }
}

/// Makes the instance the user's, with the files of a role pack where there is one.
pub(super) async fn init(
    context: &Context,
    instance_id: &InstanceId,
    user_id: &UserId,
    pack: &[File],
) -> Result<String> {
    let app = &context.app;
    let began = Instant::now();
    let mut assistant = Assistant::open(app, instance_id).await?;
    if assistant.instance.assigned_user_id.as_ref() != Some(user_id) {
        return Ok("the instance is not theirs any more: nothing was done".into());
    }
    let user = user::find(&app.db, user_id).await?.ok_or(Kind::NotFound)?;
    service::state(&assistant).await?;
    let version = install::of_instance(app, &assistant).await?;
    if unix_user::make(app, &mut assistant).await? {
        // Its home was gone, and so was its user: its unit starts it as the new one.
        unit::write(app, &assistant, &version).await?;
    }

    let desired = Desired::of(app, &assistant, &version).await?;
    let edit = |document: &mut openclaw::Document| desired.apply(document);
    config::change(context, &assistant, &version, &edit).await?;
    files::write_guide(&assistant, &user).await?;
    context.log(&format!("{} written", files::GUIDE)).await?;
    if !pack.is_empty() {
        bring_files(context, &assistant, &version, pack).await?;
    }
    service::stop(context, &assistant).await?;
    context.log(&format!("prepared in {:.1} s", began.elapsed().as_secs_f32())).await?;
    service::start(context, &assistant).await?;
    config::confirm(app, &assistant, &version, &edit).await?;
    Ok(format!("ready after {:.1} s", began.elapsed().as_secs_f32()))
}
