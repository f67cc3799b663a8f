//! The models that employees and assistants may use: what is known of them, their names, and what they cost.

pub mod compare;
mod edit;
mod route;
mod sync;
pub mod table;

use std::collections::HashMap;

use base::{Error, Kind, Result};
pub use store::model::price::{PriceSource, Version};
use store::model::{self, price};
pub use store::model::{Input, Model, Offer, Origin, Protocol, ProviderKind, Purpose, Source};

pub use self::edit::{Patch, create, delete, take_table, update};
pub use self::sync::{Synced, sync};
use crate::App;

/// A model with its names, its providers and its prices.
#[derive(Clone, Debug)]
pub struct Listed {
    pub model: Model,
    pub aliases: Vec<String>,
    /// Further providers, in the order in which they are asked.
    pub offers: Vec<Offer>,
    /// The prices that are in force.
    pub price: Version,
}

/// All models, in the order in which they are shown.
pub async fn list(app: &App) -> Result<Vec<Listed>> {
    let models = model::all(&app.db).await?;
    let mut aliases: HashMap<String, Vec<String>> = HashMap::new();
    for alias in model::aliases(&app.db, None).await? {
        aliases.entry(alias.model).or_default().push(alias.alias);
    }
    let mut offers: HashMap<String, Vec<Offer>> = HashMap::new();
    for offer in model::offers(&app.db, None).await? {
        offers.entry(offer.model.clone()).or_default().push(offer);
    }
    let mut versions = price::known(&app.db, &models).await?;
    let listed = |model: Model| {
        let price = versions.remove(&model.id).and_then(|versions| versions.into_iter().next());
        Listed {
            aliases: aliases.remove(&model.id).unwrap_or_default(),
            offers: offers.remove(&model.id).unwrap_or_default(),
            price: price.unwrap_or_else(|| Version::single(&model, model.created_at)),
            model,
        }
    };
    Ok(models.into_iter().map(listed).collect())
}

/// One model by its id or an alias.
pub async fn find(app: &App, name: &str) -> Result<Listed> {
    let model = model::find_named(&app.db, name).await?.ok_or(Kind::NotFound)?;
    let aliases = model::aliases(&app.db, Some(&model.id)).await?;
    Ok(Listed {
        aliases: aliases.into_iter().map(|alias| alias.alias).collect(),
        offers: model::offers(&app.db, Some(&model.id)).await?,
        price: price::in_force(&price::of_model(&app.db, &model.id).await?, &model),
        model,
    })
}

/// The prices of a model, newest first.
pub async fn prices(app: &App, name: &str) -> Result<Vec<Version>> {
    let model = model::find_named(&app.db, name).await?.ok_or(Kind::NotFound)?;
    let mut versions = price::of_model(&app.db, &model.id).await?;
    let in_force = price::in_force(&versions, &model);
    if versions.first() != Some(&in_force) {
        versions.insert(0, in_force);
    }
    Ok(versions)
}

/// The model of this id or alias, if it may be used for a chat.
pub async fn usable(app: &App, name: &str) -> Result<Model> {
    let found = model::find_named(&app.db, name).await?.filter(|m| m.enabled && m.purpose == Purpose::Chat);
    found.ok_or_else(|| Error::field("model", "is not one that the LLM gateway offers: see GET /models"))
}
