//! An employee's own messages: clients save them here in addition to sending them, read them page by page and export
//! them.

use base::id::{InstanceId, MessageId, UserId};
use base::{Error, Kind, Listing, Page, Result};
use jiff::SignedDuration;
use people::session::Employee;
use store::chat_message::{self, Unconfirmed};
pub use store::chat_message::{ChatMessage, Conversation, MessageFilter, Role};
use store::search::Found;
use store::{Tx, instance};

use crate::App;

/// If a client saves a text that POST /me/chat stored within this time, it is the same message (dual write).
const DUAL_WRITE: SignedDuration = SignedDuration::from_mins(10);
/// If a client saves a message first, its POST /me/chat follows at once. After this time the same text is a new
/// message.
const SAVED_FIRST: SignedDuration = SignedDuration::from_mins(1);

/// The maximum size of a stored message, in bytes. Histories are read many messages at a time.
pub const LONGEST: usize = 256 * 1024;

pub struct Save {
    pub instance_id: InstanceId,
    pub role: Role,
    pub content: String,
    pub tokens: i64,
    /// The client's own id. A second save with the same id changes nothing.
    pub client_id: Option<String>,
    pub session_key: String,
}

/// Stores a message of the user. A database error is reported as a failed save.
pub async fn save(app: &App, who: &Employee, save: Save) -> Result<()> {
    // PostgreSQL cannot store NUL in a text, so it is removed.
    let content = save.content.replace('\0', "");
    if content.trim().is_empty() || content.len() > LONGEST || save.tokens < 0 {
        return Err(Kind::BadRequest.into());
    }
    let message = ChatMessage {
        id: MessageId::fresh(),
        user_id: who.id.clone(),
        instance_id: save.instance_id.clone(),
        role: save.role,
        content,
        tokens: save.tokens,
        session_key: save.session_key,
        client_id: save.client_id,
        unconfirmed: Unconfirmed::Saved,
        created_at: app.clock.now(),
    };
    match store_once(app, &who.id, &save.instance_id, &message).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(Kind::NoAccess.into()),
        // A concurrent save with the same client_id has stored the message.
        Err(store::Error::Taken) => Ok(()),
        Err(error) => Err(Error::from(Kind::SaveFailed).with_operator(error)),
    }
}

/// Stores a message of POST /me/chat, unless the client has just saved it.
pub(super) async fn keep(app: &App, message: &ChatMessage) -> Result<()> {
    let mut tx = app.db.begin().await?;
    // Lock the instance, as a save does. Then each of the two sees the other's message, and the limit on stored
    // messages is exact.
    instance::lock(&mut tx, &message.instance_id).await?;
    if !chat_message::adopt(&mut tx, message, message.created_at - SAVED_FIRST).await? {
        chat_message::insert(&mut tx, message).await?;
    }
    Ok(tx.commit().await?)
}

/// Cuts a text to the part that is stored.
pub(super) fn kept(text: &str) -> String {
    let mut text = text.replace('\0', "");
    text.truncate(text.floor_char_boundary(LONGEST));
    text
}

/// False when the instance is not the user's.
async fn store_once(app: &App, user: &UserId, id: &InstanceId, message: &ChatMessage) -> store::Result<bool> {
    let mut tx = app.db.begin().await?;
    // Lock the instance, so that two saves of the same text confirm two different messages.
    let found = instance::lock(&mut tx, id).await?;
    if found.is_none_or(|instance| instance.assigned_user_id.as_deref() != Some(user.as_str())) {
        return Ok(false);
    }
    if !is_repeat(&mut tx, user, message).await?
        && !chat_message::confirm(&mut tx, message, message.created_at - DUAL_WRITE).await?
    {
        chat_message::insert(&mut tx, message).await?;
    }
    tx.commit().await?;
    Ok(true)
}

async fn is_repeat(tx: &mut Tx, user: &UserId, message: &ChatMessage) -> store::Result<bool> {
    match &message.client_id {
        Some(client_id) => chat_message::is_saved(tx, user, client_id).await,
        None => Ok(false),
    }
}

/// A page of the user's own messages, the newest first.
pub async fn history(
    app: &App,
    user: &UserId,
    filter: MessageFilter<'_>,
    before: Option<&MessageId>,
    page: Page,
) -> Result<Found<ChatMessage>> {
    let before = match before {
        Some(id) => {
            let found = chat_message::find(&app.db, user, id).await?;
            Some(found.ok_or_else(|| Error::new(Kind::NotFound, "before: there is no such message"))?)
        }
        None => None,
    };
    Ok(chat_message::of_user(&app.db, user, filter, before.as_ref(), page).await?)
}

/// The user's own conversations, the last used first.
pub async fn conversations(
    app: &App,
    user: &UserId,
    instance: Option<&InstanceId>,
    page: Page,
) -> Result<Listing<Conversation>> {
    Ok(chat_message::conversations(&app.db, user, instance, page).await?)
}

/// A batch of the user's own messages that are older than `before`, the newest first.
pub async fn older(
    app: &App,
    user: &UserId,
    filter: MessageFilter<'_>,
    before: &ChatMessage,
    limit: i64,
) -> Result<Vec<ChatMessage>> {
    Ok(chat_message::older(&app.db, user, filter, before, limit).await?)
}

/// A batch of the user's own messages after `last`, the oldest first.
pub async fn after(
    app: &App,
    user: &UserId,
    filter: MessageFilter<'_>,
    last: Option<&ChatMessage>,
    limit: i64,
) -> Result<Vec<ChatMessage>> {
    Ok(chat_message::after(&app.db, user, filter, last, limit).await?)
}
