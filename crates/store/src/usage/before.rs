//! Whether anything was used before an instant.

use base::Zone;
use jiff::Timestamp;
use jiff::civil::Date;

use crate::db::Number;
use crate::{Db, Result, args};

/// Whether there are requests from before an instant on the local days from `first` to `last`, both included. On the
/// instant's own day, only the rows that are kept can tell.
pub async fn any_before(db: &Db, zone: &Zone, (first, last): (Date, Date), before: Timestamp) -> Result<bool> {
    let day = zone.date(before);
    let sql = "SELECT CAST(1 AS BIGINT) AS n FROM usage_daily WHERE date >= ? AND date < ? AND date <= ? LIMIT 1";
    let args = args![first.to_string(), day.to_string(), last.to_string()];
    if db.first::<Number>(sql, args).await?.is_some() {
        return Ok(true);
    }
    if day < first || last < day {
        return Ok(false);
    }
    let sql = "SELECT CAST(1 AS BIGINT) AS n FROM request_log WHERE created_at >= ? AND created_at < ? LIMIT 1";
    Ok(db.first::<Number>(sql, args![zone.midnight(before), before]).await?.is_some())
}
