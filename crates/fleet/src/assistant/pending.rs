//! The step that was begun on an instance and is not finished. It is recorded before the action and cleared after it: a
//! worker may go away at any moment, and the next task finishes the step.

use base::{Error, Result};
use openclaw::config::needs_restart;
use openclaw::document::Change;
pub use store::reconcile::{Pending, Reconcile, Writing};

use super::{Assistant, service};
use crate::App;

pub async fn of(app: &App, assistant: &Assistant) -> Result<Reconcile> {
    Ok(store::reconcile::find(&app.db, &assistant.id()).await?)
}

pub async fn set(app: &App, assistant: &Assistant, pending: Pending) -> Result<()> {
    Ok(store::reconcile::set_pending(&app.db, &assistant.id(), pending).await?)
}

/// Records that a gateway that is down is to run once this is done.
pub async fn set_start_if_down(app: &App, assistant: &Assistant) -> Result<()> {
    if !service::state(assistant).await?.is_running() {
        set(app, assistant, Pending::Start).await?;
    }
    Ok(())
}

/// The configuration is about to be written: a running gateway must take it over, and the audit log must say so.
/// `previous` is the hash of the file that is there. Returns the summary for the audit log.
pub async fn writing(
    app: &App,
    assistant: &Assistant,
    before: &Reconcile,
    previous: &str,
    changes: &[Change],
    summary: &str,
) -> Result<String> {
    // One that does not run reads it when it starts; there may be no unit yet.
    let runs = assistant.service().await?.is_running();
    let pending = match before.pending {
        Pending::Restart => Pending::Restart,
        other if !runs => other,
        _ if needs_restart(changes) => Pending::Restart,
        _ => Pending::Reload,
    };
    let log_size = if runs { i64::try_from(service::log_size(assistant).await?).map_err(Error::internal)? } else { 0 };
    // An earlier task may have written something and not recorded it: both are recorded together.
    let unrecorded = match before.unrecorded.as_str() {
        "" => summary.to_owned(),
        earlier if earlier.contains(summary) => earlier.to_owned(),
        earlier => format!("{earlier}; {summary}"),
    };
    let writing = Writing { pending, log_size, previous: previous.to_owned(), unrecorded };
    store::reconcile::set_writing(&app.db, &assistant.id(), &writing).await?;
    Ok(writing.unrecorded)
}

/// The file was surely not written: what was recorded before holds again.
pub async fn not_written(app: &App, assistant: &Assistant, before: &Reconcile) -> Result<()> {
    let Reconcile { pending, log_size, previous, unrecorded, .. } = before.clone();
    let writing = Writing { pending, log_size, previous, unrecorded };
    Ok(store::reconcile::set_writing(&app.db, &assistant.id(), &writing).await?)
}
