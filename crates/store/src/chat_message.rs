//! Chat messages, per user and instance. Each instance keeps its newest 5,000.

use base::id::{InstanceId, UserId};
use jiff::Timestamp;

use crate::db::Number;
use crate::{Result, Tx, args, record, word};

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
    tx.run(sql, args).await?;
    let over = "DELETE FROM chat_message WHERE instance_id = ? AND id IN (SELECT id FROM chat_message WHERE instance_id = ? \
        ORDER BY created_at DESC, id DESC LIMIT ? OFFSET ?)";
    tx.run(over, args![&message.instance_id, &message.instance_id, KEPT, KEPT]).await.map(drop)
}

pub async fn count(tx: &mut Tx, user: &UserId, instance: &InstanceId) -> Result<i64> {
    let sql = "SELECT COUNT(*) AS n FROM chat_message WHERE user_id = ? AND instance_id = ?";
    let number: Option<Number> = tx.first(sql, args![user.as_str(), instance.as_str()]).await?;
    Ok(number.map_or(0, |n| n.n))
}
