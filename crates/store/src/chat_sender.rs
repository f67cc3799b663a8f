//! Senders that the owner of a bot has allowed to write to it, besides the `chat_id` of its binding.

use base::id::ChatBindingId;
use jiff::Timestamp;

use crate::chat_binding::ChatBinding;
use crate::db::Record as _;
use crate::{Conn, Result, Tx, args, record};

record! {
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ChatSender {
        pub binding_id: ChatBindingId,
        /// The sender's id at the chat platform.
        pub sender_id: String,
        /// As the sender calls itself there; empty if the id was entered by hand.
        pub name: String,
        pub created_at: Timestamp,
    }
}

/// Everybody whose messages the bot answers: the sender it was bound with, then the others in the order of their
/// approval. If there is none, people have to ask.
pub async fn of_binding(conn: impl Into<Conn<'_>>, binding: &ChatBinding) -> Result<Vec<ChatSender>> {
    let sql =
        format!("SELECT {} FROM chat_sender WHERE binding_id = ? ORDER BY created_at, sender_id", ChatSender::COLUMNS);
    let mut senders: Vec<ChatSender> = conn.into().all(&sql, args![binding.id.as_str()]).await?;
    if !binding.chat_id.is_empty() {
        senders.retain(|sender| sender.sender_id != binding.chat_id);
        let first = ChatSender {
            binding_id: binding.id.clone(),
            sender_id: binding.chat_id.clone(),
            name: String::new(),
            created_at: binding.created_at,
        };
        senders.insert(0, first);
    }
    Ok(senders)
}

pub async fn insert(tx: &mut Tx, sender: &ChatSender) -> Result<()> {
    let sql = "INSERT INTO chat_sender (binding_id, sender_id, name, created_at) VALUES (?, ?, ?, ?)";
    tx.run(sql, args![&sender.binding_id, &sender.sender_id, &sender.name, sender.created_at]).await.map(drop)
}

pub async fn delete(tx: &mut Tx, binding: &ChatBindingId, sender: &str) -> Result<()> {
    let sql = "DELETE FROM chat_sender WHERE binding_id = ? AND sender_id = ?";
    tx.run(sql, args![binding.as_str(), sender]).await.map(drop)
}
