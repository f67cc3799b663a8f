//! Who may write to a bot. Without any sender, the bot answers nobody and gives a pairing code to everybody who writes;
//! with one or more, it answers these and ignores all others.

use base::id::ChatBindingId;
use base::{Error, Kind, Result};
use queue::audit::{self, Action, AuditEvent, By};
pub use store::chat_sender::ChatSender;
use store::{chat_binding, chat_sender};

use crate::App;
use crate::chat_binding::{ChatBinding, Target, on_behalf};
use crate::task::enqueue_write_config;

/// How many senders a bot may have. The list is part of the instance's configuration.
pub const MOST: usize = 20;

/// The longest id that the chat platform gives out, in digits.
const LONGEST_ID: usize = 20;

/// Whether a text has the form of a sender's id: a number without a sign. Anything else in the allow list would match
/// nobody, or with an asterisk everybody.
pub fn is_sender_id(text: &str) -> bool {
    (1..=LONGEST_ID).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0')
}

/// A bot of the instance, and its senders.
pub async fn of_bot(app: &App, target: Target<'_>, id: &ChatBindingId) -> Result<(ChatBinding, Vec<ChatSender>)> {
    target.find(app).await?;
    let binding = chat_binding::find(&app.db, target.instance, id).await?.ok_or(Kind::NotFound)?;
    let senders = list(app, &binding).await?;
    Ok((binding, senders))
}

pub async fn list(app: &App, binding: &ChatBinding) -> Result<Vec<ChatSender>> {
    Ok(chat_sender::of_binding(&app.db, binding).await?)
}

/// Allows a sender, and enqueues the new configuration. If the sender is allowed already, nothing changes.
pub async fn allow(
    app: &App,
    by: &By,
    target: Target<'_>,
    id: &ChatBindingId,
    sender: &str,
    name: &str,
) -> Result<ChatBinding> {
    if !is_sender_id(sender) {
        return Err(Error::field("sender_id", "must be the sender's number at the chat platform, such as 123456789"));
    }
    let mut tx = app.db.begin().await?;
    let found = target.lock(&mut tx).await?;
    let binding = chat_binding::find(&mut tx, target.instance, id).await?.ok_or(Kind::NotFound)?;
    let senders = chat_sender::of_binding(&mut tx, &binding).await?;
    if senders.iter().any(|allowed| allowed.sender_id == sender) {
        return Ok(binding);
    }
    if senders.len() >= MOST {
        return Err(Error::conflict(format!("{MOST} senders are allowed already: remove one first")));
    }
    let sender = ChatSender {
        binding_id: id.clone(),
        sender_id: sender.to_owned(),
        name: name.to_owned(),
        created_at: app.clock.now(),
    };
    chat_sender::insert(&mut tx, &sender).await?;
    enqueue_write_config(app, &mut tx, &found, &by.operator).await?;
    let detail = describe(&binding, &sender.sender_id, "allowed", by);
    audit::record(app, &mut tx, by, AuditEvent::info(Action::InstanceUpdate, target.instance.as_str(), &detail))
        .await?;
    tx.commit().await?;
    Ok(binding)
}

/// Removes a sender, and enqueues the new configuration.
pub async fn remove(app: &App, by: &By, target: Target<'_>, id: &ChatBindingId, sender: &str) -> Result<()> {
    let mut tx = app.db.begin().await?;
    let found = target.lock(&mut tx).await?;
    let binding = chat_binding::find(&mut tx, target.instance, id).await?.ok_or(Kind::NotFound)?;
    let senders = chat_sender::of_binding(&mut tx, &binding).await?;
    if !senders.iter().any(|allowed| allowed.sender_id == sender) {
        return Err(Error::new(Kind::NotFound, "this sender is not allowed"));
    }
    if binding.chat_id == sender {
        chat_binding::clear_chat_id(&mut tx, id).await?;
    }
    chat_sender::delete(&mut tx, id, sender).await?;
    enqueue_write_config(app, &mut tx, &found, &by.operator).await?;
    let detail = describe(&binding, sender, "removed", by);
    audit::record(app, &mut tx, by, AuditEvent::info(Action::InstanceUpdate, target.instance.as_str(), &detail))
        .await?;
    Ok(tx.commit().await?)
}

/// The audit text about a sender. It has the id and not the name: a sender may call itself anything.
pub fn describe(binding: &ChatBinding, sender: &str, what: &str, by: &By) -> String {
    format!("sender {sender} of {} bot {} {what}{}", binding.platform, binding.bot_username, on_behalf(by))
}

#[cfg(test)]
mod tests {
    use super::is_sender_id;

    #[test]
    fn a_sender_is_a_number_and_never_everybody() {
        for good in ["1", "4711", "12345678901234567890"] {
            assert!(is_sender_id(good), "{good}");
        }
        for bad in ["", "0", "-100123", "*", "tg:4711", "@ada", "4 711", "٤٧", "123456789012345678901", "4711\n"] {
            assert!(!is_sender_id(bad), "{bad:?}");
        }
    }
}
