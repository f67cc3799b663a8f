//! The models of an instance: which it may use, in which protocol its agents ask them, and what its configuration says of them.

use base::price::{PerMillion, Prices, Rate, Tier};
use base::{Result, Secret};
use llm::key;
use llm::model::{Input, Listed, PriceSource, Protocol, ProviderKind, Purpose};
use llm::spoken::{Spoken, spoken};
use openclaw::config::{Access, Api, Cost, Model, Rates};
use store::instance::Instance;

use crate::App;

/// The model access; none as long as no model may be used, or if the instance keeps its own provider.
pub async fn access(app: &App, instance: &Instance) -> Result<Option<Access>> {
    let Some(models) = models(app, instance).await? else { return Ok(None) };
    let key = key::of_instance(app, &instance.id).await?.key(&app.sealer)?;
    Ok(Some(models.access(app, key)))
}

/// The models that may be used, and which of them the instance's agents do.
pub struct Models {
    pub list: Vec<Model>,
    pub primary: String,
    pub fallbacks: Vec<String>,
    embedding: Option<String>,
}

impl Models {
    /// The access with a key.
    pub fn access(self, app: &App, key: Secret) -> Access {
        let Models { list: models, primary, fallbacks, embedding } = self;
        Access { gateway_url: app.assistants.gateway_url.clone(), key, models, primary, fallbacks, embedding }
    }
}

/// The instance's own model first; where it has none, or one that may not be used any more, the first of the fallback chain.
pub async fn models(app: &App, instance: &Instance) -> Result<Option<Models>> {
    if instance.own_llm {
        return Ok(None);
    }
    let enabled: Vec<Spoken> = spoken(app).await?.into_iter().filter(|one| one.listed.model.enabled).collect();
    let is_embedding = |one: &&Spoken| one.listed.model.purpose == Purpose::Embedding;
    let embeds = |one: &&Spoken| is_embedding(one) && one.protocols.contains(&Protocol::Embeddings);
    let embedding = enabled.iter().find(embeds).map(|one| one.listed.model.id.clone());
    let is_embedded = app.upstream.embedded;
    let usable: Vec<(Model, Option<i64>)> = enabled
        .iter()
        .filter(|one| !is_embedding(one))
        .map(|one| (entry(one, is_embedded), one.listed.model.chain))
        .filter(|(model, _)| !model.apis.is_empty())
        .collect();
    let mut chain: Vec<(i64, &str)> = usable.iter().filter_map(|(m, chain)| Some(((*chain)?, m.id.as_str()))).collect();
    chain.sort_unstable();
    let own = usable.iter().map(|(m, _)| m.id.as_str()).find(|id| *id == instance.model);
    let first = || chain.first().map(|(_, id)| *id).or_else(|| usable.first().map(|(m, _)| m.id.as_str()));
    let Some(primary) = own.or_else(first).map(str::to_owned) else { return Ok(None) };
    let fallbacks = chain.iter().map(|(_, id)| (*id).to_owned()).filter(|id| *id != primary).collect();
    Ok(Some(Models { list: usable.into_iter().map(|(model, _)| model).collect(), primary, fallbacks, embedding }))
}

/// What the configuration says of a model.
fn entry(one: &Spoken, is_embedded: bool) -> Model {
    let model = &one.listed.model;
    let api = |protocol: &Protocol| match protocol {
        Protocol::Chat => Some(Api::Completions),
        Protocol::Messages => Some(Api::Messages),
        Protocol::Responses => Some(Api::Responses),
        Protocol::Embeddings => None,
    };
    let inputs = &model.inputs.0;
    Model {
        id: model.id.clone(),
        name: model.id.clone(),
        apis: one.protocols.iter().filter_map(api).collect(),
        context_window: model.context_window,
        max_tokens: model.max_output,
        // OpenClaw reads documents itself.
        images: (!inputs.is_empty()).then(|| inputs.contains(&Input::Image)),
        reasoning: model.reasoning,
        cost: cost(&one.listed, is_embedded),
        // Others may refuse a field that they do not know.
        takes_cache_key: is_embedded && model.kind == ProviderKind::Openai && one.listed.offers.is_empty(),
    }
}

/// What a request costs, as far as it is known: the embedded gateway counts by the prices in force, whatever they are; what
/// another counts is its own, so a price that nobody looked up is left out.
fn cost(listed: &Listed, is_embedded: bool) -> Option<Cost> {
    let prices = &listed.price.prices;
    if !is_embedded && !prices.by_kind() && listed.price.source != PriceSource::Edited {
        return None;
    }
    let mut limits: Vec<i64> =
        prices.rates.iter().filter(|row| row.tier == Tier::Standard && row.above > 0).map(|row| row.above).collect();
    limits.sort_unstable();
    let above = limits.into_iter().map(|limit| (limit, rates(prices, limit + 1))).collect();
    Some(Cost { rates: rates(prices, 1), above })
}

/// The rates for an input of this length. What has no price of its own costs what the gateway takes for it.
fn rates(prices: &Prices, prompt: i64) -> Rates {
    let rate = prices.rate(prompt, Tier::Standard);
    let (Some(input), Some(output)) = (rate.input, rate.output) else {
        let single = prices.single.usd() * 1_000.0;
        return Rates { input: single, output: single, cache_read: single, cache_write: single };
    };
    let Rate { cache_read, cache_write, .. } = rate;
    let or_input = |price: Option<PerMillion>| price.unwrap_or(input).usd();
    Rates {
        input: input.usd(),
        output: output.usd(),
        cache_read: or_input(cache_read),
        cache_write: or_input(cache_write),
    }
}
