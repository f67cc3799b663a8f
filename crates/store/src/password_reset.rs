//! Password resets that the account's owner did not make, kept until the owner has acknowledged them.

use jiff::Timestamp;

use crate::{Conn, Result, Tx, args, record};

record! {
    #[derive(Clone, Debug)]
    pub struct PasswordReset {
        pub reset_by: String,
        pub reset_at: Timestamp,
    }
}

/// Records a reset; it replaces an older one.
pub async fn note(tx: &mut Tx, side: &str, account: &str, by: &str, at: Timestamp) -> Result<()> {
    let sql = "INSERT INTO password_reset (account_id, side, reset_by, reset_at) VALUES (?, ?, ?, ?) \
        ON CONFLICT (account_id) DO UPDATE SET reset_by = excluded.reset_by, reset_at = excluded.reset_at";
    tx.run(sql, args![account, side, by, at]).await.map(drop)
}

pub async fn find(conn: impl Into<Conn<'_>>, account: &str) -> Result<Option<PasswordReset>> {
    let sql = "SELECT reset_by, reset_at FROM password_reset WHERE account_id = ?";
    conn.into().first(sql, args![account]).await
}

/// Deletes the record; returns what it said.
pub async fn acknowledge(tx: &mut Tx, account: &str) -> Result<Option<PasswordReset>> {
    let sql = "DELETE FROM password_reset WHERE account_id = ? RETURNING reset_by, reset_at";
    Conn::from(tx).first(sql, args![account]).await
}
