//! The providers as the hot path sees them: addresses and headers are made when the table is read, not for each request.

use std::collections::HashMap;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use base::{Error, Result};
use http::Uri;
use llm::provider::Oddity;
use metrics::Counter;
use rustls::ClientConfig;
use store::model::ProviderKind;

use super::client::{self, Client, Way};
use super::key::Key;
use crate::protocol::{self, Protocol};

/// One provider.
pub struct Provider {
    pub id: Arc<str>,
    pub name: Arc<str>,
    pub kind: ProviderKind,
    pub enabled: bool,
    /// Until an answer begins.
    pub answer: Duration,
    /// Whether it may be asked for the usage of a stream. One that refuses fields that it does not know says it unasked.
    pub takes_usage_request: bool,
    /// In the order in which they are asked; a provider that needs none has one that says nothing.
    pub keys: Vec<Arc<Key>>,
    /// By the place of the protocol: its address, and the one with the protocol's query.
    uris: [Option<(Uri, Uri)>; protocol::ALL.len()],
    way: Way,
    pub client: Client,
    pub answered: Counter,
}

impl Provider {
    fn new(of: &llm::provider::Provider, before: Option<&Provider>, tls: &ClientConfig) -> Result<Provider> {
        let mut uris = [const { None }; protocol::ALL.len()];
        for protocol in protocol::ALL {
            let Some(uri) = protocol.url_at(of) else { continue };
            let with_query = format!("{uri}?{}", protocol.query.unwrap_or_default());
            let parsed = |uri: &str| Uri::from_str(uri).map_err(|e| Error::field("base_url", e));
            uris[protocol.place] = Some((parsed(&uri)?, parsed(&with_query)?));
        }
        let way = Way { connect: of.connect, proxy: of.proxy.clone(), allow_private: of.allow_private };
        // A pool of connections stays as long as the way does.
        let client = match before.filter(|before| before.way == way) {
            Some(before) => before.client.clone(),
            None => client::new(&way, tls)?,
        };
        let mut keys = vec![];
        for key in &of.keys {
            let known = before.and_then(|before| before.keys.iter().find(|known| *known.id == *key.id));
            keys.push(match known {
                Some(known) => known.clone(),
                None => Arc::new(Key::new(&key.id, &key.hint, &key.secret)?),
            });
        }
        if keys.is_empty() && !of.preset.needs_key {
            let known = before.and_then(|before| before.keys.iter().find(|known| known.id.is_empty()));
            keys.push(known.cloned().unwrap_or_else(|| Arc::new(Key::none())));
        }
        let name: Arc<str> = of.name.as_str().into();
        Ok(Provider {
            id: of.id.as_str().into(),
            answered: metrics::counter!("tidepool_gateway_provider_answers_total", "provider" => name.to_string(), "result" => "ok"),
            name,
            kind: of.kind,
            enabled: of.enabled,
            answer: of.answer,
            takes_usage_request: !of.preset.oddities.contains(&Oddity::UnknownFieldsRefused),
            keys,
            uris,
            way,
            client,
        })
    }

    pub fn speaks(&self, protocol: &Protocol) -> bool {
        self.uris[protocol.place].is_some()
    }

    /// Where it answers in a protocol, and with the protocol's query.
    pub fn uri(&self, protocol: &Protocol) -> Option<&(Uri, Uri)> {
        self.uris[protocol.place].as_ref()
    }
}

/// All providers at one moment.
#[derive(Default)]
pub struct Table {
    pub by_name: HashMap<Arc<str>, Arc<Provider>>,
}

impl Table {
    /// A provider that cannot be used is left out, with a line in the log: the others go on.
    pub fn new(all: &[llm::provider::Provider], before: &Table, tls: &ClientConfig) -> Table {
        let mut by_name = HashMap::new();
        for of in all.iter().filter(|of| !of.is_overridden) {
            match Provider::new(of, before.find(&of.name).map(|known| &**known), tls) {
                Ok(provider) => drop(by_name.insert(provider.name.clone(), Arc::new(provider))),
                Err(error) => tracing::error!(provider = of.name, %error, "a provider cannot be used"),
            }
        }
        Table { by_name }
    }

    pub fn find(&self, name: &str) -> Option<&Arc<Provider>> {
        self.by_name.get(name)
    }

    /// The provider, if it may be asked.
    pub fn usable(&self, name: &str) -> Option<&Arc<Provider>> {
        self.find(name).filter(|provider| provider.enabled && !provider.keys.is_empty())
    }
}
