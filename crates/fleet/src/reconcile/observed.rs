//! What was found of an instance on its server, as far as a plan depends on it.

use base::Result;
use remote::host::systemd;

use crate::App;
use crate::assistant::Assistant;
use crate::assistant::pending::{self, Pending};

/// The instance's service, as systemd has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// There is no unit.
    Missing,
    Down,
    Runs,
}

impl Service {
    pub fn of(state: &systemd::State) -> Service {
        match (state.is_loaded, state.is_running()) {
            (false, _) => Service::Missing,
            (true, false) => Service::Down,
            (true, true) => Service::Runs,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Service::Missing => "missing",
            Service::Down => "down",
            Service::Runs => "runs",
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Observed {
    pub service: Service,
    /// The step that an earlier task began: a file that the running gateway has not taken over yet, or a gateway that was
    /// stopped to be started again.
    pub pending: Pending,
}

impl Observed {
    pub async fn of(app: &App, assistant: &Assistant) -> Result<Observed> {
        let pending = pending::of(app, assistant).await?.pending;
        Ok(Observed { service: Service::of(&assistant.service().await?), pending })
    }
}
