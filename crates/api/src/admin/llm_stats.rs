//! What everybody used, grouped by one or two things, as a list and as a file.

use axum::body::{Body as HttpBody, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use base::money::Spend;
use base::{Error, Page};
use futures_util::stream;
use jiff::civil::Date;
use jiff::{Span, ToSpan};
use llm::usage::{self, Common, Grouping, StatsQuery, check_days, departments_since};
use queue::csv_file::{self, Cell};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::error::ApiError;
use crate::extract::{Admin, Answer, Paging, Query, State};
use crate::state::{Api, Shared};
use crate::usage::{Freshness, days};

/// Lines of the file that are written at a time.
const CHUNK: usize = 1_000;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default().routes(routes!(stats)).routes(routes!(export))
}

/// The groupings by the names that a query has for them. Both names of the day are taken.
const GROUPINGS: &[(&str, Grouping)] = &[
    ("model", Grouping::Model),
    ("instance", Grouping::Instance),
    ("date", Grouping::Date),
    ("day", Grouping::Date),
    ("provider", Grouping::Provider),
    ("user", Grouping::User),
    ("department", Grouping::Department),
    ("key", Grouping::Key),
];

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct StatsOf {
    /// One of model, instance, key, date, provider, user and department, or two with a comma between them: `user,model`. model
    /// when omitted. day is another name of date.
    #[param(example = "user,model")]
    group_by: Option<String>,
    /// How many local days, the last one being `to`: 1 is that day alone. Not used when `from` is given.
    #[param(minimum = 1, maximum = 366, default = 30)]
    days: Option<i64>,
    /// The first local day (beyond the spec).
    #[param(value_type = Option<String>, format = Date)]
    from: Option<Date>,
    /// The last local day (beyond the spec); today when omitted. At most 366 days from `from` on.
    #[param(value_type = Option<String>, format = Date)]
    to: Option<Date>,
}

impl StatsOf {
    fn query(&self, api: &Api) -> Result<StatsQuery, Error> {
        let mut named = self.group_by.as_deref().unwrap_or("model").split(',').map(str::trim).map(|name| {
            let found = GROUPINGS.iter().find(|(known, _)| *known == name);
            found.map(|(_, grouping)| *grouping).ok_or_else(|| {
                Error::field("group_by", "must be one or two of model, instance, key, date, provider, user, department")
            })
        });
        let by = named.next().unwrap_or(Ok(Grouping::Model))?;
        let and = named.next().transpose()?;
        if named.next().is_some() {
            return Err(Error::field("group_by", "must name two groupings at most"));
        }
        if and == Some(by) {
            return Err(Error::field("group_by", "must name two different groupings"));
        }
        let last = self.to.unwrap_or_else(|| api.zone().date(api.app.clock.now()));
        let back = |days: i64| last.saturating_sub(Span::new().days(days - 1));
        let first = match self.from {
            Some(first) => first,
            None => back(days(self.days)?),
        };
        check_days(first, last)?;
        // Without an end, requests of a gateway whose clock runs ahead are listed too.
        let last = if self.to.is_none() { last.saturating_add(1.day()) } else { last };
        Ok(StatsQuery { first, last, by, and })
    }
}

#[derive(Serialize, ToSchema)]
pub struct Stat {
    /// What was grouped by, first; "" for what nobody had (user, department) and for people without a department.
    #[schema(example = "claude-sonnet-4-6")]
    key: String,
    /// What was grouped by, second.
    #[serde(skip_serializing_if = "Option::is_none")]
    second_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// The instance's name; its id is the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<String>,
    /// The name of the sub key in the gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    sub_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    date: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<String>,
    /// The e-mail of whoever held the instance at the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    /// The department that this person had at the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    department: Option<String>,
    /// Nobody held the instance at the time, or no instance has the token.
    unassigned: bool,
    /// This person has left: the account is revoked. Only where it is grouped by user.
    #[serde(skip_serializing_if = "Option::is_none")]
    former_employee: Option<bool>,
    calls: i64,
    tokens: i64,
    cost_usd: f64,
    /// The input of the requests of which it is known how much was read from a cache, and that part of it.
    known_input_tokens: i64,
    cache_read_tokens: i64,
}

impl From<(StatsQuery, usage::Stat)> for Stat {
    fn from((query, stat): (StatsQuery, usage::Stat)) -> Stat {
        let named = |grouping: Grouping| match (query.by == grouping, query.and == Some(grouping)) {
            (true, _) => Some(stat.by.name().to_owned()),
            (_, true) => stat.and.as_ref().map(|and| and.name().to_owned()),
            _ => None,
        };
        Stat {
            model: named(Grouping::Model),
            instance: named(Grouping::Instance),
            sub_key: named(Grouping::Key),
            date: named(Grouping::Date),
            provider: named(Grouping::Provider),
            user: named(Grouping::User),
            department: named(Grouping::Department),
            unassigned: [Some(&stat.by), stat.and.as_ref()].contains(&Some(&Common::Unassigned)),
            former_employee: stat.is_former,
            calls: stat.sums.requests,
            tokens: stat.sums.tokens(),
            cost_usd: Spend(stat.sums.quota()).usd(),
            known_input_tokens: stat.sums.known_input_tokens,
            cache_read_tokens: stat.sums.cache_read_tokens,
            key: stat.by.key().to_owned(),
            second_key: stat.and.as_ref().map(|and| and.key().to_owned()),
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct LlmStats {
    stats: Vec<Stat>,
    /// How many groups there are, on all pages.
    total: i64,
    /// Where it is grouped by department: departments are recorded since then, and older requests among these count to the department
    /// of that time. null when there are none.
    #[schema(example = "2026-11-10T09:30:00.000+01:00")]
    departments_since: Option<String>,
    #[serde(flatten)]
    fresh: Freshness,
}

/// Successful requests, grouped by one or two things. Days alone are listed newest first, all else by what it cost.
///
/// A request counts to whoever held its instance when it was made, and to the department that this person had then; before the
/// first binding to the first holder, between two bindings to nobody. Two groupings come in pages of 50; one comes whole, unless a
/// page is asked for (beyond the spec).
#[utoipa::path(get, path = "/llm-stats", tag = "usage", params(StatsOf, Paging), responses((status = 200, body = LlmStats)))]
async fn stats(_: Admin, api: State, Query(of): Query<StatsOf>, paging: Paging) -> Answer<LlmStats> {
    let query = of.query(&api)?;
    let page: Page = if query.and.is_some() { paging.page(50)? } else { paging.page_or_all(50)? };
    let fresh = Freshness::new(&api, api.app.feed.pull().await);
    let found = usage::stats(&api.app, query).await?;
    let departments_since = shown_since(&api, query).await?;
    let total = found.len() as i64;
    let skip = usize::try_from(page.offset).unwrap_or(usize::MAX);
    let shown = found.into_iter().skip(skip).take(usize::try_from(page.limit).unwrap_or(usize::MAX));
    let stats = shown.map(|stat| Stat::from((query, stat))).collect();
    Ok(Data(LlmStats { stats, total, departments_since, fresh }))
}

/// Since when departments are recorded, where the query is by department and has older requests.
async fn shown_since(api: &Api, query: StatsQuery) -> Result<Option<String>, Error> {
    if groupings(query).all(|grouping| grouping != Grouping::Department) {
        return Ok(None);
    }
    let since = departments_since(&api.app, query.first, query.last).await?;
    Ok(since.map(|at| api.zone().show(at)))
}

/// The same groups as GET /llm-stats, all of them, as CSV (beyond the spec).
///
/// UTF-8 with a header line: the groupings by their names (an instance by its id and, in instance_name, its name), then former_employee
/// (only by user), unassigned, calls, tokens, cost_usd, known_input_tokens
/// and cache_read_tokens. Cells that a spreadsheet would take for a formula begin with an apostrophe. The headers X-As-Of, X-Stale
/// (true or false) and X-Departments-Since say what as_of, stale and departments_since say in GET /llm-stats; the last one is left
/// out where that is null.
#[utoipa::path(get, path = "/llm-stats/export", tag = "usage", params(StatsOf), responses((status = 200, description = "the file", body = String, content_type = "text/csv")))]
async fn export(_: Admin, api: State, Query(of): Query<StatsOf>) -> Result<Response, ApiError> {
    let query = of.query(&api)?;
    let fresh = Freshness::new(&api, api.app.feed.pull().await);
    let found = usage::stats(&api.app, query).await?;
    let departments_since = shown_since(&api, query).await?;
    let header = Bytes::from(csv_file::lines([csv_header(query)])?);
    let lines = stream::try_unfold(found.into_iter(), move |mut rest| async move {
        let some: Vec<Vec<Cell>> = rest.by_ref().take(CHUNK).map(|stat| csv_cells(query, &stat)).collect();
        if some.is_empty() {
            return Ok(None);
        }
        Ok::<_, Error>(Some((Bytes::from(csv_file::lines(some)?), rest)))
    });
    use futures_util::StreamExt as _;
    let body = HttpBody::from_stream(stream::once(async move { Ok(header) }).chain(lines));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8")),
        (header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"llm-stats.csv\"")),
    ];
    let fresh = [("x-as-of", fresh.as_of), ("x-stale", fresh.stale.to_string())];
    let departments_since = departments_since.map(|since| [("x-departments-since", since)]);
    Ok((headers, fresh, departments_since, body).into_response())
}

/// The groupings of a query, in its order.
fn groupings(query: StatsQuery) -> impl Iterator<Item = Grouping> {
    [Some(query.by), query.and].into_iter().flatten()
}

fn csv_header(query: StatsQuery) -> Vec<Cell> {
    let mut header = vec![];
    for grouping in groupings(query) {
        let name = GROUPINGS.iter().find(|(_, known)| *known == grouping).map_or("", |(name, _)| name);
        header.push(name);
        if grouping == Grouping::Instance {
            header.push("instance_name");
        }
    }
    if groupings(query).any(|grouping| grouping == Grouping::User) {
        header.push("former_employee");
    }
    header.extend(["unassigned", "calls", "tokens", "cost_usd", "known_input_tokens", "cache_read_tokens"]);
    header.into_iter().map(Cell::text).collect()
}

fn csv_cells(query: StatsQuery, stat: &usage::Stat) -> Vec<Cell> {
    let mut cells = vec![];
    let commons = [Some(&stat.by), stat.and.as_ref()];
    for (grouping, common) in groupings(query).zip(commons.into_iter().flatten()) {
        cells.push(Cell::text(common.key()));
        if grouping == Grouping::Instance {
            cells.push(Cell::text(common.name()));
        }
    }
    if groupings(query).any(|grouping| grouping == Grouping::User) {
        cells.push(Cell::number(stat.is_former.unwrap_or(false)));
    }
    cells.push(Cell::number(commons.contains(&Some(&Common::Unassigned))));
    cells.push(Cell::number(stat.sums.requests));
    cells.push(Cell::number(stat.sums.tokens()));
    cells.push(Cell::number(Spend(stat.sums.quota()).usd()));
    cells.push(Cell::number(stat.sums.known_input_tokens));
    cells.push(Cell::number(stat.sums.cache_read_tokens));
    cells
}
