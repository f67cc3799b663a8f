//! Since when the rows of the log are kept.

use jiff::Timestamp;

use crate::{Db, Result, args, record};

record! { struct Setting { value: String } }

/// The time since which the rows of the log are kept. Of older ones there are only sums.
pub async fn rows_since(db: &Db) -> Result<Timestamp> {
    let since: Option<Setting> =
        db.first("SELECT value FROM setting WHERE name = 'request_log_since'", args![]).await?;
    let ms = since.and_then(|s| s.value.parse().ok());
    Ok(ms.and_then(|ms| Timestamp::from_millisecond(ms).ok()).unwrap_or(Timestamp::UNIX_EPOCH))
}

/// Sets the time at which lists begin from now on. Older rows may then be deleted in batches.
pub async fn keep_rows_since(db: &Db, since: Timestamp) -> Result<()> {
    let sql = "INSERT INTO setting (name, value) VALUES ('request_log_since', ?) \
        ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    db.run(sql, args![since.as_millisecond().to_string()]).await.map(drop)
}
