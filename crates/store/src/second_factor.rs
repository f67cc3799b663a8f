//! Second factors: the secret shared with an authenticator app, and the recovery codes beside it.

use base::Secret;
use jiff::Timestamp;

use crate::db::{Number, Record as _};
use crate::seal::{Place, Sealer};
use crate::{Conn, Result, Tx, args, record};

record! {
    #[derive(Clone, Debug)]
    pub struct SecondFactor {
        pub account_id: String,
        /// Sealed: see `secret`. `None` until the first secret is confirmed.
        pub secret: Option<String>,
        pub last_step: i64,
        /// Sealed: see `pending`.
        pub pending_secret: Option<String>,
        pub pending_at: Option<Timestamp>,
    }
}

impl SecondFactor {
    pub fn secret(&self, sealer: &Sealer) -> Result<Option<Secret>> {
        self.secret.as_ref().map(|sealed| sealer.open(secret_place(&self.account_id), sealed)).transpose()
    }

    /// The secret that was shown and is not confirmed yet.
    pub fn pending(&self, sealer: &Sealer) -> Result<Option<Secret>> {
        self.pending_secret.as_ref().map(|sealed| sealer.open(pending_place(&self.account_id), sealed)).transpose()
    }
}

fn secret_place(id: &str) -> Place<'_> {
    Place { table: "second_factor", column: "secret", id }
}

fn pending_place(id: &str) -> Place<'_> {
    Place { table: "second_factor", column: "pending_secret", id }
}

record! {
    /// The state that an account's own page shows.
    #[derive(Clone, Debug)]
    pub struct State {
        /// 1 if it is on.
        pub enabled: i64,
        pub recovery_codes_left: i64,
    }
}

pub async fn state(conn: impl Into<Conn<'_>>, account: &str) -> Result<State> {
    let sql = "SELECT (SELECT COUNT(*) FROM second_factor WHERE account_id = ? AND secret IS NOT NULL) AS enabled, \
        (SELECT COUNT(*) FROM recovery_code WHERE account_id = ? AND used_at IS NULL) AS recovery_codes_left";
    conn.into().one(sql, args![account, account]).await
}

pub async fn is_enabled(conn: impl Into<Conn<'_>>, account: &str) -> Result<bool> {
    let sql = "SELECT COUNT(*) AS n FROM second_factor WHERE account_id = ? AND secret IS NOT NULL";
    let number: Number = conn.into().one(sql, args![account]).await?;
    Ok(number.n > 0)
}

/// The factor, locked until the transaction ends.
pub async fn lock(tx: &mut Tx, account: &str) -> Result<Option<SecondFactor>> {
    let lock = tx.dialect().for_update();
    let sql = format!("SELECT {} FROM second_factor WHERE account_id = ?{lock}", SecondFactor::COLUMNS);
    tx.first(&sql, args![account]).await
}

/// Stores a secret that was shown to the account; the one in use stays until this one is confirmed.
pub async fn propose(
    tx: &mut Tx,
    sealer: &Sealer,
    side: &str,
    account: &str,
    secret: &Secret,
    at: Timestamp,
) -> Result<()> {
    let sealed = sealer.seal(pending_place(account), secret)?;
    let sql = "INSERT INTO second_factor (account_id, side, pending_secret, pending_at) VALUES (?, ?, ?, ?) \
        ON CONFLICT (account_id) DO UPDATE SET pending_secret = excluded.pending_secret, pending_at = excluded.pending_at";
    tx.run(sql, args![account, side, sealed, at]).await.map(drop)
}

/// Puts the confirmed secret into use. `step` is the period of the code that confirmed it.
pub async fn enable(
    tx: &mut Tx,
    sealer: &Sealer,
    account: &str,
    secret: &Secret,
    step: i64,
    at: Timestamp,
) -> Result<()> {
    let sealed = sealer.seal(secret_place(account), secret)?;
    let sql = "UPDATE second_factor SET secret = ?, enabled_at = ?, last_step = ?, pending_secret = NULL, pending_at = NULL \
        WHERE account_id = ?";
    tx.run(sql, args![sealed, at, step, account]).await.map(drop)
}

/// Marks a period and all before it as used. False if it was used already.
pub async fn take_step(tx: &mut Tx, account: &str, step: i64) -> Result<bool> {
    let sql = "UPDATE second_factor SET last_step = ? WHERE account_id = ? AND last_step < ?";
    Ok(tx.run(sql, args![step, account, step]).await? > 0)
}

/// Deletes the factor and its recovery codes; returns whether it was on.
pub async fn remove(tx: &mut Tx, account: &str) -> Result<bool> {
    let was = is_enabled(&mut *tx, account).await?;
    tx.run("DELETE FROM second_factor WHERE account_id = ?", args![account]).await?;
    tx.run("DELETE FROM recovery_code WHERE account_id = ?", args![account]).await?;
    Ok(was)
}

/// Replaces all recovery codes.
pub async fn replace_recovery_codes(tx: &mut Tx, account: &str, hashes: &[String]) -> Result<()> {
    tx.run("DELETE FROM recovery_code WHERE account_id = ?", args![account]).await?;
    for hash in hashes {
        tx.run("INSERT INTO recovery_code (account_id, hash) VALUES (?, ?)", args![account, hash]).await?;
    }
    Ok(())
}

/// Marks a recovery code as used. False if there is no such code, or it was used before.
pub async fn take_recovery_code(tx: &mut Tx, account: &str, hash: &str, at: Timestamp) -> Result<bool> {
    let sql = "UPDATE recovery_code SET used_at = ? WHERE account_id = ? AND hash = ? AND used_at IS NULL";
    Ok(tx.run(sql, args![at, account, hash]).await? > 0)
}
