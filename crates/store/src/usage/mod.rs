//! Sums of the request log: by quarters of an hour, kept for ever, and by local days.
//!
//! The sums are per token. Which user they count for is decided by each query, from the periods of bindings (`holder`). Any
//! span of time consists of days, quarters of an hour at its ends, and single rows where it begins or ends within a
//! quarter.

mod before;
mod days;
mod kept;
mod span;
mod total;

use std::collections::BTreeMap;

use base::Zone;
use jiff::Timestamp;
use jiff::civil::Date;

use crate::db::{Record, Row, Value};
use crate::request::{NewRequest, RequestType};
use crate::row::storable;
use crate::{Conn, Db, Result, Tx, args};
pub use before::any_before;
pub use days::{Rebuild, begin_rebuild, make_days, rebuild_some, zone_of_days};
pub use kept::{keep_rows_since, rows_since};
use span::cut;
pub use span::{SLOT_MS, Span, second_of, slot_of};
pub use total::{copy_totals, of_all_time, recount, totals};

/// Rows of sums per statement.
const BATCH: usize = 200;

/// Sums over requests. All but `errors` count successful ones, and refunds reduce `quota`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub requests: i64,
    pub errors: i64,
    pub prompt_tokens: i64,
    pub completion_tokens: i64,
    /// Whole units, and what is left of the exact cost in billionths of a dollar: see `quota`.
    pub units: i64,
    pub rest: i64,
    /// Parts of the tokens, as far as they are known.
    pub cache_read_tokens: i64,
    pub cache_write_tokens: i64,
    pub reasoning_tokens: i64,
    /// The input of the requests that say how much of it was read from a cache: what `cache_read_tokens` is a part of.
    pub known_input_tokens: i64,
}

/// The columns of the sums, in every table that has them.
const COLUMNS: [&str; 10] = [
    "requests",
    "errors",
    "prompt_tokens",
    "completion_tokens",
    "quota",
    "quota_rest",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "known_input_tokens",
];

/// Billionths of a dollar per quota unit.
const NANO_PER_UNIT: i64 = 2_000;

impl Sums {
    /// What one row adds to the sums. `rest` is its exact cost less its units, in billionths of a dollar.
    pub fn of(request: &NewRequest, rest: i64) -> Sums {
        match request.kind {
            RequestType::SUCCESS => Sums {
                requests: 1,
                errors: 0,
                prompt_tokens: request.prompt_tokens,
                completion_tokens: request.completion_tokens,
                units: request.quota,
                rest,
                cache_read_tokens: request.detail.cache_read_tokens.unwrap_or(0),
                cache_write_tokens: request.detail.cache_write_tokens.unwrap_or(0),
                reasoning_tokens: request.detail.reasoning_tokens.unwrap_or(0),
                known_input_tokens: request.detail.known_input_tokens.unwrap_or(0),
            },
            RequestType::REFUND => Sums { errors: 1, units: -request.quota, rest: -rest, ..Sums::default() },
            _ => Sums { errors: 1, ..Sums::default() },
        }
    }

    /// The cost in quota units, rounded here and nowhere before.
    pub fn quota(&self) -> i64 {
        self.units + (self.rest + NANO_PER_UNIT / 2).div_euclid(NANO_PER_UNIT)
    }

    /// What the exact cost has beyond a number of units, in billionths of a dollar.
    pub fn rest_of(&self, quota: i64) -> i64 {
        self.rest + (self.units - quota) * NANO_PER_UNIT
    }

    pub fn tokens(&self) -> i64 {
        self.prompt_tokens + self.completion_tokens
    }

    /// The sums in the order of `COLUMNS`.
    fn values(&self) -> Vec<Value> {
        args![
            self.requests,
            self.errors,
            self.prompt_tokens,
            self.completion_tokens,
            self.units,
            self.rest,
            self.cache_read_tokens,
            self.cache_write_tokens,
            self.reasoning_tokens,
            self.known_input_tokens
        ]
    }

    /// The number of rows: successful ones, others, or both.
    pub fn rows(&self, succeeded: Option<bool>) -> i64 {
        match succeeded {
            Some(true) => self.requests,
            Some(false) => self.errors,
            None => self.requests + self.errors,
        }
    }
}

impl std::ops::AddAssign for Sums {
    fn add_assign(&mut self, other: Sums) {
        self.requests += other.requests;
        self.errors += other.errors;
        self.prompt_tokens += other.prompt_tokens;
        self.completion_tokens += other.completion_tokens;
        self.units += other.units;
        self.rest += other.rest;
        self.cache_read_tokens += other.cache_read_tokens;
        self.cache_write_tokens += other.cache_write_tokens;
        self.reasoning_tokens += other.reasoning_tokens;
        self.known_input_tokens += other.known_input_tokens;
    }
}

impl std::ops::SubAssign for Sums {
    fn sub_assign(&mut self, other: Sums) {
        self.requests -= other.requests;
        self.errors -= other.errors;
        self.prompt_tokens -= other.prompt_tokens;
        self.completion_tokens -= other.completion_tokens;
        self.units -= other.units;
        self.rest -= other.rest;
        self.cache_read_tokens -= other.cache_read_tokens;
        self.cache_write_tokens -= other.cache_write_tokens;
        self.reasoning_tokens -= other.reasoning_tokens;
        self.known_input_tokens -= other.known_input_tokens;
    }
}

/// `SUM` of the sums, as integers on both databases.
const TOTALS: &str = "CAST(COALESCE(SUM(requests), 0) AS BIGINT) AS requests, CAST(COALESCE(SUM(errors), 0) AS BIGINT) AS errors, \
    CAST(COALESCE(SUM(prompt_tokens), 0) AS BIGINT) AS prompt_tokens, \
    CAST(COALESCE(SUM(completion_tokens), 0) AS BIGINT) AS completion_tokens, CAST(COALESCE(SUM(quota), 0) AS BIGINT) AS quota, \
    CAST(COALESCE(SUM(quota_rest), 0) AS BIGINT) AS quota_rest, \
    CAST(COALESCE(SUM(cache_read_tokens), 0) AS BIGINT) AS cache_read_tokens, \
    CAST(COALESCE(SUM(cache_write_tokens), 0) AS BIGINT) AS cache_write_tokens, \
    CAST(COALESCE(SUM(reasoning_tokens), 0) AS BIGINT) AS reasoning_tokens, \
    CAST(COALESCE(SUM(known_input_tokens), 0) AS BIGINT) AS known_input_tokens";

/// The same over rows of the log.
pub(crate) const ROW_TOTALS: &str = "CAST(COALESCE(SUM(CASE WHEN type = 2 THEN 1 ELSE 0 END), 0) AS BIGINT) AS requests, \
    CAST(COALESCE(SUM(CASE WHEN type = 2 THEN 0 ELSE 1 END), 0) AS BIGINT) AS errors, \
    CAST(COALESCE(SUM(CASE WHEN type = 2 THEN prompt_tokens ELSE 0 END), 0) AS BIGINT) AS prompt_tokens, \
    CAST(COALESCE(SUM(CASE WHEN type = 2 THEN completion_tokens ELSE 0 END), 0) AS BIGINT) AS completion_tokens, \
    CAST(COALESCE(SUM(CASE WHEN type = 2 THEN quota WHEN type = 6 THEN -quota ELSE 0 END), 0) AS BIGINT) AS quota, \
    CAST(COALESCE(SUM(CASE WHEN type = 2 THEN quota_rest WHEN type = 6 THEN -quota_rest ELSE 0 END), 0) AS BIGINT) AS quota_rest, \
    CAST(COALESCE(SUM(CASE WHEN type = 2 THEN cache_read_tokens END), 0) AS BIGINT) AS cache_read_tokens, \
    CAST(COALESCE(SUM(CASE WHEN type = 2 THEN cache_write_tokens END), 0) AS BIGINT) AS cache_write_tokens, \
    CAST(COALESCE(SUM(CASE WHEN type = 2 THEN reasoning_tokens END), 0) AS BIGINT) AS reasoning_tokens, \
    CAST(COALESCE(SUM(CASE WHEN type = 2 THEN known_input_tokens END), 0) AS BIGINT) AS known_input_tokens";

fn sums(row: &Row) -> Result<Sums> {
    Ok(Sums {
        requests: row.get("requests")?,
        errors: row.get("errors")?,
        prompt_tokens: row.get("prompt_tokens")?,
        completion_tokens: row.get("completion_tokens")?,
        units: row.get("quota")?,
        rest: row.get("quota_rest")?,
        cache_read_tokens: row.get("cache_read_tokens")?,
        cache_write_tokens: row.get("cache_write_tokens")?,
        reasoning_tokens: row.get("reasoning_tokens")?,
        known_input_tokens: row.get("known_input_tokens")?,
    })
}

/// Sums of one model and provider on one local day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Empty for days that were summed up together.
    pub date: String,
    pub model: String,
    pub provider: String,
    pub sums: Sums,
}

struct DayRow(Group);
impl Record for DayRow {
    const COLUMNS: &'static str = "date, model, provider";
    fn from_row(row: &Row) -> Result<DayRow> {
        let (date, model) = (row.get("date")?, row.get("model")?);
        Ok(DayRow(Group { date, model, provider: row.get("provider")?, sums: sums(row)? }))
    }
}

struct SlotRow {
    at: Timestamp,
    model: String,
    provider: String,
    sums: Sums,
}
impl Record for SlotRow {
    const COLUMNS: &'static str = "at, model, provider";
    fn from_row(row: &Row) -> Result<SlotRow> {
        let (at, model) = (row.get("at")?, row.get("model")?);
        Ok(SlotRow { at, model, provider: row.get("provider")?, sums: sums(row)? })
    }
}

type Key = (String, i64, String, String);

/// Adds rows to the sums. All code writes the keys in the same order, so that two processes cannot deadlock.
pub(crate) async fn add(tx: &mut Tx, zone: &Zone, requests: &[(&NewRequest, i64)]) -> Result<()> {
    // The shared lock excludes a rebuild: nothing may be added to a token's days while they are rebuilt.
    tx.lock_shared(crate::db::Lock::UsageDays).await?;
    days::refuse_other_zone(tx, zone).await?;
    let mut slots: BTreeMap<Key, Sums> = BTreeMap::new();
    for (request, rest) in requests {
        let slot = slot_of(request.created_at).as_millisecond();
        let key = (
            storable(request.token_name.clone()),
            slot,
            storable(request.model.clone()),
            storable(request.provider.clone()),
        );
        *slots.entry(key).or_default() += Sums::of(request, *rest);
    }
    let mut days: BTreeMap<(String, String, String, String), Sums> = BTreeMap::new();
    let mut tokens: BTreeMap<&str, Sums> = BTreeMap::new();
    for ((token, slot, model, provider), sums) in &slots {
        let date = date_of(zone, *slot);
        *days.entry((date, token.clone(), model.clone(), provider.clone())).or_default() += *sums;
        *tokens.entry(token).or_default() += *sums;
    }
    let rows = slots.iter().map(|((token, slot, model, provider), sums)| {
        ([Value::from(token), Value::from(*slot), Value::from(model), Value::from(provider)], *sums)
    });
    upsert(tx, "usage_slot", "token_name, slot, model, provider", rows.collect()).await?;
    let rows = days.iter().map(|((date, token, model, provider), sums)| {
        ([Value::from(date), Value::from(token), Value::from(model), Value::from(provider)], *sums)
    });
    upsert(tx, "usage_daily", "date, token_name, model, provider", rows.collect()).await?;
    total::add(tx, &tokens).await?;
    for (token, sums) in tokens {
        if sums.units != 0 || sums.rest != 0 {
            // `logged_rest` stays within half a unit, so that `logged_quota` alone is the rounded sum.
            let (more, rest) = (sums.rest.div_euclid(NANO_PER_UNIT), sums.rest.rem_euclid(NANO_PER_UNIT));
            let half = NANO_PER_UNIT / 2;
            let sql = "UPDATE gateway_key SET \
                logged_quota = logged_quota + ? + CASE WHEN logged_rest + ? >= ? THEN 1 ELSE 0 END, \
                logged_rest = logged_rest + ? - CASE WHEN logged_rest + ? >= ? THEN ? ELSE 0 END \
                WHERE name = ? AND deleted_at IS NULL";
            tx.run(sql, args![sums.units + more, rest, half, rest, rest, half, NANO_PER_UNIT, token]).await?;
        }
    }
    Ok(())
}

async fn upsert(tx: &mut Tx, table: &str, key: &str, rows: Vec<([Value; 4], Sums)>) -> Result<()> {
    for batch in rows.chunks(BATCH) {
        let each = 4 + COLUMNS.len();
        let marks = vec![format!("({})", vec!["?"; each].join(", ")); batch.len()].join(", ");
        let add = COLUMNS.map(|column| format!("{column} = {table}.{column} + excluded.{column}")).join(", ");
        let sql = format!(
            "INSERT INTO {table} ({key}, {}) VALUES {marks} ON CONFLICT ({key}) DO UPDATE SET {add}",
            COLUMNS.join(", ")
        );
        let mut args: Vec<Value> = Vec::with_capacity(batch.len() * each);
        for (key, sums) in batch {
            args.extend(key.iter().cloned());
            args.extend(sums.values());
        }
        tx.run(&sql, args).await?;
    }
    Ok(())
}

fn date_of(zone: &Zone, slot: i64) -> String {
    Timestamp::from_millisecond(slot).map(|at| zone.date(at).to_string()).unwrap_or_default()
}

/// A token's sums within a span, by day, model and provider. Days before `together` are summed up as one, without a
/// date.
pub async fn of_token(
    conn: impl Into<Conn<'_>>,
    zone: &Zone,
    token: &str,
    span: Span,
    together: Option<Date>,
) -> Result<Vec<Group>> {
    let mut conn = conn.into();
    let cut = if conn.days_pending() { cut(zone, span).without_days(zone) } else { cut(zone, span) };
    let mut groups: BTreeMap<(String, String, String), Sums> = BTreeMap::new();
    let early = |date: &str| together.is_some_and(|d| date < d.to_string().as_str());
    if let Some((first, last)) = cut.days {
        let mut clause = String::from("token_name = ?");
        let mut args = args![token];
        for (operator, date) in [(">=", first), ("<", last)] {
            if let Some(date) = date {
                clause.push_str(&format!(" AND date {operator} ?"));
                args.push(date.to_string().into());
            }
        }
        let mut sql = format!(
            "SELECT date, model, provider, {TOTALS} FROM usage_daily WHERE {clause} AND date >= ? GROUP BY date, model, provider"
        );
        let mut all = args.clone();
        match together {
            Some(date) => {
                sql.push_str(&format!(
                    " UNION ALL SELECT '' AS date, model, provider, {TOTALS} FROM usage_daily WHERE {clause} AND date < ? \
                     GROUP BY model, provider"
                ));
                all.push(date.to_string().into());
                all.extend(args);
                all.push(date.to_string().into());
            }
            None => all.push("".into()),
        }
        for DayRow(group) in conn.again().all::<DayRow>(&sql, all).await? {
            *groups.entry((group.date, group.model, group.provider)).or_default() += group.sums;
        }
    }
    let rows = format!(
        "SELECT MIN(created_at) AS at, model, provider, {ROW_TOTALS} FROM request_log \
         WHERE token_name = ? AND created_at >= ? AND created_at < ? GROUP BY model, provider"
    );
    // The rows to subtract are read before the sums that they are part of. A row that is added in between can then only
    // make the result larger, never too small.
    let mut less = vec![];
    for (from, to) in cut.less {
        less.extend(conn.again().all::<SlotRow>(&rows, args![token, from, to]).await?);
    }
    let mut parts = vec![];
    for (from, to) in cut.slots {
        let sql = format!(
            "SELECT slot AS at, model, provider, {TOTALS} FROM usage_slot WHERE token_name = ? AND slot >= ? AND slot < ? \
             GROUP BY slot, model, provider"
        );
        parts.extend(conn.again().all::<SlotRow>(&sql, args![token, from, to]).await?);
    }
    for (from, to) in cut.rows {
        parts.extend(conn.again().all::<SlotRow>(&rows, args![token, from, to]).await?);
    }
    for (parts, is_more) in [(parts, true), (less, false)] {
        for SlotRow { at, model, provider, sums } in parts {
            let date = zone.date(at).to_string();
            let date = if early(&date) { String::new() } else { date };
            let group = groups.entry((date, model, provider)).or_default();
            if is_more { *group += sums } else { *group -= sums }
        }
    }
    groups.retain(|_, sums| *sums != Sums::default());
    let group = |((date, model, provider), sums)| Group { date, model, provider, sums };
    Ok(groups.into_iter().map(group).collect())
}

/// The columns by which daily sums can be grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Model,
    Provider,
    Token,
    Date,
}

impl By {
    fn column(self) -> &'static str {
        match self {
            By::Model => "model",
            By::Provider => "provider",
            By::Token => "token_name",
            By::Date => "date",
        }
    }
}

/// The sums of one group.
#[derive(Clone, Debug)]
pub struct Keyed {
    pub key: String,
    pub sums: Sums,
}
impl Record for Keyed {
    const COLUMNS: &'static str = "key";
    fn from_row(row: &Row) -> Result<Keyed> {
        Ok(Keyed { key: row.get("key")?, sums: sums(row)? })
    }
}

/// The sums of one group by one or two columns.
#[derive(Clone, Debug)]
pub struct Grouped {
    pub first: String,
    /// Empty for groups by one column.
    pub second: String,
    pub sums: Sums,
}
impl Record for Grouped {
    const COLUMNS: &'static str = "first_key, second_key";
    fn from_row(row: &Row) -> Result<Grouped> {
        Ok(Grouped { first: row.get("first_key")?, second: row.get("second_key")?, sums: sums(row)? })
    }
}

/// The sums of whole local days, from `first` to `last` inclusive, in at most `most` groups.
pub async fn grouped(
    db: &Db,
    (first, last): (Date, Date),
    by: By,
    and: Option<By>,
    most: usize,
) -> Result<Vec<Grouped>> {
    let column = by.column();
    let (second, group) = match and.map(By::column) {
        Some(second) => (second, format!("{column}, {second}")),
        None => ("''", column.to_owned()),
    };
    let sql = format!(
        "SELECT {column} AS first_key, {second} AS second_key, {TOTALS} FROM usage_daily WHERE date >= ? AND date <= ? \
         GROUP BY {group} LIMIT ?"
    );
    db.all(&sql, args![first.to_string(), last.to_string(), most]).await
}

/// Sums of one instance on one day, over models and providers.
#[derive(Clone, Debug)]
pub struct TokenDay {
    pub date: String,
    pub token_name: String,
    pub sums: Sums,
}
impl Record for TokenDay {
    const COLUMNS: &'static str = "date, token_name";
    fn from_row(row: &Row) -> Result<TokenDay> {
        Ok(TokenDay { date: row.get("date")?, token_name: row.get("token_name")?, sums: sums(row)? })
    }
}

/// Sums by day and token since a local day, newest first.
pub async fn daily(db: &Db, first: Date, token: Option<&str>) -> Result<Vec<TokenDay>> {
    let (clause, mut args) = match token {
        Some(token) => (" AND token_name = ?", args![token]),
        None => ("", args![]),
    };
    args.insert(0, first.to_string().into());
    let sql = format!(
        "SELECT date, token_name, {TOTALS} FROM usage_daily WHERE date >= ?{clause} GROUP BY date, token_name \
         ORDER BY date DESC, token_name"
    );
    db.all(&sql, args).await
}

/// The sums of whole local days, from `first` to `last` inclusive, of these tokens (`None`: of all). They give the
/// number of log rows without counting them.
pub async fn rows(db: &Db, first: Date, last: Date, tokens: Option<&[String]>) -> Result<Sums> {
    let mut clause = String::from("date >= ? AND date <= ?");
    let mut args = args![first.to_string(), last.to_string()];
    if let Some(tokens) = tokens {
        if tokens.is_empty() {
            return Ok(Sums::default());
        }
        clause.push_str(&format!(" AND token_name IN ({})", vec!["?"; tokens.len()].join(", ")));
        args.extend(tokens.iter().map(Value::from));
    }
    let sql = format!("SELECT '' AS key, {TOTALS} FROM usage_daily WHERE {clause}");
    let keyed: Keyed = Conn::from(db).one(&sql, args).await?;
    Ok(keyed.sums)
}
