//! Brings an instance on its server to the state that our records want: what they want (`assistant::desired`), what
//! there is (`observed`), which steps lead from one to the other (`plan`), and the loop that takes them (here). Operations
//! whose order matters, such as a cleaning, have plans of their own (`operation`), made of the same steps (`step`).
//! `compare` shows all of it to people, `pass` compares the fleet periodically, and `hold` leaves an instance alone.
//!
//! After each step the server is observed again, and the rest is planned from what was found. So a worker that goes away
//! between two steps leaves nothing behind that the next one would have to know.

pub mod compare;
pub mod hold;
mod observed;
pub mod operation;
pub mod pass;
mod plan;
pub mod step;

use base::{Error, Kind, Result};
use openclaw::{Document, Version};

use crate::App;
use crate::assistant::desired::Desired;
use crate::assistant::pending::{self, Pending};
use crate::assistant::{Assistant, config, service};
use crate::progress::Progress;
pub use observed::{Observed, Service};
pub use plan::{Difference, plan};
use step::Step;

/// A plan has at most three steps. More rounds than this mean that somebody undoes them.
const MOST_STEPS: usize = 8;

/// What is to become of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// It stays as it is: a gateway that somebody stopped stays down.
    Keep,
    /// It runs in the end.
    Run,
    /// It is restarted, even if nothing differs.
    Restart,
}

/// Whether a running gateway may be restarted for a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restarts {
    Allowed,
    /// Only what a running gateway takes over by itself is written. The rest waits.
    Wait,
}

/// Brings everything that our records want to the instance. Returns whether there was anything to do.
pub async fn bring(progress: &impl Progress, assistant: &Assistant, desired: &Desired, wish: Wish) -> Result<bool> {
    let done = edit(progress, assistant, &desired.version, wish, &|document| desired.apply(document)).await?;
    desired.was_applied(progress.app(), assistant).await?;
    Ok(done)
}

/// What came of a reconcile.
pub struct Brought {
    /// Whether there was anything to do.
    pub done: bool,
    /// Whether something is left that needs a restart.
    pub waits: bool,
}

/// The same, but a difference that needs a restart waits if it must not be restarted.
pub async fn bring_within(
    progress: &impl Progress,
    assistant: &Assistant,
    desired: &Desired,
    restarts: Restarts,
) -> Result<Brought> {
    let app = progress.app();
    let runs = Observed::of(app, assistant).await?.service == Service::Runs;
    if restarts == Restarts::Allowed || !runs {
        return Ok(Brought { done: bring(progress, assistant, desired, Wish::Keep).await?, waits: false });
    }
    if config::read(assistant).await?.is_none() {
        // It runs without the file: what it has loaded is not known, so only a restart brings it all.
        return Ok(Brought { done: false, waits: true });
    }
    let hot = |document: &mut Document| {
        let before = document.clone();
        desired.apply(document)?;
        openclaw::config::take_back_cold(&before, document)
    };
    let edited = edit_within(progress, assistant, &desired.version, Wish::Keep, restarts, &hot).await?;
    let found = config::read(assistant).await?.ok_or_else(|| Error::conflict("the configuration is gone"))?;
    let waits = edited.waits || !desired.changes(&found.document)?.is_empty();
    let done = edited.done;
    if !waits {
        desired.was_applied(app, assistant).await?;
    }
    Ok(Brought { done, waits })
}

/// A restart that is prepared: from here on it is pending, and any task that comes to the instance finishes it.
pub struct Restart {
    /// `None` if the configuration is left as it is: the platform never wrote it, or OpenClaw would refuse the result.
    desired: Option<Desired>,
}

impl Restart {
    /// A configuration that would be refused is found here, before anything is stopped. If it is only what our records
    /// want that would be refused, the instance is restarted with the file that it has.
    pub async fn prepare(app: &App, assistant: &Assistant, version: &Version) -> Result<Restart> {
        let mut desired = None;
        if !assistant.instance.config_hash.is_empty() {
            let ours = Desired::known(app, assistant, version).await?;
            match check(assistant, version, &|document| ours.apply(document)).await {
                Ok(()) => desired = Some(ours),
                Err(error) if error.kind == Kind::Conflict => {}
                Err(error) => return Err(error),
            }
        }
        if desired.is_none() {
            service::state(assistant).await?;
            if let Some(found) = config::read(assistant).await? {
                config::require_valid(assistant, version, &found.document).await?;
            }
        }
        pending::set(app, assistant, Pending::Restart).await?;
        Ok(Restart { desired })
    }

    /// Restarts the instance, with everything that our records want.
    pub async fn go(self, progress: &impl Progress, assistant: &Assistant) -> Result<()> {
        match &self.desired {
            Some(desired) => bring(progress, assistant, desired, Wish::Keep).await.map(drop),
            None => finish(progress, assistant).await.map(drop),
        }
    }
}

/// Checks what would be written, and records that the instance is to be restarted.
pub async fn prepare_restart(
    app: &App,
    assistant: &Assistant,
    version: &Version,
    editing: config::Editing<'_>,
) -> Result<()> {
    check(assistant, version, editing).await?;
    pending::set(app, assistant, Pending::Restart).await
}

/// Refuses an edit that OpenClaw would refuse or undo.
async fn check(assistant: &Assistant, version: &Version, editing: config::Editing<'_>) -> Result<()> {
    service::state(assistant).await?;
    let before = config::read(assistant).await?.map_or_else(Document::empty, |found| found.document);
    let mut after = before.clone();
    openclaw::config::edit(&mut after, version, editing)?;
    config::refuse_doubtful(&before, &after)?;
    config::require_valid(assistant, version, &after).await
}

/// Finishes the step that an earlier task began and did not finish. Returns whether there was anything to do.
pub async fn finish(progress: &impl Progress, assistant: &Assistant) -> Result<bool> {
    if let Some(summary) = config::unrecorded(progress.app(), assistant).await? {
        config::record(progress, assistant, &summary).await?;
    }
    let mut done = false;
    for _ in 0..MOST_STEPS {
        let observed = Observed::of(progress.app(), assistant).await?;
        let Some(step) = plan(Difference::Nothing, &observed).into_iter().next() else { return Ok(done) };
        step::serve(progress, assistant, step).await?;
        done = true;
    }
    Err(Error::conflict("the instance does not stay as it was left"))
}

/// Makes an edit of the configuration and lets it take effect. Returns whether there was anything to do.
pub async fn edit(
    progress: &impl Progress,
    assistant: &Assistant,
    version: &Version,
    wish: Wish,
    editing: config::Editing<'_>,
) -> Result<bool> {
    Ok(edit_within(progress, assistant, version, wish, Restarts::Allowed, editing).await?.done)
}

async fn edit_within(
    progress: &impl Progress,
    assistant: &Assistant,
    version: &Version,
    wish: Wish,
    restarts: Restarts,
    editing: config::Editing<'_>,
) -> Result<Brought> {
    let app = progress.app();
    match wish {
        Wish::Keep => {}
        Wish::Run => pending::set_start_if_down(app, assistant).await?,
        Wish::Restart => prepare_restart(app, assistant, version, editing).await?,
    }
    let (mut written, mut done) = (false, false);
    for _ in 0..MOST_STEPS {
        let found = config::read(assistant).await?;
        let unrecorded = config::unrecorded(app, assistant).await?.is_some();
        let difference = if unrecorded && !written {
            Difference::Hot
        } else {
            Difference::of(found.map(|found| found.document).as_ref(), version, editing)?
        };
        let observed = Observed::of(app, assistant).await?;
        let Some(step) = plan(difference, &observed).into_iter().next() else {
            if written && observed.service == Service::Missing {
                // It is written, but nothing can start it.
                service::state(assistant).await?;
            }
            if written && observed.service == Service::Down {
                progress.log("it is not running, and reads its configuration when it starts").await?;
            }
            if done {
                config::confirm(app, assistant, version, editing).await?;
            }
            return Ok(Brought { done, waits: false });
        };
        if step == Step::WriteConfig {
            if written {
                break;
            }
            config::change(progress, assistant, version, editing).await?;
            written = true;
        } else if step == Step::Reload && restarts == Restarts::Wait {
            // It stays pending: the next restart, or a person's, brings it.
            if !service::reload(progress, assistant).await? {
                progress.log("the running assistant did not take it over, and must not be restarted for it").await?;
                return Ok(Brought { done: true, waits: true });
            }
        } else {
            step::serve(progress, assistant, step).await?;
        }
        done = true;
    }
    // OpenClaw restores an older file that it takes for the better one.
    config::confirm(app, assistant, version, editing).await?;
    Err(Error::conflict("the instance does not stay as it was left"))
}
