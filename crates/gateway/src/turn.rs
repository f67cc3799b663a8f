//! Who is asked for a model, and in which order: the model and those behind it in the fallback chain, each at the providers that offer it, with all keys there.

use std::sync::Arc;

use store::model::ProviderKind;

use crate::error::Refusal;
use crate::models::{Model, Table};
use crate::protocol::{self, Protocol};
use crate::provider::{Key, Provider, Providers, Route};
use crate::sticky::{Pins, Place};
use crate::ticket::By;
use crate::wait::Waiting;

/// One try of the chain: a model, the way to its provider, and a key there.
pub struct Turn {
    pub model: Arc<Model>,
    pub at: At,
}

/// Who is asked.
pub enum At {
    Echo,
    Provider(Arc<Provider>, Arc<Key>),
}

impl Turn {
    pub fn by(&self, echo: &Arc<str>) -> By {
        let (provider, key) = match &self.at {
            At::Echo => (echo, None),
            At::Provider(provider, key) => (&provider.name, (!key.hint.is_empty()).then(|| key.hint.clone())),
        };
        By { model: self.model.clone(), provider: provider.clone(), key }
    }

    /// The model, and the provider at which it is asked.
    pub fn place(&self, echo: &Arc<str>) -> Place {
        let provider = match &self.at {
            At::Echo => echo,
            At::Provider(provider, _) => &provider.name,
        };
        Place { model: self.model.id.clone(), provider: provider.clone() }
    }

    /// The kind by which the input is estimated.
    pub fn kind(&self) -> ProviderKind {
        match &self.at {
            At::Echo => self.model.kind,
            At::Provider(provider, _) => provider.kind,
        }
    }

    /// The key with which it is asked.
    pub fn key(&self) -> Option<&Arc<Key>> {
        match &self.at {
            At::Echo => None,
            At::Provider(_, key) => Some(key),
        }
    }

    /// The id of its key, where the provider has several, and whether it is the first of them.
    pub fn pinned(&self) -> Option<(Arc<str>, bool)> {
        let At::Provider(provider, key) = &self.at else { return None };
        let first = provider.keys.first().filter(|_| provider.keys.len() > 1)?;
        Some((key.id.clone(), first.id == key.id))
    }

    /// What may not be asked while it waits.
    pub fn waiting(&self, protocol: &Protocol) -> Waiting {
        let key = match &self.at {
            At::Echo => ProviderKind::Echo.as_str().into(),
            At::Provider(provider, key) if key.id.is_empty() => provider.id.clone(),
            At::Provider(_, key) => key.id.clone(),
        };
        Waiting { key, model: self.model.id.clone(), is_billed: protocol.is_billed }
    }
}

/// From where the turns of a request are taken.
pub struct Chooser<'a> {
    pub providers: &'a Providers,
    pub pins: &'a Pins,
    /// The sub key.
    pub of: &'a Arc<str>,
    pub protocol: &'a Protocol,
}

impl Chooser<'_> {
    /// The requested model, and the usable models after it in the chain, as far as they speak the protocol; each at all providers that
    /// offer it, with all keys there.
    pub fn turns(&self, table: &Table, model: &str) -> Result<Vec<Turn>, Refusal> {
        let Some(first) = table.find(model) else { return Err(Refusal::unknown_model(model, "does not exist")) };
        if !first.enabled {
            return Err(Refusal::unknown_model(model, "is switched off"));
        }
        let providers = self.providers.now();
        let routes = self.providers.routes(&providers, first).map_err(|why| Refusal::unknown_model(model, &why))?;
        let mut turns = vec![];
        self.add_all(&mut turns, first, &routes);
        if turns.is_empty() {
            let paths = protocol::paths_of(|protocol| routes.iter().any(|route| route.speaks(first, protocol)));
            return Err(Refusal::wrong_protocol(model, &paths));
        }
        if self.protocol.falls_back {
            for next in table.after(first).filter(|next| next.enabled) {
                if let Ok(routes) = self.providers.routes(&providers, next) {
                    self.add_all(&mut turns, next, &routes);
                }
            }
        }
        Ok(turns)
    }

    fn add_all(&self, turns: &mut Vec<Turn>, model: &Arc<Model>, routes: &[Route]) {
        for route in routes.iter().filter(|route| route.speaks(model, self.protocol)) {
            self.add(turns, model, route.clone());
        }
    }

    /// A turn for each key: first the one that has the conversation in its cache, then in their order; those that are spared come last.
    fn add(&self, turns: &mut Vec<Turn>, model: &Arc<Model>, route: Route) {
        let mut push = |at: At| turns.push(Turn { model: model.clone(), at });
        let provider = match route {
            Route::Echo => return push(At::Echo),
            Route::Provider(provider) => provider,
        };
        if let [only] = provider.keys.as_slice() {
            return push(At::Provider(provider.clone(), only.clone()));
        }
        let pinned = self.pins.find(self.of, &model.id);
        let now = self.providers.clock();
        let mut keys: Vec<&Arc<Key>> = provider.keys.iter().collect();
        keys.sort_by_key(|key| (key.is_spared(now), pinned.as_ref() != Some(&key.id)));
        for key in keys {
            push(At::Provider(provider.clone(), key.clone()));
        }
    }
}

/// Moves the turns of a model at a provider to the front.
pub fn put_first(turns: &mut [Turn], place: &Place, echo: &Arc<str>) {
    turns.sort_by_key(|turn| turn.place(echo) != *place);
}
