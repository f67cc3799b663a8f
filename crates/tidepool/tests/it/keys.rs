//! Sub keys of the LLM gateway: made at first need, off with their user, changed with their holder, never two of one name.

use std::sync::Arc;
use std::time::Duration;

use base::Secret;
use base::id::InstanceId;
use fleet::App;
use fleet::registry::TYPES;
use llm::task::SyncKeyToInstance;
use queue::task::TaskType;
use queue::worker::{Timing, Worker};
use remote::llm::{Kind, Settings};
use serde_json::{Value, json};
use sim::llm::{Running, one_api};
use sim::with;
use tokio::sync::watch;

use crate::kit::{Database, Gateway, Options, Site, used_secret};
use crate::on_both;

on_both! {
    async fn keys_are_made_listed_and_deleted_by_those_who_may(site: Site) {
        site.instances("a", 2).await;
        let plain = site.plain_admin("plain@example.com", "admin").await;
        let made = site.admin.post("/keys", json!({"instance_id": "a0", "quota": 500})).token(&plain).ok().await;
        assert_eq!((made["name"].as_str(), made["instance_id"].as_str(), made["quota"].as_i64()), (Some("a0"), Some("a0"), Some(500)));
        assert_eq!((made["enabled"].as_bool(), made["status"].as_str()), (Some(true), Some("active")));
        let key = store::gateway_key::named(&site.app.db, "a0").await.unwrap().unwrap().key(&site.app.sealer).unwrap();
        used_secret(key.expose());
        assert!(made["key"].as_str().unwrap().starts_with('…') && key.expose().starts_with("sk-"), "masked");
        site.admin.post("/keys", json!({"instance_id": "a0"})).token(&plain).refused("4090").await;
        site.admin.post("/keys", json!({"instance_id": "none"})).token(&plain).refused("4040").await;
        site.admin.post("/keys", json!({"name": "reports"})).token(&plain).refused("4030").await;
        for bad in [json!({}), json!({"name": "a1"}), json!({"name": "A1"}), json!({"name": "admin-token"}), json!({"name": "x", "instance_id": "a1"}), json!({"instance_id": "a1", "quota": -1})] {
            site.admin.post("/keys", bad).token(&site.root).refused("4000").await;
        }
        let named = site.admin.post("/keys", json!({"name": "reports"})).token(&site.root).ok().await;
        assert_eq!(site.admin.get("/keys").token(&plain).ok().await["total"], 2);
        assert_eq!(site.admin.get("/keys?q=REPO").token(&plain).ok().await["list"][0]["name"], "reports");
        let path = format!("/keys/{}", named["id"].as_str().unwrap());
        site.admin.delete(&path).token(&plain).refused("4030").await;
        site.admin.delete(&path).token(&site.root).ok().await;
        site.admin.delete(&path).token(&site.root).refused("4040").await;
        let shown = site.admin.get("/instances/a0").token(&plain).ok().await;
        assert_eq!((shown["key"]["id"].as_str(), shown["key"]["enabled"].as_bool()), (made["id"].as_str(), Some(true)));
        let actions: Vec<Value> = site.admin.get("/audit-logs?q=key.").token(&site.root).ok().await["list"].as_array().unwrap().clone();
        let actions: Vec<&str> = actions.iter().map(|e| e["action"].as_str().unwrap()).collect();
        assert_eq!(actions, ["key.delete", "key.create", "key.create"]);
    }

    async fn a_key_goes_off_with_its_user_and_changes_with_its_holder(site: Site) {
        site.instances("a", 1).await;
        let (user, _) = site.quick_employee("ada@example.com").await;
        site.admin.patch("/instances/a0/assign", json!({"user_id": user})).token(&site.root).ok().await;
        site.admin.post("/keys", json!({"instance_id": "a0"})).token(&site.root).ok().await;
        let holder = async || {
            let key = store::gateway_key::named(&site.app.db, "a0").await.unwrap().unwrap();
            let secret = key.key(&site.app.sealer).unwrap();
            used_secret(secret.expose());
            let holder = store::gateway_key::holder(&site.app.db, &site.app.sealer.hash(&secret)).await.unwrap().unwrap();
            (holder.enabled(), secret)
        };
        let (enabled, first) = holder().await;
        assert!(enabled);
        let path = format!("/users/{user}");
        site.admin.patch(&path, json!({"status": "revoked"})).token(&site.root).ok().await;
        let keys = site.admin.get("/keys").token(&site.root).ok().await;
        assert_eq!((keys["list"][0]["enabled"].as_bool(), keys["list"][0]["user_revoked"].as_bool()), (Some(false), Some(true)));
        assert!(!holder().await.0);
        site.admin.patch(&path, json!({"status": "active"})).token(&site.root).ok().await;
        assert!(holder().await.0);
        site.admin.delete(&path).token(&site.root).ok().await;
        assert!(!holder().await.0);
        // Nobody has it: what held for whoever had it is over, and so is the key that they may know.
        site.admin.patch("/instances/a0/assign", json!({"user_id": null})).token(&site.root).ok().await;
        let (enabled, freed) = holder().await;
        assert!(enabled && freed != first, "whoever was revoked cannot come back by being unassigned");
        assert!(store::gateway_key::holder(&site.app.db, &site.app.sealer.hash(&first)).await.unwrap().is_none());
        let (other, _) = site.quick_employee("bob@example.com").await;
        site.admin.patch("/instances/a0/assign", json!({"user_id": other})).token(&site.root).ok().await;
        let (enabled, second) = holder().await;
        assert!(enabled && second != first);
        assert!(store::gateway_key::holder(&site.app.db, &site.app.sealer.hash(&first)).await.unwrap().is_none());
        site.admin.delete("/assistant-instances/a0").token(&site.root).ok().await;
        assert!(store::gateway_key::holder(&site.app.db, &site.app.sealer.hash(&second)).await.unwrap().is_none());
    }

    async fn models_have_the_specs_prices_and_can_be_changed(site: Site) {
        site.instances("a", 2).await;
        let models = site.admin.get("/models").token(&site.root).ok().await;
        assert_eq!(models["total"], 9);
        let first = &models["list"][0];
        assert_eq!((first["id"].as_str(), first["kind"].as_str(), first["price_per_1k"].as_f64()), (Some("claude-opus-4-6"), Some("anthropic"), Some(0.015)));
        let chain: Vec<&str> = models["list"].as_array().unwrap().iter().filter(|m| m["chain"].is_i64()).map(|m| m["id"].as_str().unwrap()).collect();
        assert_eq!(chain, ["claude-opus-4-6", "claude-sonnet-4-6", "gpt-4o", "gemini-2.5-flash"]);
        let changed = site.admin.patch("/models/gpt-4o", json!({"price_per_1k": 0.005, "enabled": false})).token(&site.root).ok().await;
        assert_eq!((changed["price_per_1k"].as_f64(), changed["enabled"].as_bool()), (Some(0.005), Some(false)));
        site.admin.patch("/models/gpt-4o", json!({"price_per_1k": -1})).token(&site.root).refused("4000").await;
        site.admin.patch("/models/none", json!({})).token(&site.root).refused("4040").await;
        on_a_server(site, "a0").await;
        let synced = site.admin.post("/models/sync", json!({})).token(&site.root).ok().await;
        assert_eq!((synced["task_ids"].as_array().unwrap().len(), synced["models"].as_array().unwrap().len()), (1, 9), "a1 is on no server");
        let some = site.admin.post("/models/sync", json!({"instance_ids": ["a1"]})).token(&site.root).ok().await;
        assert_eq!(some["task_ids"].as_array().unwrap().len(), 1);
        site.admin.post("/models/sync", json!({"instance_ids": ["none"]})).token(&site.root).refused("4000").await;
        let tasks = site.admin.get("/tasks?type=sync_models_to_instance").token(&site.root).ok().await;
        assert_eq!(tasks["total"], 2);
    }

    async fn nothing_is_written_to_an_instance_that_is_on_no_server(site: Site) {
        site.instances("a", 1).await;
        let (user, _) = site.quick_employee("ada@example.com").await;
        site.admin.patch("/instances/a0/assign", json!({"user_id": user})).token(&site.root).ok().await;
        let key = site.admin.post("/keys", json!({"instance_id": "a0"})).token(&site.root).ok().await;
        site.admin.post(&format!("/keys/{}/sync", key["id"].as_str().unwrap()), json!({})).token(&site.root).ok().await;
        site.admin.patch("/instances/a0/assign", json!({"user_id": null})).token(&site.root).ok().await;
        site.admin.post("/models/sync", json!({})).token(&site.root).ok().await;
        let tasks = async |query: &str| site.admin.get(&format!("/tasks?{query}")).token(&site.root).ok().await;
        assert_eq!(tasks("instance_id=a0").await["total"], 0);
        // What was asked for by name, or waits while the instance goes, is done as soon as it is begun.
        site.admin.post("/models/sync", json!({"instance_ids": ["a0"]})).token(&site.root).ok().await;
        work(site, &["sync_models_to_instance"]).await;
        site.admin.delete("/assistant-instances/a0").token(&site.root).ok().await;
        let mut tx = site.app.db.begin().await.unwrap();
        let payload = SyncKeyToInstance { instance_id: InstanceId::named("a0") };
        queue::task::enqueue(&site.app, &mut tx, &payload, "test", None).await.unwrap();
        tx.commit().await.unwrap();
        work(site, &["sync_key_to_instance"]).await;
        for kind in ["sync_models_to_instance", "sync_key_to_instance"] {
            assert_eq!(tasks(&format!("type={kind}&status=done")).await["total"], 1);
        }
        assert_eq!(site.admin.get("/alerts?rule=task_dead").token(&site.root).ok().await["total"], 0);
    }
}

/// An instance that was brought to its server, as far as the records say.
pub async fn on_a_server(site: &Site, id: &str) {
    site.app
        .db
        .run(&format!("UPDATE instance SET home = '/srv/assistants/1' WHERE id = '{id}'"), vec![])
        .await
        .unwrap();
}

/// Lets workers do what is due of these types; no attempt may fail.
pub async fn work(site: &Site, kinds: &[&str]) {
    assert_eq!(run(site, kinds, true).await, 0);
}

/// Runs what is due, once; answers how many of them failed.
pub async fn try_once(site: &Site, kinds: &[&str]) -> i64 {
    run(site, kinds, false).await
}

async fn run(site: &Site, kinds: &[&str], again: bool) -> i64 {
    let timing = Timing { poll: Duration::from_millis(10), ..Timing::default() };
    let (stop, stopped) = watch::channel(false);
    let types: Vec<TaskType<App>> = TYPES.iter().filter(|t| kinds.contains(&t.name)).copied().collect();
    let working = tokio::spawn(Worker::new(site.app.clone(), types.leak(), timing).run(stopped));
    let count = async |status: &str| {
        let mut count = 0;
        for kind in kinds {
            let path = format!("/tasks?type={kind}&status={status}");
            count += site.admin.get(&path).token(&site.root).ok().await["total"].as_i64().unwrap();
        }
        count
    };
    testkit::until_ok("all tasks have ended", async || {
        let (waits, failed) = (count("pending").await + count("processing").await, count("failed").await);
        if waits == 0 && (!again || failed == 0) { Ok(()) } else { Err((waits, failed)) }
    })
    .await;
    stop.send(true).unwrap();
    working.await.unwrap();
    count("failed").await
}

/// A site whose gateway is a one-api.
pub struct Foreign {
    pub site: Site,
    pub gateway: Running,
    _folder: tempfile::TempDir,
}

pub async fn foreign() -> Foreign {
    let folder = tempfile::tempdir().unwrap();
    let url = Secret::new(format!("sqlite:{}", folder.path().join("one-api.db").display()));
    let gateway = one_api::start(one_api::Options::new(url)).await.unwrap();
    Foreign { site: at(&gateway, "one-api").await, gateway, _folder: folder }
}

/// A site at this gateway of another's.
pub async fn at(gateway: &Running, kind: &str) -> Site {
    let options = Options { gateway: Gateway::Foreign(adapter(gateway, kind)), ..Options::default() };
    Site::with(Database::sqlite(), options).await
}

pub fn adapter(gateway: &Running, kind: &str) -> Arc<dyn remote::llm::Gateway> {
    used_secret(gateway.admin_token.expose());
    let settings = Settings { url: gateway.url.clone(), admin_token: gateway.admin_token.clone() };
    (Kind::find(kind).unwrap().open)(&settings).unwrap()
}

impl Foreign {
    pub async fn work(&self) {
        work(&self.site, &["apply_key", "repair_instance"]).await;
    }

    /// The tokens of this name at the gateway: their statuses and keys.
    pub async fn tokens(&self, name: &str) -> Vec<(i64, String)> {
        let sql = format!("SELECT status, {} FROM tokens WHERE name = ?", self.gateway.tables.quoted("key"));
        let tokens: Vec<(i64, String)> = self.gateway.tables.all(&sql, with![name]).await.unwrap();
        tokens.iter().for_each(|(_, key)| used_secret(key));
        tokens
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_gateway_follows_our_record_of_a_key() {
    let world = foreign().await;
    let site = &world.site;
    site.instances("a", 1).await;
    on_a_server(site, "a0").await;
    let (user, token) = site.quick_employee("ada@example.com").await;
    site.admin.patch("/instances/a0/assign", json!({"user_id": user})).token(&site.root).ok().await;
    // However many chats come at once, one token of the name is made.
    let ask = || {
        site.employee
            .post("/me/chat", json!({"instance_id": "a0", "message": "one two three", "model": "gpt-4o"}))
            .token(&token)
    };
    let replies = futures_util::future::join_all((0..8).map(|_| tokio::spawn(ask().send()))).await;
    for reply in replies {
        assert_eq!(reply.unwrap().json()["data"]["content"], "one two three");
    }
    let first = world.tokens("a0").await;
    assert_eq!((first.len(), first[0].0), (1, 1), "one token, enabled");

    site.admin.patch(&format!("/users/{user}"), json!({"status": "revoked"})).token(&site.root).ok().await;
    world.work().await;
    assert_eq!(world.tokens("a0").await[0].0, 2, "off at the gateway");
    site.admin.patch(&format!("/users/{user}"), json!({"status": "active"})).token(&site.root).ok().await;
    world.work().await;
    assert_eq!(world.tokens("a0").await, first, "on again, and the same");

    // Somebody else gets the instance: the key is another, and there is still one.
    let (other, _) = site.quick_employee("bob@example.com").await;
    site.admin.patch("/instances/a0/assign", json!({"user_id": null})).token(&site.root).ok().await;
    site.admin.patch("/instances/a0/assign", json!({"user_id": other})).token(&site.root).ok().await;
    world.work().await;
    let second = world.tokens("a0").await;
    assert_eq!(second.len(), 1);
    assert_ne!(second[0].1, first[0].1);
    let kept = store::gateway_key::named(&site.app.db, "a0").await.unwrap().unwrap();
    assert_eq!(kept.key(&site.app.sealer).unwrap().expose().trim_start_matches("sk-"), second[0].1);
    assert!(!kept.dirty && !kept.rotate);
    let tasks = site.admin.get("/tasks?type=sync_key_to_instance").token(&site.root).ok().await;
    assert_eq!(tasks["total"], 1, "the instance must get it");

    site.admin.delete(&format!("/keys/{}", kept.id)).token(&site.root).ok().await;
    assert!(world.tokens("a0").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_of_a_deleted_instance_is_switched_off_and_not_made_anew() {
    let world = foreign().await;
    let site = &world.site;
    site.instances("a", 2).await;
    on_a_server(site, "a0").await;
    let (user, _) = site.quick_employee("ada@example.com").await;
    site.admin.patch("/instances/a0/assign", json!({"user_id": user})).token(&site.root).ok().await;
    site.admin.post("/keys", json!({"instance_id": "a0"})).token(&site.root).ok().await;
    let first = world.tokens("a0").await;
    site.admin.delete("/assistant-instances/a0").token(&site.root).ok().await;
    let tasks = async |kind: &str| site.admin.get(&format!("/tasks?type={kind}")).token(&site.root).ok().await;
    assert_eq!(tasks("apply_key").await["total"], 1, "one for both changes");
    world.work().await;
    let left = world.tokens("a0").await;
    assert_eq!((left.len(), left[0].0, &left[0].1), (1, 2, &first[0].1), "the same, and off");
    // One that the gateway has lost is not made for nobody.
    site.admin.post("/keys", json!({"instance_id": "a1"})).token(&site.root).ok().await;
    world.tokens("a1").await;
    world.gateway.tables.run("DELETE FROM tokens WHERE name = ?", with!["a1"]).await.unwrap();
    site.admin.delete("/assistant-instances/a1").token(&site.root).ok().await;
    world.work().await;
    assert!(world.tokens("a1").await.is_empty());
    assert_eq!(tasks("sync_key_to_instance").await["total"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn however_many_change_a_key_at_once_it_is_changed_once() {
    let world = foreign().await;
    let site = &world.site;
    site.instances("a", 1).await;
    on_a_server(site, "a0").await;
    let (user, _) = site.quick_employee("ada@example.com").await;
    site.admin.patch("/instances/a0/assign", json!({"user_id": user})).token(&site.root).ok().await;
    // A limited one: of others one-api counts nothing.
    let body = json!({"instance_id": "a0", "quota": 1_000_000});
    let made = site.admin.post("/keys", body).token(&site.root).ok().await;
    world.tokens("a0").await;
    world.gateway.tables.run("UPDATE tokens SET used_quota = 100", vec![]).await.unwrap();
    site.admin.patch("/instances/a0/assign", json!({"user_id": null})).token(&site.root).ok().await;
    // As after a gateway that was away for long, and reminders.
    for _ in 0..5 {
        let task = json!({"type": "apply_key", "payload": {"key_id": made["id"]}});
        site.admin.post("/tasks", task).token(&site.root).ok().await;
    }
    world.work().await;
    assert_eq!(world.tokens("a0").await.len(), 1);
    let key = store::gateway_key::named(&site.app.db, "a0").await.unwrap().unwrap();
    assert_eq!((key.carried_quota, key.dirty, key.rotate), (100, false, false), "what it used is counted once");
    let message = site.admin.get("/tasks?type=sync_key_to_instance").token(&site.root).ok().await;
    assert_eq!(message["total"], 1, "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_a_gateway_missed_reaches_it_later() {
    let world = foreign().await;
    let site = &world.site;
    site.instances("a", 1).await;
    let (user, _) = site.quick_employee("ada@example.com").await;
    site.admin.patch("/instances/a0/assign", json!({"user_id": user})).token(&site.root).ok().await;
    site.admin.post("/keys", json!({"instance_id": "a0"})).token(&site.root).ok().await;
    site.admin.patch(&format!("/users/{user}"), json!({"status": "revoked"})).token(&site.root).ok().await;
    // The gateway was away for so long that the task is dead.
    let tasks = site.admin.get("/tasks?type=apply_key").token(&site.root).ok().await;
    let id = tasks["list"][0]["id"].as_str().unwrap();
    site.admin.post(&format!("/tasks/{id}/cancel"), json!({})).token(&site.root).ok().await;
    assert_eq!(llm::watch::remind(&site.app).await.unwrap(), 0, "not yet");
    site.wait(Duration::from_secs(90));
    assert_eq!(llm::watch::remind(&site.app).await.unwrap(), 1);
    assert_eq!(llm::watch::remind(&site.app).await.unwrap(), 0, "one is enough");
    // It is still away: each task that is given up is an alert, so the next comes some minutes later.
    let tasks = site.admin.get("/tasks?type=apply_key&status=pending").token(&site.root).ok().await;
    let id = tasks["list"][0]["id"].as_str().unwrap();
    site.admin.post(&format!("/tasks/{id}/cancel"), json!({})).token(&site.root).ok().await;
    site.wait(Duration::from_secs(90));
    assert_eq!(llm::watch::remind(&site.app).await.unwrap(), 0, "not at once");
    site.wait(Duration::from_secs(240));
    assert_eq!(llm::watch::remind(&site.app).await.unwrap(), 1);
    world.work().await;
    assert_eq!(world.tokens("a0").await[0].0, 2, "off at the gateway");
    // A key that is made for a revoked user's instance is born switched off.
    let key = site.admin.get("/keys").token(&site.root).ok().await["list"][0]["id"].as_str().unwrap().to_owned();
    site.admin.delete(&format!("/keys/{key}")).token(&site.root).ok().await;
    let again = site.admin.post("/keys", json!({"instance_id": "a0"})).token(&site.root).ok().await;
    assert_eq!((again["desired"].as_str(), again["user_revoked"].as_bool()), (Some("off"), Some(true)));
    world.work().await;
    assert_eq!(world.tokens("a0").await[0].0, 2);
    // And no instance takes the name of somebody's key.
    site.admin.post("/keys", json!({"name": "ci"})).token(&site.root).ok().await;
    for id in ["ci", "admin-token"] {
        let body = json!({"id": id, "name": "x", "server_id": "srv-a"});
        site.admin.post("/assistant-instances", body).token(&site.root).refused("4090").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_between_a_token_and_the_log_is_an_alarm() {
    let world = foreign().await;
    let site = &world.site;
    site.instances("a", 1).await;
    // A limited one: of others one-api counts nothing.
    let body = json!({"instance_id": "a0", "quota": 1_000_000});
    let made = site.admin.post("/keys", body).token(&site.root).ok().await;
    let path = format!("/keys/{}/sync", made["id"].as_str().unwrap());
    let synced = site.admin.post(&path, json!({})).token(&site.root).ok().await;
    assert_eq!((synced["drift_quota"].as_i64(), synced["used_quota"].as_i64()), (Some(0), Some(0)));
    assert!(synced["last_checked_at"].is_string());
    world.gateway.tables.run("UPDATE tokens SET used_quota = 1234", vec![]).await.unwrap();
    let synced = site.admin.post(&path, json!({})).token(&site.root).ok().await;
    assert_eq!(
        (synced["drift_quota"].as_i64(), synced["used_quota"].as_i64(), synced["logged_quota"].as_i64()),
        (Some(1234), Some(1234), Some(0))
    );
    let audit = site.admin.get("/audit-logs?action=key.sync&level=WARN").token(&site.root).ok().await;
    assert!(audit["list"][0]["detail"].as_str().unwrap().contains("drift"), "{audit}");
    world.tokens("a0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_gateways_models_are_taken_over() {
    let world = foreign().await;
    let site = &world.site;
    let synced = site.admin.post("/models/sync", json!({})).token(&site.root).ok().await;
    let offered: Vec<&Value> = synced["models"].as_array().unwrap().iter().filter(|m| m["enabled"] == true).collect();
    let models = adapter(&world.gateway, "one-api").models().await.unwrap();
    assert!(!models.is_empty());
    for model in &models {
        assert!(offered.iter().any(|m| m["id"] == model.as_str()), "{model}");
    }
    assert_eq!(offered.len(), models.len(), "what the gateway does not offer is off");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spent_day_switches_the_key_off_until_midnight() {
    let world = foreign().await;
    let site = &world.site;
    site.instances("a", 1).await;
    let (user, token) = site.quick_employee("ada@example.com").await;
    site.admin.patch("/instances/a0/assign", json!({"user_id": user})).token(&site.root).ok().await;
    site.admin.patch(&format!("/users/{user}"), json!({"quota_daily": 100})).token(&site.root).ok().await;
    site.admin.post("/keys", json!({"instance_id": "a0"})).token(&site.root).ok().await;
    site.wait(Duration::from_secs(1));
    assert_eq!(llm::watch::look(&site.app).await.unwrap(), 0);
    let row = store::request_log::NewRequest {
        request_id: "r1".into(),
        token_name: "a0".into(),
        model: "gpt-4o".into(),
        provider: "ch-1".into(),
        kind: store::request_log::RequestType::SUCCESS,
        is_stream: false,
        prompt_tokens: 60,
        completion_tokens: 40,
        quota: 1,
        duration_ms: 1,
        error_message: String::new(),
        estimated: false,
        detail: Default::default(),
        created_at: site.app.clock.now(),
    };
    let mut tx = site.app.db.begin().await.unwrap();
    store::request_log::add(&mut tx, &site.app.zone, &[row]).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(llm::watch::look(&site.app).await.unwrap(), 1);
    world.work().await;
    assert_eq!(world.tokens("a0").await[0].0, 2, "the assistant itself cannot spend any more");
    let ask = json!({"instance_id": "a0", "message": "x", "model": "gpt-4o"});
    let refusal = site.employee.post("/me/chat", ask.clone()).token(&token).refused("4291").await;
    assert!(refusal.contains("limit 100 tokens, used 100"), "{refusal}");
    site.wait(Duration::from_secs(24 * 3600));
    assert_eq!(llm::watch::look(&site.app).await.unwrap(), 1);
    let root = site.admin_login("root@example.com").await;
    assert_eq!(site.admin.get("/keys").token(&root).ok().await["list"][0]["quota_spent"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_reserves_what_a_provider_bills_and_not_its_base64() {
    let world = foreign().await;
    let site = &world.site;
    site.instances("a", 1).await;
    let (user, token) = site.quick_employee("ada@example.com").await;
    site.admin.patch("/instances/a0/assign", json!({"user_id": user})).token(&site.root).ok().await;
    site.admin.patch(&format!("/users/{user}"), json!({"quota_daily": 60_000})).token(&site.root).ok().await;
    let ask = |content: Value| {
        let messages = json!([{"role": "user", "content": content}]);
        site.employee
            .post("/me/chat", json!({"instance_id": "a0", "messages": messages, "model": "gpt-4o"}))
            .token(&token)
    };
    let url = format!("data:image/png;base64,{}", "A".repeat(2_000_000));
    let image = json!({"type": "image_url", "image_url": {"url": url}});
    ask(json!([{"type": "text", "text": "What is it?"}, image])).ok().await;
    // What is reserved for the image is held until its row must be in the log: there is room for another question beside it.
    ask(json!("And what else?")).ok().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_a_gateway_lost_are_told_of_once_and_brought_back() {
    let world = foreign().await;
    let site = &world.site;
    site.instances("a", 2).await;
    for id in ["a0", "a1"] {
        site.admin.post("/keys", json!({"instance_id": id})).token(&site.root).ok().await;
    }
    world.work().await;
    let heal = async || site.run_job(&site.root, "llm_self_heal").await;
    let alerts = async || site.admin.get("/alerts?rule=gateway_down").token(&site.root).ok().await;
    assert_eq!(heal().await, "0 of 2 sub keys fail");
    world.gateway.tables.run("DELETE FROM tokens WHERE name IN (?, ?)", with!["a0", "a1"]).await.unwrap();
    assert_eq!(heal().await, "2 of 2 sub keys fail; alert raised");
    assert_eq!(heal().await, "2 of 2 sub keys fail", "told once");
    let message = alerts().await;
    assert_eq!((&message["total"], &message["list"][0]["subject"]), (&json!(1), &json!("keys")), "{message}");
    world.work().await;
    assert_eq!((world.tokens("a0").await.len(), world.tokens("a1").await.len()), (1, 1), "each is there again, once");
    assert_eq!(heal().await, "0 of 2 sub keys fail; alert resolved");
    site.check().await;
}
