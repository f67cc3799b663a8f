//! Chat messages, per user and instance. Each instance keeps its newest 5,000.

use jiff::Timestamp;

use crate::db::Record as _;
use crate::{Db, Result, Tx, args, record, word};

/// How many messages an instance keeps.
pub const KEPT: i64 = 5_000;

word! {
    pub enum Role {
        User = "user",
        Assistant = "assistant",
    }
}

record! {
    #[derive(Clone, Debug)]
    pub struct ChatMessage {
        pub id: String,
        pub user_id: String,
        pub instance_id: String,
        pub role: Role,
        pub content: String,
        pub tokens: i64,
        pub session_key: String,
        pub client_id: Option<String>,
        /// Stored by POST /me/chat, and not yet repeated by a save.
        pub unconfirmed: bool,
        pub created_at: Timestamp,
    }
}

/// Adds a message and lets go of the instance's oldest beyond what is kept.
pub async fn insert(tx: &mut Tx, message: &ChatMessage) -> Result<()> {
    insert_unchecked(tx, message).await?;
    let over = "DELETE FROM chat_message WHERE instance_id = ? AND id IN (SELECT id FROM chat_message WHERE instance_id = ? \
        ORDER BY created_at DESC, id DESC LIMIT ? OFFSET ?)";
    tx.run(over, args![&message.instance_id, &message.instance_id, KEPT, KEPT]).await.map(drop)
}

/// Adds a message, however many there are.
pub async fn insert_unchecked(tx: &mut Tx, message: &ChatMessage) -> Result<()> {
    let sql = "INSERT INTO chat_message (id, user_id, instance_id, role, content, tokens, session_key, client_id, unconfirmed, created_at) \
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let args = args![
        &message.id,
        &message.user_id,
        &message.instance_id,
        message.role,
        &message.content,
        message.tokens,
        &message.session_key,
        message.client_id.as_ref(),
        message.unconfirmed,
        message.created_at
    ];
    tx.run(sql, args).await.map(drop)
}

/// An instance's newest messages, the newest first.
pub async fn newest(db: &Db, instance: &str, limit: i64) -> Result<Vec<ChatMessage>> {
    let sql = format!(
        "SELECT {} FROM chat_message WHERE instance_id = ? ORDER BY created_at DESC, id DESC LIMIT ?",
        ChatMessage::COLUMNS
    );
    db.all(&sql, args![instance, limit]).await
}

/// Whether the table can be read at all.
pub async fn look(db: &Db) -> Result<()> {
    let _: Option<crate::db::Number> = db.first("SELECT tokens AS n FROM chat_message LIMIT 1", args![]).await?;
    Ok(())
}
