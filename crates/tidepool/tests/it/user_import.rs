//! The import of employees: each line does what its dry run says, whole or not at all.

use serde_json::{Value, json};

use crate::kit::{PASSWORD, Site, used_secret};
use crate::on_both;

async fn import(site: &Site, csv: &str, dry_run: bool) -> Value {
    site.admin.post("/users/import", json!({"csv": csv, "dry_run": dry_run})).token(&site.root).ok().await
}

/// Imports a file after a dry run, whose answer must be the same and must change nothing; answers the result.
async fn import_as_previewed(site: &Site, csv: &str) -> Value {
    let before = everything(site).await;
    let mut preview = import(site, csv, true).await;
    assert_eq!(everything(site).await, before, "a dry run changes nothing");
    let result = import(site, csv, false).await;
    assert_eq!((&preview["dry_run"], &result["dry_run"]), (&json!(true), &json!(false)));
    preview["dry_run"] = json!(false);
    assert_eq!(preview, result, "the dry run is what the import does");
    result
}

/// What an import can change, as administrators see it.
async fn everything(site: &Site) -> Vec<Value> {
    let mut all = vec![];
    for path in ["/users", "/profession-pool", "/instances", "/tasks", "/audit-logs"] {
        all.push(site.admin.get(path).token(&site.root).ok().await);
    }
    all
}

async fn user(site: &Site, email: &str) -> Option<Value> {
    let found = site.admin.get(&format!("/users?q={email}")).token(&site.root).ok().await;
    found["list"].as_array().unwrap().first().cloned()
}

/// What each line does: its number, and its action or the reason why it is refused.
fn effects(result: &Value) -> Vec<(i64, String)> {
    let lines = result["lines"].as_array().unwrap().iter();
    let effect = |line: &Value| match line["refusal"]["reason"].as_str() {
        Some(reason) => reason.to_owned(),
        None => line["action"].as_str().unwrap().to_owned(),
    };
    lines.map(|line| (line["line"].as_i64().unwrap(), effect(line))).collect()
}

fn expected(lines: &[(i64, &str)]) -> Vec<(i64, String)> {
    lines.iter().map(|(line, effect)| (*line, (*effect).to_owned())).collect()
}

async fn audit(site: &Site, action: &str) -> Vec<(String, String, String)> {
    let found = site.admin.get(&format!("/audit-logs?action={action}&sort=id")).token(&site.root).ok().await;
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap().to_owned();
    let list = found["list"].as_array().unwrap().iter();
    list.map(|entry| (text(entry, "operator"), text(entry, "target"), text(entry, "detail"))).collect()
}

on_both! {
    async fn people_are_created_changed_and_left_as_they_are(site: Site) {
        site.user("old@example.com").await;
        site.user("same@example.com").await;
        used_secret("a password of its own");
        let csv = "\u{feff}E-Mail;Name;Department;Quota;Password;Room\r\n\
            Ada@Example.com;Ada Lovelace;Research;5000;a password of its own;12\r\n\
            sso@example.com;;;;;\r\n\
            OLD@example.com;;Sales;7;ignored password;\r\n\
            same@example.com;Somebody;Tests;0;;\r\n";
        let result = import_as_previewed(site, csv).await;
        assert_eq!(effects(&result), expected(&[(2, "create"), (3, "create"), (4, "update"), (5, "unchanged")]));
        assert_eq!(result["summary"], json!({"create": 2, "update": 1, "unchanged": 1, "refuse": 0, "assign": 0}));
        assert_eq!(result["ignored_columns"], json!(["Room"]));
        assert_eq!(
            result["lines"][0]["changes"],
            json!([
                {"field": "name", "old": null, "new": "Ada Lovelace"},
                {"field": "department", "old": null, "new": "Research"},
                {"field": "quota_daily", "old": null, "new": "5000"},
                {"field": "password", "old": null, "new": null},
            ])
        );
        assert_eq!(
            result["lines"][2]["changes"],
            json!([
                {"field": "department", "old": "Tests", "new": "Sales"},
                {"field": "quota_daily", "old": "0", "new": "7"},
            ])
        );
        assert_eq!((&result["lines"][2]["password_ignored"], &result["lines"][0]["password_ignored"]), (&json!(true), &json!(false)));

        let ada = user(site, "ada@example.com").await.unwrap();
        assert_eq!((ada["email"].as_str(), ada["quota_daily"].as_i64(), &ada["has_password"]), (Some("Ada@Example.com"), Some(5000), &json!(true)));
        let sso = user(site, "sso@example.com").await.unwrap();
        assert_eq!((sso["quota_daily"].as_i64(), &sso["has_password"]), (Some(0), &json!(false)));
        let old = user(site, "old@example.com").await.unwrap();
        assert_eq!((old["name"].as_str(), old["department"].as_str(), old["quota_daily"].as_i64()), (Some("Somebody"), Some("Sales"), Some(7)));
        let login = json!({"email": "ada@example.com", "password": "a password of its own"});
        site.employee.post("/auth/login", login).ok().await;
        site.employee.post("/auth/login", json!({"email": "old@example.com", "password": PASSWORD})).ok().await;

        // The same entries as those of POST and PATCH /users, and none for what stays.
        let root = |target: &str, detail: &str| (crate::kit::ROOT.to_owned(), target.to_owned(), detail.to_owned());
        let created = audit(site, "user.create").await;
        for entry in [root("Ada@Example.com", "employee created"), root("sso@example.com", "employee created, SSO only")] {
            assert!(created.contains(&entry), "{entry:?} in {created:?}");
        }
        let updated = audit(site, "user.update").await;
        assert_eq!(updated, [root("old@example.com", "department: Tests → Sales; quota_daily: 0 → 7")]);

        let again = import_as_previewed(site, csv).await;
        assert_eq!(again["summary"], json!({"create": 0, "update": 0, "unchanged": 4, "refuse": 0, "assign": 0}), "it may be repeated");
    }

    async fn a_line_that_is_refused_says_why_and_stops_no_other(site: Site) {
        let (gone, _) = site.quick_employee("gone@example.com").await;
        site.admin.delete(&format!("/users/{gone}")).token(&site.root).ok().await;
        site.quick_employee("known@example.com").await;
        let csv = "email,name,quota,profession,password\n\
            nobody,N,,,\n\
            one@example.com,One,ten,,\n\
            ONE@example.com,One,10,,\n\
            two@example.com,Two,,,short\n\
            \n\
            gone@example.com,Gone,5,,\n\
            known@example.com,New name,5,cook,\n\
            three@example.com,Three, 10 ,,\n\
            four@example.com,\"Four\n";
        let result = import_as_previewed(site, csv).await;
        assert_eq!(
            effects(&result),
            expected(&[
                (2, "email"), (3, "quota"), (4, "duplicate"), (5, "password"), (7, "revoked"), (8, "profession_unknown"), (9, "create"),
                (10, "cells"),
            ])
        );
        assert_eq!(result["summary"], json!({"create": 1, "update": 0, "unchanged": 0, "refuse": 7, "assign": 0}));
        assert_eq!(result["lines"][2]["refusal"]["message"], "email: line 3 has the same address");
        let known = user(site, "known@example.com").await.unwrap();
        assert_eq!((known["name"].as_str(), known["quota_daily"].as_i64()), (Some(""), Some(0)), "nothing is half done");
        assert_eq!(user(site, "gone@example.com").await.unwrap()["status"], "revoked");
        assert_eq!(site.admin.get("/users").token(&site.root).ok().await["total"], 3);
    }

    /// A profession is an assistant of its pool: the person gets one that is ready, as by a claim of their own.
    async fn people_get_an_assistant_of_their_profession(site: Site) {
        let ids = site.ready_instances("a", 3).await;
        let (sales, _) = site.profession("sales", &ids[..2]).await;
        let (law, _) = site.profession("law", &ids[2..]).await;
        let (_, holder) = site.quick_employee("holder@example.com").await;
        site.employee.post(&format!("/me/professions/{sales}/claim"), json!({})).token(&holder).ok().await;
        let (_, known) = site.quick_employee("known@example.com").await;
        let csv = "email,name,profession\n\
            holder@example.com,,SALES\n\
            first@example.com,First,Profession sales\n\
            second@example.com,Second,sales\n\
            third@example.com,Third,sales\n\
            known@example.com,, law \n";
        let result = import_as_previewed(site, csv).await;
        let expected_effects = [(2, "unchanged"), (3, "create"), (4, "pool_empty"), (5, "pool_empty"), (6, "update")];
        assert_eq!(effects(&result), expected(&expected_effects));
        assert_eq!(result["summary"], json!({"create": 1, "update": 1, "unchanged": 1, "refuse": 2, "assign": 2}));
        let professions: Vec<&Value> = result["lines"].as_array().unwrap().iter().map(|line| &line["profession"]).collect();
        assert_eq!(
            professions,
            [
                &json!({"name": "Profession sales", "instance_id": null}), &json!({"name": "Profession sales", "instance_id": "a1"}),
                &Value::Null, &Value::Null, &json!({"name": "Profession law", "instance_id": "a2"}),
            ]
        );
        assert!(user(site, "second@example.com").await.is_none(), "no account without its assistant");
        assert_eq!(user(site, "first@example.com").await.unwrap()["instance_id"], "a1");

        // It is theirs, it is being set up, and they may give it back.
        let mine = site.employee.get("/me/instances").token(&known).ok().await;
        let instance = &mine["instances"][0];
        assert_eq!((instance["id"].as_str(), instance["origin"].as_str(), instance["profession_id"].as_str()), (Some("a2"), Some("profession"), Some(law.as_str())));
        assert_eq!(instance["setup"]["status"], "pending");
        let task = site.admin.get("/tasks?type=bootstrap_profession_instance&instance_id=a2").token(&site.root).ok().await;
        assert_eq!((task["total"].as_i64(), task["list"][0]["operator"].as_str()), (Some(1), Some(crate::kit::ROOT)));
        let entries = audit(site, "shrimp.claim").await;
        let given = |target: &str, detail: &str| (crate::kit::ROOT.to_owned(), target.to_owned(), detail.to_owned());
        for entry in [given("a1", "Profession sales given to first@example.com"), given("a2", "Profession law given to known@example.com")] {
            assert!(entries.contains(&entry), "{entry:?} in {entries:?}");
        }
        let again = import_as_previewed(site, csv).await;
        assert_eq!(again["summary"], json!({"create": 0, "update": 0, "unchanged": 3, "refuse": 2, "assign": 0}));
        site.employee.delete("/me/instances/a2/claim").token(&known).ok().await;

        site.admin.delete(&format!("/professions/{law}")).token(&site.root).ok().await;
        let result = import_as_previewed(site, "email,profession\nlast@example.com,law\n").await;
        assert_eq!(effects(&result), expected(&[(2, "profession_inactive")]));
    }

    /// A dry run gives entries away in mind only: the second line must not get what the first one got.
    async fn two_lines_of_a_dry_run_get_different_assistants(site: Site) {
        let ids = site.ready_instances("a", 2).await;
        site.profession("sales", &ids).await;
        let preview = import(site, "email,profession\none@example.com,sales\ntwo@example.com,sales\n", true).await;
        let given: Vec<&str> = preview["lines"].as_array().unwrap().iter().map(|line| line["profession"]["instance_id"].as_str().unwrap()).collect();
        assert_eq!(given, ["a0", "a1"]);
        let (_, token) = site.quick_employee("ada@example.com").await;
        let offered = site.employee.get("/me/professions").token(&token).ok().await;
        assert_eq!(offered["list"][0]["stock_ready"], 2, "nobody has them");
    }

    async fn a_file_that_cannot_be_read_is_refused_as_a_whole(site: Site) {
        let refused = async |csv: &str| site.admin.post("/users/import", json!({"csv": csv, "dry_run": false})).token(&site.root).refused("4000").await;
        assert_eq!(refused("").await, "csv: is empty");
        assert_eq!(refused("ada@example.com,Ada").await, "csv: the first line must name the columns, and one of them must be \"email\"");
        let lines: String = (0..2001).map(|i| format!("p{i}@example.com\n")).collect();
        assert_eq!(refused(&format!("email\n{lines}")).await, "csv: has 2001 lines, and may have 2000; split the file");
        assert_eq!(refused(&"x".repeat(600 << 10)).await, "csv: must have at most 512 KiB; split the file");
        let body = json!({"csv": "email\nada@example.com\n"});
        let message = site.admin.post("/users/import", body).token(&site.root).refused("4000").await;
        assert!(message.contains("dry_run"), "nobody imports by leaving something out: {message}");
        let body = json!({"csv": "x".repeat(2 << 20), "dry_run": true});
        site.admin.post("/users/import", body).token(&site.root).refused("4130").await;
        assert_eq!(site.admin.get("/users").token(&site.root).ok().await["total"], 0);
    }

    /// Whoever looks after people may import; others are refused before the file is read.
    async fn the_import_is_for_those_who_look_after_people(site: Site) {
        let body = json!({"csv": "email\nada@example.com\n", "dry_run": false});
        for role in ["operator", "auditor"] {
            let token = site.plain_admin(&format!("{role}@example.com"), role).await;
            site.admin.post("/users/import", body.clone()).token(&token).refused("4030").await;
        }
        assert!(user(site, "ada@example.com").await.is_none());
        let admin = site.plain_admin("admin@example.com", "admin").await;
        site.admin.post("/users/import", body).token(&admin).ok().await;
        assert_eq!(audit(site, "user.create").await.last().unwrap().0, "admin@example.com");
    }

    /// Two administrators import the same file at the same time: each person is made once, and gets one assistant.
    async fn two_imports_at_once_make_nobody_twice(site: Site) {
        let ids = site.ready_instances("a", 8).await;
        site.profession("sales", &ids).await;
        let lines: String = (0..8).map(|i| format!("p{i}@example.com,sales\n")).collect();
        let body = json!({"csv": format!("email,profession\n{lines}"), "dry_run": false});
        let imports = (0..2).map(|_| tokio::spawn(site.admin.post("/users/import", body.clone()).token(&site.root).ok()));
        let mut created = 0;
        for result in futures_util::future::join_all(imports).await {
            let result = result.unwrap();
            created += result["summary"]["create"].as_i64().unwrap();
            for (_, effect) in effects(&result) {
                assert!(["create", "unchanged", "conflict"].contains(&effect.as_str()), "{result}");
            }
        }
        assert_eq!(created, 8);
        let pool = site.admin.get("/profession-pool?status=allocated").token(&site.root).ok().await;
        assert_eq!(pool["total"], 8);
    }
}
