//! The models that the LLM gateway offers.

use base::id::InstanceId;
use base::money::Price;
use base::{Error, Listing, Text};
use llm::model::{self, Model, Patch};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::extract::{Admin, Answer, Body, Path, State};
use crate::state::Shared;
use crate::words::ProviderKind;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default().routes(routes!(list)).routes(routes!(update)).routes(routes!(sync))
}

#[derive(Serialize, ToSchema)]
pub struct ModelItem {
    #[schema(example = "claude-sonnet-4-6")]
    id: String,
    kind: ProviderKind,
    #[schema(example = "anthropic")]
    provider: String,
    /// US dollars per 1,000 tokens.
    #[schema(example = 0.003)]
    price_per_1k: f64,
    enabled: bool,
    /// Its place in the fallback chain, if any: when it fails, those after it are asked.
    chain: Option<i64>,
}

impl From<Model> for ModelItem {
    fn from(model: Model) -> ModelItem {
        ModelItem {
            id: model.id,
            kind: model.kind.into(),
            provider: model.provider,
            price_per_1k: model.price.usd(),
            enabled: model.enabled,
            chain: model.chain,
        }
    }
}

/// All models, in the order in which they are offered.
#[utoipa::path(get, path = "/models", tag = "models", responses((status = 200, body = Listing<ModelItem>)))]
async fn list(_: Admin, api: State) -> Answer<Listing<ModelItem>> {
    let list: Vec<ModelItem> = model::list(&api.app).await?.into_iter().map(Into::into).collect();
    let total = list.len() as i64;
    Ok(Data(Listing { list, total }))
}

#[derive(Deserialize, ToSchema)]
pub struct ModelPatch {
    /// Whether employees and assistants may use it.
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    #[schema(nullable = false)]
    enabled: Option<bool>,
    /// US dollars per 1,000 tokens: what the embedded gateway charges from now on. Needs the permission `models.prices`.
    #[schema(nullable = false, minimum = 0, example = 0.003)]
    #[serde(default, deserialize_with = "crate::shape::not_null")]
    price_per_1k: Option<f64>,
}

/// Changes a model's price, or whether it is offered (beyond the spec).
#[utoipa::path(patch, path = "/models/{id}", tag = "models", params(("id" = String, Path)), request_body = ModelPatch, responses((status = 200, body = ModelItem)))]
async fn update(who: Admin, api: State, Path(id): Path<String>, Body(body): Body<ModelPatch>) -> Answer<ModelItem> {
    let price = match body.price_per_1k {
        Some(usd) => Some(Price::from_usd(usd).ok_or_else(|| Error::field("price_per_1k", "must be 0 or more"))?),
        None => None,
    };
    let patch = Patch { enabled: body.enabled, price };
    Ok(Data(model::update(&api.app, &who.by, &id, patch).await?.into()))
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

/// Takes over the models of a foreign gateway, and has the list written to instances, one task each.
#[utoipa::path(post, path = "/models/sync", tag = "models", request_body = SyncModels, responses((status = 200, body = SyncedModels)))]
async fn sync(who: Admin, api: State, Body(body): Body<SyncModels>) -> Answer<SyncedModels> {
    let ids = body.instance_ids.map(|ids| ids.iter().map(|id| InstanceId::named(id.as_str())).collect());
    let synced = model::sync(&api.app, &who.by, ids).await?;
    Ok(Data(SyncedModels { models: synced.models.into_iter().map(Into::into).collect(), task_ids: synced.task_ids }))
}
