//! What was found of an instance on its server, as far as a plan depends on it.

use base::Result;
use remote::host::systemd;
pub use store::debt::Owed as Unfinished;

use crate::App;
use crate::assistant::{Assistant, debt};

/// The instance's service, as systemd has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// There is no unit.
    Missing,
    Down,
    Runs,
}

#[derive(Clone, Copy, Debug)]
pub struct Observed {
    pub service: Service,
    /// What an earlier step began: a file that the running gateway has not taken over yet, or a gateway that was
    /// stopped to be started again.
    pub unfinished: Unfinished,
}

impl Observed {
    pub async fn of(app: &App, assistant: &Assistant) -> Result<Observed> {
        let unfinished = debt::of(app, assistant).await?.owed;
        let state = systemd::state(&assistant.host, &assistant.place.unit).await?;
        let service = match (state.is_loaded, state.is_running()) {
            (false, _) => Service::Missing,
            (true, false) => Service::Down,
            (true, true) => Service::Runs,
        };
        Ok(Observed { service, unfinished })
    }
}
