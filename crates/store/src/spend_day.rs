//! The nightly comparison of a day's usage by our sums, by the rows of the log and by the gateway's own count, in quota
//! units.

use base::{Listing, Page, Sort};
use jiff::Timestamp;

use crate::conditions::Conditions;
use crate::db::{Record as _, Value};
use crate::usage::Sums;
use crate::{Conn, Db, Result, Tx, args, record};

record! {
    #[derive(Clone, Debug)]
    pub struct SpendDay {
        pub date: String,
        pub summed: i64,
        /// `None` if some rows of that day were deleted.
        pub logged: Option<i64>,
        /// How much more the gateway counted than our sums since the last comparison; `None` if the gateway has no
        /// count.
        pub balance: Option<i64>,
        /// The gateway's total count minus our sums.
        pub used_total: Option<i64>,
        pub created_at: Timestamp,
    }
}

impl SpendDay {
    /// The sum of the differences. `None` if those that are known are zero and others are not known.
    pub fn drift(&self) -> Option<i64> {
        let rows = self.logged.map(|logged| (self.summed - logged).abs());
        // A gateway without a count of its own cannot differ.
        let counted =
            if self.used_total.is_some() { self.balance.map(i64::abs) } else { Some(self.balance.unwrap_or(0).abs()) };
        match rows.unwrap_or(0) + counted.unwrap_or(0) {
            0 if rows.is_none() || counted.is_none() => None,
            drift => Some(drift),
        }
    }
}

pub async fn write(tx: &mut Tx, day: &SpendDay) -> Result<()> {
    let sql = "INSERT INTO spend_day (date, summed, logged, balance, used_total, created_at) VALUES (?, ?, ?, ?, ?, ?) \
        ON CONFLICT (date) DO UPDATE SET summed = excluded.summed, logged = excluded.logged, balance = excluded.balance, \
        used_total = excluded.used_total, created_at = excluded.created_at";
    tx.run(sql, args![&day.date, day.summed, day.logged, day.balance, day.used_total, day.created_at]).await.map(drop)
}

pub async fn list(db: &Db, sort: Sort, page: Page) -> Result<Listing<SpendDay>> {
    Conditions::of(db.dialect()).list(db, SpendDay::COLUMNS, "spend_day", sort, "date", page).await
}

/// The last comparison before a date.
pub async fn before(db: &Db, date: &str) -> Result<Option<SpendDay>> {
    let sql = format!("SELECT {} FROM spend_day WHERE date < ? ORDER BY date DESC LIMIT 1", SpendDay::COLUMNS);
    db.first(&sql, args![date]).await
}

/// The quota of a local day by our sums.
pub async fn summed(db: &Db, date: &str) -> Result<i64> {
    let sql = "SELECT CAST(COALESCE(SUM(quota), 0) AS BIGINT) AS units, CAST(COALESCE(SUM(quota_rest), 0) AS BIGINT) AS rest \
        FROM usage_daily WHERE date = ?";
    cost(db, sql, args![date]).await
}

/// The same from the rows of the log: successes minus refunds.
pub async fn logged(db: &Db, from: Timestamp, to: Timestamp) -> Result<i64> {
    let sum = |column: &str| {
        let signed = format!("CASE type WHEN 2 THEN {column} WHEN 6 THEN -{column} ELSE 0 END");
        format!("CAST(COALESCE(SUM({signed}), 0) AS BIGINT)")
    };
    let (units, rest) = (sum("quota"), sum("quota_rest"));
    let sql =
        format!("SELECT {units} AS units, {rest} AS rest FROM request_log WHERE created_at >= ? AND created_at < ?");
    cost(db, &sql, args![from, to]).await
}

record! { struct Cost { units: i64, rest: i64 } }

/// The cost in quota units, rounded once.
async fn cost(db: &Db, sql: &str, args: Vec<Value>) -> Result<i64> {
    let cost: Cost = Conn::from(db).one(sql, args).await?;
    Ok(Sums { units: cost.units, rest: cost.rest, ..Sums::default() }.quota())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_does_not_agree() {
        let drift = |logged, balance, used_total| {
            let (date, created_at) = (String::new(), Timestamp::UNIX_EPOCH);
            SpendDay { date, summed: 10, logged, balance, used_total, created_at }.drift()
        };
        assert_eq!(drift(Some(10), None, None), Some(0), "a gateway without a count");
        assert_eq!(drift(Some(10), Some(0), Some(5)), Some(0));
        assert_eq!(drift(Some(7), Some(-2), Some(5)), Some(5));
        assert_eq!(drift(None, None, None), None);
        assert_eq!(drift(None, Some(0), Some(5)), None, "the rows were deleted");
        assert_eq!(drift(Some(10), None, Some(5)), None, "the first night of a gateway");
        assert_eq!(drift(None, Some(3), Some(5)), Some(3), "what differs is known to");
        assert_eq!(drift(Some(9), None, Some(5)), Some(1));
    }
}
