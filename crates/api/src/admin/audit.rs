//! The audit log, read and exported.

use axum::body::{Body as HttpBody, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use base::{Error, Kind, Sort};
use futures_util::stream;
use jiff::Timestamp;
use jiff::civil::Date;
use queue::audit::{self, Entry};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::error::ApiError;
use crate::extract::{Admin, Answer, Paging, Query, State};
use crate::state::{Api, Shared};
use crate::words::Level;

/// Rows read at a time by an export: memory stays flat whatever the log's size.
const EXPORT_BATCH: i64 = 1000;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default().routes(routes!(list)).routes(routes!(pages)).routes(routes!(export))
}

#[derive(Serialize, ToSchema)]
pub struct AuditEntry {
    id: i64,
    /// An administrator's e-mail, or System.
    #[schema(example = "admin@example.com")]
    operator: String,
    #[schema(example = "user.update")]
    action: String,
    level: Level,
    #[schema(example = "ada@example.com")]
    target: String,
    #[schema(example = "status: active → revoked")]
    detail: String,
    #[schema(example = "203.0.113.7")]
    ip: String,
    user_agent: String,
    created_at: String,
}

fn item(api: &Api, entry: Entry) -> AuditEntry {
    AuditEntry {
        id: entry.id,
        operator: entry.operator,
        action: entry.action,
        level: entry.level.into(),
        target: entry.target,
        detail: entry.detail,
        ip: entry.ip,
        user_agent: entry.user_agent,
        created_at: api.zone().show(entry.created_at),
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AuditQuery {
    /// A single local day.
    #[param(value_type = Option<String>, format = Date)]
    date: Option<Date>,
    /// id, created_at, operator, action, level or target; a `-` in front turns it around.
    sort: Option<String>,
    /// Searches further back: the `searched_since` of the answer before.
    #[param(value_type = Option<String>, format = DateTime)]
    search_before: Option<Timestamp>,
}

/// What both the list and the export are narrowed by.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Narrowed {
    /// Such as `user.update`.
    action: Option<String>,
    /// An administrator's e-mail, or System.
    operator: Option<String>,
    level: Option<Level>,
    /// Exactly this target.
    target: Option<String>,
    /// Text in operator, action, target or detail. A list looks through the newest 200,000 entries of the days asked for, an
    /// export through all.
    q: Option<String>,
}

/// A page of entries and how many there are.
#[derive(Serialize, ToSchema)]
pub struct AuditEntries {
    list: Vec<AuditEntry>,
    total: i64,
    /// Where a text is asked for: only entries since then were looked through, and `total` is of these. null when there are no
    /// older ones. `search_before` goes on from here.
    #[schema(example = "2026-11-10T09:30:00.000+01:00")]
    searched_since: Option<String>,
}

impl Narrowed {
    /// Of these local days, both included.
    fn between(self, api: &Api, first: Option<Date>, last: Option<Date>) -> audit::AuditFilter {
        let (from, until) = api.zone().range(first, last);
        audit::AuditFilter {
            q: self.q,
            action: self.action,
            operator: self.operator,
            level: self.level.map(Into::into),
            target: self.target,
            from,
            until,
            without_logins: false,
            search_before: None,
        }
    }
}

async fn found(api: &Api, query: AuditQuery, narrowed: Narrowed, paging: Paging) -> Answer<AuditEntries> {
    let newest_first = Sort { column: "id", descending: true };
    let sort = Sort::asked(query.sort.as_deref(), store::audit::SORTABLE, newest_first)?;
    let filter =
        audit::AuditFilter { search_before: query.search_before, ..narrowed.between(api, query.date, query.date) };
    let found = audit::list(&api.app, &filter, sort, paging.page(50)?).await?;
    let list = found.list.into_iter().map(|entry| item(api, entry)).collect();
    let searched_since = found.searched_since.map(|at| api.zone().show(at));
    Ok(Data(AuditEntries { list, total: found.total, searched_since }))
}

/// The audit log, newest first.
#[utoipa::path(get, path = "/audit-logs", tag = "audit", params(AuditQuery, Narrowed, Paging), responses((status = 200, body = AuditEntries)))]
async fn list(
    _: Admin,
    api: State,
    Query(query): Query<AuditQuery>,
    Query(narrowed): Query<Narrowed>,
    paging: Paging,
) -> Answer<AuditEntries> {
    found(&api, query, narrowed, paging).await
}

/// The same entries as GET /audit-logs, by page and pageSize.
#[utoipa::path(get, path = "/audit/logs", tag = "audit", params(AuditQuery, Narrowed, Paging), responses((status = 200, body = AuditEntries)))]
async fn pages(
    _: Admin,
    api: State,
    Query(query): Query<AuditQuery>,
    Query(narrowed): Query<Narrowed>,
    paging: Paging,
) -> Answer<AuditEntries> {
    found(&api, query, narrowed, paging).await
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Export {
    /// The first local day; without it, from the beginning.
    #[param(value_type = Option<String>, format = Date)]
    start_date: Option<Date>,
    /// The last local day; without it, to the end.
    #[param(value_type = Option<String>, format = Date)]
    end_date: Option<Date>,
    /// Only `csv`, which is the default.
    format: Option<String>,
}

/// The audit log as CSV, oldest first, streamed.
///
/// Narrowed as the list is, if asked (beyond the spec). UTF-8 with a header line. Cells that a spreadsheet would take for a formula begin with an apostrophe.
#[utoipa::path(get, path = "/audit-logs/export", tag = "audit", params(Export, Narrowed), responses((status = 200, description = "the file", body = String, content_type = "text/csv")))]
async fn export(
    _: Admin,
    api: State,
    Query(query): Query<Export>,
    Query(narrowed): Query<Narrowed>,
) -> Result<Response, ApiError> {
    if query.format.as_deref().is_some_and(|f| f != "csv") {
        return Err(Error::new(Kind::BadRequest, "format: must be csv").into());
    }
    let filter = narrowed.between(&api, query.start_date, query.end_date);
    let api = api.0;
    let header = Bytes::from(format!("{}\n", audit::CSV_HEADER.join(",")));
    let rows = stream::try_unfold((Some(0), api, filter), |(after, api, filter)| async move {
        let Some(after) = after else { return Ok(None) };
        let (entries, next) = audit::after(&api.app, &filter, after, EXPORT_BATCH).await?;
        let lines = audit::csv_lines(api.zone(), &entries)?;
        Ok::<_, Error>(Some((Bytes::from(lines), (next, api, filter))))
    });
    use futures_util::StreamExt as _;
    let body = HttpBody::from_stream(stream::once(async move { Ok(header) }).chain(rows));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8")),
        (header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"audit-logs.csv\"")),
    ];
    Ok((headers, body).into_response())
}
