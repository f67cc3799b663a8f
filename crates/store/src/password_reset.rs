//! Passwords that somebody else set: kept until the account's owner has acknowledged it.

use jiff::Timestamp;

use crate::{Conn, Result, Tx, args, record};

record! {
    #[derive(Clone, Debug)]
    pub struct PasswordReset {
        pub reset_by: String,
        pub reset_at: Timestamp,
    }
}

/// Notes the newest reset in place of an older one.
pub async fn note(tx: &mut Tx, side: &str, account: &str, by: &str, at: Timestamp) -> Result<()> {
    let sql = "INSERT INTO password_reset (account_id, side, reset_by, reset_at) VALUES (?, ?, ?, ?) \
        ON CONFLICT (account_id) DO UPDATE SET reset_by = excluded.reset_by, reset_at = excluded.reset_at";
    tx.run(sql, args![account, side, by, at]).await.map(drop)
}

pub async fn find(conn: impl Into<Conn<'_>>, account: &str) -> Result<Option<PasswordReset>> {
    let sql = "SELECT reset_by, reset_at FROM password_reset WHERE account_id = ?";
    conn.into().first(sql, args![account]).await
}

/// Takes the note away; answers what it said.
pub async fn acknowledge(tx: &mut Tx, account: &str) -> Result<Option<PasswordReset>> {
    let sql = "DELETE FROM password_reset WHERE account_id = ? RETURNING reset_by, reset_at";
    Conn::from(tx).first(sql, args![account]).await
}
