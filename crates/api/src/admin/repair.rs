//! What the platform repaired by itself.

use base::Sort;
use base::id::InstanceId;
use fleet::repair::{self, Repair, Tally};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::extract::{Admin, Answer, Body, Paging, Query, State};
use crate::state::{Api, Shared};
use crate::words::RepairStatus;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default().routes(routes!(list)).routes(routes!(preview))
}

#[derive(Serialize, ToSchema)]
pub struct RepairItem {
    id: i64,
    /// A repair rule, or auto_recovery.
    #[schema(example = "no_api_key")]
    rule: String,
    instance_id: String,
    /// `alert`: nothing may be done by itself, or it was done three times within the hour: somebody was told.
    status: RepairStatus,
    /// What was seen before anything was done.
    before: String,
    action: String,
    /// How it was afterwards, or why it failed.
    after: String,
    took_ms: i64,
    /// The task that does it.
    task_id: Option<String>,
    created_at: String,
}

fn item(api: &Api, repair: Repair) -> RepairItem {
    RepairItem {
        id: repair.id,
        rule: repair.rule,
        instance_id: repair.instance_id.into(),
        status: repair.status.into(),
        before: repair.before,
        action: repair.action,
        after: repair.after,
        took_ms: repair.took_ms,
        task_id: repair.task_id.map(Into::into),
        created_at: api.zone().show(repair.created_at),
    }
}

/// How the repairs of a rule went.
#[derive(Serialize, ToSchema)]
pub struct RuleTally {
    rule: String,
    success: i64,
    failed: i64,
    /// 0 to 100.
    success_rate: f64,
    /// Of those that succeeded; null where none did.
    mean_time_to_repair_ms: Option<i64>,
}

fn tally(tally: Tally) -> RuleTally {
    let all = (tally.success + tally.failed).max(1) as f64;
    RuleTally {
        success_rate: (tally.success as f64 * 10000.0 / all).round() / 100.0,
        rule: tally.rule,
        success: tally.success,
        failed: tally.failed,
        mean_time_to_repair_ms: tally.mean_ms.map(|ms| ms.round() as i64),
    }
}

#[derive(Serialize, ToSchema)]
pub struct Repairs {
    list: Vec<RepairItem>,
    total: i64,
    /// Over all repairs that are kept, whatever is asked for.
    rules: Vec<RuleTally>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RepairQuery {
    rule: Option<String>,
    instance_id: Option<String>,
    status: Option<RepairStatus>,
    /// Text in instance, rule, before, action or after.
    q: Option<String>,
    /// created_at, rule, instance_id, status or took_ms; a `-` in front turns it around.
    sort: Option<String>,
}

/// The ledger of automatic repairs, newest first (beyond the spec). Kept for a year.
#[utoipa::path(get, path = "/repairs", tag = "repairs", params(RepairQuery, Paging), responses((status = 200, body = Repairs)))]
async fn list(_: Admin, api: State, Query(query): Query<RepairQuery>, paging: Paging) -> Answer<Repairs> {
    let newest = Sort { column: "created_at", descending: true };
    let sort = Sort::asked(query.sort.as_deref(), repair::SORTABLE, newest)?;
    let filter = repair::RepairFilter {
        q: query.q.as_deref(),
        rule: query.rule.as_deref(),
        instance_id: query.instance_id.as_deref(),
        status: query.status.map(Into::into),
        since: None,
    };
    let (found, tallies) = repair::list(&api.app, filter, sort, paging.page(50)?).await?;
    let list = found.list.into_iter().map(|repair| item(&api, repair)).collect();
    Ok(Data(Repairs { list, total: found.total, rules: tallies.into_iter().map(tally).collect() }))
}

#[derive(Deserialize, ToSchema)]
pub struct PreviewWanted {
    /// One instance; all when omitted.
    instance_id: Option<String>,
}

/// Something that would be repaired.
#[derive(Serialize, ToSchema)]
pub struct PlannedRepair {
    rule: String,
    #[schema(example = 1)]
    rule_number: u8,
    instance_id: String,
    before: String,
    /// What would be done.
    action: String,
}

#[derive(Serialize, ToSchema)]
pub struct PlannedRepairs {
    list: Vec<PlannedRepair>,
    total: i64,
    /// Servers and instances that could not be looked at, and why: nothing is known of them.
    unseen: Vec<String>,
}

/// Scans all instances now and answers what would be repaired (beyond the spec). Nothing is done, and no log counts as read.
#[utoipa::path(post, path = "/repairs/preview", tag = "repairs", request_body = PreviewWanted, responses((status = 200, body = PlannedRepairs)))]
async fn preview(_: Admin, api: State, Body(body): Body<PreviewWanted>) -> Answer<PlannedRepairs> {
    let preview = repair::preview(&api.app, body.instance_id.map(InstanceId::named)).await?;
    let list: Vec<PlannedRepair> = preview
        .planned
        .into_iter()
        .map(|one| PlannedRepair {
            rule: one.rule.as_str().to_owned(),
            rule_number: one.rule.number(),
            instance_id: one.instance_id.into(),
            before: one.before,
            action: one.plan,
        })
        .collect();
    Ok(Data(PlannedRepairs { total: list.len() as i64, list, unseen: preview.unseen }))
}
