//! An employee's own messages: saved by clients beside what they send elsewhere, read page by page, exported.

use base::id::{InstanceId, MessageId, UserId};
use base::{Error, Kind, Listing, Page, Result};
use jiff::SignedDuration;
use people::session::Employee;
use store::chat_message::{self, Unconfirmed};
pub use store::chat_message::{ChatMessage, Conversation, MessageFilter, Role};
use store::search::Found;
use store::{Tx, instance};

use crate::App;

/// A save of words that POST /me/chat stored within this time is the client's dual write of the same message.
const DUAL_WRITE: SignedDuration = SignedDuration::from_mins(10);
/// A client that saves first asks at once: the same words later are said again.
const SAVED_FIRST: SignedDuration = SignedDuration::from_mins(1);

/// The longest message that is kept, in bytes: histories are read many messages at a time.
pub const LONGEST: usize = 256 * 1024;

pub struct Save {
    pub instance_id: InstanceId,
    pub role: Role,
    pub content: String,
    pub tokens: i64,
    /// The client's own id: a repeat changes nothing.
    pub client_id: Option<String>,
    pub session_key: String,
}

/// Stores a message of the user's. Whatever the database has against it is a failed save.
pub async fn save(app: &App, who: &Employee, save: Save) -> Result<()> {
    // PostgreSQL keeps no NUL in a text; a message without it is the same message.
    let content = save.content.replace('\0', "");
    if content.trim().is_empty() || content.len() > LONGEST || save.tokens < 0 {
        return Err(Kind::BadRequest.into());
    }
    let message = ChatMessage {
        id: base::id::fresh(),
        user_id: who.id.as_str().to_owned(),
        instance_id: save.instance_id.as_str().to_owned(),
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
        // The same client_id at the same moment: the other one is in.
        Err(store::Error::Taken) => Ok(()),
        Err(error) => Err(Error::from(Kind::SaveFailed).with_operator(error)),
    }
}

/// Stores what was said through POST /me/chat, unless the client has saved it a moment ago.
pub(super) async fn keep(app: &App, message: &ChatMessage) -> Result<()> {
    let mut tx = app.db.begin().await?;
    // Held, as by a save: either finds the other's, and an instance keeps as many as it may.
    instance::lock(&mut tx, &InstanceId::named(&message.instance_id)).await?;
    if !chat_message::adopt(&mut tx, message, message.created_at - SAVED_FIRST).await? {
        chat_message::insert(&mut tx, message).await?;
    }
    Ok(tx.commit().await?)
}

/// As much of a text as is kept of a message.
pub(super) fn kept(text: &str) -> String {
    let mut text = text.replace('\0', "");
    text.truncate(text.floor_char_boundary(LONGEST));
    text
}

/// False when the instance is not the user's.
async fn store_once(app: &App, user: &UserId, id: &InstanceId, message: &ChatMessage) -> store::Result<bool> {
    let mut tx = app.db.begin().await?;
    // Held, so that of two saves of the same words each finds a message of its own.
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

/// The user's own messages on from one of them, the newest first, batch by batch.
pub async fn older(
    app: &App,
    user: &UserId,
    filter: MessageFilter<'_>,
    before: &ChatMessage,
    limit: i64,
) -> Result<Vec<ChatMessage>> {
    Ok(chat_message::older(&app.db, user, filter, before, limit).await?)
}

/// The user's own messages from the oldest on, batch by batch.
pub async fn after(
    app: &App,
    user: &UserId,
    filter: MessageFilter<'_>,
    last: Option<&ChatMessage>,
    limit: i64,
) -> Result<Vec<ChatMessage>> {
    Ok(chat_message::after(&app.db, user, filter, last, limit).await?)
}
