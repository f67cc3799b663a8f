//! Reserves an estimate of a request's cost before a provider is asked, and settles it with the true cost. The user's
//! quota counts tokens of the day; the key's quota counts units.

use std::sync::Arc;

use llm::App;
use llm::quota::{Reservation, Subject};

use crate::error::Refusal;
use crate::keys::Caller;

/// The reservations of a request.
#[derive(Default)]
pub struct Reserved {
    tokens: Option<Reservation>,
    units: Option<Reservation>,
}

/// What a request used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Used {
    pub tokens: i64,
    pub units: i64,
}

impl Reserved {
    /// Reserves an estimate, or refuses and names the limit that is reached.
    pub async fn take(app: &Arc<App>, caller: &Caller, estimate: Used) -> Result<Reserved, Refusal> {
        let mut reserved = Reserved::default();
        if let Some(subject) = caller.quota_of_user(app.clock.now(), &app.zone) {
            reserved.tokens = Some(take(app, &subject, estimate.tokens).await?);
        }
        if let Some(subject) = caller.quota() {
            reserved.units = Some(take(app, subject, estimate.units).await?);
        }
        Ok(reserved)
    }

    /// The quotas that the request has reservations in, each with the amount that it used.
    pub fn holds(&self, used: Used) -> Vec<(&str, i64)> {
        let tokens = self.tokens.iter().map(|r| (&**r.subject(), used.tokens));
        tokens.chain(self.units.iter().map(|r| (&**r.subject(), used.units))).collect()
    }

    /// Returns whether the request used more than this process was granted.
    pub fn settle(&mut self, used: Used) -> bool {
        let tokens = self.tokens.take().is_some_and(|tokens| tokens.settle(used.tokens));
        let units = self.units.take().is_some_and(|units| units.settle(used.units));
        tokens || units
    }
}

async fn take(app: &Arc<App>, subject: &Subject, estimate: i64) -> Result<Reservation, Refusal> {
    app.quotas.reserve(app, subject, estimate).await.map_err(Refusal::from)
}
