//! The LLM gateway as the product sees it: which one it is, and how it is reached.

use std::sync::Arc;
use std::time::Duration;

use base::{Clock, Error, Result};
use remote::llm::Gateway;
use store::Db;
use store::seal::Sealer;

use crate::key::Embedded;

/// The configured gateway.
pub struct Llm {
    pub gateway: Arc<dyn Gateway>,
    /// Our own: its keys are our records, and it writes our log itself.
    pub embedded: bool,
    /// For chats that are forwarded: these may take long.
    pub http: reqwest::Client,
}

impl Llm {
    /// Our own gateway, at this address.
    pub fn embedded(db: Db, clock: Clock, sealer: Arc<Sealer>, url: &str) -> Result<Llm> {
        let http = client()?;
        let gateway = Embedded::new(db, clock, sealer, http.clone(), url);
        Ok(Llm { gateway: Arc::new(gateway), embedded: true, http })
    }

    /// One that somebody else runs.
    pub fn foreign(gateway: Arc<dyn Gateway>) -> Result<Llm> {
        Ok(Llm { gateway, embedded: false, http: client()? })
    }

    /// Whether the gateway itself has a row for a request that failed.
    pub fn logs_failures(&self) -> bool {
        !matches!(self.gateway.kind().name, "one-api" | "new-api")
    }
}

/// A client for chats: it waits as long as its caller does.
fn client() -> Result<reqwest::Client> {
    let client = reqwest::Client::builder().connect_timeout(Duration::from_secs(5));
    client.redirect(reqwest::redirect::Policy::none()).build().map_err(Error::internal)
}
