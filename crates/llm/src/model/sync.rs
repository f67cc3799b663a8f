//! Takes over the models of a foreign gateway, and has the list written to instances.

use base::id::InstanceId;
use base::{Error, Kind, Page, Result, Sort};
use queue::audit::{self, Action, AuditEvent, By};
use queue::task;
use store::db::Lock;
use store::model::{Model, Origin, ProviderKind};
use store::notice::{Notice, Topic};
use store::{Tx, instance, model};

use super::{Listed, list, table};
use crate::App;
use crate::task::SyncModelsToInstance;

/// The result of a synchronisation.
pub struct Synced {
    pub models: Vec<Listed>,
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
    Ok(Synced { models: list(app).await?, task_ids })
}

/// Adds the models that are new at the gateway, with what the release's table says of them, and disables those that it
/// does not offer any more. Returns how many are new. Their prices are for information: what a request cost is what the
/// gateway's log says.
async fn follow_gateway(app: &App, tx: &mut Tx, offered: &[String]) -> Result<usize> {
    // A name that is free now must not become somebody's alias meanwhile.
    tx.lock(Lock::ModelNames).await?;
    let mut added = 0;
    let known = model::all(&app.db).await?;
    let now = app.clock.now();
    for (place, id) in offered.iter().enumerate() {
        let named = Model::named(id, kind_of(id), now);
        let new = Model { sort_order: 100 + place as i64, origin: Origin::Gateway, ..named };
        if model::insert(tx, &new).await? {
            table::bring_one(tx, new, now).await?;
            added += 1;
        }
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
