//! The guardian's dimensions, each with something wrong on a real host, and its two endpoints.

use base::id::InstanceId;
use serde_json::{Value, json};

use crate::kit::hosts::Ground;
use crate::kit::{Site, used_secret};
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
