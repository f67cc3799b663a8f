//! A cache of the table of models for the hot path, read every few seconds, and kept while the database does not
//! answer.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use base::Result;
use base::price::Prices;
use jiff::Timestamp;
use store::Db;
use store::model::price;
use store::model::{self, ProviderKind, Purpose};

use crate::metrics::OfModel;
use crate::protocol::Protocol;

/// The name of the loop's heartbeat.
const LOOP: &str = "models";

/// A further provider of a model with what it calls the model. A model has them in the order in which they are asked.
type Offer = (Arc<str>, Box<str>);

/// A model with its metrics.
pub struct Model {
    pub id: Arc<str>,
    pub kind: ProviderKind,
    pub provider: Arc<str>,
    pub enabled: bool,
    chain: Option<i64>,
    pub created_at: Timestamp,
    pub counts: OfModel,
    /// What its first provider calls it.
    upstream: Box<str>,
    pub offers: Vec<Offer>,
    is_embedding: bool,
    /// The names of the protocols in which it may be asked; none is all that its provider speaks.
    protocols: Vec<&'static str>,
    /// Its last prices with the time of each, newest first.
    prices: Vec<(Timestamp, Arc<Prices>)>,
}

impl Model {
    /// What a provider calls it.
    pub fn name_at(&self, provider: &str) -> &str {
        if *self.provider == *provider {
            return &self.upstream;
        }
        self.offers.iter().find(|(name, _)| **name == *provider).map_or(&*self.id, |(_, name)| &**name)
    }

    /// Whether it may be asked in a protocol, as far as the model decides: an embedding model has no words, and the others
    /// may be limited to some protocols.
    pub fn allows(&self, protocol: &Protocol) -> bool {
        let word = protocol.word();
        (word == model::Protocol::Embeddings.as_str() || !self.is_embedding)
            && (self.protocols.is_empty() || self.protocols.contains(&word))
    }

    /// What was true at a time, and since when. Before everything that is known, it is the oldest that is.
    pub fn prices_at(&self, at: Timestamp) -> Option<&(Timestamp, Arc<Prices>)> {
        self.prices.iter().find(|(from, _)| *from <= at).or_else(|| self.prices.last())
    }

    /// What is true now.
    pub fn prices(&self) -> Option<&Prices> {
        self.prices.first().map(|(_, prices)| &**prices)
    }
}

/// All models at one moment.
#[derive(Default)]
pub struct Table {
    /// In the order in which they are shown.
    pub all: Vec<Arc<Model>>,
    /// By ids and aliases.
    by_name: HashMap<Arc<str>, usize>,
    /// The members of the fallback chain, first to last.
    chain: Vec<Arc<Model>>,
}

impl Table {
    async fn read(db: &Db) -> Result<Table> {
        let aliases = model::aliases(db, None).await?;
        let rows = model::all(db).await?;
        let mut versions = price::known(db, &rows).await?;
        let mut offers: HashMap<String, Vec<Offer>> = HashMap::new();
        for offer in model::offers(db, None).await? {
            let name = if offer.upstream_name.is_empty() { &offer.model } else { &offer.upstream_name };
            let name: Box<str> = name.as_str().into();
            offers.entry(offer.model).or_default().push((offer.provider.into(), name));
        }
        let all: Vec<Arc<Model>> = rows
            .into_iter()
            .map(|row| {
                let known = versions.remove(&row.id).unwrap_or_default().into_iter();
                Arc::new(Model {
                    counts: OfModel::new(&row.id, &row.provider),
                    upstream: row.upstream().into(),
                    offers: offers.remove(&row.id).unwrap_or_default(),
                    is_embedding: row.purpose == Purpose::Embedding,
                    protocols: row.protocols.0.iter().map(|protocol| protocol.as_str()).collect(),
                    prices: known.map(|version| (version.valid_from, Arc::new(version.prices))).collect(),
                    id: row.id.into(),
                    kind: row.kind,
                    provider: row.provider.into(),
                    enabled: row.enabled,
                    chain: row.chain,
                    created_at: row.created_at,
                })
            })
            .collect();
        let mut by_name: HashMap<Arc<str>, usize> = HashMap::new();
        for (place, model) in all.iter().enumerate() {
            by_name.insert(model.id.clone(), place);
        }
        for alias in aliases {
            // An older release may have added a model whose id is an alias: the id wins.
            if let Some(place) = by_name.get(alias.model.as_str()).copied() {
                by_name.entry(alias.alias.into()).or_insert(place);
            }
        }
        let mut chain: Vec<Arc<Model>> = all.iter().filter(|m| m.chain.is_some()).cloned().collect();
        chain.sort_by_key(|m| m.chain);
        Ok(Table { all, by_name, chain })
    }

    /// The model of this id or alias.
    pub fn find(&self, name: &str) -> Option<&Arc<Model>> {
        self.by_name.get(name).and_then(|place| self.all.get(*place))
    }

    /// The models after this one in the chain, nearest first; none if it is not in the chain.
    pub fn after(&self, model: &Model) -> impl Iterator<Item = &Arc<Model>> {
        let place = model.chain;
        self.chain.iter().filter(move |other| place.is_some_and(|place| other.chain > Some(place)))
    }
}

pub struct Models {
    db: Db,
    table: RwLock<Arc<Table>>,
}

impl Models {
    pub async fn open(db: Db) -> Result<Models> {
        let models = Models { db, table: RwLock::default() };
        models.read().await?;
        Ok(models)
    }

    pub fn now(&self) -> Arc<Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub async fn read(&self) -> Result<()> {
        let table = Arc::new(Table::read(&self.db).await?);
        *self.table.write().unwrap_or_else(PoisonError::into_inner) = table;
        Ok(())
    }

    /// Reads the table after each pause. Never returns.
    pub async fn keep(&self, pause: Duration) {
        self.db.heartbeats.beat(LOOP);
        loop {
            tokio::time::sleep(pause).await;
            match self.read().await {
                Ok(()) => self.db.heartbeats.beat(LOOP),
                Err(error) => tracing::warn!(%error, "the models are the ones known last"),
            }
        }
    }
}
