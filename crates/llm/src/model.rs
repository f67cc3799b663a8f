//! The models that employees and assistants may use.

use base::id::InstanceId;
use base::money::Price;
use base::{Error, Kind, Page, Result, Sort};
use queue::audit::{self, Action, AuditEvent, By, Changes};
use queue::permission::Permission;
use queue::task;
pub use store::model::{Model, ProviderKind};
use store::notice::{Notice, Topic};
use store::{Tx, instance, model};

use crate::App;
use crate::task::SyncModelsToInstance;

/// What a PATCH changes; `None` leaves a field as it is.
#[derive(Default)]
pub struct Patch {
    pub enabled: Option<bool>,
    pub price: Option<Price>,
}

pub async fn list(app: &App) -> Result<Vec<Model>> {
    Ok(model::all(&app.db).await?)
}

/// The model of this name, if it may be used.
pub async fn usable(app: &App, id: &str) -> Result<Model> {
    let found = model::find(&app.db, id).await?.filter(|m| m.enabled);
    found.ok_or_else(|| Error::field("model", "is not one that the LLM gateway offers: see GET /models"))
}

pub async fn update(app: &App, by: &By, id: &str, patch: Patch) -> Result<Model> {
    if patch.price.is_some() {
        by.require(Permission::SetPrices)?;
    }
    let mut tx = app.db.begin().await?;
    let mut model = model::lock(&mut tx, id).await?.ok_or(Kind::NotFound)?;
    let old = model.clone();
    model.enabled = patch.enabled.unwrap_or(model.enabled);
    model.price = patch.price.unwrap_or(model.price);
    let changes = Changes::default().field("enabled", &old.enabled.to_string(), &model.enabled.to_string()).field(
        "price_per_1k",
        &old.price.usd().to_string(),
        &model.price.usd().to_string(),
    );
    model::update(&mut tx, &model).await?;
    let target = format!("model {id}");
    audit::record(app, &mut tx, by, AuditEvent::info(Action::ConfigChange, &target, &changes.text())).await?;
    tx.notify(Notice::new(Topic::Key, "models")).await?;
    tx.commit().await?;
    Ok(model)
}

/// The result of a synchronisation.
pub struct Synced {
    pub models: Vec<Model>,
    pub task_ids: Vec<String>,
}

/// Copies the list of models from a foreign gateway, and enqueues copying it to instances: to those that are named, or
/// to all that are on a server.
pub async fn sync(app: &App, by: &By, instances: Option<Vec<InstanceId>>) -> Result<Synced> {
    let offered = if app.upstream.embedded { vec![] } else { app.upstream.gateway.models().await? };
    if !app.upstream.embedded && offered.is_empty() {
        return Err(Error::new(Kind::Gateway, "the LLM gateway offers no model at all"));
    }
    let mut ids: Vec<InstanceId> = match instances {
        Some(ids) => ids,
        None => {
            let sort = Sort { column: "created_at", descending: false };
            let all = instance::list(&app.db, instance::InstanceFilter::default(), sort, Page::ALL).await?;
            all.list
                .iter()
                .filter(|listed| listed.instance.is_managed())
                .map(|listed| listed.instance.id.clone())
                .collect()
        }
    };
    // Sort the ids: `task::enqueue` requires the same order from every caller.
    ids.sort_by(|a, b| a.as_str().cmp(b.as_str()));
    ids.dedup_by(|a, b| a.as_str() == b.as_str());
    let mut tx = app.db.begin().await?;
    let added = if app.upstream.embedded { 0 } else { follow_gateway(app, &mut tx, &offered).await? };
    let mut task_ids = vec![];
    for id in &ids {
        instance::find(&mut tx, id)
            .await?
            .ok_or_else(|| Error::field("instance_ids", format_args!("{id} is unknown")))?;
        let payload = SyncModelsToInstance { instance_id: id.clone() };
        task_ids.push(task::enqueue(app, &mut tx, &payload, "models sync", None).await?.as_str().to_owned());
    }
    let detail = format!("models synchronised: {added} new, {} instances", ids.len());
    audit::record(app, &mut tx, by, AuditEvent::info(Action::ConfigChange, "models", &detail)).await?;
    tx.notify(Notice::new(Topic::Key, "models")).await?;
    tx.commit().await?;
    Ok(Synced { models: model::all(&app.db).await?, task_ids })
}

/// Adds the models that are new at the gateway, and disables those that it does not offer any more. Returns how many
/// are new.
async fn follow_gateway(app: &App, tx: &mut Tx, offered: &[String]) -> Result<usize> {
    let mut added = 0;
    let known = model::all(&app.db).await?;
    for (place, id) in offered.iter().enumerate() {
        let kind = kind_of(id);
        let new = Model {
            id: id.clone(),
            kind,
            provider: kind.as_str().to_owned(),
            price: Price::of(id),
            enabled: true,
            chain: None,
            sort_order: 100 + place as i64,
            created_at: app.clock.now(),
        };
        added += usize::from(model::insert(tx, &new).await?);
    }
    for gone in known.iter().filter(|m| m.enabled && !offered.contains(&m.id)) {
        model::switch_off(tx, &gone.id).await?;
    }
    Ok(added)
}

/// The provider of a model, by its name: a foreign gateway does not report it.
fn kind_of(id: &str) -> ProviderKind {
    let name = id.rsplit('/').next().unwrap_or(id);
    if name.starts_with("claude") {
        ProviderKind::Anthropic
    } else if name.starts_with("gemini") {
        ProviderKind::Google
    } else {
        ProviderKind::Openai
    }
}
