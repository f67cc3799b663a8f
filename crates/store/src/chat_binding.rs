//! Chat-bot bindings of instances.

use base::Secret;
use base::id::{ChatBindingId, InstanceId};
use jiff::Timestamp;

use crate::db::Record as _;
use crate::seal::{Place, Sealer};
use crate::{Conn, Db, Result, Tx, args, record};

record! {
    #[derive(Clone, Debug)]
    pub struct ChatBinding {
        pub id: String,
        pub instance_id: String,
        pub platform: String,
        /// Sealed: see `token`.
        pub bot_token: String,
        pub chat_id: String,
        pub bot_username: String,
        pub is_active: bool,
        pub created_at: Timestamp,
    }
}

impl ChatBinding {
    pub fn token(&self, sealer: &Sealer) -> Result<Secret> {
        sealer.open(token_place(&self.id), &self.bot_token)
    }
}

pub fn token_place(id: &str) -> Place<'_> {
    Place { table: "chat_binding", column: "bot_token", id }
}

/// Fails with `Taken` when a live binding has the same token.
pub async fn insert(tx: &mut Tx, binding: &ChatBinding, token_hash: &str) -> Result<()> {
    let sql = "INSERT INTO chat_binding (id, instance_id, platform, bot_token, bot_token_hash, chat_id, bot_username, is_active, created_at) \
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let args = args![
        &binding.id,
        &binding.instance_id,
        &binding.platform,
        &binding.bot_token,
        token_hash,
        &binding.chat_id,
        &binding.bot_username,
        binding.is_active,
        binding.created_at
    ];
    tx.run(sql, args).await.map(drop)
}

pub async fn of_instance(db: &Db, instance: &InstanceId) -> Result<Vec<ChatBinding>> {
    let sql = format!(
        "SELECT {} FROM chat_binding WHERE instance_id = ? AND deleted_at IS NULL ORDER BY created_at, id",
        ChatBinding::COLUMNS
    );
    db.all(&sql, args![instance.as_str()]).await
}

pub async fn find(conn: impl Into<Conn<'_>>, instance: &InstanceId, id: &ChatBindingId) -> Result<Option<ChatBinding>> {
    let sql = format!(
        "SELECT {} FROM chat_binding WHERE id = ? AND instance_id = ? AND deleted_at IS NULL",
        ChatBinding::COLUMNS
    );
    conn.into().first(&sql, args![id.as_str(), instance.as_str()]).await
}

pub async fn delete(tx: &mut Tx, id: &ChatBindingId, at: Timestamp) -> Result<()> {
    tx.run("UPDATE chat_binding SET deleted_at = ? WHERE id = ?", args![at, id.as_str()]).await.map(drop)
}

/// Deletes all bindings of an instance: its bots are not the next user's.
pub async fn delete_all(tx: &mut Tx, instance: &InstanceId, at: Timestamp) -> Result<u64> {
    let sql = "UPDATE chat_binding SET deleted_at = ? WHERE instance_id = ? AND deleted_at IS NULL";
    tx.run(sql, args![at, instance.as_str()]).await
}

record! {
    struct Hashed { instance_id: String, bot_token_hash: String }
}

/// The instance and the keyed hash of the token of every live binding.
pub async fn hashes(db: &Db) -> Result<Vec<(String, String)>> {
    let sql = "SELECT instance_id, bot_token_hash FROM chat_binding WHERE deleted_at IS NULL ORDER BY created_at, id";
    let rows: Vec<Hashed> = db.all(sql, args![]).await?;
    Ok(rows.into_iter().map(|row| (row.instance_id, row.bot_token_hash)).collect())
}
