//! A change of how an instance runs that is tried, and taken back where it fails: its state is copied while it is stopped, with its unit and
//! its version; to go back is to put all of that in its place.

use std::time::Duration;

use base::{Error, Result};
use openclaw::Version;
use store::instance;

use super::{Assistant, archive, health, service, unit};
use crate::task::Context;

/// The first message to a cold assistant takes its time.
const CHAT: Duration = Duration::from_secs(90);

/// Stops the instance and copies what is gone back to. Where that fails, nothing was changed, and it goes on as it was.
pub async fn begin(context: &Context, assistant: &Assistant, name: &str, current: &Version, unit: &str) -> Result<()> {
    let taken = async {
        service::stop(context, assistant).await?;
        archive::snapshot(assistant, name, &current.to_string(), unit).await?;
        context.log(&format!("snapshot {name} of {current} taken")).await
    };
    let Err(error) = taken.await else { return Ok(()) };
    // What is left of the copy is in nobody's way, but for its size.
    for done in [archive::discard(assistant, name).await, service::start(context, assistant).await] {
        if let Err(why) = done {
            context.log(&format!("what was begun could not be undone: {}", why.client)).await?;
        }
    }
    Err(error)
}

/// Starts the changed instance. It is accepted when it is ready and has answered a chat.
pub async fn accept(context: &Context, assistant: &Assistant, version: &Version) -> Result<()> {
    service::start(context, assistant).await?;
    health::chat(assistant, version, CHAT).await?;
    context.log("it answered a chat").await
}

/// Everything as it was before: state, unit, version.
pub async fn go_back(context: &Context, assistant: &Assistant, name: &str) -> Result<()> {
    let kept = archive::find(assistant, name).await?;
    let kept = kept.ok_or_else(|| Error::internal("the snapshot to go back to is gone"))?;
    service::stop(context, assistant).await?;
    archive::restore(assistant, name).await?;
    context.log(&format!("snapshot {name} of {} put back", kept.version)).await?;
    run_again(context, assistant, &kept).await
}

/// The last part of going back: a worker may have gone away before it.
pub async fn run_again(context: &Context, assistant: &Assistant, kept: &archive::Snapshot) -> Result<()> {
    unit::put(assistant, &kept.unit).await?;
    instance::set_version(&context.app.db, &assistant.id(), &kept.version).await?;
    service::start(context, assistant).await
}
