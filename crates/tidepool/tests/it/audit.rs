//! The audit log: every write and login is in it, it is found by every filter, and exports are safe.

use std::time::Duration;

use serde_json::{Value, json};

use crate::kit::{PASSWORD, Site};
use crate::on_both;

fn rows(data: &Value) -> Vec<(String, String, String, String)> {
    let text = |row: &Value, field: &str| row[field].as_str().unwrap().to_owned();
    let row = |r: &Value| (text(r, "operator"), text(r, "action"), text(r, "level"), text(r, "target"));
    data["list"].as_array().unwrap().iter().map(row).collect()
}

on_both! {
    async fn every_write_and_login_leaves_an_entry(site: Site) {
        let token = site.plain_admin("plain@example.com", "admin").await;
        let user = site.admin.post("/users", json!({"email": "ada@example.com", "password": PASSWORD})).token(&token).ok().await;
        let path = format!("/users/{}", user["id"].as_str().unwrap());
        site.admin.patch(&path, json!({"status": "revoked", "password": "a-password-nobody-sees"})).token(&token).ok().await;
        site.admin.delete(&path).token(&token).ok().await;
        site.admin.patch("/admin-users/plain@example.com", json!({"name": "Plain"})).token(&site.root).ok().await;
        site.admin.delete("/admin-users/plain@example.com").token(&site.root).ok().await;
        let wrong = json!({"email": "root@example.com", "password": "wrong password"});
        site.admin.post("/auth/login", wrong).header("user-agent", "a browser").refused("4011").await;
        let data = site.admin.get("/audit-logs").token(&site.root).ok().await;
        let expected = [
            ("root@example.com", "auth.login", "WARN", "root@example.com"),
            ("root@example.com", "user.update", "WARN", "plain@example.com"),
            ("root@example.com", "user.update", "INFO", "plain@example.com"),
            ("plain@example.com", "user.update", "WARN", "ada@example.com"),
            ("plain@example.com", "user.update", "WARN", "ada@example.com"),
            ("plain@example.com", "user.create", "INFO", "ada@example.com"),
            ("plain@example.com", "auth.login", "INFO", "plain@example.com"),
            ("root@example.com", "user.create", "INFO", "plain@example.com"),
            ("root@example.com", "auth.login", "INFO", "root@example.com"),
            ("System", "user.create", "INFO", "root@example.com"),
        ];
        let expected = expected.map(|(a, b, c, d)| (a.to_owned(), b.to_owned(), c.to_owned(), d.to_owned()));
        assert_eq!(rows(&data), expected);
        assert_eq!(data["list"][0]["ip"], "127.0.0.1");
        assert_eq!(data["list"][0]["user_agent"], "a browser");
        assert_eq!(data["list"][4]["detail"], "status: active → revoked; password changed; no second factor: whoever knows this password can sign in as this person");
        assert!(!data.to_string().contains("nobody-sees"));
    }

    async fn a_refused_change_leaves_no_entry(site: Site) {
        site.admin.delete("/admin-users/root@example.com").token(&site.root).refused("4090").await;
        site.user("ada@example.com").await;
        site.admin.post("/users", json!({"email": "ada@example.com"})).token(&site.root).refused("4090").await;
        let data = site.admin.get("/audit-logs?action=user.create").token(&site.root).ok().await;
        assert_eq!(data["total"], 2, "root and ada: {data}");
        assert_eq!(site.admin.get("/audit-logs?action=user.update").token(&site.root).ok().await["total"], 0);
    }

    async fn entries_are_found_by_every_filter(site: Site) {
        for i in 0..3 {
            // A day passes between two of them: the first token is long gone.
            let root = site.admin_login("root@example.com").await;
            let body = json!({"email": format!("user{i}@example.com")});
            site.admin.post("/users", body).token(&root).ok().await;
            site.wait(Duration::from_secs(24 * 3600));
        }
        let root = site.admin_login("root@example.com").await;
        let get = |path: &str| site.admin.get(path).token(&root);
        let total = |data: Value| data["total"].as_i64().unwrap();
        assert_eq!(total(get("/audit-logs?action=user.create&operator=ROOT@example.com").ok().await), 3);
        assert_eq!(total(get("/audit-logs?operator=System").ok().await), 1);
        assert_eq!(total(get("/audit-logs?level=WARN").ok().await), 0);
        assert_eq!(total(get("/audit-logs?q=USER1").ok().await), 1);
        assert_eq!(total(get("/audit-logs?target=user2@example.com").ok().await), 1);
        let first = get("/audit-logs?sort=id&limit=1").ok().await;
        let day = &first["list"][0]["created_at"].as_str().unwrap()[..10];
        assert_eq!(total(get(&format!("/audit-logs?date={day}&action=user.create")).ok().await), 2, "root and user0");
        let all = total(get("/audit-logs").ok().await);
        let pages = get("/audit/logs?page=2&pageSize=3").ok().await;
        assert_eq!((total(pages.clone()), pages["list"].as_array().unwrap().len()), (all, 3));
        let offset = get("/audit-logs?limit=3&offset=3").ok().await;
        assert_eq!(offset["list"], pages["list"], "both manners of paging");
    }

    async fn the_export_is_whole_and_safe_in_a_spreadsheet(site: Site) {
        let nasty = "=HYPERLINK(\"http://evil\"),\n\"quoted\"";
        let user = site.user("ada@example.com").await;
        let path = format!("/users/{}", user["id"].as_str().unwrap());
        site.admin.patch(&path, json!({"name": nasty})).token(&site.root).ok().await;
        for agent in ["=cmd|calc", "+1", "-1", "@x"] {
            site.admin.post("/auth/login", json!({"email": "root@example.com", "password": PASSWORD})).header("user-agent", agent).ok().await;
        }
        // More than one batch.
        let mut tx = site.app.db.begin().await.unwrap();
        for i in 0..2100 {
            let entry = store::audit::NewEntry {
                operator: "System", action: store::audit::Action::ConfigChange, level: store::audit::Level::Info,
                target: "t", detail: &format!("row {i}"), ip: "", user_agent: "", created_at: site.app.clock.now(),
            };
            store::audit::write(&mut tx, entry).await.unwrap();
        }
        tx.commit().await.unwrap();
        let reply = site.admin.get("/audit-logs/export?format=csv").token(&site.root).send().await;
        assert!(reply.header("content-type").starts_with("text/csv"));
        let mut reader = csv::Reader::from_reader(reply.text.as_bytes());
        assert_eq!(reader.headers().unwrap().iter().collect::<Vec<_>>().join(","), "id,created_at,operator,action,level,target,detail,ip,user_agent");
        let records: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!(records.len(), 2100 + 3 + 1 + 4);
        let ids: Vec<i64> = records.iter().map(|r| r[0].parse().unwrap()).collect();
        assert!(ids.is_sorted() && ids.windows(2).all(|w| w[0] < w[1]), "oldest first, none twice");
        assert!(records.iter().all(|r| r.iter().all(|c| !c.starts_with(['=', '+', '-', '@']))));
        assert!(records.iter().any(|r| &r[8] == "'=cmd|calc"));
        assert!(records.iter().any(|r| r[6].contains(nasty)), "nothing is lost");
        site.admin.get("/audit-logs/export?format=xlsx").token(&site.root).refused("4000").await;
        let none = site.admin.get("/audit-logs/export?start_date=2001-01-01&end_date=2001-12-31").token(&site.root).send().await;
        assert_eq!(none.text.lines().count(), 1);
        let lines = async |query: &str| {
            let path = format!("/audit-logs/export?{query}");
            site.admin.get(&path).token(&site.root).send().await.text.lines().count() - 1
        };
        assert_eq!(lines("action=config.change").await, 2100);
        assert_eq!(lines("action=config.change&q=row%2020").await, 1 + 10 + 100, "20, 200 to 209, 2000 to 2099");
        assert_eq!(lines("operator=System&target=t&level=INFO").await, 2100);
        assert_eq!(lines("target=nothing").await + lines("level=ERROR").await + lines("operator=nobody").await, 0);
    }

    async fn old_entries_go_after_the_retention_period(site: Site) {
        site.user("ada@example.com").await;
        site.wait(Duration::from_secs(90 * 24 * 3600 - 60));
        assert_eq!(queue::audit::clean(&site.app).await.unwrap(), 0);
        site.wait(Duration::from_secs(120));
        assert_eq!(queue::audit::clean(&site.app).await.unwrap(), 3);
        let root = site.admin_login("root@example.com").await;
        assert_eq!(site.admin.get("/audit-logs").token(&root).ok().await["total"], 1, "the login of just now");
    }
}
