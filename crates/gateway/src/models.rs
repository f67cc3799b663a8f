//! A cache of the table of models for the hot path, read every few seconds, and kept while the database does not
//! answer.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use base::Result;
use base::money::Price;
use store::Db;
use store::model::{self, ProviderKind};

use crate::metrics::OfModel;

/// The name of the loop's heartbeat.
const LOOP: &str = "models";

/// A model with its metrics.
pub struct Model {
    pub id: Arc<str>,
    pub kind: ProviderKind,
    pub provider: Arc<str>,
    pub price: Price,
    pub enabled: bool,
    chain: Option<i64>,
    pub created_at: jiff::Timestamp,
    pub counts: OfModel,
}

/// All models at one moment.
#[derive(Default)]
pub struct Table {
    /// In the order in which they are shown.
    pub all: Vec<Arc<Model>>,
    by_id: HashMap<Arc<str>, usize>,
    /// The members of the fallback chain, first to last.
    chain: Vec<Arc<Model>>,
}

impl Table {
    fn new(rows: Vec<model::Model>) -> Table {
        let all: Vec<Arc<Model>> = rows
            .into_iter()
            .map(|row| {
                let counts = OfModel::new(&row.id, &row.provider);
                Arc::new(Model {
                    id: row.id.into(),
                    kind: row.kind,
                    provider: row.provider.into(),
                    price: row.price,
                    enabled: row.enabled,
                    chain: row.chain,
                    created_at: row.created_at,
                    counts,
                })
            })
            .collect();
        let by_id = all.iter().enumerate().map(|(place, model)| (model.id.clone(), place)).collect();
        let mut chain: Vec<Arc<Model>> = all.iter().filter(|m| m.chain.is_some()).cloned().collect();
        chain.sort_by_key(|m| m.chain);
        Table { all, by_id, chain }
    }

    pub fn find(&self, id: &str) -> Option<&Arc<Model>> {
        self.by_id.get(id).and_then(|place| self.all.get(*place))
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
        let table = Arc::new(Table::new(model::all(&self.db).await?));
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
