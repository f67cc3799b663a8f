//! Tickets: each opens one socket, once, on any replica.

use base::id::{InstanceId, UserId};
use jiff::Timestamp;

use crate::{Conn, Db, Result, args, record};

record! {
    #[derive(Clone, Debug)]
    pub struct Ticket {
        pub user_id: UserId,
        pub instance_id: InstanceId,
        pub jti: String,
        pub issued_at: i64,
        pub token_ends: i64,
        pub expires_at: Timestamp,
    }
}

/// Stores a ticket, and deletes expired ones.
pub async fn insert(db: &Db, hash: &str, ticket: &Ticket, now: Timestamp) -> Result<()> {
    let mut tx = db.begin().await?;
    tx.run("DELETE FROM ticket WHERE expires_at <= ?", args![now]).await?;
    let sql = "INSERT INTO ticket (hash, user_id, instance_id, jti, issued_at, token_ends, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?)";
    let args = args![
        hash,
        &ticket.user_id,
        &ticket.instance_id,
        &ticket.jti,
        ticket.issued_at,
        ticket.token_ends,
        ticket.expires_at
    ];
    tx.run(sql, args).await?;
    tx.commit().await
}

/// Takes a ticket and deletes it, so that it works once.
pub async fn take(db: &Db, hash: &str, now: Timestamp) -> Result<Option<Ticket>> {
    let sql = "DELETE FROM ticket WHERE hash = ? AND expires_at > ? \
        RETURNING user_id, instance_id, jti, issued_at, token_ends, expires_at";
    let mut tx = db.begin().await?;
    let taken = Conn::from(&mut tx).first(sql, args![hash, now]).await?;
    tx.commit().await?;
    Ok(taken)
}
