//! A change of how an instance runs that is tried, and taken back where it fails: its state is copied while it is stopped, with its unit and
//! its version; to go back is to put all of that in its place.

use std::time::Duration;

use base::id::TaskId;
use base::{Error, Result};
use openclaw::Version;
use remote::host::file::Hash;
use remote::host::users;
use store::{instance, reconcile};

use super::{Assistant, archive, cell, health, install, pending, service, unit};
use crate::progress::Progress;

/// The first message to a cold assistant takes its time.
pub const CHAT: Duration = Duration::from_secs(90);

/// What an earlier attempt of the same task left. What it changed is taken back here; the error says that, and ends this attempt.
///
/// The snapshot is older than what was written since. So it is gone back to only while the unit is the very one which that attempt wrote:
/// anything else means that the instance was changed or cleaned in between, and its state is newer than the copy.
pub async fn settle_earlier(
    progress: &impl Progress,
    assistant: &Assistant,
    task: &TaskId,
    name: &str,
    change: &str,
) -> Result<()> {
    let Some(kept) = archive::find(assistant, name).await? else { return Ok(()) };
    let there = unit::read(assistant).await?.unwrap_or_default();
    let is_the_attempts = match hashes(&kept).0 {
        // A release before this one did not write it down; its upgrades changed the version.
        "" => !there.contains(&install::program(&parse(&kept.version)?)),
        next => there != kept.unit && Hash::of(there.as_bytes()).as_str() == next,
    };
    if kept.used {
        // It was taken back, perhaps not to its end.
        if is_the_attempts {
            run_again(progress, assistant, &kept).await?;
        } else {
            cell::record_there(progress.app(), assistant).await?;
            if pending::of(progress.app(), assistant).await?.pending.is_start() {
                service::start(progress, assistant).await?;
            }
            over(progress, assistant).await?;
        }
        return Err(Error::conflict(format!("{change} failed and was taken back; see the first attempt")));
    }
    if is_the_attempts && pending::of(progress.app(), assistant).await?.operation.as_ref() != Some(task) {
        // It was accepted: other tasks may have written since.
        return Ok(());
    }
    if is_the_attempts {
        progress.log("an attempt was broken off: back to before it").await?;
        go_back(progress, assistant, name).await?;
        return Err(Error::conflict(format!("{change} was broken off and taken back")));
    }
    // Nothing is gone back to from here on.
    over(progress, assistant).await?;
    if there != kept.unit {
        return Err(Error::conflict(format!("{change} was broken off, and something else changed its unit since")));
    }
    // Nothing was changed yet. It may have run since the copy was begun: the copy may be torn, and is not gone back to.
    archive::discard(assistant, name).await
}

/// The instance is as it was, or as it was to be: other tasks may work on it.
pub async fn over(progress: &impl Progress, assistant: &Assistant) -> Result<()> {
    Ok(reconcile::set_operation(&progress.app().db, &assistant.id(), None).await?)
}

/// The hashes of the unit that the attempt writes, and of the one that was written before it.
fn hashes(kept: &archive::Snapshot) -> (&str, &str) {
    kept.next.split_once(' ').unwrap_or((&kept.next, ""))
}

fn parse(version: &str) -> Result<Version> {
    version.parse().map_err(|why: String| Error::internal(why))
}

/// Stops the instance and copies what is gone back to. Where that fails, nothing was changed, and it goes on as it was. `next` is the unit
/// that it gets. Until it is over, no other task of the instance writes what would be lost by going back.
pub async fn begin(
    progress: &impl Progress,
    assistant: &Assistant,
    task: &TaskId,
    name: &str,
    current: &Version,
    unit: &str,
    next: &str,
) -> Result<()> {
    reconcile::set_operation(&progress.app().db, &assistant.id(), Some(task)).await?;
    let taken = async {
        service::stop(progress, assistant).await?;
        let before = store::cell::find(&progress.app().db, &assistant.id()).await?.unit_hash;
        let hashes = format!("{} {before}", Hash::of(next.as_bytes()).as_str());
        archive::snapshot(assistant, name, &current.to_string(), unit, &hashes).await?;
        progress.log(&format!("snapshot {name} of {current} taken")).await
    };
    let Err(error) = taken.await else { return Ok(()) };
    over(progress, assistant).await?;
    // What is left of the copy is in nobody's way, but for its size.
    for done in [archive::discard(assistant, name).await, service::start(progress, assistant).await] {
        if let Err(why) = done {
            progress.log(&format!("what was begun could not be undone: {}", why.client)).await?;
        }
    }
    Err(error)
}

/// Starts the changed instance. It is accepted when it is ready and has answered a chat.
pub async fn accept(progress: &impl Progress, assistant: &Assistant, version: &Version) -> Result<()> {
    service::start(progress, assistant).await?;
    health::chat(assistant, version, CHAT).await?;
    progress.log("it answered a chat").await
}

/// Everything as it was before: state, unit, version.
pub async fn go_back(progress: &impl Progress, assistant: &Assistant, name: &str) -> Result<()> {
    let kept = archive::find(assistant, name).await?;
    let kept = kept.ok_or_else(|| Error::internal("the snapshot to go back to is gone"))?;
    service::stop(progress, assistant).await?;
    // What is unpacked lies beside what is there: together they may be more than the home may take. The limit is set again with the unit.
    users::limit_disk(&assistant.host, &assistant.place.home, 0).await?;
    archive::restore(assistant, name).await?;
    progress.log(&format!("snapshot {name} of {} put back", kept.version)).await?;
    run_again(progress, assistant, &kept).await
}

/// The last part of going back: a worker may have gone away before it.
async fn run_again(progress: &impl Progress, assistant: &Assistant, kept: &archive::Snapshot) -> Result<()> {
    unit::put(assistant, &kept.unit).await?;
    // What was known of it before: somebody may have changed it by hand.
    unit::note(progress.app(), assistant, hashes(kept).1).await?;
    instance::set_version(&progress.app().db, &assistant.id(), &kept.version).await?;
    // State and unit are those of before: what others write from here on is not lost, also if it does not start.
    over(progress, assistant).await?;
    service::start(progress, assistant).await?;
    cell::record_there(progress.app(), assistant).await
}
