//! What models cost, in versions: a request is priced by what was true when it was made.

use std::collections::HashMap;

use base::money::Price;
use base::price::{PerMillion, Prices, Rate, Tier, TierRate};
use jiff::{SignedDuration, Timestamp};

use super::Model;
use crate::db::Record as _;
use crate::{Conn, Error, Result, Tx, args, record, word};

/// How many versions of a model are listed, and how many of each a gateway knows: a request may have begun before the
/// last edits.
pub const MOST_LISTED: i64 = 200;
const MOST_KNOWN: i64 = 8;

word! {
    /// Where a price comes from.
    pub enum PriceSource {
        /// The spec's table: nobody changed it.
        Spec = "spec",
        Edited = "edited",
        /// The table of the release.
        Table = "table",
    }
}

/// The prices of a model from a time on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    pub model: String,
    pub valid_from: Timestamp,
    pub prices: Prices,
    pub source: PriceSource,
    /// Who set it; empty for the platform.
    pub who: String,
}

impl Version {
    /// The price with which a model begins.
    pub(crate) fn first(model: &Model) -> Version {
        Version::single(model, model.created_at)
    }

    /// The single price of a model. One that is not the spec's was edited.
    pub fn single(model: &Model, valid_from: Timestamp) -> Version {
        let is_specs = model.price == Price::of(&model.id);
        Version {
            model: model.id.clone(),
            valid_from,
            prices: Prices::single(model.price),
            source: if is_specs { PriceSource::Spec } else { PriceSource::Edited },
            who: String::new(),
        }
    }
}

record! {
    struct VersionRow { model: String, valid_from: Timestamp, per_1k: Price, source: PriceSource, who: String }
}

record! {
    /// A version with the price that the model has.
    struct KnownRow { model: String, valid_from: Timestamp, per_1k: Price, source: PriceSource, who: String, price: Price }
}

impl KnownRow {
    fn version(self) -> VersionRow {
        let KnownRow { model, valid_from, per_1k, source, who, price: _ } = self;
        VersionRow { model, valid_from, per_1k, source, who }
    }
}

record! {
    struct RateRow {
        model: String,
        valid_from: Timestamp,
        tier: Tier,
        above: i64,
        input: Option<PerMillion>,
        output: Option<PerMillion>,
        cache_read: Option<PerMillion>,
        cache_write: Option<PerMillion>,
        cache_write_1h: Option<PerMillion>,
    }
}

impl crate::row::Column for Tier {
    fn read(row: &crate::row::Row, name: &str) -> Result<Tier> {
        let text: String = row.get(name)?;
        Tier::parse(&text).ok_or_else(|| Error::Column(name.into(), format!("unknown word {text}")))
    }
}

impl crate::row::Column for Option<PerMillion> {
    fn read(row: &crate::row::Row, name: &str) -> Result<Option<PerMillion>> {
        Ok(row.get::<Option<i64>>(name)?.map(PerMillion::from_billionths))
    }
}

/// Adds a version, whose model is locked. It begins later than the one before, so that each time has one price.
pub async fn add(tx: &mut Tx, version: &Version) -> Result<Timestamp> {
    let newest: Option<VersionRow> = tx
        .first(
            &format!(
                "SELECT {} FROM model_price WHERE model = ? ORDER BY valid_from DESC LIMIT 1",
                VersionRow::COLUMNS
            ),
            args![&version.model],
        )
        .await?;
    let after = newest.map(|newest| newest.valid_from + SignedDuration::from_millis(1));
    let from = after.map_or(version.valid_from, |after| after.max(version.valid_from));
    let sql = "INSERT INTO model_price (model, valid_from, per_1k, source, who) VALUES (?, ?, ?, ?, ?)";
    let single = version.prices.single.billionths();
    tx.run(sql, args![&version.model, from, single, version.source, &version.who]).await?;
    for row in &version.prices.rates {
        let sql = "INSERT INTO model_rate (model, valid_from, tier, above, input, output, cache_read, cache_write, cache_write_1h) \
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
        let price = |price: Option<PerMillion>| price.map(PerMillion::billionths);
        let Rate { input, output, cache_read, cache_write, cache_write_1h } = row.rate;
        let args = args![
            &version.model,
            from,
            row.tier.as_str(),
            row.above,
            price(input),
            price(output),
            price(cache_read),
            price(cache_write),
            price(cache_write_1h)
        ];
        tx.run(sql, args).await?;
    }
    Ok(from)
}

/// The newest versions of a model, newest first.
pub async fn of_model(conn: impl Into<Conn<'_>>, model: &str) -> Result<Vec<Version>> {
    let mut conn = conn.into();
    let sql = format!(
        "SELECT {} FROM model_price WHERE model = ? ORDER BY valid_from DESC LIMIT {MOST_LISTED}",
        VersionRow::COLUMNS
    );
    let versions: Vec<VersionRow> = conn.again().all(&sql, args![model]).await?;
    let sql = format!("SELECT {} FROM model_rate WHERE model = ? ORDER BY tier, above", RateRow::COLUMNS);
    let rates: Vec<RateRow> = conn.all(&sql, args![model]).await?;
    Ok(joined(versions, rates))
}

/// The last versions of each of these models, newest first, by model.
pub async fn known(conn: impl Into<Conn<'_>>, models: &[Model]) -> Result<HashMap<String, Vec<Version>>> {
    let mut conn = conn.into();
    let newest = |table: &str| {
        format!(
            "(SELECT COUNT(*) FROM model_price n WHERE n.model = {table}.model AND n.valid_from > {table}.valid_from) < {MOST_KNOWN}"
        )
    };
    // The price in the model is read by the same statement: read by another one it may be older than the version.
    let sql = format!(
        "SELECT p.model AS model, p.valid_from AS valid_from, p.per_1k AS per_1k, p.source AS source, p.who AS who, \
            m.price AS price FROM model_price p JOIN model m ON m.id = p.model WHERE {} ORDER BY p.valid_from DESC",
        newest("p")
    );
    let rows: Vec<KnownRow> = conn.again().all(&sql, args![]).await?;
    let prices: HashMap<String, Price> = rows.iter().map(|row| (row.model.clone(), row.price)).collect();
    let versions = rows.into_iter().map(KnownRow::version).collect();
    let sql = format!("SELECT {} FROM model_rate r WHERE {} ORDER BY tier, above", RateRow::COLUMNS, newest("r"));
    let rates: Vec<RateRow> = conn.all(&sql, args![]).await?;
    let mut known: HashMap<String, Vec<Version>> = HashMap::new();
    for version in joined(versions, rates) {
        known.entry(version.model.clone()).or_default().push(version);
    }
    for model in models {
        let versions = known.entry(model.id.clone()).or_default();
        let price = prices.get(&model.id).copied().unwrap_or(model.price);
        let in_force = in_force(versions, &Model { price, ..model.clone() });
        if versions.first() != Some(&in_force) {
            versions.insert(0, in_force);
        }
    }
    Ok(known)
}

/// The version that is in force, of those of a model, newest first. An older release writes none: then the price that it
/// wrote into the model is in force.
pub fn in_force(versions: &[Version], model: &Model) -> Version {
    match versions.first() {
        Some(newest) if newest.prices.single == model.price => newest.clone(),
        newest => Version::single(model, newest.map_or(model.created_at, |newest| newest.valid_from)),
    }
}

fn joined(versions: Vec<VersionRow>, rates: Vec<RateRow>) -> Vec<Version> {
    let mut of: HashMap<(String, Timestamp), Vec<TierRate>> = HashMap::new();
    for row in rates {
        let rate = Rate {
            input: row.input,
            output: row.output,
            cache_read: row.cache_read,
            cache_write: row.cache_write,
            cache_write_1h: row.cache_write_1h,
        };
        let tier_rate = TierRate { tier: row.tier, above: row.above, rate };
        of.entry((row.model, row.valid_from)).or_default().push(tier_rate);
    }
    let version = |row: VersionRow| {
        let mut rates = of.remove(&(row.model.clone(), row.valid_from)).unwrap_or_default();
        rates.sort_by_key(|rate| (rate.tier, rate.above));
        Version {
            prices: Prices { single: row.per_1k, rates },
            model: row.model,
            valid_from: row.valid_from,
            source: row.source,
            who: row.who,
        }
    };
    versions.into_iter().map(version).collect()
}
