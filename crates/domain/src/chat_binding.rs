//! Chat-bot bindings of an instance. A bot's token belongs to one instance only.

use base::id::{ChatBindingId, InstanceId};
use base::{Error, Kind, Result, Secret};
use store::chat_binding;
pub use store::chat_binding::ChatBinding;
use store::instance;

use crate::App;
use crate::audit::{self, Action, By, Deed};

/// The platform when none is named.
pub const DEFAULT_PLATFORM: &str = "telegram";

pub struct New {
    pub platform: String,
    pub bot_token: Secret,
    pub chat_id: String,
    pub bot_username: String,
}

pub async fn list(app: &App, instance: &InstanceId) -> Result<Vec<ChatBinding>> {
    instance::find(&app.db, instance).await?.ok_or(Kind::NotFound)?;
    Ok(chat_binding::of_instance(&app.db, instance).await?)
}

pub async fn create(app: &App, by: &By, instance: &InstanceId, new: New) -> Result<ChatBinding> {
    let id = ChatBindingId::fresh();
    let mut tx = app.db.begin().await?;
    instance::lock(&mut tx, instance).await?.ok_or(Kind::NotFound)?;
    let binding = ChatBinding {
        bot_token: app.sealer.seal(chat_binding::token_place(id.as_str()), &new.bot_token)?,
        id: id.as_str().to_owned(),
        instance_id: instance.as_str().to_owned(),
        platform: new.platform,
        chat_id: new.chat_id,
        bot_username: new.bot_username,
        is_active: true,
        created_at: app.clock.now(),
    };
    let hash = app.sealer.hash(&new.bot_token);
    chat_binding::insert(&mut tx, &binding, &hash).await.map_err(|e| match e {
        store::Error::Taken => Error::conflict("this bot token is bound to an instance already"),
        other => other.into(),
    })?;
    let detail = format!("{} bot {} bound{}", binding.platform, binding.bot_username, on_behalf(by));
    audit::record(app, &mut tx, by, Deed::info(Action::InstanceUpdate, instance.as_str(), &detail)).await?;
    tx.commit().await?;
    Ok(binding)
}

pub async fn delete(app: &App, by: &By, instance: &InstanceId, id: &ChatBindingId) -> Result<()> {
    let mut tx = app.db.begin().await?;
    let binding = chat_binding::find(&mut tx, instance, id).await?.ok_or(Kind::NotFound)?;
    chat_binding::delete(&mut tx, id, app.clock.now()).await?;
    let detail = format!("{} bot {} unbound{}", binding.platform, binding.bot_username, on_behalf(by));
    audit::record(app, &mut tx, by, Deed::info(Action::InstanceUpdate, instance.as_str(), &detail)).await?;
    Ok(tx.commit().await?)
}

/// Employees act through the system: who it was stands in the detail.
fn on_behalf(by: &By) -> String {
    if by.on_behalf_of.is_empty() { String::new() } else { format!(" by {}", by.on_behalf_of) }
}
