//! The nightly comparison of what was spent.

use base::{Listing, Sort};
use serde::Serialize;
use store::spend_day;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::extract::{Admin, Answer, Paging, State};
use crate::state::Shared;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default().routes(routes!(list))
}

/// A local day, in quota units: 500,000 are a dollar.
#[derive(Serialize, ToSchema)]
pub struct SpendDayItem {
    #[schema(example = "2026-11-15")]
    date: String,
    /// By our sums.
    summed: i64,
    /// By the rows of the log; null where they are not all kept any more.
    logged: Option<i64>,
    /// By how much the gateway's own count has moved away from our sums since the comparison before; null where it does not tell.
    balance_gap: Option<i64>,
    /// How far apart they are; 0 when everything agrees, null when no difference is known and something could not be compared.
    drift: Option<i64>,
    created_at: String,
}

/// Each day's comparison of our sums, the log's rows and the gateway's own count, newest first (beyond the spec).
#[utoipa::path(get, path = "/spend-days", tag = "usage", params(Paging), responses((status = 200, body = Listing<SpendDayItem>)))]
async fn list(_: Admin, api: State, paging: Paging) -> Answer<Listing<SpendDayItem>> {
    let newest = Sort { column: "date", descending: true };
    let found = spend_day::list(&api.app.db, newest, paging.page(50)?).await.map_err(base::Error::from)?;
    Ok(Data(found.map(|day| SpendDayItem {
        drift: day.drift(),
        date: day.date,
        summed: day.summed,
        logged: day.logged,
        balance_gap: day.balance,
        created_at: api.zone().show(day.created_at),
    })))
}
