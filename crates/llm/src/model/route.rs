//! Where a model is asked: its provider, the others that offer it, and what each calls it.

use base::{Error, Result};
use store::lease::Now;
use store::model::{Model, ProviderKind};
use store::{Tx, model, replica};

use crate::App;

/// The step of the schema with which models became records.
const STEP: i64 = 31;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    kind: ProviderKind,
    provider: String,
    upstream_name: String,
    /// Further providers with what they call the model; empty is its id.
    pub offers: Vec<(String, String)>,
}

impl Route {
    pub fn of(model: &Model, offers: Vec<(String, String)>) -> Route {
        Route { kind: model.kind, provider: model.provider.clone(), upstream_name: model.upstream_name.clone(), offers }
    }

    /// Refuses to ask the same provider twice.
    pub fn check(&self) -> Result<()> {
        match self.offers.iter().any(|(provider, _)| *provider == self.provider) {
            true => Err(Error::field("offers", format_args!("{} is the model's own provider", self.provider))),
            false => Ok(()),
        }
    }

    /// Whether releases before providers were records ask the right one by the right name.
    fn is_known_to_all(&self) -> bool {
        let is_new = matches!(self.kind, ProviderKind::Ollama | ProviderKind::Compatible);
        !is_new && self.provider == self.kind.as_str() && self.upstream_name.is_empty() && self.offers.is_empty()
    }

    /// Refuses a route that a process of an older release, which still runs, cannot read or would take for another.
    pub async fn require_known(&self, app: &App, tx: &mut Tx) -> Result<()> {
        if self.is_known_to_all() {
            return Ok(());
        }
        match replica::without_step(tx, env!("CARGO_PKG_VERSION"), STEP, Now::of(&app.clock)).await? {
            Some(version) => Err(Error::conflict(format!(
                "processes of an older release still run: {version}. They would ask the wrong provider, so replace them first"
            ))),
            None => Ok(()),
        }
    }

    /// The further providers for the audit log.
    pub fn offers_text(&self) -> String {
        let text = |(provider, name): &(String, String)| format!("{provider} {name}").trim().to_owned();
        self.offers.iter().map(text).collect::<Vec<_>>().join(", ")
    }
}

/// The further providers that are stored.
pub async fn offers_of(tx: &mut Tx, id: &str) -> Result<Vec<(String, String)>> {
    let offers = model::offers(tx, Some(id)).await?;
    Ok(offers.into_iter().map(|offer| (offer.provider, offer.upstream_name)).collect())
}
