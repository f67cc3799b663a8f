//! Servers and instances: made, found, changed, assigned and deleted.

use std::time::Duration;

use base::id::{InstanceId, ServerId};
use serde_json::{Value, json};
use store::request_log::{self, NewRequest};

use crate::kit::Site;
use crate::on_both;

on_both! {
    async fn servers_are_made_listed_changed_and_deleted(site: Site) {
        let made = site.admin.post("/servers", json!({"name": "One", "host": "fra1.internal"})).token(&site.root).ok().await;
        assert_eq!((made["ssh_port"].as_i64(), made["ssh_user"].as_str(), made["status"].as_str()), (Some(22), Some("root"), Some("active")));
        site.admin.post("/servers", json!({"id": "s-2", "name": "Two", "host": "local", "ssh_port": 2222})).token(&site.root).ok().await;
        site.admin.post("/servers", json!({"id": "S-2", "name": "Two", "host": "x"})).token(&site.root).refused("4090").await;
        for bad in [json!({"name": "x"}), json!({"host": "x"}), json!({"name": "x", "host": "a b"}), json!({"name": "x", "host": "-oProxyCommand=x"}), json!({"name": "x", "host": "x", "ssh_port": 0}), json!({"name": "x", "host": "x", "ssh_port": 70000}), json!({"name": "x", "host": "x", "ssh_user": "-x"})] {
            site.admin.post("/servers", bad).token(&site.root).refused("4000").await;
        }
        assert_eq!(site.admin.get("/servers?q=TWO").token(&site.root).ok().await["total"], 1);
        let changed = site.admin.patch("/servers/s-2", json!({"name": "Zwei", "notes": "moved"})).token(&site.root).ok().await;
        assert_eq!((changed["name"].as_str(), changed["ssh_port"].as_i64()), (Some("Zwei"), Some(2222)));
        let admin = site.plain_admin("plain@example.com", "admin").await;
        site.admin.delete("/servers/s-2").token(&admin).refused("4030").await;
        site.admin.delete("/servers/s-2").token(&site.root).ok().await;
        site.admin.patch("/servers/s-2", json!({"name": "x"})).token(&site.root).refused("4040").await;
        site.admin.post("/servers", json!({"id": "s-2", "name": "Again", "host": "x"})).token(&site.root).refused("4090").await;
        assert_eq!(site.admin.get("/servers").token(&site.root).ok().await["total"], 1);
        let actions = site.admin.get("/audit-logs?action=server.action").token(&site.root).ok().await;
        assert_eq!(actions["total"], 4);
    }

    async fn whose_home_it_is_does_not_change_with_the_servers_folder(site: Site) {
        site.server("s").await;
        let instance = |id: &str, home: &str| site.admin.post("/assistant-instances", json!({"id": id, "name": id, "server_id": "s", "home": home})).token(&site.root);
        let folder = |path: &str| site.admin.patch("/servers/s", json!({"base_dir": path, "notes": path})).token(&site.root);
        folder("/data/assistants").ok().await;
        folder("/srv/assistants").ok().await;
        // Below the folder: all of it is the instance's, and is moved away when its owner changes.
        instance("own", "/srv/assistants/1").ok().await;
        let message = folder("/data/assistants").refused("4090").await;
        assert!(message.contains("base_dir") && message.contains("own"), "{message}");
        let server = site.admin.get("/servers/s/detail").token(&site.root).ok().await;
        assert_eq!((server["base_dir"].as_str(), server["notes"].as_str()), (Some("/srv/assistants"), Some("/srv/assistants")));
        folder("/srv/assistants").ok().await;
        // Shared with whoever lives there: it must not become the instance's alone.
        instance("shared", "/home/ada").ok().await;
        folder("/").refused("4000").await;
        // What is deleted has its files there until it is retired.
        site.admin.delete("/assistant-instances/own").token(&site.root).ok().await;
        folder("/data/assistants").refused("4090").await;
        site.app.db.run("UPDATE task SET status = 'done' WHERE type = 'retire_instance'", vec![]).await.unwrap();
        folder("/data/assistants").ok().await;
        assert!(folder("/home").refused("4090").await.contains("shared"));
    }

    async fn measurements_are_shown_with_their_age_and_thinned_out(site: Site) {
        let server = site.server("s").await;
        let stats = site.admin.get("/servers/s/stats").token(&site.root).ok().await;
        assert!(stats["cpu_percent"].is_null() && stats["age_s"].is_null(), "never measured: {stats}");
        site.admin.get("/servers/none/stats").token(&site.root).refused("4040").await;
        let now = site.app.clock.now();
        for minute in 0..3000i64 {
            let metric = store::server_metric::Metric {
                cpu_percent: (minute % 100) as f64, memory_percent: 12.345, disk_percent: 50.0, load_1m: 0.5,
                created_at: now - jiff::SignedDuration::from_mins(minute),
            };
            store::server_metric::insert(&site.app.db, &ServerId::named(server.as_str()), &metric).await.unwrap();
        }
        site.wait(Duration::from_secs(7));
        let stats = site.admin.get("/servers/s/stats").token(&site.root).ok().await;
        assert_eq!((stats["cpu_percent"].as_f64(), stats["memory_percent"].as_f64(), stats["age_s"].as_i64()), (Some(0.0), Some(12.35), Some(7)));
        for (hours, least) in [(1, 59), (24, 480), (720, 30)] {
            let points = site.admin.get(&format!("/server-metrics/s?hours={hours}")).token(&site.root).ok().await;
            let list = points["list"].as_array().unwrap();
            assert!((least..=500).contains(&list.len()), "{hours} hours: {} points", list.len());
            let times: Vec<&str> = list.iter().map(|p| p["created_at"].as_str().unwrap()).collect();
            assert!(times.is_sorted(), "oldest first");
        }
        for bad in ["0", "721", "-1", "x"] {
            site.admin.get(&format!("/server-metrics/s?hours={bad}")).token(&site.root).refused("4000").await;
        }
        let detail = site.admin.get("/servers/s/detail").token(&site.root).ok().await;
        assert_eq!((detail["id"].as_str(), detail["instances"].as_array().map(Vec::len), detail["stats"]["age_s"].as_i64()), (Some("s"), Some(0), Some(7)));
    }

    async fn instances_are_made_with_checked_ids_ports_and_configurations(site: Site) {
        let server = site.server("s").await;
        let new = |body: Value| {
            let mut full = json!({"id": "a", "name": "A", "server_id": server});
            full.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
            site.admin.post("/assistant-instances", full).token(&site.root)
        };
        let made = new(json!({"gateway_port": 19000, "config_json": {"agents": {}}, "model": "gpt-4o"})).ok().await;
        assert_eq!(made["config_json"], "{\"agents\":{}}", "answered as a text");
        assert_eq!((made["health_status"].as_str(), made["gateway_url"].as_str()), (Some("unknown"), Some("ws://127.0.0.1:19000")));
        let token = made["gateway_token"].as_str().unwrap();
        assert!(token.len() >= 32, "generated");
        let message = new(json!({"id": "b", "gateway_port": 19009})).refused("4090").await;
        assert!(message.contains("18789"), "the next free port is named: {message}");
        new(json!({"id": "b", "gateway_port": 18991})).refused("4090").await;
        new(json!({"id": "b", "gateway_port": 19010})).ok().await;
        assert_eq!(new(json!({"id": "c"})).ok().await["gateway_port"], 18789, "given out by ourselves");
        assert_eq!(new(json!({"id": "d"})).ok().await["gateway_port"], 18909, "the next one, far from all");
        new(json!({"id": "A"})).refused("4090").await;
        for bad in [json!({"id": "has space"}), json!({"id": ""}), json!({"id": "available"}), json!({"id": "../x"}), json!({"id": "e", "gateway_port": 80}), json!({"id": "e", "config_json": "[]"}), json!({"id": "e", "config_json": "{"}), json!({"id": "e", "config_json": 5}), json!({"id": "e", "server_id": "none"}), json!({"id": "e", "name": ""})] {
            new(bad).refused("4000").await;
        }
        let list = site.admin.get("/instances").token(&site.root).ok().await;
        assert_eq!(list["total"], 4);
        let masked = list["list"][0]["gateway_token"].as_str().unwrap();
        assert_eq!(masked, format!("…{}", &token[token.len() - 4..]));
        let sealed: Vec<Sealed> = site.app.db.all("SELECT gateway_token FROM instance", vec![]).await.unwrap();
        assert!(sealed.iter().all(|s| !s.gateway_token.contains(token)), "sealed in the database");

        // Whoever sees the whole token is on record; a page that only shows the instance asks for it masked.
        let revealed = async || site.admin.get("/audit-logs?action=secret.reveal").token(&site.root).ok().await;
        let seen = site.admin.get("/instances/a?secrets=masked").token(&site.root).ok().await;
        assert_eq!((seen["gateway_token"].as_str(), revealed().await["total"].as_i64()), (Some(masked), Some(0)));
        let seen = site.admin.get("/instances/a").token(&site.root).ok().await;
        assert_eq!(seen["gateway_token"], token);
        let message = revealed().await;
        assert_eq!((&message["total"], &message["list"][0]["operator"], &message["list"][0]["target"]), (&json!(1), &json!("root@example.com"), &json!("a")));
        assert!(!message.to_string().contains(token));
        site.admin.get("/instances/nobody").token(&site.root).refused("4040").await;
        assert_eq!(revealed().await["total"], 1);

        let path = "/assistant-instances/a";
        let changed = json!({"gateway_port": 20000, "gateway_token": "a-gateway-token-of-a-test", "notes": "n", "config_json": "{\"x\": 1}"});
        let changed = site.admin.patch(path, changed).token(&site.root).ok().await;
        assert_eq!(changed["gateway_token"], "…test", "masked in the answer to a change");
        assert_eq!((changed["gateway_url"].as_str(), changed["config_json"].as_str()), (Some("ws://127.0.0.1:20000"), Some("{\"x\": 1}")));
        site.admin.patch(path, json!({"gateway_port": 18790})).token(&site.root).refused("4090").await;
        let config = site.admin.patch("/instances/a/config", json!({"config_json": {"y": 2}})).token(&site.root).ok().await;
        assert_eq!(config["config_json"], "{\"y\":2}");
        let events = config["events"].to_string();
        assert!(events.contains("gateway_token changed") && !events.contains("a-gateway-token"), "{events}");

        site.admin.delete("/servers/s").token(&site.root).refused("4090").await;
        for id in ["a", "b", "c", "d"] {
            site.admin.delete(&format!("/assistant-instances/{id}")).token(&site.root).ok().await;
        }
        site.admin.get("/instances/a").token(&site.root).refused("4040").await;
        new(json!({"id": "a"})).refused("4090").await;
        let retire = site.admin.get("/task-queue?type=retire_instance").token(&site.root).ok().await;
        assert_eq!(retire["total"], 4);
        new(json!({"id": "again", "gateway_port": 19010})).ok().await;
    }

    async fn of_many_instances_on_one_port_one_is_made(site: Site) {
        let server = site.server("s").await;
        let tries = (0..10).map(|i| {
            let body = json!({"id": format!("i{i}"), "name": "I", "server_id": server, "gateway_port": 19000 + i});
            tokio::spawn(site.admin.post("/assistant-instances", body).token(&site.root).send())
        });
        let made = futures_util::future::join_all(tries).await.into_iter().filter(|r| r.as_ref().unwrap().status == 200).count();
        assert_eq!(made, 1);
        let tries = (0..10).map(|i| {
            let body = json!({"id": format!("j{i}"), "name": "J", "server_id": server});
            tokio::spawn(site.admin.post("/assistant-instances", body).token(&site.root).send())
        });
        let made = futures_util::future::join_all(tries).await.into_iter().filter(|r| r.as_ref().unwrap().status == 200).count();
        assert_eq!(made, 10, "each got a port of its own");
    }

    async fn instances_are_found_by_every_filter(site: Site) {
        let ids = site.instances("a", 3).await;
        site.instances("b", 2).await;
        let (user, _) = site.quick_employee("ada@example.com").await;
        site.admin.patch(&format!("/instances/{}/assign", ids[0]), json!({"user_id": user})).token(&site.root).ok().await;
        site.profession("p", &ids[1..2]).await;
        let at = site.app.clock.now();
        store::instance::set_health(&site.app.db, &InstanceId::named(ids[2].as_str()), store::instance::Health::Unhealthy, 3, at).await.unwrap();
        let total = async |query: &str| site.admin.get(&format!("/instances?{query}")).token(&site.root).ok().await["total"].as_i64().unwrap();
        assert_eq!(total("").await, 5);
        assert_eq!(total("server_id=srv-b").await, 2);
        assert_eq!(total("assigned=true").await, 1);
        assert_eq!(total("assigned=false&pooled=false").await, 3);
        assert_eq!(total("pooled=true").await, 1);
        assert_eq!(total("health_status=unhealthy").await, 1);
        assert_eq!(total("q=ADA@").await, 1, "by the user's address");
        assert_eq!(total("q=nowhere").await, 0);
        assert_eq!(total("q=Server%20srv-a").await, 3, "by the server's name");
        let sorted = site.admin.get("/instances?sort=-id&limit=1").token(&site.root).ok().await;
        assert_eq!(sorted["list"][0]["id"], "b1");
        site.admin.get("/instances?sort=gateway_token").token(&site.root).refused("4000").await;
    }

    async fn assigning_is_idempotent_exclusive_and_kept_as_history(site: Site) {
        let ids = site.instances("a", 2).await;
        let (ada, ada_token) = site.quick_employee("ada@example.com").await;
        let (bob, _) = site.quick_employee("bob@example.com").await;
        let assign = |who: &str| site.admin.post(&format!("/users/{who}/assign-instance"), json!({"instance_id": ids[0]})).token(&site.root);
        for _ in 0..2 {
            let user = assign(&ada).ok().await;
            assert_eq!((user["instance_id"].as_str(), user["instance_model"].as_str()), (Some("a0"), Some("gpt-4o")));
        }
        assign(&bob).refused("4090").await;
        assign("nobody").refused("4040").await;
        let mine = site.employee.get("/me/instances").token(&ada_token).ok().await;
        assert_eq!((mine["total"].as_i64(), mine["instances"][0]["status"].as_str(), mine["instances"][0]["origin"].as_str()), (Some(1), Some("unknown"), Some("assigned")));
        let first_token = mine["instances"][0]["gateway_token"].as_str().unwrap().to_owned();
        let patch = |body: Value| site.admin.patch("/instances/a0/assign", body).token(&site.root);
        patch(json!({})).refused("4000").await;
        for _ in 0..2 {
            let free = patch(json!({"user_id": null})).ok().await;
            assert!(free["assigned_user_id"].is_null());
        }
        assert_eq!(site.employee.get("/me/instances").token(&ada_token).ok().await["total"], 0);
        // Back to the same user: nothing of hers is removed.
        patch(json!({"user_id": ada})).ok().await;
        let mine = site.employee.get("/me/instances").token(&ada_token).ok().await;
        assert_eq!(mine["instances"][0]["gateway_token"], first_token.as_str());
        assert_eq!(site.admin.get("/tasks?type=clean_instance").token(&site.root).ok().await["total"], 0);
        // To somebody else: the token she knows is changed, and her traces go first.
        patch(json!({"user_id": null})).ok().await;
        let detail = patch(json!({"user_id": bob})).ok().await;
        assert_ne!(detail["gateway_token"], first_token.as_str());
        assert_eq!(site.admin.get("/tasks?type=clean_instance").token(&site.root).ok().await["total"], 1);
        assert_eq!(detail["bindings"].as_array().unwrap().len(), 3, "history is kept: {}", detail["bindings"]);
        assert!(detail["bindings"][0]["ended_at"].is_null() && detail["bindings"][1]["ended_at"].is_string());
        let (gone, _) = site.quick_employee("gone@example.com").await;
        site.admin.delete(&format!("/users/{gone}")).token(&site.root).ok().await;
        site.admin.patch("/instances/a1/assign", json!({"user_id": gone})).token(&site.root).refused("4090").await;
    }

    /// A field that is left out stays as it is. One that says nothing, or no number, is refused, and changes nothing.
    async fn null_and_what_is_no_number_are_refused(site: Site) {
        site.server("s").await;
        site.instances("a", 1).await;
        let (ada, _) = site.quick_employee("ada@example.com").await;
        let user = format!("/users/{ada}");
        site.admin.patch(&user, json!({"quota_daily": 500})).token(&site.root).ok().await;
        for bad in [json!(null), json!("abc"), json!("100k"), json!(""), json!(-1), json!(1.5), json!(true), json!([])] {
            for (path, field) in [(user.as_str(), "quota_daily"), ("/models/gpt-4o", "price_per_1k"), ("/servers/s", "ssh_port"), ("/assistant-instances/a0", "gateway_port")] {
                if field == "price_per_1k" && bad == json!(1.5) {
                    continue;
                }
                let why = site.admin.patch(path, json!({field: bad})).token(&site.root).refused("4000").await;
                assert!(why.contains(field), "{path} {bad}: {why}");
            }
            if !bad.is_null() {
                site.admin.post("/keys", json!({"instance_id": "a0", "quota": bad})).token(&site.root).refused("4000").await;
            }
        }
        assert_eq!(site.admin.get(&user).token(&site.root).ok().await["quota_daily"], 500);
        for (path, field) in [(user.as_str(), "name"), ("/servers/s", "name"), ("/assistant-instances/a0", "model")] {
            site.admin.patch(path, json!({field: null})).token(&site.root).refused("4000").await;
        }
    }

    /// What was asked of an instance while somebody else had it is theirs.
    async fn a_users_totals_are_not_the_next_holders(site: Site) {
        let ids = site.instances("a", 1).await;
        let (ada, _) = site.quick_employee("ada@example.com").await;
        let (bob, _) = site.quick_employee("bob@example.com").await;
        let assign = async |to: Value| {
            site.admin.patch("/instances/a0/assign", json!({"user_id": to})).token(&site.root).ok().await;
            site.wait(Duration::from_secs(3600));
        };
        let asked = async |tokens: i64| {
            let row = NewRequest {
                request_id: base::id::fresh(), token_name: ids[0].clone(), model: "gpt-4o".into(), provider: "ch-1".into(), kind: store::request_log::RequestType::SUCCESS,
                is_stream: false, prompt_tokens: tokens, completion_tokens: 0, quota: 1, duration_ms: 1, error_message: String::new(),
                estimated: false, detail: Default::default(), created_at: site.app.clock.now(),
            };
            let mut tx = site.app.db.begin().await.unwrap();
            request_log::add(&mut tx, &site.app.zone, &[row]).await.unwrap();
            tx.commit().await.unwrap();
            site.wait(Duration::from_secs(3600));
        };
        asked(1).await;
        assign(json!(ada)).await;
        asked(10).await;
        assign(Value::Null).await;
        asked(100).await;
        assign(json!(bob)).await;
        asked(1000).await;
        let list = site.admin.get("/users?sort=email").token(&site.root).ok().await;
        let of = |n: usize| (list["list"][n]["total_tokens"].as_i64().unwrap(), list["list"][n]["total_requests"].as_i64().unwrap());
        assert_eq!((of(0), of(1)), ((11, 2), (1000, 1)), "{list}");
        let bob = site.admin.get(&format!("/users/{bob}")).token(&site.root).ok().await;
        assert_eq!((bob["total_tokens"].as_i64(), bob["instance_id"].as_str()), (Some(1000), Some("a0")));
    }

    async fn a_users_line_has_totals_and_the_estimate_of_the_price_table(site: Site) {
        let ids = site.instances("a", 3).await;
        let (ada, _) = site.quick_employee("ada@example.com").await;
        site.quick_employee("bob@example.com").await;
        for (id, model, tokens) in [(&ids[0], "gpt-4o-mini", 123_456i64), (&ids[1], "claude-opus-4-6", 7), (&ids[2], "some-other", 1)] {
            site.admin.patch(&format!("/assistant-instances/{id}"), json!({"model": model})).token(&site.root).ok().await;
            let sql = "UPDATE instance SET total_tokens = ?, total_requests = 2 WHERE id = ?";
            site.app.db.run(sql, store::args![tokens, id.as_str()]).await.unwrap();
            site.admin.patch(&format!("/instances/{id}/assign"), json!({"user_id": ada})).token(&site.root).ok().await;
            site.wait(Duration::from_millis(1));
        }
        for query in ["", "?page=1&page_size=10"] {
            let list = site.admin.get(&format!("/users{query}")).token(&site.root).ok().await;
            let line = &list["list"][0];
            assert_eq!((line["instance_id"].as_str(), line["instance_name"].as_str(), line["instance_model"].as_str()), (Some("a0"), Some("Assistant a0"), Some("gpt-4o-mini")), "the first bound one");
            assert_eq!((line["total_tokens"].as_i64(), line["total_requests"].as_i64()), (Some(123_464), Some(6)));
            // 123.456 × 0.00015 + 0.007 × 0.015 + 0.001 × 0.002 = 0.0186254
            assert_eq!(line["est_cost_usd"].as_f64(), Some(0.018625));
            assert_eq!(list["list"][1]["est_cost_usd"].as_f64(), Some(0.0));
        }
    }
}

store::record! {
    struct Sealed { gateway_token: String }
}
