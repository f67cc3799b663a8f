//! What one's own instances were used for, and what it cost.

use base::id::InstanceId;
use base::money::Spend;
use llm::usage::{Own, Windows, first_day};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::extract::{Answer, Employee, Paging, Query, State};
use crate::state::{Api, Shared};
use crate::usage::{Freshness, UsageDay, UsageSums, days};
use crate::words::RequestStatus;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(summary))
        .routes(routes!(daily))
        .routes(routes!(logs))
        .routes(routes!(month))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Of {
    /// One of the own instances; all of them when omitted.
    instance_id: Option<String>,
}

async fn own(api: &Api, who: &Employee, of: Option<String>) -> Result<(Own, Freshness), base::Error> {
    let fresh = Freshness::new(api, api.app.feed.pull().await);
    let instance = of.map(InstanceId::named);
    Ok((Own::of(&api.app, &who.0.id, instance.as_ref()).await?, fresh))
}

#[derive(Serialize, ToSchema)]
pub struct Summary {
    /// Since local midnight.
    today: UsageSums,
    /// Since Monday 00:00, local.
    week: UsageSums,
    /// Since the first of the month 00:00, local.
    month: UsageSums,
    /// Every request there ever was.
    all_time: UsageSums,
    /// What you used besides (beyond the spec): on instances that you gave back, while you had them, and on these before somebody else
    /// had them. It is in none of the other numbers.
    former: FormerUsage,
    #[serde(flatten)]
    fresh: Freshness,
}

/// The same windows, of instances that were given back.
#[derive(Serialize, ToSchema)]
pub struct FormerUsage {
    today: UsageSums,
    week: UsageSums,
    month: UsageSums,
    all_time: UsageSums,
}

impl From<Windows> for FormerUsage {
    fn from(Windows { today, week, month, all_time }: Windows) -> FormerUsage {
        FormerUsage { today: today.into(), week: week.into(), month: month.into(), all_time: all_time.into() }
    }
}

/// Successful requests of the own instances, from the LLM gateway's request log.
///
/// An instance counts while it is bound to you, from the end of the last binding to anybody else on.
#[utoipa::path(get, path = "/me/usage/summary", tag = "usage", params(Of), responses((status = 200, body = Summary), (status = 404, description = "not one's own instance")))]
async fn summary(who: Employee, api: State, Query(of): Query<Of>) -> Answer<Summary> {
    let instance = of.instance_id.clone().map(InstanceId::named);
    let (own, fresh) = own(&api, &who, of.instance_id).await?;
    let Windows { today, week, month, all_time } = own.summary(&api.app).await?;
    let former = Own::former(&api.app, &who.0.id, instance.as_ref()).await?.summary(&api.app).await?;
    Ok(Data(Summary {
        today: today.into(),
        week: week.into(),
        month: month.into(),
        all_time: all_time.into(),
        former: former.into(),
        fresh,
    }))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct DaysOf {
    /// One of the own instances; all of them when omitted.
    instance_id: Option<String>,
    /// How many local days, today included.
    #[param(minimum = 1, maximum = 366, default = 30)]
    days: Option<i64>,
    /// Also the days without requests, with zeros.
    fill: Option<bool>,
}

#[derive(Serialize, ToSchema)]
pub struct Daily {
    daily: Vec<UsageDay>,
    #[serde(flatten)]
    fresh: Freshness,
}

/// Successful requests by local day, newest first; only days that have requests, unless `fill` is set.
#[utoipa::path(get, path = "/me/usage/daily", tag = "usage", params(DaysOf), responses((status = 200, body = Daily), (status = 404, description = "not one's own instance")))]
async fn daily(who: Employee, api: State, Query(of): Query<DaysOf>) -> Answer<Daily> {
    let first = first_day(&api.app, days(of.days)?);
    let (own, fresh) = own(&api, &who, of.instance_id).await?;
    let daily = own.days(&api.app, first, of.fill.unwrap_or(false)).await?;
    Ok(Data(Daily { daily: daily.into_iter().map(Into::into).collect(), fresh }))
}

#[derive(Serialize, ToSchema)]
pub struct LogEntry {
    #[schema(example = "2026-11-15T09:30:00.000+01:00")]
    time: String,
    instance_id: String,
    model: String,
    prompt_tokens: i64,
    completion_tokens: i64,
    cost_usd: f64,
    latency_ms: i64,
    status: RequestStatus,
    is_stream: bool,
    /// The provider did not report what it billed: the tokens are the gateway's own estimate, on the high side.
    estimated: bool,
}

#[derive(Serialize, ToSchema)]
pub struct Logs {
    logs: Vec<LogEntry>,
    total: i64,
    page: i64,
    size: i64,
    #[serde(flatten)]
    fresh: Freshness,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct LogsOf {
    /// One of the own instances; all of them when omitted.
    instance_id: Option<String>,
    /// Only these (beyond the spec); both when omitted.
    status: Option<RequestStatus>,
}

/// Single requests of the own instances, successful or not, newest first, as far back as the log is kept.
#[utoipa::path(get, path = "/me/usage/logs", tag = "usage", params(LogsOf, Paging), responses((status = 200, body = Logs), (status = 404, description = "not one's own instance")))]
async fn logs(who: Employee, api: State, Query(of): Query<LogsOf>, paging: Paging) -> Answer<Logs> {
    let page = paging.page(20)?;
    let (own, fresh) = own(&api, &who, of.instance_id).await?;
    let (requests, total) = own.requests(&api.app, of.status.map(RequestStatus::succeeded), page).await?;
    let logs = requests.into_iter().map(|request| LogEntry {
        time: api.zone().show(request.created_at),
        status: request.succeeded().into(),
        instance_id: request.token_name,
        model: request.model,
        prompt_tokens: request.prompt_tokens,
        completion_tokens: request.completion_tokens,
        cost_usd: Spend(request.quota).usd(),
        latency_ms: request.duration_ms,
        is_stream: request.is_stream,
        estimated: request.estimated,
    });
    Ok(Data(Logs { logs: logs.collect(), total, page: page.number(), size: page.limit, fresh }))
}

#[derive(Serialize, ToSchema)]
pub struct OfModel {
    #[schema(example = "claude-sonnet-4-6")]
    model: String,
    #[serde(flatten)]
    sums: UsageSums,
}

#[derive(Serialize, ToSchema)]
pub struct OfInstance {
    instance_id: String,
    instance_name: String,
    #[serde(flatten)]
    sums: UsageSums,
}

#[derive(Serialize, ToSchema)]
pub struct LastDays {
    #[schema(example = 30)]
    days: i64,
    total: UsageSums,
    /// Newest first; only days that have requests.
    daily: Vec<UsageDay>,
    by_model: Vec<OfModel>,
    by_instance: Vec<OfInstance>,
    /// What you used besides, on instances that you gave back (beyond the spec). It is in none of the other numbers.
    former: UsageSums,
    #[serde(flatten)]
    fresh: Freshness,
}

/// The last 30 local days, today included.
#[utoipa::path(get, path = "/me/usage", tag = "usage", responses((status = 200, body = LastDays)))]
async fn month(who: Employee, api: State) -> Answer<LastDays> {
    let days = 30;
    let first = first_day(&api.app, days);
    let (own, fresh) = own(&api, &who, None).await?;
    let daily = own.days(&api.app, first, false).await?;
    let models = own.models(&api.app, first).await?;
    let instances = own.instances(&api.app, first).await?;
    // Days and models leave out what is less than a unit; instances have all of it.
    let mut total = llm::usage::Sums::default();
    instances.iter().for_each(|(_, _, sums)| total += *sums);
    let former = Own::former(&api.app, &who.0.id, None).await?.since(&api.app, first).await?;
    Ok(Data(LastDays {
        days,
        total: total.into(),
        daily: daily.into_iter().map(Into::into).collect(),
        by_model: models.into_iter().map(|(model, sums)| OfModel { model, sums: sums.into() }).collect(),
        by_instance: instances
            .into_iter()
            .map(|(instance_id, instance_name, sums)| OfInstance {
                instance_id: instance_id.into(),
                instance_name,
                sums: sums.into(),
            })
            .collect(),
        former: former.into(),
        fresh,
    }))
}
