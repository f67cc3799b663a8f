//! Opens the LLM gateway that the configuration names.

use std::sync::Arc;

use base::{Clock, Error, Result, Zone};
use llm::gateway::Llm;
use llm::usage::reader::Reader;
use remote::llm::{Kind, Settings};
use store::Db;
use store::foreign::LogKind;
use store::seal::Sealer;

use crate::config::{Foreign, GatewayConfig};

pub fn open(config: &GatewayConfig, db: &Db, sealer: &Arc<Sealer>) -> Result<Llm> {
    match &config.foreign {
        None => Llm::embedded(db.clone(), Clock::default(), sealer.clone(), &config.url),
        Some(foreign) => {
            let kind = Kind::find(&config.kind).ok_or_else(|| Error::internal("an unknown kind of gateway"))?;
            let settings = Settings { url: config.url.clone(), admin_token: foreign.admin_token.clone() };
            Ok(Llm::foreign((kind.open)(&settings)?)?.with_keys_off_without_log(foreign.keys_off_without_log))
        }
    }
}

/// The reader of a foreign gateway's log.
pub fn reader(foreign: &Foreign, llm: &Llm, db: &Db, zone: &Zone) -> Result<Arc<Reader>> {
    let kind = LogKind::find(llm.gateway.kind().name).ok_or_else(|| Error::internal("a log of unknown kind"))?;
    let (clock, url) = (Clock::default(), foreign.log_url.clone());
    Ok(Arc::new(Reader::new(db.clone(), clock, zone.clone(), llm.gateway.clone(), kind, url)))
}
