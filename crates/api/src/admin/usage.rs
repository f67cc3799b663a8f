//! What was used by instances, people and departments, and every single request of the LLM gateway.

use base::id::KeyId;
use base::money::Spend;
use base::{Error, Listing};
use jiff::Timestamp;
use jiff::civil::Date;
use llm::request_log::{self, Items};
use llm::usage::{self, Own, departments_since, first_day};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::extract::{Admin, Answer, Paging, Path, Query, State};
use crate::request_parts::RequestParts;
use crate::state::{Api, Shared};
use crate::usage::{Freshness, UsageDay, UsageSums, days};
use crate::words::RequestStatus;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(daily))
        .routes(routes!(of_user))
        .routes(routes!(of_department))
        .routes(routes!(llm_logs))
        .routes(routes!(request_logs))
        .routes(routes!(audit_request_logs))
        .routes(routes!(live))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct DaysOf {
    /// How many local days, today included.
    #[param(minimum = 1, maximum = 366, default = 30)]
    days: Option<i64>,
    /// One instance only.
    instance_id: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct InstanceDay {
    #[schema(example = "2026-11-15")]
    date: String,
    /// The token name in the log: an instance's id.
    instance_id: String,
    #[serde(flatten)]
    sums: UsageSums,
}

/// Successful requests by local day and instance, newest day first.
#[utoipa::path(get, path = "/usage-daily", tag = "usage", params(DaysOf, Paging), responses((status = 200, body = Listing<InstanceDay>)))]
async fn daily(_: Admin, api: State, Query(of): Query<DaysOf>, paging: Paging) -> Answer<Listing<InstanceDay>> {
    let (first, page) = (first_day(&api.app, days(of.days)?), paging.page(50)?);
    api.app.feed.pull().await;
    let days = usage::days(&api.app, first, of.instance_id.as_deref()).await?;
    let total = days.len() as i64;
    let skip = usize::try_from(page.offset).unwrap_or(usize::MAX);
    let shown = days.into_iter().skip(skip).take(page.limit as usize);
    let list = shown.map(|d| InstanceDay { date: d.date, instance_id: d.token_name, sums: d.sums.into() }).collect();
    Ok(Data(Listing { list, total }))
}

#[derive(Serialize, ToSchema)]
pub struct UserUsage {
    /// Tokens since local midnight.
    today: i64,
    /// Tokens since the first of the month.
    month: i64,
}

/// An employee's tokens of today and this month, on every instance while they held it.
#[utoipa::path(get, path = "/usage/user/{email}", tag = "usage", params(("email" = String, Path)), responses((status = 200, body = UserUsage)))]
async fn of_user(_: Admin, api: State, Path(email): Path<String>) -> Answer<UserUsage> {
    let user = people::user::find_by_email(&api.app, &email).await?;
    api.app.feed.pull().await;
    let (today, month) = Own::of_holder(&api.app, &user).await?.today_and_month(&api.app).await?;
    Ok(Data(UserUsage { today: today.tokens(), month: month.tokens() }))
}

#[derive(Serialize, ToSchema)]
pub struct DepartmentUsage {
    #[schema(example = "Research")]
    department: String,
    /// Active employees, now.
    users: i64,
    today: UsageSums,
    month: UsageSums,
    /// The last 30 local days that have requests, newest first.
    daily: Vec<UsageDay>,
    /// Departments are recorded since then: older requests among these count to the department of that time. null when there are none.
    #[schema(example = "2026-11-10T09:30:00.000+01:00")]
    departments_since: Option<String>,
}

/// What people used while they were in a department, on every instance while they held it.
///
/// A department nobody ever belonged to has zeros.
#[utoipa::path(get, path = "/usage/dept/{dept}", tag = "usage", params(("dept" = String, Path)), responses((status = 200, body = DepartmentUsage)))]
async fn of_department(_: Admin, api: State, Path(dept): Path<String>) -> Answer<DepartmentUsage> {
    api.app.feed.pull().await;
    let users = store::user::count_in(&api.app.db, &dept).await.map_err(Error::from)?;
    let own = Own::of_department(&api.app, &dept).await?;
    let (today, month) = own.today_and_month(&api.app).await?;
    let first = first_day(&api.app, 30);
    let daily = own.days(&api.app, first, false).await?;
    // On the 31st the month is longer than the days.
    let first_of_month = api.zone().date(api.app.clock.now()).first_of_month();
    let since = departments_since(&api.app, first.min(first_of_month), Date::MAX).await?;
    Ok(Data(DepartmentUsage {
        department: dept,
        users,
        today: today.into(),
        month: month.into(),
        daily: daily.into_iter().map(Into::into).collect(),
        departments_since: since.map(|at| api.zone().show(at)),
    }))
}

#[derive(Serialize, ToSchema)]
pub struct RequestItem {
    id: i64,
    created_at: String,
    /// Of an unknown token the token's name; "admin token" for calls with the platform's own.
    instance_name: String,
    /// The e-mail of whoever held the instance when the request was made: before its first binding the first holder, between two
    /// bindings nobody, which is "".
    user_email: String,
    /// That person has left: the account is revoked.
    former_employee: bool,
    model: String,
    /// A foreign gateway's channel (`ch-1`), or the provider's name.
    provider: String,
    tokens_in: i64,
    tokens_out: i64,
    /// US dollars.
    cost: f64,
    status: RequestStatus,
    /// The provider did not report what it billed: the tokens are the gateway's own estimate, on the high side.
    estimated: bool,
    #[serde(flatten)]
    parts: RequestParts,
}

#[derive(Serialize, ToSchema)]
pub struct RequestDetail {
    #[serde(flatten)]
    item: RequestItem,
    request_id: String,
    gateway_token_name: String,
    duration_ms: i64,
    error_message: String,
    is_stream: bool,
}

/// A page of requests and how many there are.
#[derive(Serialize, ToSchema)]
pub struct Requests<T> {
    list: Vec<T>,
    total: i64,
    /// There are more than `total`: they were not counted.
    total_is_minimum: bool,
    /// Where a text or a model is asked for: only requests since then were looked through, and `total` is of these. null when
    /// there are no older ones. `search_before` goes on from here.
    #[schema(example = "2026-11-10T09:30:00.000+01:00")]
    searched_since: Option<String>,
    #[serde(flatten)]
    fresh: Freshness,
}

fn item(api: &Api, item: request_log::Item) -> RequestItem {
    RequestItem {
        parts: RequestParts::of(&item.request),
        id: item.request.id,
        created_at: api.zone().show(item.request.created_at),
        instance_name: item.instance_name,
        former_employee: item.user.as_ref().is_some_and(|user| user.is_former()),
        user_email: item.user.map(|user| user.email).unwrap_or_default(),
        status: item.request.succeeded().into(),
        model: item.request.model,
        provider: item.request.provider,
        tokens_in: item.request.prompt_tokens,
        tokens_out: item.request.completion_tokens,
        cost: Spend(item.request.quota).usd(),
        estimated: item.request.estimated,
    }
}

pub fn detail(api: &Api, one: request_log::Item) -> RequestDetail {
    RequestDetail {
        request_id: one.request.request_id.clone(),
        gateway_token_name: one.request.token_name.clone(),
        duration_ms: one.request.duration_ms,
        error_message: one.request.error_message.clone(),
        is_stream: one.request.is_stream,
        item: item(api, one),
    }
}

async fn found<T>(
    api: &Api,
    filter: request_log::RequestFilter,
    page: base::Page,
    shape: impl Fn(&Api, request_log::Item) -> T,
) -> Result<Requests<T>, Error> {
    let fresh = Freshness::new(api, api.app.feed.pull().await);
    let Items { list, total, total_is_minimum, searched_since } = request_log::requests(&api.app, filter, page).await?;
    let searched_since = searched_since.map(|at| api.zone().show(at));
    let list = list.into_iter().map(|i| shape(api, i)).collect();
    Ok(Requests { list, total, total_is_minimum, searched_since, fresh })
}

/// A local date, or an instant in RFC 3339.
fn instant(api: &Api, field: &str, text: Option<&str>, end: bool) -> Result<Option<Timestamp>, Error> {
    let Some(text) = text else { return Ok(None) };
    if let Ok(date) = text.parse::<Date>()
        && text.len() == 10
    {
        let (start, next) = api.zone().span(date);
        return Ok(Some(if end { next } else { start }));
    }
    let at: Result<Timestamp, _> = text.parse();
    at.map(Some).map_err(|_| Error::field(field, "must be a date (2026-11-15) or a time in RFC 3339"))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct LlmLogsOf {
    /// An instance's id or name.
    instance_id: Option<String>,
    /// The id of a record of GET /keys.
    sub_key_id: Option<String>,
    model: Option<String>,
    /// From this local date, or this instant in RFC 3339.
    start: Option<String>,
    /// Up to the end of this local date, or up to this instant in RFC 3339.
    end: Option<String>,
    /// Searches further back: the `searched_since` of the answer before.
    #[param(value_type = Option<String>, format = DateTime)]
    search_before: Option<Timestamp>,
}

/// Single requests with all that is known of each, newest first.
#[utoipa::path(get, path = "/llm-logs", tag = "usage", params(LlmLogsOf, Paging), responses((status = 200, body = Requests<RequestDetail>), (status = 404, description = "no such key")))]
async fn llm_logs(
    _: Admin,
    api: State,
    Query(of): Query<LlmLogsOf>,
    paging: Paging,
) -> Answer<Requests<RequestDetail>> {
    let filter = request_log::RequestFilter {
        since: instant(&api, "start", of.start.as_deref(), false)?,
        until: instant(&api, "end", of.end.as_deref(), true)?,
        instance: of.instance_id,
        sub_key: of.sub_key_id.map(KeyId::named),
        model: of.model,
        search_before: of.search_before,
        ..request_log::RequestFilter::default()
    };
    Ok(Data(found(&api, filter, paging.page(50)?, detail).await?))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RequestLogsOf {
    /// An instance's id or name.
    instance: Option<String>,
    model: Option<String>,
    status: Option<RequestStatus>,
    /// The first local day.
    #[param(value_type = Option<String>, format = Date)]
    start: Option<Date>,
    /// The last local day.
    #[param(value_type = Option<String>, format = Date)]
    end: Option<Date>,
    /// Text in instance, user e-mail, model or error message. The newest 200,000 requests of the days asked for are looked
    /// through.
    q: Option<String>,
    /// Searches further back: the `searched_since` of the answer before.
    #[param(value_type = Option<String>, format = DateTime)]
    search_before: Option<Timestamp>,
}

async fn by_filter(api: &Api, of: RequestLogsOf, paging: Paging) -> Answer<Requests<RequestItem>> {
    let (since, until) = api.zone().range(of.start, of.end);
    let filter = request_log::RequestFilter {
        instance: of.instance,
        model: of.model,
        succeeded: of.status.map(RequestStatus::succeeded),
        since,
        until,
        text: of.q,
        search_before: of.search_before,
        ..request_log::RequestFilter::default()
    };
    Ok(Data(found(api, filter, paging.page(50)?, item).await?))
}

/// Single requests of the LLM gateway, newest first.
#[utoipa::path(get, path = "/llm-request-logs", tag = "usage", params(RequestLogsOf, Paging), responses((status = 200, body = Requests<RequestItem>)))]
async fn request_logs(
    _: Admin,
    api: State,
    Query(of): Query<RequestLogsOf>,
    paging: Paging,
) -> Answer<Requests<RequestItem>> {
    by_filter(&api, of, paging).await
}

/// The same items as GET /llm-request-logs, by page and pageSize.
#[utoipa::path(get, path = "/audit/request-logs", tag = "audit", params(RequestLogsOf, Paging), responses((status = 200, body = Requests<RequestItem>)))]
async fn audit_request_logs(
    _: Admin,
    api: State,
    Query(of): Query<RequestLogsOf>,
    paging: Paging,
) -> Answer<Requests<RequestItem>> {
    by_filter(&api, of, paging).await
}

#[derive(Serialize, ToSchema)]
pub struct LiveRequest {
    id: String,
    gateway_token_name: String,
    model: String,
    provider: String,
    /// chat, messages, responses or embeddings; "" while processes of an older release run.
    #[schema(example = "chat")]
    protocol: String,
    is_stream: bool,
    started_at: String,
    /// Bytes of the answer so far.
    bytes: i64,
    /// asking or answering
    #[schema(example = "answering")]
    state: String,
}

/// Requests that are under way at the embedded gateway (beyond the spec). Foreign gateways have no such list: 404.
#[utoipa::path(get, path = "/llm-live", tag = "usage", responses((status = 200, body = Listing<LiveRequest>), (status = 404, description = "a foreign gateway has no such list")))]
async fn live(_: Admin, api: State) -> Answer<Listing<LiveRequest>> {
    let list = llm::gateway::live(&api.app).await?.into_iter().map(|request| LiveRequest {
        id: request.id,
        gateway_token_name: request.token_name,
        model: request.model,
        provider: request.provider,
        protocol: request.protocol,
        is_stream: request.stream,
        started_at: request.started_at,
        bytes: request.bytes,
        state: request.state,
    });
    let list: Vec<LiveRequest> = list.collect();
    let total = list.len() as i64;
    Ok(Data(Listing { list, total }))
}
