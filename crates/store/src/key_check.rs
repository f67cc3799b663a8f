//! Check values of the keys, so that a process with other keys refuses to start.

use aws_lc_rs::hmac;
use base::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;

use crate::{Conn, Db, Error, Result, args, record};

/// A key whose check value is in the database.
#[derive(Clone, Copy)]
pub struct Key<'a> {
    /// The name of its setting.
    pub setting: &'static str,
    pub key: &'a Secret,
}

record! {
    struct Check { value: String }
}

/// Compares the keys with the database's check values; the first process writes its own.
pub async fn agree(db: &Db, keys: &[Key<'_>]) -> Result<()> {
    for key in keys {
        let expected = check_value(key);
        if stored(db, key.setting).await?.is_none() {
            let sql = "INSERT INTO setting (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING";
            db.run(sql, args![name(key.setting), expected.as_str()]).await?;
        }
        if stored(db, key.setting).await? != Some(expected) {
            return Err(Error::OtherKey(key.setting));
        }
    }
    Ok(())
}

/// Which of these settings have a check value. A lost key among them must not be replaced by a new one: it could not
/// open the stored secrets.
pub async fn expected<'a>(db: &Db, settings: &[&'a str]) -> Result<Vec<&'a str>> {
    let mut expected = vec![];
    for setting in settings {
        if stored(db, setting).await?.is_some() {
            expected.push(*setting);
        }
    }
    Ok(expected)
}

/// Makes `key` the one that every process must have from now on.
pub async fn replace(conn: impl Into<Conn<'_>>, key: Key<'_>) -> Result<()> {
    let sql = "INSERT INTO setting (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    conn.into().run(sql, args![name(key.setting), check_value(&key)]).await.map(drop)
}

/// Whether `key` is the database's; also true if the database has no check value of it.
pub async fn is(conn: impl Into<Conn<'_>>, key: Key<'_>) -> Result<bool> {
    Ok(stored(conn, key.setting).await?.is_none_or(|stored| stored == check_value(&key)))
}

async fn stored(conn: impl Into<Conn<'_>>, setting: &str) -> Result<Option<String>> {
    let check: Option<Check> =
        conn.into().first("SELECT value FROM setting WHERE name = ?", args![name(setting)]).await?;
    Ok(check.map(|c| c.value))
}

fn name(setting: &str) -> String {
    format!("key_check.{setting}")
}

fn check_value(key: &Key<'_>) -> String {
    let hmac_key = hmac::Key::new(hmac::HMAC_SHA256, key.key.expose().as_bytes());
    BASE64.encode(hmac::sign(&hmac_key, b"tidepool key check"))
}
