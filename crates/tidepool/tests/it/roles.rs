//! What each role of administrators may do where a field of a request decides, and what it sees. Which operation is whose is tried in
//! `coverage`.

use serde_json::{Value, json};

use crate::kit::{Database, Options, Site, database_before};
use crate::on_both;

async fn with_role(site: &Site, role: &str) -> String {
    site.plain_admin(&format!("{role}@example.com"), role).await
}

on_both! {
    /// An administrator looks after people: servers, places, prices and what is root stay out of reach.
    async fn an_admin_is_not_root_on_the_servers(site: Site) {
        let id = &site.instances("a", 1).await[0];
        let server = site.admin.get(&format!("/instances/{id}")).token(&site.root).ok().await["server_id"].as_str().unwrap().to_owned();
        let admin = with_role(site, "admin").await;
        let refused = async |method: &str, path: &str, body: Value| {
            site.admin.call(method.parse().unwrap(), path).json(body).token(&admin).refused("4030").await
        };
        refused("POST", "/servers", json!({"name": "Mine", "host": "192.0.2.9"})).await;
        refused("PATCH", &format!("/servers/{server}"), json!({"host": "192.0.2.66"})).await;
        refused("PATCH", &format!("/servers/{server}"), json!({"base_dir": "/etc"})).await;
        refused("POST", &format!("/servers/{server}/containers/db/stop"), json!({})).await;
        for place in [json!({"home": "/root"}), json!({"unit": "sshd"}), json!({"is_main": true}), json!({"container_id": "db"})] {
            let mut body = json!({"id": "x", "name": "x", "server_id": server});
            body.as_object_mut().unwrap().extend(place.as_object().unwrap().clone());
            let why = refused("POST", "/assistant-instances", body).await;
            assert!(why.contains("instances.place"), "{why}");
        }
        refused("PATCH", "/models/gpt-4o", json!({"price_per_1k": 0})).await;
        refused("POST", "/keys", json!({"name": "free"})).await;
        let unchanged = site.admin.get("/models").token(&admin).ok().await;
        assert!(unchanged["list"].as_array().unwrap().iter().all(|model| model["price_per_1k"].as_f64().unwrap() > 0.0));
        site.admin.patch("/models/gpt-4o", json!({"enabled": false})).token(&admin).ok().await;
        // The spec's body is theirs.
        site.admin.post("/assistant-instances", json!({"id": "b", "name": "b", "server_id": server})).token(&admin).ok().await;
    }

    /// A task does what an operation does: whoever may not do that enqueues, retries and cancels none of it.
    async fn a_task_needs_the_permission_of_what_it_does(site: Site) {
        let id = &site.instances("a", 1).await[0];
        let server = site.admin.get(&format!("/instances/{id}")).token(&site.root).ok().await["server_id"].as_str().unwrap().to_owned();
        let (admin, operator) = (with_role(site, "admin").await, with_role(site, "operator").await);
        let prepare = json!({"type": "prepare_server", "payload": {"server_id": server}});
        site.admin.post("/tasks", prepare.clone()).token(&admin).refused("4030").await;
        let made = site.admin.post("/tasks", prepare).token(&operator).ok().await;
        let path = format!("/tasks/{}", made["id"].as_str().unwrap());
        site.admin.post(&format!("{path}/cancel"), json!({})).token(&admin).refused("4030").await;
        site.admin.post(&format!("{path}/cancel"), json!({})).token(&operator).ok().await;
        site.admin.post(&format!("{path}/retry"), json!({})).token(&admin).refused("4030").await;
        let init = json!({"type": "init_instance", "payload": {"instance_id": id, "user_id": "nobody"}});
        site.admin.post("/tasks", init).token(&operator).refused("4030").await;
        let leave = json!({"type": "confine_instance", "payload": {"instance_id": id, "confined": false}});
        site.admin.post("/tasks", leave).token(&operator).refused("4030").await;
    }

    /// Who asked for a task is known by their session; the source is a label.
    async fn nobody_enqueues_a_task_in_anothers_name(site: Site) {
        let id = &site.instances("a", 1).await[0];
        let admin = with_role(site, "admin").await;
        let body = json!({"type": "restart_instance", "payload": {"instance_id": id}, "source": "root@example.com"});
        let made = site.admin.post("/tasks", body).token(&admin).ok().await;
        assert_eq!((made["source"].as_str(), made["operator"].as_str()), (Some("root@example.com"), Some("admin@example.com")));
        let plain = json!({"type": "restart_instance", "payload": {"instance_id": id}});
        let made = site.admin.post("/tasks", plain).token(&admin).ok().await;
        assert_eq!((made["source"].as_str(), made["operator"].as_str()), (Some("admin@example.com"), Some("admin@example.com")));
    }

    /// Operators and auditors see instances, and none of their secrets.
    async fn secrets_are_for_those_who_need_them(site: Site) {
        let id = &site.instances("a", 1).await[0];
        // Not recorded as a secret that no answer may hold: whoever may see it is shown it below.
        let secret = "sk-not-a-real-key-0123456789";
        let config = json!({"config_json": {"models": {"providers": {"mine": {"apiKey": secret}}}}});
        site.admin.patch(&format!("/assistant-instances/{id}"), config).token(&site.root).ok().await;
        let path = format!("/instances/{id}");
        let whole = site.admin.get(&path).token(&site.root).ok().await;
        assert!(whole["config_json"].as_str().unwrap().contains(secret));
        let token = whole["gateway_token"].as_str().unwrap().to_owned();
        for role in ["operator", "auditor"] {
            let login = with_role(site, role).await;
            let shown = site.admin.get(&path).token(&login).ok().await;
            assert!(!shown.to_string().contains(secret) && !shown.to_string().contains(&token), "{role}: {shown}");
            assert!(shown["gateway_token"].as_str().unwrap().starts_with('…'), "{role}");
            site.admin.get(&format!("{path}?secrets=whole")).token(&login).refused("4030").await;
            // What was read with masks does not come back in the place of the secrets.
            let masked = json!({"config_json": shown["config_json"]});
            site.admin.patch(&format!("{path}/config"), masked.clone()).token(&login).refused("4030").await;
            site.admin.patch(&format!("/assistant-instances/{id}"), masked).token(&login).refused("4030").await;
        }
        let auditor = site.admin_login("auditor@example.com").await;
        site.admin.get(&format!("{path}/logs")).token(&auditor).refused("4030").await;
        let server = json!({"id": "b", "name": "b", "server_id": whole["server_id"]});
        let operator = site.admin_login("operator@example.com").await;
        let made = site.admin.post("/assistant-instances", server).token(&operator).ok().await;
        assert!(made["gateway_token"].as_str().unwrap().starts_with('…'), "{made}");
    }

    /// An operator has no people and no money; an auditor has both, to read.
    async fn operators_and_auditors_see_their_half(site: Site) {
        let (operator, auditor) = (with_role(site, "operator").await, with_role(site, "auditor").await);
        for path in ["/users", "/admin-users", "/usage-daily", "/llm-stats", "/keys", "/audit-logs", "/profession-claims"] {
            site.admin.get(path).token(&operator).refused("4030").await;
            site.admin.get(path).token(&auditor).ok().await;
        }
        for path in ["/servers", "/instances", "/tasks", "/alerts"] {
            site.admin.get(path).token(&operator).ok().await;
            site.admin.get(path).token(&auditor).ok().await;
        }
    }

    /// What a role lost is lost on the very next request.
    async fn a_changed_role_holds_at_once(site: Site) {
        let operator = with_role(site, "operator").await;
        site.admin.post("/servers", json!({"name": "One", "host": "192.0.2.9"})).token(&operator).ok().await;
        site.admin.patch("/admin-users/operator@example.com", json!({"role": "auditor"})).token(&site.root).ok().await;
        site.admin.post("/servers", json!({"name": "Two", "host": "192.0.2.9"})).token(&operator).refused("4030").await;
    }

    /// A price and a switch that are changed at one moment both hold.
    async fn two_changes_of_one_model_do_not_undo_each_other(site: Site) {
        for round in 0..20 {
            let price = f64::from(round + 1) / 1000.0;
            let (one, two) = tokio::join!(
                site.admin.patch("/models/gpt-4o", json!({"price_per_1k": price})).token(&site.root).ok(),
                site.admin.patch("/models/gpt-4o", json!({"enabled": round % 2 == 0})).token(&site.root).ok(),
            );
            let list = site.admin.get("/models").token(&site.root).ok().await;
            let model = list["list"].as_array().unwrap().iter().find(|model| model["id"] == "gpt-4o").unwrap().clone();
            assert_eq!((model["price_per_1k"].as_f64(), model["enabled"].as_bool()), (Some(price), Some(round % 2 == 0)), "{one} {two}");
        }
    }

    async fn two_changes_of_one_alert_rule_do_not_undo_each_other(site: Site) {
        for round in 0..20 {
            let url = format!("https://203.0.113.9/{round}");
            let (one, two) = tokio::join!(
                site.admin.put("/alerts/rules/budget_near_limit", json!({"enabled": true, "channel": url})).token(&site.root).ok(),
                site.admin.put("/alerts/rules/budget_near_limit", json!({"enabled": true, "threshold": round + 1})).token(&site.root).ok(),
            );
            let list = site.admin.get("/alerts/rules").token(&site.root).ok().await;
            let rule = list["list"].as_array().unwrap().iter().find(|rule| rule["id"] == "budget_near_limit").unwrap().clone();
            assert_eq!((rule["channel"].as_str(), rule["threshold"].as_f64()), (Some(url.as_str()), Some(f64::from(round + 1))), "{one} {two}");
        }
    }
}

/// The machine that the platform runs on becomes a server by a setting only.
#[tokio::test(flavor = "multi_thread")]
async fn the_machine_itself_needs_a_setting() {
    let site = Site::with(Database::sqlite(), Options { no_local_server: true, ..Options::default() }).await;
    let why =
        site.admin.post("/servers", json!({"name": "Here", "host": "local"})).token(&site.root).refused("4000").await;
    assert!(why.contains("TIDEPOOL_LOCAL_SERVER"), "{why}");
    site.server("s").await;
    site.admin.patch("/servers/s", json!({"host": "local"})).token(&site.root).refused("4000").await;
    site.admin.patch("/servers/s", json!({"name": "There"})).token(&site.root).ok().await;
}

/// A database of the release before: whoever asked for its tasks is not known, whatever their label says.
async fn an_older_database(database: Database) {
    let db = database_before(16, &database.url).await;
    let mut tx = db.begin().await.unwrap();
    let sql = "INSERT INTO task (id, type, payload, status, source, next_attempt_at, created_at, updated_at) \
        VALUES ('t', 'prepare_server', '{\"server_id\":\"s\"}', 'done', 'root@example.com', 0, 0, 0)";
    tx.run(sql, vec![]).await.unwrap();
    tx.commit().await.unwrap();
    drop(db);
    let site = Site::start(database).await;
    let task = site.admin.get("/tasks/t").token(&site.root).ok().await;
    assert_eq!((task["source"].as_str(), task["operator"].as_str()), (Some("root@example.com"), Some("System")));
    site.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_database_has_tasks_of_nobody_sqlite() {
    an_older_database(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_database_has_tasks_of_nobody_postgres() {
    if let Some(database) = Database::postgres("roles::an_older_database_has_tasks_of_nobody_postgres").await {
        an_older_database(database).await;
    }
}

/// The page for people is the table of the code.
#[test]
fn the_page_about_roles_is_the_table() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/roles.md");
    assert_eq!(std::fs::read_to_string(page).unwrap(), queue::permission::document(), "write it with `tidepool roles`");
}
