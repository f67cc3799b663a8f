//! Chat messages, per user and instance. The newest 5,000 of each user on each instance are kept.

use base::id::{InstanceId, MessageId, UserId};
use base::{Listing, Page, Sort};
use jiff::Timestamp;

use crate::conditions::Conditions;
use crate::db::Record as _;
use crate::row::{Column, Row, Value};
use crate::search::{Depth, Found, Range};
use crate::{Db, Error, Result, Tx, args, record, word};

/// How many messages of a user on an instance are kept.
pub const KEPT: i64 = 5_000;

word! {
    pub enum Role {
        User = "user",
        Assistant = "assistant",
    }
}

/// Both POST /me/chat and the client may store the same message. This says which of them has, so that it is stored
/// once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unconfirmed {
    /// Nothing more is expected: both have stored it, or the row is from before this was recorded.
    No,
    /// Stored by POST /me/chat, and not yet saved by the client.
    Stored,
    /// Saved by the client, and not yet stored by POST /me/chat. Most of these never are.
    Saved,
}

impl From<Unconfirmed> for Value {
    fn from(state: Unconfirmed) -> Value {
        let number: i64 = match state {
            Unconfirmed::No => 0,
            Unconfirmed::Stored => 1,
            Unconfirmed::Saved => 2,
        };
        number.into()
    }
}

impl Column for Unconfirmed {
    fn read(row: &Row, name: &str) -> Result<Self> {
        match row.get::<i64>(name)? {
            0 => Ok(Unconfirmed::No),
            1 => Ok(Unconfirmed::Stored),
            2 => Ok(Unconfirmed::Saved),
            other => Err(Error::Column(name.into(), format!("unknown number {other}"))),
        }
    }
}

record! {
    #[derive(Clone, Debug)]
    pub struct ChatMessage {
        pub id: MessageId,
        pub user_id: UserId,
        pub instance_id: InstanceId,
        pub role: Role,
        pub content: String,
        pub tokens: i64,
        pub session_key: String,
        pub client_id: Option<String>,
        pub unconfirmed: Unconfirmed,
        pub created_at: Timestamp,
    }
}

/// Adds a message and deletes the user's oldest on this instance beyond `KEPT`. The number is exact if the caller has
/// locked the instance's row.
pub async fn insert(tx: &mut Tx, message: &ChatMessage) -> Result<()> {
    insert_unchecked(tx, message).await?;
    // The oldest that goes is found once. With `id IN (SELECT …)` PostgreSQL may search it again for every message, if
    // it has no statistics of the table yet: that took 25 s.
    let over = "DELETE FROM chat_message WHERE instance_id = ? AND user_id = ? AND (created_at, id) <= (SELECT created_at, id \
        FROM chat_message WHERE instance_id = ? AND user_id = ? ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET ?)";
    let (instance, user) = (&message.instance_id, &message.user_id);
    tx.run(over, args![instance, user, instance, user, KEPT]).await.map(drop)
}

/// Adds a message without deleting old ones.
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
pub async fn newest(db: &Db, instance: &InstanceId, limit: i64) -> Result<Vec<ChatMessage>> {
    let sql = format!(
        "SELECT {} FROM chat_message WHERE instance_id = ? ORDER BY created_at DESC, id DESC LIMIT ?",
        ChatMessage::COLUMNS
    );
    db.all(&sql, args![instance, limit]).await
}

/// Fails if the table cannot be read.
pub async fn look(db: &Db) -> Result<()> {
    let _: Option<crate::db::Number> = db.first("SELECT tokens AS n FROM chat_message LIMIT 1", args![]).await?;
    Ok(())
}

/// Whether the user has saved a message with this client id.
pub async fn is_saved(tx: &mut Tx, user: &UserId, client_id: &str) -> Result<bool> {
    let sql = "SELECT COUNT(*) AS n FROM chat_message WHERE user_id = ? AND client_id = ?";
    let number: crate::db::Number = crate::Conn::from(tx).one(sql, args![user.as_str(), client_id]).await?;
    Ok(number.n > 0)
}

/// Finds the message that POST /me/chat has stored already (the oldest with the same text since `since`) and adds the
/// client's data to it. Each stored message matches once. The caller has locked the instance's row.
pub async fn confirm(tx: &mut Tx, saved: &ChatMessage, since: Timestamp) -> Result<bool> {
    let sql = "UPDATE chat_message SET unconfirmed = 0, client_id = ?, session_key = ?, \
            tokens = CASE WHEN tokens = 0 THEN ? ELSE tokens END \
        WHERE id = (SELECT id FROM chat_message WHERE user_id = ? AND instance_id = ? AND role = ? AND content = ? \
            AND unconfirmed = 1 AND created_at >= ? ORDER BY created_at, id LIMIT 1)";
    let args = args![
        saved.client_id.as_ref(),
        &saved.session_key,
        saved.tokens,
        &saved.user_id,
        &saved.instance_id,
        saved.role,
        &saved.content,
        since
    ];
    Ok(tx.run(sql, args).await? > 0)
}

/// The reverse of `confirm`: finds the message that the client saved before POST /me/chat stores it, and keeps the
/// client's data. Each saved message matches once. The caller has locked the instance's row.
pub async fn adopt(tx: &mut Tx, stored: &ChatMessage, since: Timestamp) -> Result<bool> {
    let sql = "UPDATE chat_message SET unconfirmed = 0, tokens = CASE WHEN tokens = 0 THEN ? ELSE tokens END \
        WHERE id = (SELECT id FROM chat_message WHERE user_id = ? AND instance_id = ? AND role = ? AND content = ? \
            AND unconfirmed = 2 AND created_at >= ? ORDER BY created_at, id LIMIT 1)";
    let args = args![stored.tokens, &stored.user_id, &stored.instance_id, stored.role, &stored.content, since];
    Ok(tx.run(sql, args).await? > 0)
}

/// The filter of a user's message history.
#[derive(Clone, Debug, Default)]
pub struct MessageFilter<'a> {
    pub instance: Option<&'a InstanceId>,
    pub session_key: Option<&'a str>,
    pub q: Option<&'a str>,
    /// Continue an earlier search, which got back as far as this time.
    pub search_before: Option<Timestamp>,
    /// How far back the search got whose further results are read.
    pub searched_since: Option<Timestamp>,
}

impl MessageFilter<'_> {
    fn indexed(&self, db: &Db, user: &UserId) -> Conditions {
        Conditions::of(db.dialect())
            .when("user_id = ?", Some(user.as_str()))
            .when("instance_id = ?", self.instance.map(InstanceId::as_str))
            .when("session_key = ?", self.session_key)
            .when("created_at >= ?", self.searched_since)
    }

    fn conditions(&self, db: &Db, user: &UserId) -> Conditions {
        self.indexed(db, user).when("created_at < ?", self.search_before).search(&["content"], self.q)
    }
}

/// A message, if it is this user's.
pub async fn find(db: &Db, user: &UserId, id: &MessageId) -> Result<Option<ChatMessage>> {
    let sql = format!("SELECT {} FROM chat_message WHERE id = ? AND user_id = ?", ChatMessage::COLUMNS);
    db.first(&sql, args![id.as_str(), user.as_str()]).await
}

/// A page of a user's own messages, newest first; with `before`, only those older than that message.
pub async fn of_user(
    db: &Db,
    user: &UserId,
    filter: MessageFilter<'_>,
    before: Option<&ChatMessage>,
    page: Page,
) -> Result<Found<ChatMessage>> {
    let mut conditions = filter.conditions(db, user);
    if let Some(before) = before {
        conditions = than(conditions, before);
    }
    let range = match filter.q {
        Some(q) if !q.trim().is_empty() => {
            let indexed = filter.indexed(db, user).into_clause();
            Some(Range::newest(db, "chat_message", indexed, Depth::Messages, filter.search_before).await?)
        }
        _ => None,
    };
    let since = range.as_ref().and_then(|range| range.since);
    let conditions = conditions.within(range);
    let found = conditions.list(db, ChatMessage::COLUMNS, "chat_message", NEWEST, "id", page).await?;
    Ok(Found { searched_since: since, ..Found::all(found) })
}

const NEWEST: Sort = Sort { column: "created_at", descending: true };

/// Adds the condition that a message is older than `before`.
fn than(conditions: Conditions, before: &ChatMessage) -> Conditions {
    conditions
        .when("created_at <= ?", Some(before.created_at))
        .when("(created_at < ?", Some(before.created_at))
        .or("id < ?)", before.id.as_str())
}

/// A user's own messages that are older than `before`, newest first.
pub async fn older(
    db: &Db,
    user: &UserId,
    filter: MessageFilter<'_>,
    before: &ChatMessage,
    limit: i64,
) -> Result<Vec<ChatMessage>> {
    let conditions = than(filter.conditions(db, user), before);
    let select = format!("SELECT {} FROM chat_message", ChatMessage::COLUMNS);
    let (sql, args) = conditions.page(&select, NEWEST, "id", Page { offset: 0, limit });
    conditions.conn(db).all(&sql, args).await
}

record! {
    /// The messages of a user and an instance under one session key.
    #[derive(Clone, Debug)]
    pub struct Conversation {
        pub instance_id: InstanceId,
        pub session_key: String,
        pub messages: i64,
        pub last_at: Timestamp,
    }
}

/// A page of a user's own conversations, the one with the newest message first.
pub async fn conversations(
    db: &Db,
    user: &UserId,
    instance: Option<&InstanceId>,
    page: Page,
) -> Result<Listing<Conversation>> {
    let conditions = Conditions::of(db.dialect())
        .when("user_id = ?", Some(user.as_str()))
        .when("instance_id = ?", instance.map(InstanceId::as_str))
        .must("session_key <> ''");
    let (clause, args) = conditions.clause();
    let grouped = format!(
        "SELECT instance_id, session_key, COUNT(*) AS messages, MAX(created_at) AS last_at FROM chat_message{clause} \
        GROUP BY instance_id, session_key"
    );
    let count = format!("SELECT COUNT(*) AS n FROM ({grouped}) g");
    let total: crate::db::Number = crate::Conn::from(db).one(&count, args.clone()).await?;
    let sql = format!("{grouped} ORDER BY last_at DESC, instance_id, session_key LIMIT ? OFFSET ?");
    let list = db.all(&sql, [args, args![page.limit, page.offset]].concat()).await?;
    Ok(Listing { list, total: total.n })
}

/// A user's own messages that are newer than `last`, oldest first.
pub async fn after(
    db: &Db,
    user: &UserId,
    filter: MessageFilter<'_>,
    last: Option<&ChatMessage>,
    limit: i64,
) -> Result<Vec<ChatMessage>> {
    let mut conditions = filter.conditions(db, user);
    if let Some(last) = last {
        conditions = conditions
            .when("created_at >= ?", Some(last.created_at))
            .when("(created_at > ?", Some(last.created_at))
            .or("id > ?)", last.id.as_str());
    }
    let oldest = Sort { column: "created_at", descending: false };
    let select = format!("SELECT {} FROM chat_message", ChatMessage::COLUMNS);
    let (sql, args) = conditions.page(&select, oldest, "id", Page { offset: 0, limit });
    db.all(&sql, args).await
}
