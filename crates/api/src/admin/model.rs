//! The models that the LLM gateway offers.

use base::id::InstanceId;
use base::money::Price;
use base::price::{PerMillion, Rate, TierRate};
use base::{Error, Listing, Result, Text, Zone};
use llm::model::compare::{self, Compared};
use llm::model::table::{self, Row};
use llm::model::{self, Listed, Patch, Version};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::extract::{Admin, Answer, Body, Path, State};
use crate::shape::Deleted;
use crate::state::Shared;
use crate::words::{
    ModelInput, ModelOrigin, ModelProtocol, ModelPurpose, ModelSource, PriceSource, PriceTier, ProviderKind,
};

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(list, create))
        .routes(routes!(shipped))
        .routes(routes!(compare))
        .routes(routes!(sync))
        .routes(routes!(one, update, delete))
        .routes(routes!(prices))
        .routes(routes!(take_table))
}

/// The prices of one tier, in US dollars per million tokens. Null is unknown: a cache without a price of its own costs what input
/// costs, and a tier what the standard one costs.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct ModelRate {
    #[serde(default = "standard")]
    #[schema(required = false)]
    tier: PriceTier,
    /// For requests with more tokens of input than this: then all tokens of the request have these prices.
    #[serde(default)]
    #[schema(required = false, minimum = 0)]
    above: i64,
    #[schema(minimum = 0, example = 3)]
    input: Option<f64>,
    /// All output, reasoning included.
    #[schema(minimum = 0, example = 15)]
    output: Option<f64>,
    #[schema(minimum = 0, example = 0.3)]
    cache_read: Option<f64>,
    #[schema(minimum = 0, example = 3.75)]
    cache_write: Option<f64>,
    /// What is written into a cache that is kept for an hour.
    #[schema(minimum = 0, example = 6)]
    cache_write_1h: Option<f64>,
}

fn standard() -> PriceTier {
    PriceTier::Standard
}

impl From<&TierRate> for ModelRate {
    fn from(row: &TierRate) -> ModelRate {
        let usd = |price: Option<PerMillion>| price.map(PerMillion::usd);
        ModelRate {
            tier: row.tier.into(),
            above: row.above,
            input: usd(row.rate.input),
            output: usd(row.rate.output),
            cache_read: usd(row.rate.cache_read),
            cache_write: usd(row.rate.cache_write),
            cache_write_1h: usd(row.rate.cache_write_1h),
        }
    }
}

impl ModelRate {
    fn rate(&self) -> Result<TierRate> {
        let price = |usd: Option<f64>| {
            let wrong = || Error::field("prices", "must be 0 to 100,000 dollars per million tokens");
            usd.map(|usd| PerMillion::from_usd(usd).ok_or_else(wrong)).transpose()
        };
        let rate = Rate {
            input: price(self.input)?,
            output: price(self.output)?,
            cache_read: price(self.cache_read)?,
            cache_write: price(self.cache_write)?,
            cache_write_1h: price(self.cache_write_1h)?,
        };
        Ok(TierRate { tier: self.tier.into(), above: self.above, rate })
    }
}

/// A further provider of a model.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct ModelOffer {
    #[schema(max_length = 100)]
    provider: String,
    /// What the provider calls the model; null if that is its id.
    #[schema(max_length = 100)]
    upstream_name: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct ModelItem {
    #[schema(example = "claude-sonnet-4-6")]
    id: String,
    kind: ProviderKind,
    /// The provider that is asked first.
    #[schema(example = "anthropic")]
    provider: String,
    /// US dollars per 1,000 tokens of any kind: in force where `by_kind` is false.
    #[schema(example = 0.003)]
    price_per_1k: f64,
    enabled: bool,
    /// Its place in the fallback chain, if any: when it fails, those after it are asked.
    chain: Option<i64>,
    /// Other names under which it is asked. Requests are logged under its id.
    aliases: Vec<String>,
    /// What its first provider calls it.
    upstream_name: String,
    /// Further providers, in the order in which they are asked.
    offers: Vec<ModelOffer>,
    purpose: ModelPurpose,
    /// The protocols in which it may be asked; empty is all that its provider speaks. An embedding model is asked for embeddings alone.
    protocols: Vec<ModelProtocol>,
    /// Tokens of input and output together; null is unknown.
    context_window: Option<i64>,
    /// Tokens of the longest answer; null is unknown.
    max_output_tokens: Option<i64>,
    /// What it reads; empty is unknown.
    inputs: Vec<ModelInput>,
    /// Null is unknown.
    reasoning: Option<bool>,
    /// Null is unknown.
    tools: Option<bool>,
    /// Who said so; null while nothing is known.
    facts_source: Option<ModelSource>,
    origin: ModelOrigin,
    /// Whether the prices by kind of token are in force. If not, `price_per_1k` is, for every kind.
    by_kind: bool,
    /// The prices by kind that are in force; empty where `by_kind` is false.
    prices: Vec<ModelRate>,
    price_source: PriceSource,
    /// Since when its prices are in force.
    priced_at: String,
}

impl ModelItem {
    fn of(listed: Listed, zone: &Zone) -> ModelItem {
        let Listed { model, aliases, offers, price } = listed;
        let offer = |offer: model::Offer| ModelOffer {
            provider: offer.provider,
            upstream_name: Some(offer.upstream_name).filter(|name| !name.is_empty()),
        };
        ModelItem {
            kind: model.kind.into(),
            price_per_1k: model.price.usd(),
            enabled: model.enabled,
            chain: model.chain,
            aliases,
            upstream_name: model.upstream().to_owned(),
            offers: offers.into_iter().map(offer).collect(),
            purpose: model.purpose.into(),
            protocols: model.protocols.0.iter().copied().map(Into::into).collect(),
            context_window: model.context_window,
            max_output_tokens: model.max_output,
            inputs: model.inputs.0.iter().copied().map(Into::into).collect(),
            reasoning: model.reasoning,
            tools: model.tools,
            facts_source: model.facts.map(Into::into),
            origin: model.origin.into(),
            by_kind: price.prices.by_kind(),
            prices: price.prices.rates.iter().map(Into::into).collect(),
            price_source: price.source.into(),
            priced_at: zone.show(price.valid_from),
            provider: model.provider,
            id: model.id,
        }
    }
}

/// All models, in the order in which they are offered.
#[utoipa::path(get, path = "/models", tag = "models", responses((status = 200, body = Listing<ModelItem>)))]
async fn list(_: Admin, api: State) -> Answer<Listing<ModelItem>> {
    let list: Vec<ModelItem> =
        model::list(&api.app).await?.into_iter().map(|listed| ModelItem::of(listed, &api.app.zone)).collect();
    let total = list.len() as i64;
    Ok(Data(Listing { list, total }))
}

/// One model, by its id or an alias (beyond the spec). A slash in an id is written as `%2F`.
#[utoipa::path(get, path = "/models/{id}", tag = "models", params(("id" = String, Path)), responses((status = 200, body = ModelItem)))]
async fn one(_: Admin, api: State, Path(id): Path<String>) -> Answer<ModelItem> {
    Ok(Data(ModelItem::of(model::find(&api.app, &id).await?, &api.app.zone)))
}

#[derive(Deserialize, ToSchema)]
pub struct ModelPatch {
    /// Whether employees and assistants may use it.
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    enabled: Option<bool>,
    /// US dollars per 1,000 tokens: what the embedded gateway charges from now on, for every kind of token, unless `prices` come with it.
    /// Needs the permission `models.prices`.
    #[schema(nullable = false, minimum = 0, example = 0.003)]
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    price_per_1k: Option<f64>,
    /// What the embedded gateway charges from now on by kind of token; empty is `price_per_1k` for every kind. Needs the permission
    /// `models.prices`.
    #[schema(nullable = false, max_items = 32)]
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    prices: Option<Vec<ModelRate>>,
    #[schema(nullable = false)]
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    kind: Option<ProviderKind>,
    #[schema(value_type = Option<String>, nullable = false, max_length = 100, example = "anthropic")]
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    provider: Option<Text<100>>,
    /// What its first provider calls it; null is its id.
    #[schema(value_type = Option<String>, max_length = 100)]
    #[serde(default, deserialize_with = "crate::shape::given")]
    upstream_name: Option<Option<Text<100>>>,
    #[schema(value_type = Option<Vec<String>>, nullable = false, max_items = 20)]
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    aliases: Option<Vec<Text<100>>>,
    #[schema(nullable = false, max_items = 20)]
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    offers: Option<Vec<ModelOffer>>,
    #[schema(nullable = false)]
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    purpose: Option<ModelPurpose>,
    /// Empty is all that its provider speaks.
    #[schema(nullable = false, max_items = 4)]
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    protocols: Option<Vec<ModelProtocol>>,
    /// Null is unknown.
    #[schema(value_type = Option<i64>, minimum = 1)]
    #[serde(default, deserialize_with = "crate::shape::given")]
    context_window: Option<Option<i64>>,
    /// Null is unknown.
    #[schema(value_type = Option<i64>, minimum = 1)]
    #[serde(default, deserialize_with = "crate::shape::given")]
    max_output_tokens: Option<Option<i64>>,
    /// Empty is unknown.
    #[schema(nullable = false, max_items = 4)]
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    inputs: Option<Vec<ModelInput>>,
    /// Null is unknown.
    #[schema(value_type = Option<bool>)]
    #[serde(default, deserialize_with = "crate::shape::given")]
    reasoning: Option<Option<bool>>,
    /// Null is unknown.
    #[schema(value_type = Option<bool>)]
    #[serde(default, deserialize_with = "crate::shape::given")]
    tools: Option<Option<bool>>,
}

impl ModelPatch {
    fn patch(self) -> Result<Patch> {
        let too_high = || Error::field("price_per_1k", "must be 0 or more");
        let price = self.price_per_1k.map(|usd| Price::from_usd(usd).ok_or_else(too_high)).transpose()?;
        let rates = self.prices.map(|rows| rows.iter().map(ModelRate::rate).collect::<Result<_>>()).transpose()?;
        let text = |text: Option<Text<100>>| text.map(String::from).unwrap_or_default();
        let offers = |offers: Vec<ModelOffer>| {
            offers.into_iter().map(|offer| (offer.provider, offer.upstream_name.unwrap_or_default())).collect()
        };
        Ok(Patch {
            enabled: self.enabled,
            price,
            rates,
            kind: self.kind.map(Into::into),
            provider: self.provider.map(Into::into),
            upstream_name: self.upstream_name.map(text),
            aliases: self.aliases.map(|aliases| aliases.into_iter().map(Into::into).collect()),
            offers: self.offers.map(offers),
            purpose: self.purpose.map(Into::into),
            protocols: self.protocols.map(words),
            context_window: self.context_window,
            max_output: self.max_output_tokens,
            inputs: self.inputs.map(words),
            reasoning: self.reasoning,
            tools: self.tools,
        })
    }
}

/// Each word once.
fn words<T: Into<U>, U: PartialEq>(given: Vec<T>) -> Vec<U> {
    let mut words: Vec<U> = vec![];
    for word in given.into_iter().map(Into::into) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

#[derive(Deserialize, ToSchema)]
pub struct NewModel {
    #[schema(value_type = String, max_length = 100, example = "qwen3-max")]
    id: Text<100>,
    /// A name of GET /models/table: what the body leaves out is taken from that row.
    #[schema(value_type = Option<String>, max_length = 100)]
    from_table: Option<Text<100>>,
    #[serde(flatten)]
    fields: ModelPatch,
}

/// Adds a model (beyond the spec). `kind` is needed without a row of the table; of a row whose provider is no kind it is `compatible`, and
/// the provider is named like the row's. Without prices it costs what the spec says of unknown models, $0.002 per 1,000 tokens; setting
/// prices and `offers` needs the permission `models.prices`, taking a row's prices does not while the model is asked of the row's provider
/// by one of its names. No two models share an id or an alias, without regard to case: 409. So is, while a process of an older release runs,
/// a provider, kind, `upstream_name` or `offers` that it cannot ask.
#[utoipa::path(post, path = "/models", tag = "models", request_body = NewModel, responses((status = 200, body = ModelItem)))]
async fn create(who: Admin, api: State, Body(body): Body<NewModel>) -> Answer<ModelItem> {
    let patch = body.fields.patch()?;
    let from_table = body.from_table.as_ref().map(Text::as_str);
    let made = model::create(&api.app, &who.by, body.id.as_str(), from_table, patch).await?;
    Ok(Data(ModelItem::of(made, &api.app.zone)))
}

/// Changes a model (beyond the spec). A price that is set is a new version: a request costs what was true when it was made. Changing
/// `kind`, `provider`, `upstream_name` or `offers` needs the permission `models.prices`; 409 while a process of an older release runs that
/// cannot ask it there.
#[utoipa::path(patch, path = "/models/{id}", tag = "models", params(("id" = String, Path)), request_body = ModelPatch, responses((status = 200, body = ModelItem)))]
async fn update(who: Admin, api: State, Path(id): Path<String>, Body(body): Body<ModelPatch>) -> Answer<ModelItem> {
    let changed = model::update(&api.app, &who.by, &id, body.patch()?).await?;
    Ok(Data(ModelItem::of(changed, &api.app.zone)))
}

/// Deletes a model that an administrator added (beyond the spec). 409 for others, and while the fallback chain or an instance has it. One
/// with an edited price needs the permission `models.prices`.
#[utoipa::path(delete, path = "/models/{id}", tag = "models", params(("id" = String, Path)), responses((status = 200, body = Deleted)))]
async fn delete(who: Admin, api: State, Path(id): Path<String>) -> Answer<Deleted> {
    model::delete(&api.app, &who.by, &id).await?;
    Ok(Data(Deleted { id }))
}

/// What a model costs from a time on.
#[derive(Serialize, ToSchema)]
pub struct PriceVersion {
    valid_from: String,
    /// US dollars per 1,000 tokens of any kind: in force where `prices` is empty.
    price_per_1k: f64,
    prices: Vec<ModelRate>,
    source: PriceSource,
    /// The e-mail of who set it; empty for the platform.
    who: String,
}

impl PriceVersion {
    fn of(version: Version, zone: &Zone) -> PriceVersion {
        PriceVersion {
            valid_from: zone.show(version.valid_from),
            price_per_1k: version.prices.single.usd(),
            prices: version.prices.rates.iter().map(Into::into).collect(),
            source: version.source.into(),
            who: version.who,
        }
    }
}

/// The prices that a model has and had, newest first: at most 200 (beyond the spec).
#[utoipa::path(get, path = "/models/{id}/prices", tag = "models", params(("id" = String, Path)), responses((status = 200, body = Listing<PriceVersion>)))]
async fn prices(_: Admin, api: State, Path(id): Path<String>) -> Answer<Listing<PriceVersion>> {
    let versions = model::prices(&api.app, &id).await?;
    let list: Vec<_> = versions.into_iter().map(|version| PriceVersion::of(version, &api.app.zone)).collect();
    Ok(Data(Listing { total: list.len() as i64, list }))
}

/// A model that the release knows. Null, and an empty list, is unknown.
#[derive(Serialize, ToSchema)]
pub struct ShippedModel {
    name: String,
    /// Other names of the same model.
    also: Vec<String>,
    #[schema(example = "anthropic")]
    provider: String,
    purpose: ModelPurpose,
    protocols: Vec<ModelProtocol>,
    context_window: Option<i64>,
    max_output_tokens: Option<i64>,
    inputs: Vec<ModelInput>,
    reasoning: Option<bool>,
    tools: Option<bool>,
    prices: Vec<ModelRate>,
    /// Where these facts were read.
    source: String,
    #[schema(example = "2026-08-08")]
    source_date: String,
}

impl From<&Row> for ShippedModel {
    fn from(row: &Row) -> ShippedModel {
        ShippedModel {
            name: row.name.clone(),
            also: row.also.clone(),
            provider: row.provider.clone(),
            purpose: row.purpose.into(),
            protocols: row.protocols.iter().copied().map(Into::into).collect(),
            context_window: row.context_window,
            max_output_tokens: row.max_output,
            inputs: row.inputs.iter().copied().map(Into::into).collect(),
            reasoning: row.reasoning,
            tools: row.tools,
            prices: row.rates.iter().map(Into::into).collect(),
            source: row.source.url.clone(),
            source_date: row.source.date.clone(),
        }
    }
}

/// The table of models that ships with this release (beyond the spec). Prices change: each row says where it was read, and when.
#[utoipa::path(get, path = "/models/table", tag = "models", responses((status = 200, body = Listing<ShippedModel>)))]
async fn shipped(_: Admin) -> Answer<Listing<ShippedModel>> {
    let list: Vec<ShippedModel> = table::rows().iter().map(Into::into).collect();
    Ok(Data(Listing { total: list.len() as i64, list }))
}

#[derive(Serialize, ToSchema)]
pub struct ModelDifference {
    /// A field of the model, or a price such as `prices standard above 200000: input`, in US dollars per million tokens.
    field: String,
    /// Null is unknown.
    ours: Option<String>,
    /// Null is unknown.
    theirs: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct ComparedModel {
    id: String,
    /// The row that it is compared with.
    row: String,
    source: String,
    source_date: String,
    /// Empty where nothing differs.
    differences: Vec<ModelDifference>,
}

impl From<Compared> for ComparedModel {
    fn from(compared: Compared) -> ComparedModel {
        let difference = |d: compare::Difference| ModelDifference { field: d.field, ours: d.ours, theirs: d.theirs };
        ComparedModel {
            id: compared.id,
            row: compared.row.name.clone(),
            source: compared.row.source.url.clone(),
            source_date: compared.row.source.date.clone(),
            differences: compared.differences.into_iter().map(difference).collect(),
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct ModelComparison {
    list: Vec<ComparedModel>,
    total: i64,
    /// Models that the table does not know.
    unknown: Vec<String>,
}

/// Our models beside the table of this release (beyond the spec).
#[utoipa::path(get, path = "/models/compare", tag = "models", responses((status = 200, body = ModelComparison)))]
async fn compare(_: Admin, api: State) -> Answer<ModelComparison> {
    let (known, unknown) = compare::compare(&api.app).await?;
    let list: Vec<ComparedModel> = known.into_iter().map(Into::into).collect();
    Ok(Data(ModelComparison { total: list.len() as i64, list, unknown }))
}

/// Takes the facts and the prices of the release's table for a model (beyond the spec): from now on it is charged by kind of token, also
/// where `price_per_1k` was edited. 404 where the table does not know it.
#[utoipa::path(post, path = "/models/{id}/take-table", tag = "models", params(("id" = String, Path)), responses((status = 200, body = ModelItem)))]
async fn take_table(who: Admin, api: State, Path(id): Path<String>) -> Answer<ModelItem> {
    Ok(Data(ModelItem::of(model::take_table(&api.app, &who.by, &id).await?, &api.app.zone)))
}

#[derive(Deserialize, ToSchema)]
pub struct SyncModels {
    /// All instances that are on a server when omitted.
    #[schema(value_type = Option<Vec<String>>)]
    instance_ids: Option<Vec<Text<100>>>,
}

#[derive(Serialize, ToSchema)]
pub struct SyncedModels {
    models: Vec<ModelItem>,
    /// One task per instance.
    task_ids: Vec<String>,
}

/// Takes over the models of a foreign gateway, and has the list written to instances, one task each. What the release's table knows of a
/// new model comes with it; its prices are for information, since the gateway's own log says what a request cost.
#[utoipa::path(post, path = "/models/sync", tag = "models", request_body = SyncModels, responses((status = 200, body = SyncedModels)))]
async fn sync(who: Admin, api: State, Body(body): Body<SyncModels>) -> Answer<SyncedModels> {
    let ids = body.instance_ids.map(|ids| ids.iter().map(|id| InstanceId::named(id.as_str())).collect());
    let synced = model::sync(&api.app, &who.by, ids).await?;
    let models = synced.models.into_iter().map(|listed| ModelItem::of(listed, &api.app.zone)).collect();
    Ok(Data(SyncedModels { models, task_ids: synced.task_ids }))
}
