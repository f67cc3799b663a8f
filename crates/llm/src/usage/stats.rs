//! Sums over all users: by model, instance, day, provider, user or department.

use std::collections::{BTreeMap, HashMap};

use base::Result;
use jiff::civil::Date;
use store::binding::{self, Of};
use store::instance;
pub use store::usage::TokenDay;
use store::usage::{self, By, Keyed, Sums};

use super::Own;
use crate::App;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    Model,
    Instance,
    Date,
    Provider,
    User,
    Department,
}

/// Sums of one group.
pub struct Stat {
    pub key: String,
    /// The name for people: an instance's name, otherwise the key.
    pub name: String,
    pub sums: Sums,
}

/// Sums of successful requests since a local day. Days come newest first, all else by cost.
pub async fn stats(app: &App, grouping: Grouping, first: Date) -> Result<Vec<Stat>> {
    let keyed = match grouping {
        Grouping::Model => usage::since(&app.db, first, By::Model).await?,
        Grouping::Provider => usage::since(&app.db, first, By::Provider).await?,
        Grouping::Date => usage::since(&app.db, first, By::Date).await?,
        Grouping::Instance => usage::since(&app.db, first, By::Token).await?,
        Grouping::User => by_holder(app, first, |t| &t.email).await?,
        Grouping::Department => by_holder(app, first, |t| &t.department).await?,
    };
    let mut names: HashMap<String, String> = HashMap::new();
    if grouping == Grouping::Instance {
        let ids: Vec<String> = keyed.iter().map(|k| k.key.clone()).collect();
        for some in ids.chunks(500) {
            names.extend(instance::names(&app.db, some).await?.into_iter().map(|n| (n.id.into(), n.name)));
        }
    }
    let stat = |Keyed { key, sums }| Stat { name: names.get(&key).unwrap_or(&key).clone(), key, sums };
    let mut stats: Vec<Stat> =
        keyed.into_iter().filter(|k| k.sums.requests > 0 || k.sums.quota() != 0).map(stat).collect();
    match grouping {
        Grouping::Date => stats.sort_by(|a, b| b.key.cmp(&a.key)),
        _ => stats
            .sort_by(|a, b| (b.sums.quota(), b.sums.tokens(), &a.key).cmp(&(a.sums.quota(), a.sums.tokens(), &b.key))),
    }
    Ok(stats)
}

/// Counts each instance's use for its holder, from the time on that it is theirs. The rest has an empty key.
async fn by_holder(app: &App, first: Date, name: impl Fn(&binding::UsagePeriod) -> &String) -> Result<Vec<Keyed>> {
    let mut rest: HashMap<String, Sums> = HashMap::new();
    for keyed in usage::since(&app.db, first, By::Token).await? {
        rest.insert(keyed.key, keyed.sums);
    }
    let start = app.zone.start(first);
    let mut groups: BTreeMap<String, Sums> = BTreeMap::new();
    for period in binding::usage_periods(&app.db, Of::All).await? {
        let Some(all) = rest.get_mut(period.instance_id.as_str()) else { continue };
        let theirs = match period.since {
            Some(since) if since > start => {
                let mut sums = Sums::default();
                for group in
                    usage::of_token(&app.db, &app.zone, &period.instance_id, period.span(Some(start)), Some(Date::MAX))
                        .await?
                {
                    sums += group.sums;
                }
                sums
            }
            _ => *all,
        };
        *all -= theirs;
        *groups.entry(name(&period).clone()).or_default() += theirs;
    }
    for sums in rest.into_values() {
        *groups.entry(String::new()).or_default() += sums;
    }
    Ok(groups.into_iter().map(|(key, sums)| Keyed { key, sums }).collect())
}

/// Sums by day and instance, newest day first.
pub async fn days(app: &App, first: Date, instance: Option<&str>) -> Result<Vec<TokenDay>> {
    let days = usage::daily(&app.db, first, instance).await?;
    Ok(days.into_iter().filter(|d| d.sums.requests > 0 || d.sums.quota() != 0).collect())
}

/// The instances of a department, and how many people it has.
pub async fn department(app: &App, name: &str) -> Result<(Own, i64)> {
    let people = store::user::count_in(&app.db, name).await?;
    Ok((Own::of_department(app, name).await?, people))
}
