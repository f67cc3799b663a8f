//! Alerts and the rules that raise them.

use base::id::AlertId;
use base::{Listing, Secret, Sort};
use queue::alert::{self, Alert, Patch, Rule, Set};
use queue::permission::Permission;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::envelope::Data;
use crate::extract::{Admin, Answer, Body, Paging, Path, Query, State};
use crate::state::{Api, Shared};

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default().routes(routes!(list)).routes(routes!(ack)).routes(routes!(rules)).routes(routes!(set_rule))
}

#[derive(Serialize, ToSchema)]
pub struct AlertItem {
    id: String,
    #[schema(example = "instances_unhealthy")]
    rule: String,
    /// What it is about: `instance:<id>`, `server:<id>`, `key:<name>`, `task:<id>`, `gateway`.
    #[schema(example = "instance:assistant-01")]
    subject: String,
    message: String,
    created_at: String,
    acked_at: Option<String>,
    /// Who acknowledged it; empty before.
    acked_by: String,
    /// When what it was about was over.
    resolved_at: Option<String>,
}

fn item(api: &Api, alert: Alert) -> AlertItem {
    AlertItem {
        id: alert.id.into(),
        rule: alert.rule,
        subject: alert.subject,
        message: alert.message,
        created_at: api.zone().show(alert.created_at),
        acked_at: alert.acked_at.map(|at| api.zone().show(at)),
        acked_by: alert.acked_by,
        resolved_at: alert.resolved_at.map(|at| api.zone().show(at)),
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AlertQuery {
    rule: Option<String>,
    /// Only those that are not over yet, or only those that are.
    open: Option<bool>,
    acked: Option<bool>,
    /// Text in subject, message or rule.
    q: Option<String>,
    /// created_at, rule or subject; a `-` in front turns it around.
    sort: Option<String>,
}

/// Raised alerts, newest first.
///
/// An alert is raised once for each thing that is in trouble, and resolved by itself when that is over.
#[utoipa::path(get, path = "/alerts", tag = "alerts", params(AlertQuery, Paging), responses((status = 200, body = Listing<AlertItem>)))]
async fn list(_: Admin, api: State, Query(query): Query<AlertQuery>, paging: Paging) -> Answer<Listing<AlertItem>> {
    let newest = Sort { column: "created_at", descending: true };
    let sort = Sort::asked(query.sort.as_deref(), alert::SORTABLE, newest)?;
    let filter =
        alert::AlertFilter { q: query.q.as_deref(), rule: query.rule.as_deref(), open: query.open, acked: query.acked };
    let found = alert::list(&api.app, filter, sort, paging.page(50)?).await?;
    Ok(Data(found.map(|alert| item(&api, alert))))
}

/// Says that somebody looks after it. A second time changes nothing.
#[utoipa::path(post, path = "/alerts/{id}/ack", tag = "alerts", params(("id" = String, Path)), responses((status = 200, body = AlertItem)))]
async fn ack(who: Admin, api: State, Path(id): Path<AlertId>) -> Answer<AlertItem> {
    let alert = alert::ack(&api.app, &who.by, &id).await?;
    Ok(Data(item(&api, alert)))
}

#[derive(Serialize, ToSchema)]
pub struct AlertRuleItem {
    #[schema(example = "budget_near_limit")]
    id: String,
    enabled: bool,
    /// key_balance_low: dollars left; budget_near_limit: percent; instances_unhealthy: how many; the others have none.
    threshold: Option<f64>,
    /// The webhook's URL; to others than super_admins only its host. Null where alerts are only listed.
    channel: Option<String>,
    /// Signs the deliveries. Told once, in the answer that sets a new channel; null everywhere else.
    signing_secret: Option<String>,
}

fn rule_item(set: Set, whole: bool) -> AlertRuleItem {
    let host = |url: &Secret| {
        let rest = url.expose().split_once("://");
        rest.map_or_else(String::new, |(scheme, rest)| {
            format!("{scheme}://{}/…", rest.split(['/', '?', '#']).next().unwrap_or_default())
        })
    };
    AlertRuleItem {
        id: set.rule.as_str().to_owned(),
        enabled: set.enabled,
        threshold: set.threshold,
        channel: set.channel.map(|url| if whole { url.expose().to_owned() } else { host(&url) }),
        signing_secret: set.signing_secret.map(|secret| secret.expose().to_owned()),
    }
}

/// Every rule as it is set.
#[utoipa::path(get, path = "/alerts/rules", tag = "alerts", responses((status = 200, body = Listing<AlertRuleItem>)))]
async fn rules(who: Admin, api: State) -> Answer<Listing<AlertRuleItem>> {
    let whole = who.by.may(Permission::SetAlertRules);
    let list: Vec<_> = alert::rules(&api.app).await?.into_iter().map(|set| rule_item(set, whole)).collect();
    Ok(Data(Listing { total: Rule::ALL.len() as i64, list }))
}

#[derive(Deserialize, ToSchema)]
pub struct AlertRulePatch {
    enabled: bool,
    /// Null sets the default again. A percentage is at most 100; a rule that has no threshold takes none.
    #[serde(default, deserialize_with = "crate::shape::given")]
    #[schema(value_type = Option<f64>, minimum = 0)]
    threshold: Option<Option<f64>>,
    /// A webhook's URL; null takes it away.
    #[serde(default, deserialize_with = "crate::shape::given")]
    #[schema(value_type = Option<String>, max_length = 2000, example = "https://hooks.example.com/tidepool")]
    channel: Option<Option<Secret>>,
}

/// Sets a rule (super_admin).
///
/// Alerts are posted to the channel as JSON {event: raised or resolved, id, rule, subject, message, created_at, resolved_at}, tried
/// up to five times. `X-Tidepool-Signature` is `t=<seconds>,v1=<hex>`: HMAC-SHA-256 of `<seconds>.<body>` with the signing secret.
/// `X-Tidepool-Delivery` is the same in every attempt. Private addresses are refused unless `webhook_allow_private` is set.
#[utoipa::path(put, path = "/alerts/rules/{id}", tag = "alerts", params(("id" = String, Path)), request_body = AlertRulePatch, responses((status = 200, body = AlertRuleItem)))]
async fn set_rule(
    who: Admin,
    api: State,
    Path(id): Path<String>,
    Body(body): Body<AlertRulePatch>,
) -> Answer<AlertRuleItem> {
    let patch = Patch { enabled: body.enabled, threshold: body.threshold, channel: body.channel };
    let set = alert::set_rule(&api.app, &who.by, &id, patch).await?;
    Ok(Data(rule_item(set, true)))
}
