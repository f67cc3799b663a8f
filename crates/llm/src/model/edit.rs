//! Adds, changes and deletes models. Each change of a price is a new version.

use base::money::Price;
use base::price::{Prices, Tier, TierRate};
use base::{Error, Kind, Result};
use jiff::Timestamp;
use queue::audit::{self, Action, AuditEvent, By, Changes};
use queue::permission::Permission;
use store::db::Lock;
use store::model::price::{self, PriceSource, Version};
use store::model::{Input, Model, Origin, Protocol, ProviderKind, Purpose, Source, Words};
use store::notice::{Notice, Topic};
use store::{Tx, model};

use super::compare::{rate_text, word};
use super::route::{Route, offers_of};
use super::{Listed, find, table};
use crate::App;

/// Names that are paths of the API.
const RESERVED: [&str; 3] = ["table", "compare", "sync"];
const MOST_ALIASES: usize = 20;
const MOST_OFFERS: usize = 20;
const MOST_RATES: usize = 32;
/// No model has more tokens of context. A larger number is a mistake.
const MOST_TOKENS: i64 = 100_000_000;

/// What is changed; `None` leaves a field as it is.
#[derive(Clone, Debug, Default)]
pub struct Patch {
    pub enabled: Option<bool>,
    /// The one price for all kinds of tokens. Without `rates` it is in force for all of them.
    pub price: Option<Price>,
    /// The prices by kind; none is that the single price is in force.
    pub rates: Option<Vec<TierRate>>,
    pub kind: Option<ProviderKind>,
    pub provider: Option<String>,
    pub upstream_name: Option<String>,
    pub aliases: Option<Vec<String>>,
    /// Further providers with what they call the model.
    pub offers: Option<Vec<(String, String)>>,
    pub purpose: Option<Purpose>,
    pub protocols: Option<Vec<Protocol>>,
    pub context_window: Option<Option<i64>>,
    pub max_output: Option<Option<i64>>,
    pub inputs: Option<Vec<Input>>,
    pub reasoning: Option<Option<bool>>,
    pub tools: Option<Option<bool>>,
}

impl Patch {
    fn sets_price(&self) -> bool {
        self.price.is_some() || self.rates.is_some()
    }

    fn check(&self, id: &str) -> Result<()> {
        let tokens = [("context_window", self.context_window), ("max_output_tokens", self.max_output)];
        for (field, limit) in tokens {
            if limit.flatten().is_some_and(|limit| !(1..=MOST_TOKENS).contains(&limit)) {
                return Err(Error::field(field, format_args!("must be 1 to {MOST_TOKENS}, or null for unknown")));
            }
        }
        for (field, name) in [("provider", self.provider.as_deref()), ("upstream_name", self.upstream_name.as_deref())]
        {
            if name.is_some_and(|name| field == "provider" || !name.is_empty()) {
                check_name(field, name.unwrap_or_default())?;
            }
        }
        let aliases = self.aliases.as_deref().unwrap_or_default();
        if aliases.len() > MOST_ALIASES {
            return Err(Error::field("aliases", format_args!("at most {MOST_ALIASES}")));
        }
        for (place, alias) in aliases.iter().enumerate() {
            check_name("aliases", alias)?;
            let is_same = |other: &str| other.eq_ignore_ascii_case(alias);
            if is_same(id) || aliases[..place].iter().any(|other| is_same(other)) {
                return Err(Error::field("aliases", format_args!("{alias} is there twice")));
            }
        }
        let offers = self.offers.as_deref().unwrap_or_default();
        if offers.len() > MOST_OFFERS {
            return Err(Error::field("offers", format_args!("at most {MOST_OFFERS}")));
        }
        for (place, (provider, upstream_name)) in offers.iter().enumerate() {
            check_name("offers.provider", provider)?;
            if !upstream_name.is_empty() {
                check_name("offers.upstream_name", upstream_name)?;
            }
            if offers[..place].iter().any(|(other, _)| other == provider) {
                return Err(Error::field("offers", format_args!("{provider} is there twice")));
            }
        }
        Ok(())
    }

    /// Writes the fields into the model.
    fn apply(&self, model: &mut Model) {
        fn set<T: Clone>(field: &mut T, value: &Option<T>) {
            if let Some(value) = value {
                field.clone_from(value);
            }
        }
        let before = facts(model);
        set(&mut model.enabled, &self.enabled);
        set(&mut model.price, &self.price);
        set(&mut model.kind, &self.kind);
        set(&mut model.provider, &self.provider);
        set(&mut model.upstream_name, &self.upstream_name);
        set(&mut model.purpose, &self.purpose);
        set(&mut model.protocols, &self.protocols.clone().map(Words));
        set(&mut model.context_window, &self.context_window);
        set(&mut model.max_output, &self.max_output);
        set(&mut model.inputs, &self.inputs.clone().map(Words));
        set(&mut model.reasoning, &self.reasoning);
        set(&mut model.tools, &self.tools);
        if facts(model) != before {
            model.facts = Some(Source::Edited);
        }
    }
}

/// What is known of a model's abilities, as texts for the audit log and for comparing.
fn facts(model: &Model) -> [(&'static str, String); 7] {
    let number = |number: Option<i64>| number.map_or_else(|| "unknown".to_owned(), |number| number.to_string());
    [
        ("purpose", model.purpose.as_str().to_owned()),
        ("protocols", model.protocols.to_string()),
        ("context_window", number(model.context_window)),
        ("max_output_tokens", number(model.max_output)),
        ("inputs", model.inputs.to_string()),
        ("reasoning", word(model.reasoning)),
        ("tools", word(model.tools)),
    ]
}

fn check_name(field: &str, name: &str) -> Result<()> {
    let is_fine = !name.is_empty() && name.chars().count() <= 100 && name.chars().all(|c| c.is_ascii_graphic());
    match is_fine {
        true => Ok(()),
        false => Err(Error::field(field, "must be 1 to 100 characters of ASCII without spaces")),
    }
}

/// Prices by kind that can be in force: no row twice, none empty, and with them the price of input, and of output where
/// there is output.
fn check_rates(rates: &[TierRate], purpose: Purpose) -> Result<()> {
    let wrong = |problem: &str| Err(Error::field("prices", problem));
    if rates.len() > MOST_RATES {
        return wrong("are too many");
    }
    for (place, row) in rates.iter().enumerate() {
        if row.rate.is_empty() {
            return wrong("a row names no price");
        }
        if !(0..=MOST_TOKENS).contains(&row.above) {
            return wrong("above must be 0 or more tokens");
        }
        if rates[..place].iter().any(|other| (other.tier, other.above) == (row.tier, row.above)) {
            return wrong("a tier and length is there twice");
        }
    }
    let standard = rates.iter().find(|row| row.tier == Tier::Standard && row.above == 0).map(|row| row.rate);
    let is_known =
        |rate: base::price::Rate| rate.input.is_some() && (rate.output.is_some() || purpose == Purpose::Embedding);
    if !rates.is_empty() && !standard.is_some_and(is_known) {
        return wrong("the standard tier needs the prices of input and of output");
    }
    Ok(())
}

/// Adds a model. What the body leaves out is taken from a row of the release's table, if one is named.
pub async fn create(app: &App, by: &By, id: &str, from_table: Option<&str>, patch: Patch) -> Result<Listed> {
    if patch.sets_price() {
        by.require(Permission::SetPrices)?;
    }
    check_name("id", id)?;
    if RESERVED.contains(&id) {
        return Err(Error::field("id", "is a path of the API"));
    }
    patch.check(id)?;
    let row = match from_table {
        Some(name) => {
            let unknown = || Error::field("from_table", "is in no row of the release's table: see GET /models/table");
            Some(table::find(name).ok_or_else(unknown)?)
        }
        None => None,
    };
    // A provider of the table that is no kind of its own speaks the protocols of another.
    let kind = patch.kind.or_else(|| row.map(|row| row.kind().unwrap_or(ProviderKind::Compatible)));
    let kind = kind.ok_or_else(|| Error::field("kind", "is needed: nothing else says how it is asked"))?;
    let now = app.clock.now();
    let mut model = Model { sort_order: 200, origin: Origin::Added, ..Model::named(id, kind, now) };
    if let Some(row) = row {
        row.apply(&mut model);
        if kind == ProviderKind::Compatible && row.kind().is_none() {
            model.provider.clone_from(&row.provider);
        }
        if row.name != id && !row.also.iter().any(|name| name == id) {
            model.upstream_name.clone_from(&row.name);
        }
    }
    patch.apply(&mut model);
    check_rates(patch.rates.as_deref().unwrap_or_default(), model.purpose)?;
    let route = Route::of(&model, patch.offers.clone().unwrap_or_default());
    // The price of one provider for what is asked of somebody else is a price that the caller chose.
    if !route.offers.is_empty() || row.is_some_and(|row| !row.is_asked_by(&model)) {
        by.require(Permission::SetPrices)?;
    }
    route.check()?;
    let mut tx = app.db.begin().await?;
    route.require_known(app, &mut tx).await?;
    tx.lock(Lock::ModelNames).await?;
    let names: Vec<&str> = std::iter::once(id).chain(patch.aliases.iter().flatten().map(String::as_str)).collect();
    require_free(&mut tx, id, &names).await?;
    if !model::insert(&mut tx, &model).await? {
        return Err(Error::conflict("a model with this id exists"));
    }
    write_lists(&mut tx, id, &patch).await?;
    let version = match row {
        Some(row) if !patch.sets_price() => Some(table::version(&model, row, now, &by.operator)),
        _ => new_version(&model, &patch, None, now, by),
    };
    if let Some(version) = &version {
        price::add(&mut tx, version).await?;
    }
    let prices = version.map_or_else(|| Prices::single(model.price), |version| version.prices);
    let detail = format!("added: {} of {}, {}", model.upstream(), model.provider, prices_text(&prices));
    finish(app, tx, by, id, &detail).await?;
    find(app, id).await
}

/// Changes a model.
pub async fn update(app: &App, by: &By, id: &str, patch: Patch) -> Result<Listed> {
    if patch.sets_price() {
        by.require(Permission::SetPrices)?;
    }
    patch.check(id)?;
    let mut tx = app.db.begin().await?;
    if let Some(aliases) = &patch.aliases {
        tx.lock(Lock::ModelNames).await?;
        let names: Vec<&str> = aliases.iter().map(String::as_str).collect();
        require_free(&mut tx, id, &names).await?;
    }
    let mut model = model::lock(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    let old = model.clone();
    let old_version = price::in_force(&price::of_model(&mut tx, id).await?, &model);
    let old_route = Route::of(&old, offers_of(&mut tx, id).await?);
    patch.apply(&mut model);
    let route = Route::of(&model, patch.offers.clone().unwrap_or_else(|| old_route.offers.clone()));
    if route != old_route {
        // The same price for another provider's tokens is another price.
        by.require(Permission::SetPrices)?;
        route.check()?;
        route.require_known(app, &mut tx).await?;
    }
    if let Some(rates) = &patch.rates {
        check_rates(rates, model.purpose)?;
    }
    let mut changes = Changes::default()
        .field("enabled", &old.enabled.to_string(), &model.enabled.to_string())
        .field("kind", old.kind.as_str(), model.kind.as_str())
        .field("provider", &old.provider, &model.provider)
        .field("upstream_name", &old.upstream_name, &model.upstream_name)
        .field("price_per_1k", &old.price.usd().to_string(), &model.price.usd().to_string());
    for ((name, before), (_, after)) in facts(&old).iter().zip(&facts(&model)) {
        changes = changes.field(name, before, after);
    }
    if let Some(aliases) = &patch.aliases {
        let before = model::aliases(&mut tx, Some(id)).await?;
        let before: Vec<&str> = before.iter().map(|alias| alias.alias.as_str()).collect();
        changes = changes.field("aliases", &before.join(", "), &aliases.join(", "));
    }
    changes = changes.field("offers", &old_route.offers_text(), &route.offers_text());
    model::update(&mut tx, &model).await?;
    write_lists(&mut tx, id, &patch).await?;
    if let Some(version) = new_version(&model, &patch, Some(&old_version), app.clock.now(), by) {
        changes = changes.field("prices", &prices_text(&old_version.prices), &prices_text(&version.prices)).field(
            "price_source",
            old_version.source.as_str(),
            version.source.as_str(),
        );
        price::add(&mut tx, &version).await?;
    }
    finish(app, tx, by, id, &changes.text()).await?;
    find(app, id).await
}

/// Takes what the release's table says of a model: its facts, and its prices by kind, which are in force from now on.
pub async fn take_table(app: &App, by: &By, id: &str) -> Result<Listed> {
    by.require(Permission::SetPrices)?;
    let mut tx = app.db.begin().await?;
    let mut model = model::lock(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    let unknown = || Error::new(Kind::NotFound, "the release's table does not know this model of this provider");
    let row = table::of(&model).ok_or_else(unknown)?;
    let old = price::in_force(&price::of_model(&mut tx, id).await?, &model);
    let before = facts(&model);
    row.apply(&mut model);
    model::update(&mut tx, &model).await?;
    let version = table::version(&model, row, app.clock.now(), &by.operator);
    let mut changes = Changes::default()
        .field("prices", &prices_text(&old.prices), &prices_text(&version.prices))
        .field("price_source", old.source.as_str(), version.source.as_str());
    for ((name, before), (_, after)) in before.iter().zip(&facts(&model)) {
        changes = changes.field(name, before, after);
    }
    // Prices that somebody set to what the table says are the table's only once they are taken.
    if (old.source, &old.prices) != (version.source, &version.prices) {
        price::add(&mut tx, &version).await?;
    }
    let detail = format!("from the release's table ({}): {}", row.source.date, changes.text());
    finish(app, tx, by, id, &detail).await?;
    find(app, id).await
}

/// Deletes a model that an administrator added and nobody uses. Its requests stay in the log.
pub async fn delete(app: &App, by: &By, id: &str) -> Result<()> {
    let mut tx = app.db.begin().await?;
    let model = model::lock(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    if model.origin != Origin::Added {
        return Err(Error::conflict("only a model that an administrator added can be deleted: switch it off instead"));
    }
    if model.chain.is_some() {
        return Err(Error::conflict("it is in the fallback chain"));
    }
    // Whoever adds it again would have it at the usual price.
    if price::in_force(&price::of_model(&mut tx, id).await?, &model).source == PriceSource::Edited {
        by.require(Permission::SetPrices)?;
    }
    let users = model::instances(&mut tx, id).await?;
    if users > 0 {
        return Err(Error::conflict(format!("{users} instances have it as their model")));
    }
    model::delete(&mut tx, id).await?;
    finish(app, tx, by, id, "deleted").await
}

/// Refuses names that another model has for an id or an alias.
async fn require_free(tx: &mut Tx, id: &str, names: &[&str]) -> Result<()> {
    match model::taken(tx, id, names).await? {
        Some(taken) => Err(Error::conflict(format!("{} is a name of the model {}", taken.alias, taken.model))),
        None => Ok(()),
    }
}

async fn write_lists(tx: &mut Tx, id: &str, patch: &Patch) -> Result<()> {
    if let Some(aliases) = &patch.aliases {
        model::set_aliases(tx, id, aliases).await?;
    }
    if let Some(offers) = &patch.offers {
        model::set_offers(tx, id, offers).await?;
    }
    Ok(())
}

/// The version that a patch makes. A single price without prices by kind takes the place of all of them. A price that is
/// set to what it is becomes an edited one, which a later release leaves alone.
fn new_version(model: &Model, patch: &Patch, old: Option<&Version>, now: Timestamp, by: &By) -> Option<Version> {
    let rates = match (&patch.rates, patch.price) {
        (Some(rates), _) => rates.clone(),
        (None, Some(_)) => vec![],
        (None, None) => return None,
    };
    let prices = Prices { single: model.price, rates };
    let is_there = old.is_some_and(|old| old.prices == prices && old.source == PriceSource::Edited);
    (!is_there).then(|| Version {
        model: model.id.clone(),
        valid_from: now,
        prices,
        source: PriceSource::Edited,
        who: by.operator.clone(),
    })
}

fn prices_text(prices: &Prices) -> String {
    if !prices.by_kind() {
        return format!("{} per 1K of any kind", prices.single.usd());
    }
    prices.rates.iter().map(rate_text).collect::<Vec<_>>().join(", ")
}

async fn finish(app: &App, mut tx: Tx, by: &By, id: &str, detail: &str) -> Result<()> {
    let target = format!("model {id}");
    audit::record(app, &mut tx, by, AuditEvent::info(Action::ConfigChange, &target, detail)).await?;
    tx.notify(Notice::new(Topic::Key, "models")).await?;
    Ok(tx.commit().await?)
}
