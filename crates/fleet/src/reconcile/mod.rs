//! Brings an instance on its server to the state that our records want: what they want (`assistant::desired`), what
//! there is (`observed`), which steps lead from one to the other (`plan`), and the loop that takes them.
//!
//! After each step the server is observed again and the rest is planned anew from what was found. So a worker that goes
//! away between two steps leaves nothing behind that the next one would have to know.

mod observed;
mod plan;

use base::{Error, Result};
use openclaw::Version;

use crate::assistant::desired::Desired;
use crate::assistant::{Assistant, config, service};
use crate::progress::Progress;
pub use observed::{Observed, Service};
pub use plan::{Difference, Step, plan};

/// A plan has at most three steps. More rounds than this mean that somebody undoes them.
const MOST_STEPS: usize = 8;

/// Brings the whole configuration to its instance. Returns whether there was anything to do.
pub async fn bring(progress: &impl Progress, assistant: &Assistant, desired: &Desired) -> Result<bool> {
    edit(progress, assistant, &desired.version, &|document| desired.apply(document)).await
}

/// Finishes what an earlier task began and did not finish. Returns whether there was anything to do.
pub async fn finish(progress: &impl Progress, assistant: &Assistant) -> Result<bool> {
    if let Some(summary) = config::unrecorded(progress.app(), assistant).await? {
        config::record(progress, assistant, &summary).await?;
    }
    let mut done = false;
    for _ in 0..MOST_STEPS {
        let observed = Observed::of(progress.app(), assistant).await?;
        let Some(step) = plan(Difference::Nothing, &observed).into_iter().next() else { return Ok(done) };
        take(progress, assistant, step).await?;
        done = true;
    }
    Err(Error::conflict("the instance does not stay as it was left"))
}

/// Makes an edit of the configuration and lets it take effect. Returns whether there was anything to do.
pub async fn edit(
    progress: &impl Progress,
    assistant: &Assistant,
    version: &Version,
    editing: config::Editing<'_>,
) -> Result<bool> {
    let app = progress.app();
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
            return Ok(done);
        };
        if step == Step::WriteConfig {
            if written {
                break;
            }
            config::change(progress, assistant, version, editing).await?;
            written = true;
        } else {
            take(progress, assistant, step).await?;
        }
        done = true;
    }
    // OpenClaw restores an older file that it takes for the better one.
    config::confirm(app, assistant, version, editing).await?;
    Err(Error::conflict("the instance does not stay as it was left"))
}

async fn take(progress: &impl Progress, assistant: &Assistant, step: Step) -> Result<()> {
    match step {
        Step::WriteConfig => Err(Error::internal("only an edit writes the configuration")),
        Step::Reload => service::reload(progress, assistant).await,
        Step::Restart => service::restart(progress, assistant).await,
        Step::Start => service::start(progress, assistant).await,
    }
}
