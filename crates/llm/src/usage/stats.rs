//! Sums over all users, by one or two of: model, provider, instance, sub key, day, user and department.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use base::id::UserId;
use base::{Error, Result};
use jiff::civil::Date;
use store::holder::{self, Among, Part};
pub use store::usage::TokenDay;
use store::usage::{self, By, Group, Sums};
use store::{instance, user, user_department};

use super::MAX_DAYS;
use crate::App;

/// More groups than this are not put together in memory.
const MOST_GROUPS: usize = 500_000;
/// Names per statement.
const NAMES: usize = 500;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    Model,
    Instance,
    Key,
    Date,
    Provider,
    User,
    Department,
}

impl Grouping {
    /// The column of the sums; `None` for what follows from the holder of the instance.
    fn column(self) -> Option<By> {
        match self {
            Grouping::Model => Some(By::Model),
            Grouping::Provider => Some(By::Provider),
            Grouping::Instance | Grouping::Key => Some(By::Token),
            Grouping::Date => Some(By::Date),
            Grouping::User | Grouping::Department => None,
        }
    }
}

/// What statistics are asked for: local days, both included, and what they are grouped by.
#[derive(Clone, Copy, Debug)]
pub struct StatsQuery {
    pub first: Date,
    pub last: Date,
    pub by: Grouping,
    pub and: Option<Grouping>,
}

/// What a group has in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Common {
    /// A key, and the name for people: an instance's name, otherwise the key.
    Named { key: String, name: String },
    /// Nobody held the instance.
    Unassigned,
}

impl Common {
    pub fn key(&self) -> &str {
        match self {
            Common::Named { key, .. } => key,
            Common::Unassigned => "",
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Common::Named { name, .. } => name,
            Common::Unassigned => "",
        }
    }
}

/// Sums of one group.
#[derive(Clone, Debug)]
pub struct Stat {
    pub by: Common,
    pub and: Option<Common>,
    /// The user of the group has left. `None` where there is no user.
    pub is_former: Option<bool>,
    pub sums: Sums,
}

/// A group while it is added up: what its rows have in common, `None` for what nobody had.
type Keys = (Option<String>, Option<String>);

/// Sums of successful requests. Days alone come newest first, all else by cost.
pub async fn stats(app: &App, query: StatsQuery) -> Result<Vec<Stat>> {
    let groups = match query.by.column().is_some() && query.and.is_none_or(|and| and.column().is_some()) {
        true => by_columns(app, query).await?,
        false => by_holders(app, query).await?,
    };
    let counts = |sums: &Sums| sums.requests > 0 || sums.quota() != 0;
    let groups: Vec<(Keys, Sums)> = groups.into_iter().filter(|(_, sums)| counts(sums)).collect();
    let names = names(app, query, &groups).await?;
    let is_former = match [Some(query.by), query.and].contains(&Some(Grouping::User)) {
        true => former(app).await?,
        false => HashMap::new(),
    };
    let mut stats: Vec<Stat> = groups
        .into_iter()
        .map(|((by, and), sums)| {
            let user = match (query.by, query.and) {
                (Grouping::User, _) => by.as_ref(),
                (_, Some(Grouping::User)) => and.as_ref(),
                _ => None,
            };
            let is_former = user.and_then(|email| is_former.get(email)).copied();
            let common = |grouping: Grouping, key: Option<String>| match key {
                Some(key) => {
                    let name = Some(&key).filter(|_| grouping == Grouping::Instance).and_then(|key| names.get(key));
                    Common::Named { name: name.unwrap_or(&key).clone(), key }
                }
                None => Common::Unassigned,
            };
            Stat { by: common(query.by, by), and: query.and.map(|grouping| common(grouping, and)), is_former, sums }
        })
        .collect();
    match (query.by, query.and) {
        (Grouping::Date, None) => stats.sort_by(|a, b| b.by.cmp(&a.by)),
        _ => {
            stats.sort_by(|a, b| {
                let order = |stat: &Stat| (Reverse(stat.sums.quota()), Reverse(stat.sums.tokens()));
                (order(a), &a.by, &a.and).cmp(&(order(b), &b.by, &b.and))
            });
        }
    }
    Ok(stats)
}

/// The names of instances, where the groups are of instances.
async fn names(app: &App, query: StatsQuery, groups: &[(Keys, Sums)]) -> Result<HashMap<String, String>> {
    let mut ids: Vec<&String> = vec![];
    if query.by == Grouping::Instance {
        ids.extend(groups.iter().filter_map(|((by, _), _)| by.as_ref()));
    }
    if query.and == Some(Grouping::Instance) {
        ids.extend(groups.iter().filter_map(|((_, and), _)| and.as_ref()));
    }
    ids.sort_unstable();
    ids.dedup();
    let mut names = HashMap::new();
    for some in ids.chunks(NAMES) {
        let some: Vec<String> = some.iter().map(|id| (*id).clone()).collect();
        names.extend(instance::names(&app.db, &some).await?.into_iter().map(|named| (named.id.into(), named.name)));
    }
    Ok(names)
}

/// The e-mails of all users, and whether they have left.
async fn former(app: &App) -> Result<HashMap<String, bool>> {
    let labels = user::labels(&app.db).await?;
    Ok(labels.into_iter().map(|label| (label.email.clone(), label.is_former())).collect())
}

/// Groups by what stands in the sums themselves.
async fn by_columns(app: &App, query: StatsQuery) -> Result<Vec<(Keys, Sums)>> {
    let columns: Vec<By> = [Some(query.by), query.and].into_iter().flatten().filter_map(Grouping::column).collect();
    let rows = grouped(app, query, columns[0], columns.get(1).copied()).await?;
    let keys = |row: &usage::Grouped| (Some(row.first.clone()), query.and.map(|_| row.second.clone()));
    Ok(rows.into_iter().map(|row| (keys(&row), row.sums)).collect())
}

async fn grouped(app: &App, query: StatsQuery, by: By, and: Option<By>) -> Result<Vec<usage::Grouped>> {
    let rows = usage::grouped(&app.db, (query.first, query.last), by, and, MOST_GROUPS + 1).await?;
    if rows.len() > MOST_GROUPS {
        return Err(Error::field("group_by", format_args!("makes more than {MOST_GROUPS} groups: ask for fewer days")));
    }
    Ok(rows)
}

/// Groups by users or departments, alone or with something else: each instance's use counts for whoever held it at the
/// time. Instances that one person had during all the days are taken from the sums of all; the others are cut.
async fn by_holders(app: &App, query: StatsQuery) -> Result<Vec<(Keys, Sums)>> {
    let both = [Some(query.by), query.and];
    // Beside the token, at most one more column is needed: the other grouping, unless that is the token or the holder.
    let other = both.into_iter().flatten().filter_map(Grouping::column).find(|column| *column != By::Token);
    let rows = grouped(app, query, By::Token, other).await?;
    let mut of_token: BTreeMap<String, Vec<(String, Sums)>> = BTreeMap::new();
    for row in rows {
        of_token.entry(row.first).or_default().push((row.second, row.sums));
    }
    let memberships = match both.contains(&Some(Grouping::Department)) {
        true => Some(user_department::all(&app.db).await?),
        false => None,
    };
    let emails: HashMap<UserId, String> = match both.contains(&Some(Grouping::User)) {
        true => user::labels(&app.db).await?.into_iter().map(|label| (label.id, label.email)).collect(),
        false => HashMap::new(),
    };
    let periods = holder::periods(&app.db, Among::All).await?;
    let (from, to) = app.zone.range(Some(query.first), Some(query.last));
    let mut groups: BTreeMap<Keys, Sums> = BTreeMap::new();
    for (token, rows) in of_token {
        let mut add = |part: Option<&Part>, other: &str, sums: Sums| {
            let key = |grouping: Grouping| match grouping {
                Grouping::User => part.and_then(|part| part.user.as_ref()).and_then(|user| emails.get(user)).cloned(),
                Grouping::Department => part.and_then(|part| part.department.clone()),
                Grouping::Instance | Grouping::Key => Some(token.clone()),
                Grouping::Model | Grouping::Provider | Grouping::Date => Some(other.to_owned()),
            };
            *groups.entry((key(query.by), query.and.and_then(key))).or_default() += sums;
        };
        let mut parts = match periods.get(&token) {
            Some(periods) => holder::parts(periods, memberships.as_ref()),
            None => vec![],
        };
        parts.retain_mut(|part| match part.span.within(from, to) {
            Some(span) => {
                part.span = span;
                true
            }
            None => false,
        });
        if parts.len() <= 1 {
            rows.iter().for_each(|(other, sums)| add(parts.first(), other, *sums));
            continue;
        }
        // Days are told apart only where they are a group.
        let together = (other != Some(By::Date)).then_some(Date::MAX);
        for part in &parts {
            for group in usage::of_token(&app.db, &app.zone, &token, part.span, together).await? {
                let Group { date, model, provider, sums } = group;
                let other = match other {
                    Some(By::Model) => model,
                    Some(By::Provider) => provider,
                    Some(By::Date) => date,
                    _ => String::new(),
                };
                add(Some(part), &other, sums);
            }
        }
    }
    Ok(groups.into_iter().collect())
}

/// Since when departments are recorded, if there are earlier requests on the local days from `first` to `last`: they
/// count to the department of that time.
pub async fn departments_since(app: &App, first: Date, last: Date) -> Result<Option<jiff::Timestamp>> {
    let Some(since) = user_department::recorded_since(&app.db).await? else { return Ok(None) };
    let is_older = usage::any_before(&app.db, &app.zone, (first, last), since).await?;
    Ok(is_older.then_some(since))
}

/// Sums by day and instance, newest day first.
pub async fn days(app: &App, first: Date, instance: Option<&str>) -> Result<Vec<TokenDay>> {
    let days = usage::daily(&app.db, first, instance).await?;
    Ok(days.into_iter().filter(|d| d.sums.requests > 0 || d.sums.quota() != 0).collect())
}

/// Refuses a span of days that ends before it begins, or is too long.
pub fn check_days(first: Date, last: Date) -> Result<()> {
    if last < first {
        return Err(Error::field("to", "must not be before from"));
    }
    if first.saturating_add(jiff::Span::new().days(MAX_DAYS - 1)) < last {
        return Err(Error::field("from", format_args!("must be at most {MAX_DAYS} days before to")));
    }
    Ok(())
}
