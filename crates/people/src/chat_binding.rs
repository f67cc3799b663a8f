//! Chat bots of an instance. A bot token belongs to one instance only, and an instance has one bot of each platform.

use base::id::{ChatBindingId, InstanceId, UserId};
use base::{Error, Kind, Result, Secret};
use jiff::SignedDuration;
use queue::audit::{self, Action, AuditEvent, By};
use queue::task;
pub use store::chat_binding::ChatBinding;
use store::chat_sender::ChatSender;
use store::instance::{self, Instance};
use store::{Tx, chat_binding, chat_sender};

use crate::task::{ClearWebhook, enqueue_write_config};
use crate::{App, holder};

/// The platform when none is named.
pub const DEFAULT_PLATFORM: &str = "telegram";
/// The platforms whose bots we can connect to an instance.
pub const PLATFORMS: &[&str] = &[DEFAULT_PLATFORM];

/// Refuses a platform whose bots we cannot connect, and names those we can.
pub fn require_platform(platform: &str) -> Result<()> {
    if PLATFORMS.contains(&platform) {
        return Ok(());
    }
    Err(Error::field("platform", format_args!("is not supported; supported: {}", PLATFORMS.join(", "))))
}

/// A binding ends in the transaction that enqueues the task, but the two times may differ a little: the clock is read
/// twice.
const TOGETHER: SignedDuration = SignedDuration::from_secs(60);

/// The instance whose bots change, and who asks. An employee may change them only while holding the instance, which may
/// end at any moment. For administrators `holder` is `None`.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    pub instance: &'a InstanceId,
    pub holder: Option<&'a UserId>,
}

impl Target<'_> {
    pub async fn find(self, app: &App) -> Result<Instance> {
        self.admit(instance::find(&app.db, self.instance).await?)
    }

    /// Locks the instance, so that its holder stays the same until the change is made.
    pub(crate) async fn lock(self, tx: &mut Tx) -> Result<Instance> {
        self.admit(instance::lock(tx, self.instance).await?)
    }

    fn admit(self, found: Option<Instance>) -> Result<Instance> {
        match self.holder {
            Some(user) => holder::held_by(user, found),
            None => Ok(found.ok_or(Kind::NotFound)?),
        }
    }
}

pub struct New {
    pub platform: String,
    pub bot_token: Secret,
    pub chat_id: String,
    pub bot_username: String,
    /// Whether the senders of the binding that this one replaces may go on writing, if it is the same bot.
    pub keep_senders: bool,
}

pub async fn list(app: &App, instance: &InstanceId) -> Result<Vec<ChatBinding>> {
    instance::find(&app.db, instance).await?.ok_or(Kind::NotFound)?;
    Ok(chat_binding::of_instance(&app.db, instance).await?)
}

/// Binds a bot with the data given, without asking the chat platform: the instance's gateway registers itself there.
/// `by_webhook` says whether the platform calls us for it.
pub async fn bind(app: &App, by: &By, target: Target<'_>, new: New, by_webhook: bool) -> Result<ChatBinding> {
    let id = ChatBindingId::fresh();
    let secret = match by_webhook && new.platform == DEFAULT_PLATFORM {
        true => Some(base::secret::random_token()?),
        false => None,
    };
    create(app, by, target, new, &id, secret, false).await
}

/// Writes the binding and enqueues the new configuration of the instance. With `replace`, the instance's other bot of
/// the platform is removed; without it, such a bot is a conflict.
pub async fn create(
    app: &App,
    by: &By,
    target: Target<'_>,
    new: New,
    id: &ChatBindingId,
    secret: Option<Secret>,
    replace: bool,
) -> Result<ChatBinding> {
    require_platform(&new.platform)?;
    // OpenClaw takes an asterisk for everybody.
    if new.chat_id.contains('*') {
        return Err(Error::field("chat_id", "must name one sender"));
    }
    let instance = target.instance;
    let mut tx = app.db.begin().await?;
    let found = target.lock(&mut tx).await?;
    if found.is_there() && !found.is_managed() {
        return Err(Error::conflict("nothing is written to this assistant: its bot is set where it runs"));
    }
    let hash = app.sealer.hash(&new.bot_token);
    let mut senders = vec![];
    for old in chat_binding::live(&mut tx, instance).await?.into_iter().filter(|b| b.platform == new.platform) {
        if !replace {
            return Err(Error::conflict("the instance has a bot of this platform already: take it off first"));
        }
        // If it is the same bot, it continues under the new binding, and its webhook must not be cleared.
        let same = app.sealer.hash(&old.token(&app.sealer)?) == hash;
        if same && new.keep_senders {
            senders = chat_sender::of_binding(&mut tx, &old).await?;
        }
        end(app, &mut tx, &old, !same, &by.operator).await?;
    }
    let secret = secret.map(|s| app.sealer.seal(chat_binding::secret_place(id.as_str()), &s)).transpose()?;
    let binding = ChatBinding {
        bot_token: app.sealer.seal(chat_binding::token_place(id.as_str()), &new.bot_token)?,
        id: id.clone(),
        instance_id: instance.clone(),
        platform: new.platform,
        chat_id: new.chat_id,
        bot_username: new.bot_username,
        is_active: true,
        webhook_secret: secret,
        created_at: app.clock.now(),
    };
    chat_binding::insert(&mut tx, &binding, &hash).await.map_err(|e| match e {
        store::Error::Taken => Error::conflict("this bot token is bound to an instance already"),
        other => other.into(),
    })?;
    for sender in senders.into_iter().filter(|sender| sender.sender_id != binding.chat_id) {
        chat_sender::insert(&mut tx, &ChatSender { binding_id: id.clone(), ..sender }).await?;
    }
    enqueue_write_config(app, &mut tx, &found, &by.operator).await?;
    let detail = format!("{} bot {} bound{}", binding.platform, binding.bot_username, on_behalf(by));
    audit::record(app, &mut tx, by, AuditEvent::info(Action::InstanceUpdate, instance.as_str(), &detail)).await?;
    tx.commit().await?;
    Ok(binding)
}

/// Removes a bot. Tasks clear its webhook at the platform and its part of the instance's configuration.
pub async fn delete(app: &App, by: &By, target: Target<'_>, id: &ChatBindingId) -> Result<()> {
    let instance = target.instance;
    let mut tx = app.db.begin().await?;
    let found = target.lock(&mut tx).await?;
    let binding = chat_binding::find(&mut tx, instance, id).await?.ok_or(Kind::NotFound)?;
    // Enqueue this before the webhook is cleared: a gateway that starts with the old configuration would set the
    // webhook again.
    enqueue_write_config(app, &mut tx, &found, &by.operator).await?;
    end(app, &mut tx, &binding, true, &by.operator).await?;
    let detail = format!("{} bot {} unbound{}", binding.platform, binding.bot_username, on_behalf(by));
    audit::record(app, &mut tx, by, AuditEvent::info(Action::InstanceUpdate, instance.as_str(), &detail)).await?;
    Ok(tx.commit().await?)
}

/// Removes all bots of an instance, because they do not belong to its next holder. The caller enqueues the new
/// configuration.
pub async fn end_all(app: &App, tx: &mut Tx, instance: &InstanceId, source: &str) -> Result<()> {
    for binding in chat_binding::live(tx, instance).await? {
        end(app, tx, &binding, true, source).await?;
    }
    Ok(())
}

/// Silences the bots of an instance without a holder, until the same user holds it again. The caller enqueues the new
/// configuration.
pub async fn silence_all(tx: &mut Tx, instance: &InstanceId) -> Result<()> {
    Ok(chat_binding::set_active(tx, instance, false).await?)
}

pub async fn wake_all(tx: &mut Tx, instance: &InstanceId) -> Result<()> {
    Ok(chat_binding::set_active(tx, instance, true).await?)
}

async fn end(app: &App, tx: &mut Tx, binding: &ChatBinding, clear: bool, source: &str) -> Result<()> {
    chat_binding::delete(tx, &binding.id, app.clock.now()).await?;
    if clear && binding.platform == DEFAULT_PLATFORM && binding.webhook_secret.is_some() {
        task::enqueue(app, tx, &ClearWebhook { binding_id: binding.id.clone() }, source, None).await?;
    }
    Ok(())
}

/// Clears webhooks again, after a task that removed a bot from the instance's configuration: a gateway that started
/// after the first clearing may have set them again. It covers the bindings that ended when the task was enqueued, or
/// later.
pub async fn clear_again(app: &App, made: &task::Task, instance: &InstanceId) -> Result<()> {
    let mut tx = app.db.begin().await?;
    for binding in chat_binding::ended_since(&mut tx, instance, made.created_at - TOGETHER).await? {
        let payload = ClearWebhook { binding_id: binding.id };
        task::enqueue(app, &mut tx, &payload, &made.r#type, None).await?;
    }
    Ok(tx.commit().await?)
}

/// Names the employee in the detail, because the operator of their actions is the system.
pub(crate) fn on_behalf(by: &By) -> String {
    if by.on_behalf_of.is_empty() { String::new() } else { format!(" by {}", by.on_behalf_of) }
}
