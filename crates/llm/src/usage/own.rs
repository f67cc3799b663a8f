//! Usage of some instances for the time in which it counts: summary, days, models and requests.

use std::collections::{BTreeMap, HashMap};

use base::id::{InstanceId, UserId};
use base::{Error, Kind, Page, Result};
use jiff::Timestamp;
use jiff::civil::Date;
use store::holder::{self, Among};
use store::request_log::{self, Request};
use store::usage::{self, Group, Span, Sums};
use store::{binding, user_department};

use crate::App;

/// The farthest offset for requests of several instances: each page reads all pages before it.
const FARTHEST: i64 = 10_000;

/// Instances, and the spans in which their use counts.
pub struct Own {
    parts: Vec<OwnPart>,
}

struct OwnPart {
    instance_id: InstanceId,
    instance_name: String,
    span: Span,
}

/// The windows of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    Today,
    Week,
    Month,
    AllTime,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Windows {
    pub today: Sums,
    pub week: Sums,
    pub month: Sums,
    pub all_time: Sums,
}

/// A local day's sums.
#[derive(Clone, Debug)]
pub struct Day {
    pub date: Date,
    pub sums: Sums,
}

impl Own {
    /// What counts for a user in their own numbers: the instances bound to them now, from the end of the last binding to
    /// another user on; or only `instance`, which must be theirs.
    pub async fn of(app: &App, user: &UserId, instance: Option<&InstanceId>) -> Result<Own> {
        let mut periods = binding::usage_periods(&app.db, user).await?;
        if let Some(instance) = instance {
            periods.retain(|t| t.instance_id == *instance);
            if periods.is_empty() {
                return Err(Kind::NotFound.into());
            }
        }
        let part = |period: binding::UsagePeriod| OwnPart {
            span: period.span(),
            instance_id: period.instance_id,
            instance_name: period.instance_name,
        };
        Ok(Own { parts: periods.into_iter().map(part).collect() })
    }

    /// What a user used while they held instances that they have given back, and what they used of an instance before
    /// somebody else had it: it is in no number of `Own::of`.
    pub async fn former(app: &App, user: &UserId, instance: Option<&InstanceId>) -> Result<Own> {
        let now: HashMap<String, Option<Timestamp>> = binding::usage_periods(&app.db, user)
            .await?
            .into_iter()
            .map(|period| (period.instance_id.to_string(), period.since))
            .collect();
        let mut own = Own::held(app, Among::HeldBy(user), |part| part.user.as_ref() == Some(user)).await?;
        own.parts.retain(|part| {
            let is_meant = instance.is_none_or(|instance| part.instance_id == *instance);
            let counts_now = match now.get(part.instance_id.as_str()) {
                None => false,
                Some(None) => true,
                Some(Some(since)) => part.span.to.is_none_or(|to| to > *since),
            };
            is_meant && !counts_now
        });
        Ok(own)
    }

    /// What a user used of every instance while they held it.
    pub async fn of_holder(app: &App, user: &UserId) -> Result<Own> {
        Own::held(app, Among::HeldBy(user), |part| part.user.as_ref() == Some(user)).await
    }

    /// What people used while they were in a department.
    pub async fn of_department(app: &App, department: &str) -> Result<Own> {
        Own::held(app, Among::HeldIn(department), |part| part.department.as_deref() == Some(department)).await
    }

    async fn held(app: &App, among: Among<'_>, is_meant: impl Fn(&holder::Part) -> bool) -> Result<Own> {
        let memberships = match among {
            Among::HeldIn(_) => Some(user_department::all(&app.db).await?),
            _ => None,
        };
        let mut all = vec![];
        for (instance, periods) in holder::periods(&app.db, among).await? {
            let parts = holder::parts(&periods, memberships.as_ref());
            let own = |part: holder::Part| OwnPart {
                instance_id: InstanceId::named(&instance),
                instance_name: String::new(),
                span: part.span,
            };
            all.extend(parts.into_iter().filter(&is_meant).map(own));
        }
        Ok(Own { parts: all })
    }

    /// Sums by day, model and provider for each part. Days before `together` are one group.
    async fn groups(
        &self,
        app: &App,
        from: Option<Date>,
        together: Option<Date>,
    ) -> Result<Vec<(&OwnPart, Vec<Group>)>> {
        let from = from.map(|date| app.zone.start(date));
        let mut all = vec![];
        for part in &self.parts {
            let groups = match part.span.within(from, None) {
                Some(span) => usage::of_token(&app.db, &app.zone, &part.instance_id, span, together).await?,
                None => vec![],
            };
            all.push((part, groups));
        }
        Ok(all)
    }

    /// Sums since a local day.
    pub async fn since(&self, app: &App, first: Date) -> Result<Sums> {
        let mut all = Sums::default();
        for (_, groups) in self.groups(app, Some(first), Some(Date::MAX)).await? {
            groups.iter().for_each(|group| all += group.sums);
        }
        Ok(all)
    }

    /// Sums since local midnight, and since the first of the month.
    pub async fn today_and_month(&self, app: &App) -> Result<(Sums, Sums)> {
        let today = app.zone.date(app.clock.now());
        Ok((self.since(app, today).await?, self.since(app, today.first_of_month()).await?))
    }

    pub async fn summary(&self, app: &App) -> Result<Windows> {
        let now = app.clock.now();
        let date = |at: Timestamp| app.zone.date(at);
        let (today, week, month) = (date(now), date(app.zone.week(now)), date(app.zone.month(now)));
        let mut windows = Windows::default();
        for (_, groups) in self.groups(app, None, Some(week.min(month))).await? {
            for group in groups {
                windows.all_time += group.sums;
                let Ok(date) = group.date.parse::<Date>() else { continue };
                for (first, window) in
                    [(today, &mut windows.today), (week, &mut windows.week), (month, &mut windows.month)]
                {
                    if date >= first {
                        *window += group.sums;
                    }
                }
            }
        }
        Ok(windows)
    }

    /// Days with requests since `first`, newest first; with `fill`, the days without any too.
    pub async fn days(&self, app: &App, first: Date, fill: bool) -> Result<Vec<Day>> {
        let mut days: BTreeMap<Date, Sums> = BTreeMap::new();
        for (_, groups) in self.groups(app, Some(first), None).await? {
            for group in groups {
                let Ok(date) = group.date.parse::<Date>() else { continue };
                *days.entry(date).or_default() += group.sums;
            }
        }
        // Only the sums of a day are rounded: a refund of less than a unit counts, too.
        days.retain(|_, sums| sums.requests > 0 || sums.quota() != 0);
        if fill {
            let today = app.zone.date(app.clock.now());
            for date in first.series(jiff::Span::new().days(1)).take_while(|date| *date <= today) {
                days.entry(date).or_default();
            }
        }
        Ok(days.into_iter().rev().map(|(date, sums)| Day { date, sums }).collect())
    }

    /// Sums since `first` by model, the most used first.
    pub async fn models(&self, app: &App, first: Date) -> Result<Vec<(String, Sums)>> {
        let mut models: BTreeMap<String, Sums> = BTreeMap::new();
        for (_, groups) in self.groups(app, Some(first), None).await? {
            for group in groups {
                *models.entry(group.model).or_default() += group.sums;
            }
        }
        let mut models: Vec<_> = models.into_iter().filter(|(_, s)| s.requests > 0 || s.quota() != 0).collect();
        models.sort_by_key(|(_, sums)| std::cmp::Reverse(sums.tokens()));
        Ok(models)
    }

    /// The id, the name and the sums since `first` of each instance.
    pub async fn instances(&self, app: &App, first: Date) -> Result<Vec<(InstanceId, String, Sums)>> {
        let groups = self.groups(app, Some(first), None).await?;
        let total = |groups: Vec<Group>| {
            let mut sums = Sums::default();
            groups.into_iter().for_each(|group| sums += group.sums);
            sums
        };
        let one = |(part, groups): (&OwnPart, Vec<Group>)| {
            (part.instance_id.clone(), part.instance_name.clone(), total(groups))
        };
        Ok(groups.into_iter().map(one).collect())
    }

    /// One page of requests, newest first, and their total. `succeeded` limits both to successes or to failures.
    pub async fn requests(&self, app: &App, succeeded: Option<bool>, page: Page) -> Result<(Vec<Request>, i64)> {
        let kept = usage::rows_since(&app.db).await?;
        if self.parts.len() > 1 && page.offset > FARTHEST {
            return Err(Error::field("page", "is too far: name an instance_id to go further back"));
        }
        // Read the newest rows of each instance, as many as could be on the page, then merge them.
        let each = Page { offset: 0, limit: page.offset.saturating_add(page.limit) };
        let (mut rows, mut total) = (vec![], 0);
        for part in &self.parts {
            let Some(span) = part.span.within(Some(kept), None) else { continue };
            let id = &part.instance_id;
            let each = if self.parts.len() == 1 { page } else { each };
            rows.extend(request_log::of_instance(&app.db, id, span, succeeded, each).await?);
            for group in usage::of_token(&app.db, &app.zone, id, span, Some(Date::MAX)).await? {
                total += group.sums.rows(succeeded);
            }
        }
        if self.parts.len() > 1 {
            rows.sort_by_key(|row| std::cmp::Reverse((row.created_at, row.id)));
            let skip = usize::try_from(page.offset).unwrap_or(usize::MAX);
            rows = rows.into_iter().skip(skip).take(page.limit as usize).collect();
        }
        Ok((rows, total))
    }
}
