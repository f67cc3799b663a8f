//! Usage of the instances of some users: summary, days, models and requests.

use std::collections::BTreeMap;

use base::id::{InstanceId, UserId};
use base::{Error, Kind, Page, Result};
use jiff::Timestamp;
use jiff::civil::Date;
use store::binding::{self, Of, UsagePeriod};
use store::request_log::{self, Request};
use store::usage::{self, Group, Sums};

use crate::App;

/// The farthest offset for requests of several instances: each page reads all pages before it.
const FARTHEST: i64 = 10_000;

/// Instances, and the period for which their use counts.
pub struct Own {
    usage_periods: Vec<UsagePeriod>,
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
    /// A user's instances; or only `instance`, which must be theirs.
    pub async fn of(app: &App, user: &UserId, instance: Option<&InstanceId>) -> Result<Own> {
        let mut usage_periods = binding::usage_periods(&app.db, Of::User(user)).await?;
        if let Some(instance) = instance {
            usage_periods.retain(|t| t.instance_id == *instance);
            if usage_periods.is_empty() {
                return Err(Kind::NotFound.into());
            }
        }
        Ok(Own { usage_periods })
    }

    /// The instances of all users in a department.
    pub async fn of_department(app: &App, department: &str) -> Result<Own> {
        Ok(Own { usage_periods: binding::usage_periods(&app.db, Of::Department(department)).await? })
    }

    /// Sums by day, model and provider for each instance. Days before `together` are one group.
    async fn groups(
        &self,
        app: &App,
        from: Option<Date>,
        together: Option<Date>,
    ) -> Result<Vec<(&UsagePeriod, Vec<Group>)>> {
        let from = from.map(|date| app.zone.start(date));
        let mut all = vec![];
        for period in &self.usage_periods {
            let span = period.span(from);
            all.push((period, usage::of_token(&app.db, &app.zone, &period.instance_id, span, together).await?));
        }
        Ok(all)
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
        if fill {
            let today = app.zone.date(app.clock.now());
            days.extend(
                first.series(jiff::Span::new().days(1)).take_while(|d| *d <= today).map(|d| (d, Sums::default())),
            );
        }
        for (_, groups) in self.groups(app, Some(first), None).await? {
            for group in groups {
                let Ok(date) = group.date.parse::<Date>() else { continue };
                if group.sums.requests > 0 || group.sums.quota() != 0 {
                    *days.entry(date).or_default() += group.sums;
                }
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
        let one =
            |(t, groups): (&UsagePeriod, Vec<Group>)| (t.instance_id.clone(), t.instance_name.clone(), total(groups));
        Ok(groups.into_iter().map(one).collect())
    }

    /// One page of requests, newest first, and their total. `succeeded` limits both to successes or to failures.
    pub async fn requests(&self, app: &App, succeeded: Option<bool>, page: Page) -> Result<(Vec<Request>, i64)> {
        let kept = usage::rows_since(&app.db).await?;
        if self.usage_periods.len() > 1 && page.offset > FARTHEST {
            return Err(Error::field("page", "is too far: name an instance_id to go further back"));
        }
        // Read the newest rows of each instance, as many as could be on the page, then merge them.
        let each = Page { offset: 0, limit: page.offset.saturating_add(page.limit) };
        let (mut rows, mut total) = (vec![], 0);
        for period in &self.usage_periods {
            let id = period.instance_id.clone();
            let each = if self.usage_periods.len() == 1 { page } else { each };
            let span = period.span(Some(kept));
            rows.extend(request_log::of_instance(&app.db, &id, span, succeeded, each).await?);
            for group in usage::of_token(&app.db, &app.zone, &period.instance_id, span, Some(Date::MAX)).await? {
                total += group.sums.rows(succeeded);
            }
        }
        if self.usage_periods.len() > 1 {
            rows.sort_by_key(|row| std::cmp::Reverse((row.created_at, row.id)));
            let skip = usize::try_from(page.offset).unwrap_or(usize::MAX);
            rows = rows.into_iter().skip(skip).take(page.limit as usize).collect();
        }
        Ok((rows, total))
    }
}
