//! What is owed to an instance, because a task wrote its configuration or stopped it and has not come to the end of that. Noted before
//! the action and taken off after it: a worker may go away at any moment, and whoever comes next pays.

use base::{Error, Result};
use openclaw::config::needs_restart;
use openclaw::document::Change;
use remote::host::systemd;
pub use store::debt::{Debt, Owed};

use super::{Assistant, service};
use crate::App;

pub async fn of(app: &App, assistant: &Assistant) -> Result<Debt> {
    Ok(store::debt::find(&app.db, &assistant.id()).await?)
}

pub async fn owe(app: &App, assistant: &Assistant, owed: Owed) -> Result<()> {
    Ok(store::debt::set_owed(&app.db, &assistant.id(), owed).await?)
}

/// What is down is to run once this is done.
pub async fn owe_start(app: &App, assistant: &Assistant) -> Result<()> {
    if !service::state(assistant).await?.is_running() {
        owe(app, assistant, Owed::Start).await?;
    }
    Ok(())
}

/// The configuration is about to be written: a running gateway is to take it over, and the audit log to tell of it. Answers what
/// there is to tell. Where it surely was not written, what was owed `before` is owed again.
pub async fn writing(
    app: &App,
    assistant: &Assistant,
    before: &Debt,
    changes: &[Change],
    told: &str,
) -> Result<String> {
    // One that does not run reads it when it starts; there may be no unit yet.
    let runs = systemd::state(&assistant.host, &assistant.place.unit).await?.is_running();
    let owed = match before.owed {
        Owed::Restart => Owed::Restart,
        other if !runs => other,
        _ if needs_restart(changes) => Owed::Restart,
        _ => Owed::Reload,
    };
    let log_size = if runs { i64::try_from(service::log_size(assistant).await?).map_err(Error::internal)? } else { 0 };
    // What another task wrote, and did not come to telling, is told with it.
    let told = match before.told.as_str() {
        "" => told.to_owned(),
        earlier if earlier.contains(told) => earlier.to_owned(),
        earlier => format!("{earlier}; {told}"),
    };
    let debt = Debt { owed, log_size, told };
    store::debt::set(&app.db, &assistant.id(), &debt).await?;
    Ok(debt.told)
}
