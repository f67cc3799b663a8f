//! Which of our models differ from the release's table, field by field.

use base::Result;
use base::price::{PerMillion, Prices, Rate, TierRate};
use store::model::Model;
use store::model::price::PriceSource;

use super::table::{self, Row};
use super::{Listed, list};
use crate::App;

/// A field that differs; `None` is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub field: String,
    pub ours: Option<String>,
    pub theirs: Option<String>,
}

/// A model beside its row of the table.
pub struct Compared {
    pub id: String,
    pub row: &'static Row,
    pub differences: Vec<Difference>,
}

/// Every model that the table knows, and the ids of those that it does not.
pub async fn compare(app: &App) -> Result<(Vec<Compared>, Vec<String>)> {
    let (mut known, mut unknown) = (vec![], vec![]);
    for listed in list(app).await? {
        match table::of(&listed.model) {
            Some(row) => known.push(Compared { differences: differences(&listed, row), id: listed.model.id, row }),
            None => unknown.push(listed.model.id),
        }
    }
    Ok((known, unknown))
}

/// Where a model differs from a row.
pub fn differences(listed: &Listed, row: &Row) -> Vec<Difference> {
    let ours = &listed.model;
    let mut theirs = ours.clone();
    row.apply(&mut theirs);
    let facts = |model: &Model| {
        let known = |text: String| Some(text).filter(|text| !text.is_empty());
        let number = |number: Option<i64>| number.map(|number| number.to_string());
        let flag = |flag: Option<bool>| flag.map(|flag| word(Some(flag)));
        [
            ("purpose", Some(model.purpose.as_str().to_owned())),
            ("protocols", known(model.protocols.to_string())),
            ("context_window", number(model.context_window)),
            ("max_output_tokens", number(model.max_output)),
            ("inputs", known(model.inputs.to_string())),
            ("reasoning", flag(model.reasoning)),
            ("tools", flag(model.tools)),
        ]
    };
    let facts = facts(ours)
        .into_iter()
        .zip(facts(&theirs))
        .map(|((field, ours), (_, theirs))| (field.to_owned(), ours, theirs));
    let source = |source: PriceSource| Some(source.as_str().to_owned());
    let source = ("price_source".to_owned(), source(listed.price.source), source(PriceSource::Table));
    let prices = std::iter::once(source).chain(prices(&listed.price.prices, row));
    let all = facts.chain(prices).filter(|(_, ours, theirs)| ours != theirs);
    all.map(|(field, ours, theirs)| Difference { field, ours, theirs }).collect()
}

type Field = (String, Option<String>, Option<String>);

/// The prices of both sides, a field for each kind that one of them has.
fn prices(ours: &Prices, row: &Row) -> Vec<Field> {
    let mut fields = vec![];
    if !ours.by_kind() {
        fields.push(("price_per_1k".to_owned(), Some(ours.single.usd().to_string()), None));
    }
    let mut places: Vec<_> = ours.rates.iter().chain(&row.rates).map(|rate| (rate.tier, rate.above)).collect();
    places.sort_unstable();
    places.dedup();
    for (tier, above) in places {
        let at = |rates: &[TierRate]| {
            let found = rates.iter().find(|rate| (rate.tier, rate.above) == (tier, above));
            found.map(|rate| rate.rate).unwrap_or_default()
        };
        let (mine, other) = (at(&ours.rates), at(&row.rates));
        let long = if above > 0 { format!(" above {above}") } else { String::new() };
        for ((kind, mine), (_, other)) in kinds(&mine).into_iter().zip(kinds(&other)) {
            let usd = |price: Option<PerMillion>| price.map(|price| price.usd().to_string());
            fields.push((format!("prices {}{long}: {kind}", tier.as_str()), usd(mine), usd(other)));
        }
    }
    fields
}

fn kinds(rate: &Rate) -> [(&'static str, Option<PerMillion>); 5] {
    [
        ("input", rate.input),
        ("output", rate.output),
        ("cache_read", rate.cache_read),
        ("cache_write", rate.cache_write),
        ("cache_write_1h", rate.cache_write_1h),
    ]
}

/// A row of prices for the audit log, in dollars per million tokens.
pub fn rate_text(row: &TierRate) -> String {
    let long = if row.above > 0 { format!(" above {}", row.above) } else { String::new() };
    let known = kinds(&row.rate).into_iter().filter_map(|(kind, price)| Some(format!("{kind} {}", price?.usd())));
    format!("{}{long} {}", row.tier.as_str(), known.collect::<Vec<_>>().join(" "))
}

pub fn word(flag: Option<bool>) -> String {
    flag.map_or("unknown", |flag| if flag { "yes" } else { "no" }).to_owned()
}
