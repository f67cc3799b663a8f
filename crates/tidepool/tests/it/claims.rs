//! Employees claim instances and professions: one wins, the books always balance.

use std::time::Duration;

use base::id::InstanceId;
use serde_json::{Value, json};
use store::instance::Health;

use crate::kit::simulated::Simulated;
use crate::kit::{Database, Site};
use crate::on_both;

/// A claim waited for as long as the usage did, with its transaction long committed.
#[tokio::test(flavor = "multi_thread")]
async fn a_claims_answer_does_not_wait_for_the_usage() {
    let Some(database) = Database::postgres("claims::a_claims_answer_does_not_wait").await else { return };
    let site = Site::start(database).await;
    site.ready_instances("a", 1).await;
    let (_, token) = site.quick_employee("ada@example.com").await;
    let mut tx = site.begin_patient().await;
    tx.run("LOCK TABLE usage_daily, usage_slot, request_log", vec![]).await.unwrap();
    let claimed = site.employee.post("/me/instances/claim", json!({})).token(&token);
    let claimed = tokio::time::timeout(testkit::LIMIT, claimed.ok()).await.expect("it waits for the usage");
    assert_eq!(claimed["instance"]["id"], "a0");
    tx.commit().await.unwrap();
}

async fn set_health(site: &Site, id: &str, health: Health) {
    store::instance::set_health(&site.app.db, &InstanceId::named(id), health, 0, site.app.clock.now()).await.unwrap();
}

on_both! {
    async fn an_employee_claims_the_healthiest_idle_instance_and_gives_it_back(site: Site) {
        let ids = site.ready_instances("a", 3).await;
        set_health(site, &ids[0], Health::RateLimited).await;
        set_health(site, &ids[2], Health::Healthy).await;
        let (_, token) = site.quick_employee("ada@example.com").await;
        let offered = site.employee.get("/instances/available").token(&token).ok().await;
        let order: Vec<&str> = offered["list"].as_array().unwrap().iter().map(|i| i["id"].as_str().unwrap()).collect();
        assert_eq!(order, ["a2", "a1", "a0"], "the healthiest first");
        assert_eq!(offered["list"][0]["server_name"], "Server srv-a");

        let claimed = site.employee.post("/me/instances/claim", json!({})).token(&token).ok().await;
        assert_eq!((claimed["instance"]["id"].as_str(), claimed["instance"]["origin"].as_str()), (Some("a2"), Some("claimed")));
        let first_token = claimed["instance"]["gateway_token"].as_str().unwrap().to_owned();
        let task = site.employee.get(&format!("/me/tasks/{}", claimed["task_id"].as_str().unwrap())).token(&token).ok().await;
        assert_eq!((task["type"].as_str(), task["status"].as_str()), (Some("init_instance"), Some("pending")));
        let (_, other) = site.quick_employee("bob@example.com").await;
        site.employee.get(&format!("/me/tasks/{}", claimed["task_id"].as_str().unwrap())).token(&other).refused("4040").await;
        site.employee.post("/me/instances/claim", json!({})).token(&token).refused("4091").await;
        site.employee.post("/me/instances/claim", json!({"instance_id": "a2"})).token(&token).refused("4091").await;
        site.employee.post("/me/instances/claim", json!({"instance_id": "a2"})).token(&other).refused("4092").await;
        site.employee.post("/me/instances/claim", json!({"instance_id": "none"})).token(&other).refused("4092").await;
        assert_eq!(site.employee.get("/me").token(&token).ok().await["instance_count"], 1);

        site.employee.delete("/me/instances/a2/claim").token(&other).refused("4040").await;
        site.employee.delete("/me/instances/a2/claim").token(&token).ok().await;
        site.employee.delete("/me/instances/a2/claim").token(&token).refused("4040").await;
        let clean = site.admin.get("/tasks?type=clean_instance").token(&site.root).ok().await;
        assert_eq!((clean["total"].as_i64(), clean["list"][0]["instance_id"].as_str()), (Some(1), Some("a2")));
        let named = site.employee.post("/me/instances/claim", json!({"instance_id": "a2"})).token(&other).ok().await;
        assert_ne!(named["instance"]["gateway_token"], first_token.as_str(), "the token is another");
        let audit = site.admin.get("/audit-logs?action=shrimp.claim").token(&site.root).ok().await;
        assert_eq!(audit["total"], 3);
        assert_eq!((audit["list"][0]["operator"].as_str(), audit["list"][0]["detail"].as_str()), (Some("System"), Some("claimed by bob@example.com")));
    }

    /// What does not work is not listed, not given out and not counted as ready; `stock_idle` stays the count of idle entries.
    async fn only_what_works_is_offered(site: Site) {
        let ids = site.ready_instances("a", 6).await;
        let nowhere = site.instances("b", 1).await;
        set_health(site, &ids[0], Health::Unhealthy).await;
        set_health(site, &ids[1], Health::KeyInvalid).await;
        set_health(site, &ids[2], Health::RateLimited).await;
        let (_, token) = site.quick_employee("ada@example.com").await;
        let listed = async || {
            let offered = site.employee.get("/instances/available").token(&token).ok().await;
            let list: Vec<String> = offered["list"].as_array().unwrap().iter().map(|i| i["id"].as_str().unwrap().to_owned()).collect();
            assert_eq!(offered["total"], list.len());
            list
        };
        assert_eq!(listed().await, ["a3", "a4", "a5", "a2"]);
        let claim = |id: &str| site.employee.post("/me/instances/claim", json!({"instance_id": id})).token(&token);
        assert_eq!(claim("a0").refused("4092").await, "this instance is unhealthy; choose another");
        assert_eq!(claim("a1").refused("4092").await, "the key of this instance is invalid; choose another");
        assert_eq!(claim(&nowhere[0]).refused("4092").await, "this instance is not on its server yet; choose another");

        let pooled: Vec<String> = [&ids[0], &ids[3], &nowhere[0]].into_iter().cloned().collect();
        let (profession, _) = site.profession("p", &pooled).await;
        assert_eq!(listed().await, ["a4", "a5", "a2"]);
        let stock = async || {
            let offer = site.employee.get("/me/professions").token(&token).ok().await["list"][0].clone();
            let line = site.admin.get(&format!("/professions/{profession}")).token(&site.root).ok().await;
            assert_eq!((&offer["stock_idle"], &offer["stock_ready"]), (&line["stock_idle"], &line["stock_ready"]));
            (line["stock_idle"].as_i64().unwrap(), line["stock_ready"].as_i64().unwrap(), line["stock_total"].as_i64().unwrap())
        };
        assert_eq!(stock().await, (3, 1, 3));
        // A server that is taken out of service takes its instances with it.
        let serve = async |status: &str| {
            site.admin.patch("/servers/srv-a", json!({"status": status})).token(&site.root).ok().await;
        };
        serve("disabled").await;
        assert_eq!((listed().await.len(), stock().await), (0, (3, 0, 3)));
        assert_eq!(claim("a4").refused("4092").await, "the server of this instance is not in service; choose another");
        let take = format!("/me/professions/{profession}/claim");
        site.employee.post("/me/instances/claim", json!({})).token(&token).refused("4092").await;
        site.employee.post(&take, json!({})).token(&token).refused("4092").await;
        serve("active").await;
        let taken = site.employee.post(&take, json!({})).token(&token).ok().await;
        assert_eq!((taken["instance"]["id"].as_str(), stock().await), (Some("a3"), (2, 0, 3)));
        let (_, other) = site.quick_employee("bob@example.com").await;
        site.employee.post(&take, json!({})).token(&other).refused("4092").await;
    }

    async fn a_claim_whose_task_died_is_exchanged_for_another(site: Site) {
        let ids = site.ready_instances("a", 2).await;
        let (_, token) = site.quick_employee("ada@example.com").await;
        let claimed = site.employee.post("/me/instances/claim", json!({})).token(&token).ok().await;
        assert_eq!((claimed["instance"]["id"].as_str(), claimed["instance"]["setup"]["status"].as_str()), (Some("a0"), Some("pending")));
        let task = claimed["task_id"].as_str().unwrap().to_owned();
        let replace = |id: &str| site.employee.post(&format!("/me/instances/{id}/replace"), json!({})).token(&token);
        replace(&ids[0]).refused("4090").await;
        replace("none").refused("4040").await;
        site.admin.post(&format!("/tasks/{task}/cancel"), json!({})).token(&site.root).ok().await;
        let mine = site.employee.get("/me/instances").token(&token).ok().await;
        assert_eq!(mine["instances"][0]["setup"], json!({"task_id": task, "status": "dead"}));

        set_health(site, &ids[1], Health::Unhealthy).await;
        replace(&ids[0]).refused("4092").await;
        assert_eq!(site.employee.get("/me/instances").token(&token).ok().await["instances"][0]["id"], "a0", "there was no other");
        set_health(site, &ids[1], Health::Healthy).await;
        let (_, other) = site.quick_employee("bob@example.com").await;
        site.employee.post("/me/instances/a0/replace", json!({})).token(&other).refused("4040").await;
        let replaced = replace(&ids[0]).ok().await;
        assert_eq!((replaced["instance"]["id"].as_str(), replaced["entry_id"].is_null()), (Some("a1"), true));
        assert_eq!(site.employee.get("/me/instances").token(&token).ok().await["total"], 1);
        let watched = site.employee.get(&format!("/me/tasks/{}", replaced["task_id"].as_str().unwrap())).token(&token).ok().await;
        assert_eq!((watched["type"].as_str(), watched["status"].as_str()), (Some("init_instance"), Some("pending")));
        // The failed one is cleaned; nobody gets it before that, and administrators see its dead task.
        let of_failed = site.admin.get("/tasks?instance_id=a0&status=dead").token(&site.root).ok().await;
        assert_eq!((of_failed["total"].as_i64(), of_failed["list"][0]["id"].as_str()), (Some(1), Some(task.as_str())));
        assert_eq!(site.admin.get("/tasks?instance_id=a0&type=clean_instance").token(&site.root).ok().await["total"], 1);
        site.employee.post("/me/instances/claim", json!({})).token(&other).refused("4092").await;
        let audit = site.admin.get("/audit-logs?action=shrimp.claim").token(&site.root).ok().await;
        let said: Vec<(&str, &str)> = audit["list"].as_array().unwrap().iter().map(|e| (e["target"].as_str().unwrap(), e["detail"].as_str().unwrap())).collect();
        assert_eq!(said[..2], [("a1", "claimed by ada@example.com"), ("a0", "given back by ada@example.com, its set-up failed")]);
    }

    /// Exchanges lock two instances each, and a health check locks all of a server.
    async fn many_exchanges_at_once_give_everybody_another(site: Site) {
        let ids = site.ready_instances("a", 16).await;
        let (profession, _) = site.profession("p", &ids[8..]).await;
        let mut calls = vec![];
        for i in 0..8 {
            let (_, token) = site.quick_employee(&format!("user{i}@example.com")).await;
            let path = if i < 4 { "/me/instances/claim".to_owned() } else { format!("/me/professions/{profession}/claim") };
            let claimed = site.employee.post(&path, json!({})).token(&token).ok().await;
            site.admin.post(&format!("/tasks/{}/cancel", claimed["task_id"].as_str().unwrap()), json!({})).token(&site.root).ok().await;
            let id = claimed["instance"]["id"].as_str().unwrap().to_owned();
            calls.push((id.clone(), site.employee.post(&format!("/me/instances/{id}/replace"), json!({})).token(&token)));
        }
        let all: Vec<InstanceId> = ids.iter().map(InstanceId::named).collect();
        let db = site.app.db.clone();
        let checks = tokio::spawn(async move {
            for _ in 0..20 {
                let mut tx = db.begin().await.unwrap();
                store::instance_health::lock_instances(&mut tx, &all).await.unwrap();
                tx.commit().await.unwrap();
            }
        });
        let replies = futures_util::future::join_all(calls.into_iter().map(|(id, call)| tokio::spawn(async move { (id, call.send().await.json()) }))).await;
        checks.await.unwrap();
        let mut given = std::collections::HashSet::new();
        for reply in replies {
            let (failed, body) = reply.unwrap();
            assert_eq!(body["code"], "0000", "{body}");
            let id = body["data"]["instance"]["id"].as_str().unwrap().to_owned();
            assert_ne!(id, failed);
            assert!(given.insert(id), "given twice");
        }
    }

    /// The claim was done and answered with 500, because what the instance was used for today could not be read.
    async fn a_claim_that_is_done_is_answered_whatever_becomes_of_the_usage(site: Site) {
        site.ready_instances("a", 1).await;
        let pooled = site.ready_instances("b", 1).await;
        let (profession, _) = site.profession("writer", &pooled).await;
        let (_, token) = site.quick_employee("ada@example.com").await;
        let run = async |sql: &str| site.app.db.run(sql, vec![]).await.unwrap();
        run("ALTER TABLE usage_daily RENAME TO usage_daily_hidden").await;
        let claimed = site.employee.post("/me/instances/claim", json!({})).token(&token).ok().await;
        let named = site.employee.post(&format!("/me/professions/{profession}/claim"), json!({})).token(&token).ok().await;
        run("ALTER TABLE usage_daily_hidden RENAME TO usage_daily").await;
        for (claimed, id) in [(&claimed, "a0"), (&named, "b0")] {
            let instance = &claimed["instance"];
            assert_eq!((instance["id"].as_str(), instance["today"]["requests"].as_i64()), (Some(id), Some(0)));
            assert!(!instance["gateway_token"].as_str().unwrap().is_empty());
        }
        assert_eq!(named["instance"]["profession_name"], "Profession writer");
    }

    async fn an_assigned_instance_counts_as_held_and_is_not_the_employees_to_give_back(site: Site) {
        let ids = site.ready_instances("a", 2).await;
        let (user, token) = site.quick_employee("ada@example.com").await;
        site.admin.patch(&format!("/instances/{}/assign", ids[0]), json!({"user_id": user})).token(&site.root).ok().await;
        site.employee.post("/me/instances/claim", json!({})).token(&token).refused("4091").await;
        site.employee.delete("/me/instances/a0/claim").token(&token).refused("4090").await;
    }

    async fn two_hundred_claims_of_fifty_instances_have_fifty_winners(site: Site) {
        site.ready_instances("a", 50).await;
        let mut calls = vec![];
        for i in 0..200 {
            let (_, token) = site.quick_employee(&format!("user{i}@example.com")).await;
            calls.push(site.employee.post("/me/instances/claim", json!({})).token(&token));
        }
        let replies = futures_util::future::join_all(calls.into_iter().map(|c| tokio::spawn(c.send()))).await;
        let mut won = std::collections::HashSet::new();
        let mut lost = 0;
        for reply in replies {
            let body = reply.unwrap().json();
            match body["code"].as_str().unwrap() {
                "0000" => assert!(won.insert(body["data"]["instance"]["id"].as_str().unwrap().to_owned()), "given twice"),
                "4092" => lost += 1,
                other => panic!("{other}: {body}"),
            }
        }
        assert_eq!((won.len(), lost), (50, 150));
    }

    async fn one_employee_claiming_many_times_at_once_gets_one(site: Site) {
        site.ready_instances("a", 5).await;
        let (_, token) = site.quick_employee("ada@example.com").await;
        let calls = (0..10).map(|_| tokio::spawn(site.employee.post("/me/instances/claim", json!({})).token(&token).send()));
        let replies = futures_util::future::join_all(calls).await;
        let codes: Vec<String> = replies.into_iter().map(|r| r.unwrap().json()["code"].as_str().unwrap().to_owned()).collect();
        assert_eq!(codes.iter().filter(|c| *c == "0000").count(), 1, "{codes:?}");
        assert_eq!(codes.iter().filter(|c| *c == "4091").count(), 9, "{codes:?}");
    }

    async fn many_employees_claiming_many_times_at_once_get_one_each(site: Site) {
        site.ready_instances("a", 60).await;
        let mut calls = vec![];
        for i in 0..12 {
            let (_, token) = site.quick_employee(&format!("user{i}@example.com")).await;
            calls.extend((0..8).map(|_| site.employee.post("/me/instances/claim", json!({})).token(&token)));
        }
        let replies = futures_util::future::join_all(calls.into_iter().map(|c| tokio::spawn(c.send()))).await;
        let won = replies.into_iter().filter(|r| r.as_ref().unwrap().status == 200).count();
        assert_eq!(won, 12, "one each, however many at once");
    }

    async fn of_many_claims_of_one_instance_one_wins(site: Site) {
        let ids = site.ready_instances("a", 1).await;
        let mut calls = vec![];
        for i in 0..20 {
            let (_, token) = site.quick_employee(&format!("user{i}@example.com")).await;
            calls.push(site.employee.post("/me/instances/claim", json!({"instance_id": ids[0]})).token(&token));
        }
        let replies = futures_util::future::join_all(calls.into_iter().map(|c| tokio::spawn(c.send()))).await;
        let won = replies.into_iter().filter(|r| r.as_ref().unwrap().status == 200).count();
        assert_eq!(won, 1);
    }

    async fn two_hundred_claims_of_fifty_pool_entries_have_fifty_winners(site: Site) {
        let ids = site.ready_instances("a", 50).await;
        let (profession, _) = site.profession("p", &ids).await;
        let mut calls = vec![];
        for i in 0..200 {
            let (_, token) = site.quick_employee(&format!("user{i}@example.com")).await;
            calls.push(site.employee.post(&format!("/me/professions/{profession}/claim"), json!({})).token(&token));
        }
        let replies = futures_util::future::join_all(calls.into_iter().map(|c| tokio::spawn(c.send()))).await;
        let mut won = std::collections::HashSet::new();
        let mut lost = 0;
        for reply in replies {
            let body = reply.unwrap().json();
            match body["code"].as_str().unwrap() {
                "0000" => assert!(won.insert(body["data"]["entry_id"].as_str().unwrap().to_owned()), "given twice"),
                "4092" => lost += 1,
                other => panic!("{other}: {body}"),
            }
        }
        assert_eq!((won.len(), lost), (50, 150));
        let line = site.admin.get("/professions").token(&site.root).ok().await;
        let stock = |field: &str| line["list"][0][field].as_i64().unwrap();
        assert_eq!((stock("stock_idle"), stock("stock_allocated"), stock("stock_total")), (0, 50, 50));
    }

    async fn professions_are_claimed_listed_and_reclaimed(site: Site) {
        let ids = site.ready_instances("a", 4).await;
        let (first, entries) = site.profession("first", &ids[..2]).await;
        let (second, _) = site.profession("second", &ids[2..3]).await;
        let (user, token) = site.quick_employee("ada@example.com").await;
        let offers = site.employee.get("/me/professions").token(&token).ok().await;
        assert_eq!((offers["total"].as_i64(), offers["list"][0]["stock_idle"].as_i64(), offers["list"][0]["claimed"].as_bool()), (Some(2), Some(2), Some(false)));
        let claim = |id: &str| site.employee.post(&format!("/me/professions/{id}/claim"), json!({})).token(&token);
        let before = site.app.zone.date(site.app.clock.now()).to_string();
        let made = claim(&first).ok().await;
        assert_eq!(made["instance"]["profession_name"], "Profession first");
        claim(&first).refused("4091").await;
        site.wait(Duration::from_secs(60));
        claim(&second).ok().await;
        claim("none").refused("4040").await;
        let mine = site.employee.get("/me/instances").token(&token).ok().await;
        assert_eq!(mine["total"], 2);
        site.employee.post("/me/instances/claim", json!({})).token(&token).refused("4091").await;

        let claims = |query: &str| site.admin.get(&format!("/profession-claims{query}")).token(&site.root);
        let all = claims("").ok().await;
        assert_eq!((all["total"].as_i64(), all["list"][0]["profession_name"].as_str()), (Some(2), Some("Profession second")), "newest first");
        let at = all["list"][0]["allocated_at"].as_str().unwrap();
        assert!(at.ends_with('Z'), "UTC: {at}");
        assert_eq!(claims(&format!("?profession_id={first}")).ok().await["total"], 1);
        assert_eq!(claims("?user_email=ADA@example.com").ok().await["total"], 2);
        assert_eq!(claims("?user_email=nobody@example.com").ok().await["total"], 0);
        let today = site.app.zone.date(site.app.clock.now()).to_string();
        assert_eq!(claims(&format!("?start_date={before}&end_date={today}")).ok().await["total"], 2);
        assert_eq!(claims("?end_date=2001-01-01").ok().await["total"], 0);

        let held = site.admin.get("/profession-pool?status=allocated").token(&site.root).ok().await;
        let entry = held["list"].as_array().unwrap().iter().find(|e| e["profession_id"] == first.as_str()).unwrap().clone();
        assert_eq!((entry["allocated_user_id"].as_str(), entry["allocated_email"].as_str()), (Some(user.as_str()), Some("ada@example.com")));
        let path = format!("/profession-pool/{}", entry["id"].as_str().unwrap());
        let instance = entry["instance_id"].as_str().unwrap();
        let before = site.admin.get(&format!("/instances/{instance}")).token(&site.root).ok().await;
        site.admin.delete(&format!("/assistant-instances/{instance}")).token(&site.root).refused("4090").await;
        site.admin.patch(&path, json!({"status": "maintenance"})).token(&site.root).refused("4090").await;
        site.admin.delete(&path).token(&site.root).refused("4090").await;
        let idle = site.admin.patch(&path, json!({"status": "idle"})).token(&site.root).ok().await;
        for null in ["allocated_user_id", "allocated_email", "allocated_at"] {
            assert!(idle[null].is_null());
        }
        assert_eq!(idle["status"], "idle");
        let after = site.admin.get(&format!("/instances/{instance}")).token(&site.root).ok().await;
        assert_ne!(before["gateway_token"], after["gateway_token"]);
        assert!(after["assigned_user_id"].is_null());
        assert_eq!(site.employee.get("/me/instances").token(&token).ok().await["total"], 1);
        let clean = site.admin.get(&format!("/tasks?type=clean_instance&instance_id={instance}")).token(&site.root).ok().await;
        assert_eq!(clean["total"], 1);
        let audit = site.admin.get(&format!("/audit-logs?action=shrimp.claim&target={instance}")).token(&site.root).ok().await;
        assert_eq!((audit["list"][0]["operator"].as_str(), audit["list"][0]["detail"].as_str()), (Some("root@example.com"), Some("Profession first reclaimed, was with ada@example.com")));
        // Given back by the employee, it is a reclaim too.
        let other = mine["instances"].as_array().unwrap().iter().find(|i| i["id"] != instance).unwrap()["id"].as_str().unwrap().to_owned();
        site.employee.delete(&format!("/me/instances/{other}/claim")).token(&token).ok().await;
        assert_eq!(site.admin.get("/profession-pool?status=allocated").token(&site.root).ok().await["total"], 0);
        assert_eq!(entries.len(), 2);
    }

    async fn the_pool_keeps_its_rules(site: Site) {
        let ids = site.ready_instances("a", 3).await;
        let (profession, entries) = site.profession("p", &ids[..1]).await;
        let add = |body: Value| site.admin.post("/profession-pool", body).token(&site.root);
        add(json!({"profession_id": profession, "instance_id": ids[0]})).refused("4090").await;
        add(json!({"profession_id": "none", "instance_id": ids[1]})).refused("4000").await;
        add(json!({"profession_id": profession, "instance_id": "none"})).refused("4000").await;
        add(json!({"profession_id": profession, "instance_id": ids[1], "server_id": "other"})).refused("4000").await;
        let (user, token) = site.quick_employee("ada@example.com").await;
        site.admin.patch(&format!("/instances/{}/assign", ids[1]), json!({"user_id": user})).token(&site.root).ok().await;
        add(json!({"profession_id": profession, "instance_id": ids[1]})).refused("4090").await;
        site.admin.patch(&format!("/instances/{}/assign", ids[0]), json!({"user_id": user})).token(&site.root).refused("4090").await;
        let path = format!("/profession-pool/{}", entries[0]);
        let set = |status: &str| site.admin.patch(&path, json!({"status": status})).token(&site.root);
        set("idle").refused("4090").await;
        set("maintenance").ok().await;
        set("maintenance").refused("4090").await;
        set("allocated").refused("4000").await;
        let (_, bob) = site.quick_employee("bob@example.com").await;
        site.employee.post(&format!("/me/professions/{profession}/claim"), json!({})).token(&bob).refused("4092").await;
        set("idle").ok().await;
        // A delisted profession is not there for employees.
        site.admin.delete(&format!("/professions/{profession}")).token(&site.root).ok().await;
        site.employee.post(&format!("/me/professions/{profession}/claim"), json!({})).token(&token).refused("4040").await;
        assert_eq!(site.employee.get("/me/professions").token(&token).ok().await["total"], 0);
        assert_eq!(site.admin.get("/professions?is_active=0").token(&site.root).ok().await["total"], 1);
        site.admin.delete(&path).token(&site.root).ok().await;
        set("idle").refused("4040").await;
        site.employee.post("/me/instances/claim", json!({"instance_id": ids[0]})).token(&bob).ok().await;
    }

    async fn professions_are_made_changed_and_ordered(site: Site) {
        let new = |body: Value| site.admin.post("/professions", body).token(&site.root);
        let made = new(json!({"name": "B", "code": "Bee", "icon": "🐝", "tagline": "buzz", "sort_order": 2})).ok().await;
        assert_eq!((made["is_active"].as_i64(), made["is_official"].as_i64(), made["stock_total"].as_i64()), (Some(1), Some(0), Some(0)));
        site.wait(Duration::from_millis(5));
        new(json!({"name": "A", "code": "ant", "icon": "🐜", "tagline": "carry", "sort_order": 1, "is_official": 1})).ok().await;
        site.wait(Duration::from_millis(5));
        new(json!({"name": "C", "code": "cat", "icon": "🐈", "tagline": "nap", "sort_order": 1, "is_active": 0})).ok().await;
        let names = async |query: &str| {
            let data = site.admin.get(&format!("/professions{query}")).token(&site.root).ok().await;
            data["list"].as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap().to_owned()).collect::<String>()
        };
        assert_eq!(names("").await, "ACB", "sort_order, then created_at");
        assert_eq!(names("?is_active=1").await, "AB");
        assert_eq!(names("?sort=-name&page_size=2").await, "CB");
        new(json!({"name": "B2", "code": "BEE", "icon": "x", "tagline": "x"})).refused("4090").await;
        for missing in ["name", "code", "icon", "tagline"] {
            let mut body = json!({"name": "x", "code": "x", "icon": "x", "tagline": "x"});
            body.as_object_mut().unwrap().remove(missing);
            new(body).refused("4000").await;
        }
        site.admin.get("/professions?is_active=2").token(&site.root).refused("4000").await;
        let path = format!("/professions/{}", made["id"].as_str().unwrap());
        let changed = site.admin.patch(&path, json!({"code": "other", "tagline": "hum", "sort_order": 0})).token(&site.root).ok().await;
        assert_eq!((changed["code"].as_str(), changed["tagline"].as_str()), (Some("Bee"), Some("hum")), "the code never changes");
        assert_eq!(names("").await, "BAC");
    }

    async fn deleting_an_instance_ends_everything_about_it(site: Site) {
        let ids = site.ready_instances("a", 2).await;
        let (_, token) = site.quick_employee("ada@example.com").await;
        site.employee.post("/me/instances/claim", json!({"instance_id": ids[0]})).token(&token).ok().await;
        site.profession("p", &ids[1..]).await;
        for id in &ids {
            site.admin.delete(&format!("/assistant-instances/{id}")).token(&site.root).ok().await;
        }
        assert_eq!(site.employee.get("/me/instances").token(&token).ok().await["total"], 0);
        assert_eq!(site.admin.get("/profession-pool").token(&site.root).ok().await["total"], 0);
        let init = site.admin.get("/tasks?type=init_instance").token(&site.root).ok().await;
        assert_eq!(init["list"][0]["status"], "dead", "what waited for it will not run");
        site.employee.post("/me/instances/claim", json!({})).token(&token).refused("4092").await;
    }
}

/// A health check holds all instances of a server while it writes: that is no reason to say that there is none.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_instance_that_is_held_for_a_moment_is_waited_for() {
    let name = "claims::an_idle_instance_that_is_held_for_a_moment_is_waited_for";
    let Some(database) = crate::kit::Database::postgres(name).await else { return };
    let site = Site::start(database).await;
    let ids = site.ready_instances("a", 2).await;
    let (_, token) = site.quick_employee("ada@example.com").await;
    let mut tx = site.begin_patient().await;
    for id in &ids {
        store::instance::lock(&mut tx, &InstanceId::named(id)).await.unwrap().unwrap();
    }
    let claim = tokio::spawn(site.employee.post("/me/instances/claim", json!({})).token(&token).send());
    site.until_blocked().await;
    tx.commit().await.unwrap();
    let claimed = claim.await.unwrap().json();
    assert_eq!(claimed["data"]["instance"]["id"], "a0", "{claimed}");
    site.check().await;
}

/// An instance that nobody has does nothing by itself, and its last owner's bot does not answer; both come back with the owner.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_taken_from_somebody_spends_nothing() {
    let ground = Simulated::new().await;
    ground.provisioned("a").await;
    let site = &ground.site;
    let (ada, _) = site.quick_employee("ada@example.com").await;
    let assign = async |user: Option<&str>| {
        site.admin.patch("/instances/a/assign", json!({"user_id": user})).token(&site.root).ok().await;
        ground.settle().await;
    };
    let does = || {
        let config = ground.config("/srv/assistants/1");
        (config["cron"]["enabled"] != false, config["channels"]["telegram"]["enabled"] == true)
    };
    let bindings = async || site.admin.get("/instances/a/chat-bindings").token(&site.root).ok().await["list"].clone();
    assert_eq!(does(), (false, false), "as it was made");
    assign(Some(&ada)).await;
    assert_eq!(does(), (true, false), "assigned");
    let token = format!("123456:{}", base::id::fresh());
    crate::kit::used_secret(&token);
    let bot = json!({"platform": "telegram", "bot_token": token});
    site.admin.post("/instances/a/chat-bindings", bot).token(&site.root).ok().await;
    ground.settle().await;
    assert_eq!(does(), (true, true), "with a bot");
    assign(None).await;
    assert_eq!(does(), (false, false), "taken back");
    assert_eq!(bindings().await[0]["is_active"], 0);
    assign(Some(&ada)).await;
    assert_eq!(does(), (true, true), "hers again");
    assert_eq!(bindings().await[0]["is_active"], 1);
    site.check().await;
}
