//! Bring a marketplace item onto an instance, or take it off again, as its install record wishes.

use base::id::InstallId;
use base::{Error, Result};
use openclaw::Version;
use openclaw::layout::CONFIG_DOCUMENT;
use queue::task::Run;
use queue::worker::MOST_ATTEMPTS;
use serde_json::Value;
use store::marketplace::{File, Scope};

use crate::App;
use crate::assistant::desired::Desired;
use crate::assistant::{Assistant, config, files, install as program, pending, service, settings};
use crate::install::{self, Place, Wish};
use crate::reconcile::step::{self, Step};
use crate::task::{ApplyMarketplaceItem, Context, instance_of};

impl Run<App> for ApplyMarketplaceItem {
    async fn run(self, context: Context) -> Result<String> {
        let id = self.install_id.clone();
        let applied = apply(&context, &id).await;
        if let Err(error) = &applied {
            let given_up = context.held.attempt >= MOST_ATTEMPTS;
            let mut tx = context.app.db.begin().await?;
            install::failed(&context.app, &mut tx, &id, &error.client, given_up).await?;
            tx.commit().await?;
        }
        applied
    }
}

async fn apply(context: &Context, id: &InstallId) -> Result<String> {
    let app = &context.app;
    let mut tx = app.db.begin().await?;
    let wish = install::started(app, &mut tx, id).await?;
    let instance = instance_of(&mut tx, id).await?;
    tx.commit().await?;
    let (summary, places) = match wish {
        Wish::Nothing => return Ok("it is as it should be".into()),
        Wish::Install { item, files, stale } => {
            let assistant = Assistant::open(app, &instance).await?;
            service::state(&assistant).await?;
            let version = program::of_instance(app, &assistant).await?;
            let mut tx = app.db.begin().await?;
            install::touching(app, &mut tx, id).await?;
            tx.commit().await?;
            bring_files(context, &assistant, &version, &files).await?;
            remove(context, &assistant, &stale).await?;
            forget_sessions(context, &assistant).await?;
            let places: Vec<Place> = files.iter().map(Place::of).collect();
            (format!("{} {} is on the instance", item.name, item.version), places)
        }
        Wish::Remove { places } => {
            let assistant = Assistant::open(app, &instance).await?;
            remove(context, &assistant, &places).await?;
            forget_sessions(context, &assistant).await?;
            ("it is taken off the instance".to_owned(), vec![])
        }
    };
    let mut tx = app.db.begin().await?;
    install::finished(app, &mut tx, id, &places).await?;
    tx.commit().await?;
    Ok(summary)
}

/// Puts files in their places. The configuration document is merged into the instance's, never put in its place.
pub(super) async fn bring_files(
    context: &Context,
    assistant: &Assistant,
    version: &Version,
    all: &[File],
) -> Result<()> {
    for file in all {
        if file.scope == Scope::Config && file.path == CONFIG_DOCUMENT {
            let mut wishes: Value = serde_json::from_str(&file.content).map_err(Error::internal)?;
            if let Some(map) = wishes.as_object_mut() {
                map.remove("meta");
            }
            // What the platform decides about an instance is no item's to change.
            let desired = Desired::of(&context.app, assistant, version).await?;
            let edit = |document: &mut openclaw::Document| {
                settings::merge(document, &wishes)?;
                desired.apply(document)
            };
            config::change(context, assistant, version, &edit).await?;
        } else {
            files::place_item(assistant, file.scope, &file.path, &file.content).await?;
        }
    }
    context.log(&format!("{} files written", all.len())).await
}

/// What an item merged into the configuration stays: nobody knows what was there before.
async fn remove(context: &Context, assistant: &Assistant, places: &[Place]) -> Result<()> {
    for place in places {
        match place.scope() {
            Some(Scope::Config) if place.path == CONFIG_DOCUMENT => {
                context.log("what it set in the configuration stays").await?;
            }
            Some(scope) => files::remove_item(assistant, scope, &place.path).await?,
            None => return Err(Error::internal("a file of an item in no known folder")),
        }
    }
    if places.is_empty() { Ok(()) } else { context.log(&format!("{} files removed", places.len())).await }
}

/// Sessions know the skills that were there when they began; a restart lets them look again. A worker before this one may have got as
/// far as stopping it.
async fn forget_sessions(context: &Context, assistant: &Assistant) -> Result<()> {
    if service::state(assistant).await?.is_running() || pending::of(&context.app, assistant).await?.pending.is_start() {
        step::serve(context, assistant, Step::Restart).await
    } else {
        context.log("it is not running, and sees the files when it starts").await
    }
}
