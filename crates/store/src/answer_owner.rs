//! Whose answers may be continued: the provider keeps them in an account that all sub keys share.

use jiff::Timestamp;

use crate::{Conn, Db, Result, Tx, args, record, retention};

record! {
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct AnswerOwner {
        pub id: String,
        pub owner: String,
        pub tokens: i64,
        pub expires_at: Timestamp,
    }
}

/// Stores the owner of an answer. The first one stays.
pub async fn insert(tx: &mut Tx, new: &AnswerOwner) -> Result<()> {
    let sql =
        "INSERT INTO answer_owner (id, owner, tokens, expires_at) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING";
    tx.run(sql, args![&new.id, &new.owner, new.tokens, new.expires_at]).await.map(drop)
}

/// The owner of an answer, unless it has expired.
pub async fn find(conn: impl Into<Conn<'_>>, id: &str, now: Timestamp) -> Result<Option<AnswerOwner>> {
    let sql = "SELECT id, owner, tokens, expires_at FROM answer_owner WHERE id = ? AND expires_at > ?";
    conn.into().first(sql, args![id, now]).await
}

/// Deletes what has expired; returns how many.
pub async fn delete_expired(db: &Db, now: Timestamp) -> Result<u64> {
    retention::delete(db, "answer_owner", "expires_at <= ?", args![now]).await
}
