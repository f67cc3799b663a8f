//! The nightly comparison: what our sums, the rows of the log and the gateway's own count said of a day, in quota units.

use base::{Listing, Page, Sort};
use jiff::Timestamp;

use crate::conditions::Conditions;
use crate::db::{Number, Record as _};
use crate::{Conn, Db, Result, Tx, args, record};

record! {
    #[derive(Clone, Debug)]
    pub struct SpendDay {
        pub date: String,
        pub summed: i64,
        /// `None` where the rows of that day are not all kept any more.
        pub logged: Option<i64>,
        /// By how much more the gateway says was used than our sums have since the last comparison; `None` where it does not say.
        pub balance: Option<i64>,
        /// What the gateway says was used in all, less what our sums have.
        pub used_total: Option<i64>,
        pub created_at: Timestamp,
    }
}

impl SpendDay {
    /// How far apart they are.
    pub fn drift(&self) -> i64 {
        self.logged.map_or(0, |logged| (self.summed - logged).abs()) + self.balance.unwrap_or(0).abs()
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

/// The sum of a local day.
pub async fn summed(db: &Db, date: &str) -> Result<i64> {
    let sql = "SELECT CAST(COALESCE(SUM(quota), 0) AS BIGINT) AS n FROM usage_daily WHERE date = ?";
    let number: Number = Conn::from(db).one(sql, args![date]).await?;
    Ok(number.n)
}

/// The same straight from the rows: successes, less refunds.
pub async fn logged(db: &Db, from: Timestamp, to: Timestamp) -> Result<i64> {
    let sql = "SELECT CAST(COALESCE(SUM(CASE type WHEN 2 THEN quota WHEN 6 THEN -quota ELSE 0 END), 0) AS BIGINT) AS n \
        FROM request_log WHERE created_at >= ? AND created_at < ?";
    let number: Number = Conn::from(db).one(sql, args![from, to]).await?;
    Ok(number.n)
}
