//! The guardian's dimensions, each with something wrong on a real host, and its two endpoints.

use base::Secret;
use base::id::InstanceId;
use llm::provider::{Access, Settings};
use serde_json::{Value, json};
use sim::assistant::Stranded;
use testkit::until_ok;

use crate::kit::hosts::Ground;
use crate::kit::simulated::Simulated;
use crate::kit::{Database, Gateway, Options, Site, answering, used_secret};
use crate::on_both;

async fn run(site: &Site, name: &str) -> String {
    fleet::guardian::run(site.app.clone(), name).await.unwrap()
}

async fn events(site: &Site, query: &str) -> Value {
    site.admin.get(&format!("/guardian/events?{query}")).token(&site.root).ok().await
}

on_both! {
    async fn stats_and_events_have_their_shapes(site: Site) {
        let stats = site.admin.get("/guardian/stats").token(&site.root).ok().await;
        assert_eq!(stats["today"], json!({"total_events": 0, "success": 0, "failed": 0, "success_rate": null}));
        assert_eq!(stats["dimensions"].as_array().unwrap().len(), fleet::guardian::DIMENSIONS.len());
        assert_eq!(stats["dimensions"][0]["dimension"], "guardian_gateway");
        assert!(stats["dimensions"].as_array().unwrap().iter().all(|d| d["status"] == "unknown" && d["last_check_at"].is_null()));
        assert_eq!(stats["job_runs"], json!([]));
        // The gateway of this site is not there; bindings are well.
        run(site, "guardian_gateway").await;
        run(site, "guardian_binding").await;
        run(site, "guardian_bot_token").await;
        let stats = site.admin.get("/guardian/stats").token(&site.root).ok().await;
        assert_eq!(stats["today"], json!({"total_events": 3, "success": 2, "failed": 1, "success_rate": 66.67}));
        let of = |name: &str| stats["dimensions"].as_array().unwrap().iter().find(|d| d["dimension"] == name).unwrap().clone();
        assert_eq!((of("guardian_gateway")["status"].as_str(), of("guardian_gateway")["today_failed"].as_i64()), (Some("abnormal"), Some(1)));
        assert_eq!(of("guardian_binding")["status"], "healthy");
        assert!(of("guardian_binding")["last_check_at"].is_string());
        let alerts = site.admin.get("/alerts?rule=gateway_down&open=true").token(&site.root).ok().await;
        assert_eq!(alerts["total"], 1);
        let found = events(site, "status=failed").await;
        assert_eq!((found["total"].as_i64(), found["page"].as_i64(), found["page_size"].as_i64()), (Some(1), Some(1), Some(20)));
        let event = &found["list"][0];
        assert_eq!((event["dimension"].as_str(), event["target_id"].as_str(), event["extra"].as_str()), (Some("guardian_gateway"), Some("gateway"), Some("{\"repaired\":false}")));
        assert_eq!(events(site, "page=2&page_size=2").await["list"].as_array().unwrap().len(), 1);
        assert_eq!(events(site, "dimension=guardian_binding&target_id=all").await["total"], 1);
        // A binding that disagrees with its instance is found.
        let ids = site.instances("g", 1).await;
        let (user, _) = site.quick_employee("g@example.com").await;
        site.admin.patch(&format!("/instances/{}/assign", ids[0]), json!({"user_id": user})).token(&site.root).ok().await;
        site.app.db.run("UPDATE instance SET assigned_user_id = NULL WHERE id = ?", store::args![&ids[0]]).await.unwrap();
        run(site, "guardian_binding").await;
        assert!(events(site, "dimension=guardian_binding&status=failed").await["total"].as_i64().unwrap() >= 1);
        site.app.db.run("UPDATE instance SET assigned_user_id = ? WHERE id = ?", store::args![&user, &ids[0]]).await.unwrap();
        // Nobody can chat without a model.
        site.app.db.run("UPDATE model SET enabled = 0", store::args![]).await.unwrap();
        run(site, "guardian_webchat").await;
        let found = events(site, "dimension=guardian_webchat&status=failed").await;
        assert!(found.to_string().contains("no model is enabled"), "{found}");
        site.app.db.run("UPDATE model SET enabled = 1", store::args![]).await.unwrap();
    }
}

fn echoing() -> Gateway {
    Gateway::Served(Settings { echo: true, ..Settings::default() })
}

/// What guardian_webchat says of a site: the problems of its latest run.
async fn problems_of_webchat(site: &Site) -> Vec<String> {
    site.wait(std::time::Duration::from_secs(300));
    run(site, "guardian_webchat").await;
    let list = events(site, "dimension=guardian_webchat&page_size=50").await["list"].as_array().unwrap().clone();
    let latest = list[0]["created_at"].clone();
    let failed = list.iter().filter(|event| event["created_at"] == latest && event["status"] == "failed");
    failed.map(|event| event["problem"].as_str().unwrap().to_owned()).collect()
}

/// The requests of the platform itself, as the gateway has logged them.
async fn own_requests(site: &Site) -> Vec<Value> {
    let found = site.admin.get("/llm-request-logs?q=admin+token").token(&site.root).ok().await;
    found["list"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn webchat_goes_as_far_as_the_model_and_pays_nothing() {
    let site = Site::with(Database::sqlite(), Options { gateway: echoing(), ..Options::default() }).await;
    assert_eq!(problems_of_webchat(&site).await, [""; 0]);
    let sql = "ALTER TABLE chat_message RENAME TO elsewhere";
    site.app.db.run(sql, vec![]).await.unwrap();
    let found = problems_of_webchat(&site).await;
    assert!(found.len() == 1 && found[0].starts_with("messages cannot be kept: "), "{found:?}");
    site.app.db.run("ALTER TABLE elsewhere RENAME TO chat_message", vec![]).await.unwrap();
    // The platform's own key.
    for (change, problem) in [
        ("quota = 0", "what the platform's own key may spend is spent"),
        ("quota = NULL, status = 'disabled'", "the LLM gateway refuses the platform's own key"),
    ] {
        let sql = format!("UPDATE gateway_key SET {change} WHERE name = 'admin-token'");
        site.app.db.run(&sql, vec![]).await.unwrap();
        assert_eq!(problems_of_webchat(&site).await, [problem]);
    }
    site.app.db.run("UPDATE gateway_key SET status = 'active'", vec![]).await.unwrap();
    assert_eq!(problems_of_webchat(&site).await, [""; 0]);
    assert!(own_requests(&site).await.is_empty(), "no chat is sent unless a setting says so");
}

#[tokio::test(flavor = "multi_thread")]
async fn webchat_requests_the_employee_page_and_its_api() {
    let nowhere = format!("http://127.0.0.1:{}", crate::kit::free_port());
    let nothing = "nothing answers at its address";
    for (url, of_page, of_api) in [
        (nowhere, nothing, nothing),
        (answering(500, "text/html", "").await, "it answers 500", "it answers 500"),
        (answering(200, "text/plain", "no").await, "its address sends no page", "its address sends no envelope"),
        (answering(200, "text/html", "<html>").await, "", "its address sends no envelope"),
        (answering(200, "text/plain", r#"{"code":"0000"}"#).await, "its address sends no page", ""),
    ] {
        let options = Options { gateway: echoing(), employee_url: Some(url.clone()), ..Options::default() };
        let site = Site::with(Database::sqlite(), options).await;
        let mut expected = vec![];
        if !of_page.is_empty() {
            expected.push(format!("the employee page is not there: {of_page}"));
        }
        if !of_api.is_empty() {
            expected.push(format!("the employee API is not there: {of_api}"));
        }
        let mut found = problems_of_webchat(&site).await;
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{url}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn webchat_finds_a_gateway_that_has_no_model_to_ask() {
    let site = Site::start(Database::sqlite()).await;
    let found = problems_of_webchat(&site).await;
    assert_eq!(found, ["the LLM gateway does not list its models: it cannot be reached"]);
    let without = Options { gateway: Gateway::Served(Settings::default()), webchat_paid: true, ..Options::default() };
    let site = Site::with(Database::sqlite(), without).await;
    let found = problems_of_webchat(&site).await;
    assert_eq!(found, ["the LLM gateway lists none of the enabled models: has their provider a key?"]);
    assert!(own_requests(&site).await.is_empty(), "nothing is asked of a model that is not there");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paid_chat_is_in_the_gateways_log_and_what_came_back_in_the_event() {
    let options = Options { gateway: echoing(), webchat_paid: true, ..Options::default() };
    let site = Site::with(Database::sqlite(), options).await;
    assert_eq!(run(&site, "guardian_webchat").await, "nothing found");
    let found = events(&site, "dimension=guardian_webchat").await;
    assert_eq!((&found["total"], &found["list"][0]["status"]), (&json!(1), &json!("success")), "{found}");
    let extra: Value = serde_json::from_str(found["list"][0]["extra"].as_str().unwrap()).unwrap();
    assert_eq!(extra["chat"]["model"], "claude-opus-4-6", "the first of the chain: {extra}");
    assert!(extra["chat"]["answer"].as_str().unwrap().contains("ready"), "{extra}");
    let rows = until_ok("its row is there", async || {
        let rows = own_requests(&site).await;
        if rows.len() == 1 { Ok(rows) } else { Err(rows) }
    })
    .await;
    assert_eq!((&rows[0]["instance_name"], &rows[0]["status"]), (&json!("admin token"), &json!("success")), "{rows:?}");
    assert!(rows[0]["tokens_out"].as_i64().unwrap() > 0, "{rows:?}");
    let stats = site.admin.get("/guardian/stats").token(&site.root).ok().await;
    let of = stats["dimensions"].as_array().unwrap().iter().find(|d| d["dimension"] == "guardian_webchat").unwrap();
    assert_eq!(of["status"], "healthy");

    // A provider that fails: the gateway lists its models all the same, and only the chat tells.
    let url = answering(500, "application/json", r#"{"error":{"message":"out of order"}}"#).await;
    let openai = Some(Access { url, key: Secret::new("sk-of-the-provider") });
    let gateway = Gateway::Served(Settings { openai, ..Settings::default() });
    let site = Site::with(Database::sqlite(), Options { gateway, webchat_paid: true, ..Options::default() }).await;
    let found = problems_of_webchat(&site).await;
    assert!(found.len() == 1 && found[0].starts_with("a chat with gpt-4o failed: it answers 5"), "{found:?}");
    assert!(!found[0].contains("sk-"), "{found:?}");
    until_ok("the failure is in the gateway's log too", async || {
        let rows = own_requests(&site).await;
        if rows.len() == 1 && rows[0]["status"] == "error" { Ok(()) } else { Err(rows) }
    })
    .await;
}

/// The latest repairs of stuck sessions, as their status and what was left.
async fn ended_sessions(site: &Site) -> Vec<(String, String)> {
    let repairs = site.admin.get("/repairs?limit=50").token(&site.root).ok().await;
    let list = repairs["list"].as_array().unwrap().iter().filter(|one| one["rule"] == "stuck_session");
    let text = |one: &Value, field: &str| one[field].as_str().unwrap().to_owned();
    list.map(|one| (text(one, "status"), text(one, "after"))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_runs_without_a_run_is_ended() {
    let simulated = Simulated::new().await;
    let site = &simulated.site;
    let unit = simulated.provisioned("a").await;
    let half_an_hour = std::time::Duration::from_secs(30 * 60);
    for (session, stranded) in [("one", Stranded::WithoutRun), ("busy", Stranded::WithRun)] {
        simulated.machine.strand_session(&unit, session, stranded).await;
    }
    // It may still be at work: within half an hour nothing is done.
    site.wait(half_an_hour - std::time::Duration::from_secs(60));
    assert_eq!(run(site, "guardian_session").await, "nothing found");
    site.wait(std::time::Duration::from_secs(120));
    let found = run(site, "guardian_session").await;
    assert_eq!(found, "1 found, 0 left; a: session one is said to run, and does not");
    let event = events(site, "dimension=guardian_session&status=failed").await["list"][0].clone();
    assert_eq!((&event["target_id"], &event["action_taken"]), (&json!("a"), &json!("ended it")), "{event}");
    let extra: Value = serde_json::from_str(event["extra"].as_str().unwrap()).unwrap();
    assert_eq!((&extra["session"], &extra["repaired"]), (&json!("one"), &json!(true)), "{event}");
    assert_eq!(ended_sessions(site).await, [("success".into(), "none is left".into())]);
    assert_eq!(run(site, "guardian_session").await, "nothing found", "and the one that has a run is left alone");

    // One that stays is not said to be ended, and is tried three times an hour at most.
    simulated.machine.strand_session(&unit, "stubborn", Stranded::ForGood).await;
    simulated.machine.strand_session(&unit, "two", Stranded::WithoutRun).await;
    site.wait(half_an_hour * 2 + std::time::Duration::from_secs(60));
    let found = run(site, "guardian_session").await;
    assert!(found.starts_with("2 found, 1 left; "), "{found}");
    for _ in 0..4 {
        let found = run(site, "guardian_session").await;
        assert_eq!(found, "1 found, 1 left; a: session stubborn is said to run, and does not");
    }
    let repairs = ended_sessions(site).await;
    let failed: Vec<&str> = repairs.iter().filter(|one| one.0 == "failed").map(|one| one.1.as_str()).collect();
    assert_eq!(failed, ["1 of 1 are left", "1 of 1 are left", "1 of 2 are left"], "{repairs:?}");
    assert_eq!(repairs.iter().filter(|one| one.0 == "alert").count(), 1, "somebody is asked to look: {repairs:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_dimension_of_instances_finds_what_is_wrong() {
    let Some(mut ground) = Ground::new("guardian::every_dimension_of_instances_finds_what_is_wrong").await else {
        return;
    };
    let id = ground.provisioned(json!({})).await;
    let other = ground.provisioned(json!({})).await;
    let site = &ground.site;
    let token = format!("99:{}", base::id::fresh());
    used_secret(&token);
    site.admin
        .post(&format!("/instances/{other}/chat-bindings"), json!({"platform": "telegram", "bot_token": token}))
        .token(&site.root)
        .ok()
        .await;
    for name in
        ["guardian_inst_auth", "guardian_port", "guardian_inst_logs", "guardian_bot_token", "guardian_models_check"]
    {
        assert_eq!(run(site, name).await, "nothing found", "{name}");
    }
    let home = ground.home(&id).await;
    let script = "import json,sys\np=sys.argv[1]+'/.openclaw/openclaw.json'\nc=json.load(open(p))\nc['models']['providers']['tidepool']['apiKey']='sk-another'\n\
        c['gateway']['port']=1234\nc['agents']['defaults']['model']['primary']='tidepool/none'\nc['channels']={'telegram':{'enabled':True,'botToken':sys.argv[2]}}\njson.dump(c,open(p,'w'))";
    ground.sh("python3 -c \"$1\" \"$2\" \"$3\"", &[script, &home, &token]).await;
    let now = jiff::Timestamp::now().to_string();
    let line = json!({"_meta": {"date": now, "logLevelName": "ERROR", "name": "{\"subsystem\":\"diagnostic\"}"}, "time": now,
        "message": "lane task error: lane=main error=\"Unknown model: tidepool/none. Run x\""});
    ground.sh("printf '%s\\n' \"$2\" >>\"$1/.openclaw/logs/openclaw.jsonl\"", &[&home, &line.to_string()]).await;
    // That a scan has read it already changes nothing.
    let at = ground.sh("stat -c '%i %s' \"$1/.openclaw/logs/openclaw.jsonl\"", &[&home]).await;
    let (inode, size) = at.trim().split_once(' ').unwrap();
    let (inode, size) = (inode.parse().unwrap(), size.parse().unwrap());
    let read_at = jiff::Timestamp::now().as_millisecond();
    store::instance_health::set_mark(&site.app.db, &InstanceId::named(&id), inode, size, read_at).await.unwrap();
    // A gateway that is nobody's.
    let stray = format!("stray-{id}");
    // Next to its instance's ports, in the block that is this case's.
    let port = (ground.show(&id).await["gateway_port"].as_i64().unwrap() + 7).to_string();
    ground.sh("mkdir -p /tmp/\"$1\" && printf '{\"gateway\":{\"auth\":{\"token\":\"x\"}}}' >/tmp/\"$1\"/openclaw.json && systemd-run -q --unit=\"$1\" \
        --setenv=OPENCLAW_STATE_DIR=/tmp/\"$1\" --setenv=OPENCLAW_CONFIG_PATH=/tmp/\"$1\"/openclaw.json /opt/tidepool/openclaw/2026.9.6/openclaw gateway run --port \"$2\"",
        &[&stray, &port]).await;
    ground.listens(&port).await;
    // Otherwise what the first of them finds would be put right before the others look.
    let until = (jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1)).to_string();
    let hold = json!({"until": until, "reason": "the guardian is looked at"});
    site.admin.put(&format!("/instances/{id}/hold"), hold).token(&site.root).ok().await;
    for (name, words) in [
        ("guardian_inst_auth", "its key is not the stored one"),
        ("guardian_port", "its configuration says port 1234"),
        ("guardian_inst_logs", "unknown model tidepool/none"),
        ("guardian_bot_token", "its configuration has the chat-bot of"),
        ("guardian_models_check", "its primary model is not in its list"),
        ("guardian_process_check", stray.as_str()),
    ] {
        run(site, name).await;
        let found = events(site, &format!("dimension={name}&status=failed")).await;
        assert!(found.to_string().contains(words), "{name}: {found}");
        assert!(!found.to_string().contains(&token), "no secrets");
    }
    ground.sh("systemctl stop \"$1\"; rm -rf /tmp/\"$1\"", &[&stray]).await;
    ground.end().await;
}
