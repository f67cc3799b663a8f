//! An instance changes hands, people change departments and leave: what each answer says then.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use store::request_log::{self, NewRequest, RequestType};

use super::NOW;
use crate::kit::{Database, Options, Site};

async fn used(site: &Site, tokens: i64) {
    used_at(site, tokens, site.app.clock.now()).await;
    site.app.clock.advance(SignedDuration::from_mins(1));
}

async fn used_at(site: &Site, tokens: i64, created_at: Timestamp) {
    let mut tx = site.app.db.begin().await.unwrap();
    let row = NewRequest {
        request_id: format!("r{tokens}"),
        token_name: "a0".into(),
        model: "=gpt".into(),
        provider: "ch-1".into(),
        kind: RequestType::SUCCESS,
        is_stream: false,
        prompt_tokens: tokens,
        completion_tokens: 0,
        quota: tokens * 500_000,
        duration_ms: 1,
        error_message: String::new(),
        estimated: false,
        detail: request_log::Detail::default(),
        created_at,
    };
    request_log::add(&mut tx, &site.app.zone, &[row]).await.unwrap();
    tx.commit().await.unwrap();
}

async fn assign(site: &Site, user: Option<&str>) {
    site.admin.patch("/instances/a0/assign", json!({"user_id": user})).token(&site.root).ok().await;
    site.app.clock.advance(SignedDuration::from_mins(1));
}

async fn change(site: &Site, user: &str, change: Value) {
    site.admin.patch(&format!("/users/{user}"), change).token(&site.root).ok().await;
    site.app.clock.advance(SignedDuration::from_mins(1));
}

/// 1 before anybody had it, 10 by Ada in Research, 100 by Ada in Sales, 1,000 by nobody, 10,000 by Bob; then Ada leaves.
async fn use_stays_with_whoever_had_the_instance(database: Database) {
    let site = Site::with(database, Options { now: Some(NOW.parse().unwrap()), ..Options::default() }).await;
    let site = &site;
    site.instances("a", 1).await;
    let (ada, ada_token) = site.quick_employee("ada@example.com").await;
    let (bob, _) = site.quick_employee("bob@example.com").await;
    used(site, 1).await;
    change(site, &ada, json!({"department": "Research"})).await;
    assign(site, Some(&ada)).await;
    used(site, 10).await;
    change(site, &ada, json!({"department": "Sales"})).await;
    used(site, 100).await;
    assign(site, None).await;
    used(site, 1_000).await;
    assign(site, Some(&bob)).await;
    used(site, 10_000).await;
    let summary = site.employee.get("/me/usage/summary").token(&ada_token).ok().await;
    assert_eq!(summary["all_time"]["total_tokens"], 0, "the spec: only what is bound now");
    assert_eq!(summary["former"]["all_time"]["total_tokens"], 111, "{summary}");
    change(site, &ada, json!({"status": "revoked"})).await;

    let get = |path: &str| site.admin.get(path).token(&site.root).ok();
    let stats = get("/llm-stats?group_by=user&days=1").await;
    let users: Vec<Value> = stats["stats"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| json!([s["user"], s["tokens"], s["unassigned"], s["former_employee"]]))
        .collect();
    assert_eq!(
        users,
        [
            json!(["bob@example.com", 10_000, false, false]),
            json!(["", 1_000, true, null]),
            json!(["ada@example.com", 111, false, true]),
        ]
    );
    let stats = get("/llm-stats?group_by=department,model&days=1").await;
    let departments: Vec<Value> = stats["stats"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| json!([s["department"], s["model"], s["tokens"], s["unassigned"]]))
        .collect();
    assert_eq!(
        departments,
        [
            json!(["", "=gpt", 10_001, false]),
            json!(["", "=gpt", 1_000, true]),
            json!(["Sales", "=gpt", 100, false]),
            json!(["Research", "=gpt", 10, false]),
        ]
    );
    let logs = get("/llm-request-logs?q=ADA%40").await;
    assert_eq!(logs["total"], 3, "{logs}");
    assert!(logs["list"].as_array().unwrap().iter().all(|item| item["former_employee"] == true));
    assert_eq!(get("/usage/user/ada@example.com").await["today"], 111);
    assert_eq!(get("/usage/dept/Sales").await["today"]["total_tokens"], 100);

    // The file has every group, and nothing in it is a formula.
    let file = site.admin.get("/llm-stats/export?group_by=user,model&days=1").token(&site.root).send().await;
    assert_eq!(file.header("content-type"), "text/csv; charset=utf-8");
    assert_eq!(
        file.text,
        "user,model,former_employee,unassigned,calls,tokens,cost_usd,known_input_tokens,cache_read_tokens\n\
            bob@example.com,'=gpt,false,false,1,10000,10000,0,0\n,'=gpt,false,true,1,1000,1000,0,0\n\
            ada@example.com,'=gpt,true,false,3,111,111,0,0\n"
    );
    site.admin.get("/llm-stats/export?group_by=nothing").token(&site.root).refused("4000").await;

    // The answers say since when departments are recorded, if there are earlier requests on the days that are asked for.
    let mut since: Timestamp = NOW.parse().unwrap();
    // No two of the changes are 90 seconds apart.
    for (moved, is_told) in [(0, false), (90, true), (86_400, true)] {
        let sql = "UPDATE user_department SET since = since + ?";
        site.app.db.run(sql, store::args![moved * 1_000i64]).await.unwrap();
        since += SignedDuration::from_secs(moved);
        let shown = site.app.zone.show(since);
        let expected = if is_told { json!(shown) } else { Value::Null };
        assert_eq!(get("/usage/dept/Sales").await["departments_since"], expected);
        let stats = get("/llm-stats?group_by=model,department").await;
        assert_eq!(stats["departments_since"], expected);
        assert_eq!(get("/llm-stats?group_by=model,user").await["departments_since"], Value::Null);
        let before = "/llm-stats?group_by=department&from=2026-10-20&to=2026-11-01";
        assert_eq!(get(before).await["departments_since"], Value::Null, "nothing is older on those days");

        // The file says as much in its headers.
        let export = |by: &str| site.admin.get(&format!("/llm-stats/export?group_by={by}")).token(&site.root).send();
        let file = export("model,department").await;
        assert_eq!(file.header("x-departments-since"), if is_told { shown.as_str() } else { "" });
        assert_eq!(json!(file.header("x-as-of")), stats["as_of"]);
        assert_eq!(file.header("x-stale"), "false");
        assert_eq!(export("model,user").await.header("x-departments-since"), "");
    }
    site.check().await;
}

/// On the 31st the month begins a day before the last 30 days.
async fn a_long_month_says_since_when_departments_are_recorded(database: Database) {
    let now: Timestamp = "2026-10-31T12:00:00Z".parse().unwrap();
    let site = Site::with(database, Options { now: Some(now), ..Options::default() }).await;
    let site = &site;
    site.instances("a", 1).await;
    let (ada, _) = site.quick_employee("ada@example.com").await;
    change(site, &ada, json!({"department": "Sales"})).await;
    assign(site, Some(&ada)).await;
    let get = || site.admin.get("/usage/dept/Sales").token(&site.root).ok();
    assert_eq!(get().await["departments_since"], Value::Null);
    used_at(site, 7, "2026-10-01T12:00:00Z".parse().unwrap()).await;
    let sales = get().await;
    assert_eq!((sales["month"]["total_tokens"].as_i64(), sales["daily"].clone()), (Some(7), json!([])), "{sales}");
    assert_eq!(sales["departments_since"], site.app.zone.show(now));
    site.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_month_says_since_when_departments_are_recorded_sqlite() {
    a_long_month_says_since_when_departments_are_recorded(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_month_says_since_when_departments_are_recorded_postgres() {
    if let Some(database) = Database::postgres(module_path!()).await {
        a_long_month_says_since_when_departments_are_recorded(database).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn use_stays_with_whoever_had_the_instance_sqlite() {
    use_stays_with_whoever_had_the_instance(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn use_stays_with_whoever_had_the_instance_postgres() {
    if let Some(database) = Database::postgres(module_path!()).await {
        use_stays_with_whoever_had_the_instance(database).await;
    }
}
