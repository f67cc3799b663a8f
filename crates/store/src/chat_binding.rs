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
        pub id: ChatBindingId,
        pub instance_id: InstanceId,
        pub platform: String,
        /// Sealed: see `token`.
        pub bot_token: String,
        pub chat_id: String,
        pub bot_username: String,
        pub is_active: bool,
        /// Sealed: see `secret`. None for a bot that is polled.
        pub webhook_secret: Option<String>,
        pub created_at: Timestamp,
    }
}

impl ChatBinding {
    pub fn token(&self, sealer: &Sealer) -> Result<Secret> {
        sealer.open(token_place(&self.id), &self.bot_token)
    }

    /// The secret that the chat platform sends with every message.
    pub fn secret(&self, sealer: &Sealer) -> Result<Option<Secret>> {
        self.webhook_secret.as_ref().map(|sealed| sealer.open(secret_place(&self.id), sealed)).transpose()
    }
}

pub fn token_place(id: &str) -> Place<'_> {
    Place { table: "chat_binding", column: "bot_token", id }
}

pub fn secret_place(id: &str) -> Place<'_> {
    Place { table: "chat_binding", column: "webhook_secret", id }
}

/// Fails with `Taken` when a live binding has the same token.
pub async fn insert(tx: &mut Tx, binding: &ChatBinding, token_hash: &str) -> Result<()> {
    let sql = "INSERT INTO chat_binding (id, instance_id, platform, bot_token, bot_token_hash, chat_id, bot_username, is_active, webhook_secret, created_at) \
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let args = args![
        &binding.id,
        &binding.instance_id,
        &binding.platform,
        &binding.bot_token,
        token_hash,
        &binding.chat_id,
        &binding.bot_username,
        binding.is_active,
        binding.webhook_secret.as_ref(),
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

/// Removes the sender that the bot was bound with.
pub async fn clear_chat_id(tx: &mut Tx, id: &ChatBindingId) -> Result<()> {
    tx.run("UPDATE chat_binding SET chat_id = '' WHERE id = ?", args![id.as_str()]).await.map(drop)
}

/// Switches all bots of an instance on or off.
pub async fn set_active(tx: &mut Tx, instance: &InstanceId, is_active: bool) -> Result<()> {
    let sql = "UPDATE chat_binding SET is_active = ? WHERE instance_id = ? AND deleted_at IS NULL";
    tx.run(sql, args![is_active, instance.as_str()]).await.map(drop)
}

/// Ends a binding. Its senders are other people's ids and names, so they are not kept.
pub async fn delete(tx: &mut Tx, id: &ChatBindingId, at: Timestamp) -> Result<()> {
    tx.run("DELETE FROM chat_sender WHERE binding_id = ?", args![id.as_str()]).await?;
    tx.run("UPDATE chat_binding SET deleted_at = ? WHERE id = ?", args![at, id.as_str()]).await.map(drop)
}

/// Like `of_instance`, within a transaction.
pub async fn live(tx: &mut Tx, instance: &InstanceId) -> Result<Vec<ChatBinding>> {
    let sql = format!(
        "SELECT {} FROM chat_binding WHERE instance_id = ? AND deleted_at IS NULL ORDER BY created_at, id",
        ChatBinding::COLUMNS
    );
    tx.all(&sql, args![instance.as_str()]).await
}

/// The live binding of a token, of any instance.
pub async fn find_by_token(db: &Db, token_hash: &str) -> Result<Option<ChatBinding>> {
    let sql =
        format!("SELECT {} FROM chat_binding WHERE bot_token_hash = ? AND deleted_at IS NULL", ChatBinding::COLUMNS);
    db.first(&sql, args![token_hash]).await
}

pub async fn find_live(db: &Db, id: &ChatBindingId) -> Result<Option<ChatBinding>> {
    let sql = format!("SELECT {} FROM chat_binding WHERE id = ? AND deleted_at IS NULL", ChatBinding::COLUMNS);
    db.first(&sql, args![id.as_str()]).await
}

/// Also finds a removed binding, for work that remains after the removal.
pub async fn find_even_deleted(db: &Db, id: &ChatBindingId) -> Result<Option<ChatBinding>> {
    db.first(&format!("SELECT {} FROM chat_binding WHERE id = ?", ChatBinding::COLUMNS), args![id.as_str()]).await
}

/// Bindings of an instance that ended since then and had a webhook at the chat platform.
pub async fn ended_since(tx: &mut Tx, instance: &InstanceId, since: Timestamp) -> Result<Vec<ChatBinding>> {
    let sql = format!(
        "SELECT {} FROM chat_binding WHERE instance_id = ? AND deleted_at >= ? AND webhook_secret IS NOT NULL ORDER BY created_at, id",
        ChatBinding::COLUMNS
    );
    tx.all(&sql, args![instance.as_str(), since]).await
}

/// Whether we ever configured a bot of this platform for the instance.
pub async fn had_any(db: &Db, instance: &InstanceId, platform: &str) -> Result<bool> {
    let sql = "SELECT COUNT(*) AS n FROM chat_binding WHERE instance_id = ? AND platform = ?";
    let number: crate::db::Number = Conn::from(db).one(sql, args![instance.as_str(), platform]).await?;
    Ok(number.n > 0)
}

record! {
    struct Hashed { instance_id: InstanceId, bot_token_hash: String }
}

/// The instance and the keyed hash of the token of every live binding.
pub async fn hashes(db: &Db) -> Result<Vec<(InstanceId, String)>> {
    let sql = "SELECT instance_id, bot_token_hash FROM chat_binding WHERE deleted_at IS NULL ORDER BY created_at, id";
    let rows: Vec<Hashed> = db.all(sql, args![]).await?;
    Ok(rows.into_iter().map(|row| (row.instance_id, row.bot_token_hash)).collect())
}
