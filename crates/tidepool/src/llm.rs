//! Opens the LLM gateway that the configuration names.

use std::sync::Arc;

use base::{Clock, Error, Result};
use domain::llm::Llm;
use remote::llm::{Kind, Settings};
use store::Db;
use store::seal::Sealer;

use crate::config::GatewayConfig;

pub fn open(config: &GatewayConfig, db: &Db, sealer: &Arc<Sealer>) -> Result<Llm> {
    match &config.foreign {
        None => Llm::embedded(db.clone(), Clock::default(), sealer.clone(), &config.url),
        Some(foreign) => {
            let kind = Kind::find(&config.kind).ok_or_else(|| Error::internal("an unknown kind of gateway"))?;
            let settings = Settings { url: config.url.clone(), admin_token: foreign.admin_token.clone() };
            Llm::foreign((kind.open)(&settings)?)
        }
    }
}
