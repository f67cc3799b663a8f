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
use crate::assistant::{Assistant, files, install, service, unit};
use crate::reconcile::operation::{self, There, UnitOwner};
use crate::reconcile::step::{Step, Work};
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
    let assistant = Assistant::open(app, instance_id).await?;
    if assistant.instance.assigned_user_id.as_ref() != Some(user_id) {
        return Ok("the instance is not theirs any more: nothing was done".into());
    }
    let user = user::find(&app.db, user_id).await?.ok_or(Kind::NotFound)?;
    let unit_user = service::state(&assistant).await?.user;
    let version = install::of_instance(app, &assistant).await?;
    let is_ours = unit::read(&assistant).await?.is_some_and(|text| unit::is_ours(&text));
    let is_unit_of_owner = !is_ours || unit_user == assistant.place.owner;
    let there = There { unit: UnitOwner::Platform, has_home: assistant.place.owner.is_some(), is_unit_of_owner };
    let desired = Some(Desired::of(app, &assistant, &version).await?);
    let mut work = Work { progress: context, assistant, desired, archive: context.task.id.to_string() };
    work.take_all(&operation::init(there)).await?;
    files::write_guide(&work.assistant, &user).await?;
    context.log(&format!("{} written", files::GUIDE)).await?;
    if !pack.is_empty() {
        bring_files(context, &work.assistant, &version, pack).await?;
    }
    work.take(Step::Stop).await?;
    context.log(&format!("prepared in {:.1} s", began.elapsed().as_secs_f32())).await?;
    work.take(Step::Start).await?;
    work.confirm().await?;
    Ok(format!("ready after {:.1} s", began.elapsed().as_secs_f32()))
}
