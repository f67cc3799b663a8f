//! The nine rules, each broken on purpose on a real host, found by one scan and handled as the table says.

use std::time::Duration;

use base::id::InstanceId;
use serde_json::{Value, json};
use testkit::until_ok;

use crate::health::{check, settled};
use crate::kit::hosts::Ground;
use crate::kit::{Site, used_secret};
use crate::on_both;

/// A line of OpenClaw's own log file, of now.
async fn log(ground: &Ground, id: &str, subsystem: Option<&str>, message: &str, details: Value) {
    let now = jiff::Timestamp::now().to_string();
    let name = subsystem.map_or_else(|| "openclaw".to_owned(), |name| json!({"subsystem": name}).to_string());
    let line = json!({"1": details, "_meta": {"date": now, "logLevelName": "WARN", "name": name}, "time": now, "message": message});
    let path = format!("{}/.openclaw/logs/openclaw.jsonl", ground.home(id).await);
    ground
        .sh(
            "mkdir -p \"$(dirname \"$1\")\" && printf '%s\\n' \"$2\" >>\"$1\" && chmod 666 \"$1\"",
            &[&path, &line.to_string()],
        )
        .await;
}

/// Changes the configuration by hand, in Python: `c` is the document.
async fn edit(ground: &Ground, id: &str, python: &str) {
    let path = format!("{}/.openclaw/openclaw.json", ground.home(id).await);
    let script = format!(
        "import json,sys\np=sys.argv[1]\nc=json.load(open(p))\n{python}\nf=open(p,'w')\njson.dump(c,f)\nf.close()"
    );
    ground.sh("python3 -c \"$1\" \"$2\"", &[&script, &path]).await;
}

async fn preview(ground: &Ground) -> Vec<(String, String)> {
    let found = ground.site.admin.post("/repairs/preview", json!({})).token(&ground.site.root).ok().await;
    let pair =
        |one: &Value| (one["rule"].as_str().unwrap().to_owned(), one["instance_id"].as_str().unwrap().to_owned());
    found["list"].as_array().unwrap().iter().map(pair).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_the_nine_rules_is_handled_within_one_scan() {
    let Some(mut ground) = Ground::new("repairs::each_of_the_nine_rules_is_handled_within_one_scan").await else {
        return;
    };
    let mut ids = vec![];
    for _ in 0..9 {
        ids.push(ground.provisioned(json!({})).await);
    }
    let id = |rule: usize| ids[rule - 1].clone();
    let root = ground.site.root.clone();
    // 7: bound to the wrong address; a start must be a while ago to count.
    edit(&ground, &id(7), "c['gateway']['bind']='lan'").await;
    ground.sh("systemctl restart \"openclaw-$1\"", &[&id(7)]).await;
    // Everything before this is read and done with.
    let scanned = fleet::repair::scan(&ground.site.app).await.unwrap();
    assert!(scanned.begun.is_empty() && scanned.alerted.is_empty(), "{scanned:?}");

    // 1: the provider's key is gone.
    edit(&ground, &id(1), "del c['models']['providers']['tidepool']['apiKey']").await;
    log(
        &ground,
        &id(1),
        Some("diagnostic"),
        "lane task error: lane=main error=\"No API key found for provider \"tidepool\". Auth store: x\"",
        json!({}),
    )
    .await;
    // 2: it ends with 1 again and again, until the doctor was there.
    ground.wrong(&id(2), json!({"loop": true})).await;
    ground.sh("systemctl restart \"openclaw-$1\"; for i in $(seq 1000); do [ \"$(systemctl show -p NRestarts --value \"openclaw-$1\")\" -ge 3 ] && exit 0; \
        [ \"$(systemctl show -p ActiveState --value \"openclaw-$1\")\" = failed ] && exit 0; sleep 0.1; done; systemctl status \"openclaw-$1\" >&2; exit 1", &[&id(2)]).await;
    // 3: out of memory, once.
    ground.wrong(&id(3), json!({"oom": true})).await;
    ground.sh("systemctl restart \"openclaw-$1\"; for i in $(seq 1000); do [ \"$(systemctl show -p NRestarts --value \"openclaw-$1\")\" -ge 1 ] && exit 0; \
        [ \"$(systemctl show -p Result --value \"openclaw-$1\")\" != success ] && exit 0; sleep 0.1; done; systemctl status \"openclaw-$1\" >&2; exit 1", &[&id(3)]).await;
    ground.wrong(&id(3), json!({})).await;
    // 4: an unknown key.
    edit(&ground, &id(4), "c['bogus']=1").await;
    log(
        &ground,
        &id(4),
        Some("gateway/reload"),
        "config reload skipped (invalid config): : Unrecognized key: \"bogus\"",
        json!({}),
    )
    .await;
    // 5: auth.profiles.
    edit(
        &ground,
        &id(5),
        "c['auth']={'profiles':{'x':{'provider':'remote','mode':'api_key'}},'order':{'remote':['x']}}",
    )
    .await;
    // 6: a gateway that is left over has the port.
    let (home, port) = (ground.home(&id(6)).await, ground.show(&id(6)).await["gateway_port"].to_string());
    ground.sh("systemctl stop \"openclaw-$1\"; (OPENCLAW_STATE_DIR=$2/.openclaw OPENCLAW_CONFIG_PATH=$2/.openclaw/openclaw.json setsid /opt/tidepool/openclaw/2026.9.6/openclaw gateway run --port \"$3\" >/dev/null 2>&1 &)", &[&id(6), &home, &port]).await;
    ground.listens(&port).await;
    log(&ground, &id(6), None, &format!("Gateway failed to start: gateway already running under systemd; existing gateway is healthy, exiting with code 78. another gateway instance is already listening on ws://127.0.0.1:{port}"), json!({})).await;
    // 8: three turns that ended with the provider's limit.
    for turn in 0..3 {
        let details = json!({"decision": "surface_error", "failoverReason": "rate_limit", "runId": format!("run-{turn}"), "provider": "tidepool", "model": "gpt-4o"});
        log(&ground, &id(8), Some("agent/embedded"), "embedded run failover decision", details).await;
    }
    // 9: a bot is bound, and its token is gone.
    let token = format!("123456:{}", base::id::fresh());
    used_secret(&token);
    let body = json!({"platform": "telegram", "bot_token": token});
    ground.site.admin.post(&format!("/instances/{}/chat-bindings", id(9)), body).token(&root).ok().await;
    ground.run("write_config", json!({"instance_id": id(9)})).await;
    edit(&ground, &id(9), "del c['channels']['telegram']['botToken']").await; // The server says how old a start is. That of number 7 counts after a minute and a half, by the server's own clock.
    ground
        .sh(
            "start=$(systemctl show -p ActiveEnterTimestampMonotonic --value \"openclaw-$1\"); \
             left=$((92 + start / 1000000 - $(cut -d. -f1 /proc/uptime))); [ $left -le 0 ] || sleep $left",
            &[&id(7)],
        )
        .await;

    // A dry run sees all of it and changes nothing.
    let rules = [
        "no_api_key",
        "exit_loop",
        "out_of_memory",
        "unknown_key",
        "auth_profiles",
        "port_taken",
        "not_listening",
        "rate_limited",
        "bot_channel",
    ];
    let planned = preview(&ground).await;
    for (number, rule) in rules.iter().enumerate() {
        assert!(planned.contains(&((*rule).to_owned(), ids[number].clone())), "{rule} of {}: {planned:?}", ids[number]);
    }
    assert!(settled(&ground).await.is_empty());
    assert_eq!(ground.config(&id(4)).await["bogus"], 1);

    let scanned = fleet::repair::scan(&ground.site.app).await.unwrap();
    assert!(scanned.begun.len() >= 7, "{scanned:?}");
    let repairs = settled(&ground).await;
    for (number, rule) in rules.iter().enumerate() {
        let one = repairs.iter().find(|r| r["rule"] == *rule && r["instance_id"] == ids[number]);
        let one = one.unwrap_or_else(|| panic!("{rule}: {repairs:#?}"));
        let expected = if matches!(*rule, "out_of_memory" | "rate_limited") { "alert" } else { "success" };
        assert_eq!(one["status"], expected, "{one}");
        assert_ne!(one["before"], "", "{one}");
        assert_ne!(one["after"], "", "{one}");
    }
    // And it is as it should be.
    let config = ground.config(&id(1)).await;
    assert!(config["models"]["providers"]["tidepool"]["apiKey"].as_str().is_some_and(|key| key.starts_with("sk-")));
    used_secret(config["models"]["providers"]["tidepool"]["apiKey"].as_str().unwrap());
    assert!(ground.config(&id(4)).await["bogus"].is_null());
    assert!(ground.config(&id(5)).await["auth"].is_null());
    assert_eq!(ground.config(&id(7)).await["gateway"]["bind"], "loopback");
    assert_eq!(ground.config(&id(9)).await["channels"]["telegram"]["botToken"], token);
    for rule in [1, 2, 4, 5, 6, 7, 9] {
        assert_eq!(ground.sh("systemctl is-active \"openclaw-$1\"", &[&id(rule)]).await, "active", "rule {rule}");
    }
    assert_eq!(ground.show(&id(3)).await["health_status"], "unhealthy");
    assert_eq!(ground.show(&id(8)).await["health_status"], "rate_limited");

    // What was read is not read again: a second scan begins nothing, and ends the rate limit.
    let scanned = fleet::repair::scan(&ground.site.app).await.unwrap();
    assert!(scanned.begun.is_empty() && scanned.alerted.is_empty(), "{scanned:?}");
    assert_eq!(ground.show(&id(8)).await["health_status"], "healthy");
    // Out of memory stays, although systemd has started it anew; not when somebody did so since.
    let open = async |what: &str| {
        ground.site.admin.get(&format!("/alerts?open=true&q={what}")).token(&root).ok().await["total"].as_i64()
    };
    check(&ground).await;
    assert_eq!(ground.show(&id(3)).await["health_status"], "unhealthy");
    assert_eq!(open("out_of_memory").await, Some(1));
    ground.sh("systemctl restart \"openclaw-$1\"", &[&id(3)]).await;
    ground.site.wait(Duration::from_secs(60));
    until_ok("it is healthy again", async || {
        check(&ground).await;
        let shown = ground.show(&id(3)).await;
        if shown["health_status"] == "healthy" { Ok(()) } else { Err(shown) }
    })
    .await;
    assert_eq!((open("out_of_memory").await, open("rate_limited").await), (Some(0), Some(0)));
    let found = ground.site.admin.get("/repairs").token(&root).ok().await;
    let tally = found["rules"].as_array().unwrap().iter().find(|r| r["rule"] == "unknown_key").unwrap().clone();
    assert_eq!((tally["success"].as_i64(), tally["success_rate"].as_f64()), (Some(1), Some(100.0)));
    assert!(tally["mean_time_to_repair_ms"].as_i64().unwrap() > 0);
    ground.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn words_of_a_chat_reply_repair_nothing() {
    let Some(mut ground) = Ground::new("repairs::words_of_a_chat_reply_repair_nothing").await else { return };
    let id = ground.provisioned(json!({})).await;
    fleet::repair::scan(&ground.site.app).await.unwrap();
    let before = ground.config(&id).await;
    let pid = ground.main_pid(&id).await;
    // Log lines that name what is not so.
    log(
        &ground,
        &id,
        Some("diagnostic"),
        "lane task error: error=\"No API key found for provider \"tidepool\".\"",
        json!({}),
    )
    .await;
    log(
        &ground,
        &id,
        Some("gateway/reload"),
        "config reload skipped (invalid config): : Unrecognized key: \"gateway\"",
        json!({}),
    )
    .await;
    log(
        &ground,
        &id,
        None,
        "Gateway failed to start: another gateway instance is already listening on ws://127.0.0.1:1",
        json!({}),
    )
    .await;
    let scanned = fleet::repair::scan(&ground.site.app).await.unwrap();
    assert!(scanned.begun.is_empty() && scanned.alerted.is_empty(), "{scanned:?}");
    assert_eq!(ground.config(&id).await, before);
    assert_eq!(ground.main_pid(&id).await, pid);
    ground.end().await;
}

/// OpenClaw's doctor finds nothing wrong with an address that the server does not have; our records do.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_doctor_leaves_is_brought_back_from_our_records() {
    let Some(mut ground) = Ground::new("repairs::what_the_doctor_leaves_is_brought_back_from_our_records").await else {
        return;
    };
    let id = ground.provisioned(json!({})).await;
    fleet::repair::scan(&ground.site.app).await.unwrap();
    edit(&ground, &id, "c['gateway'].update(bind='custom',customBindHost='10.99.99.99')").await;
    ground.sh("systemctl restart \"openclaw-$1\"; for i in $(seq 1000); do [ \"$(systemctl show -p NRestarts --value \"openclaw-$1\")\" -ge 3 ] && exit 0; \
        sleep 0.1; done; systemctl status \"openclaw-$1\" >&2; exit 1", &[&id]).await;
    fleet::repair::scan(&ground.site.app).await.unwrap();
    let repairs = settled(&ground).await;
    let [one] = repairs.as_slice() else { panic!("{repairs:#?}") };
    assert_eq!((one["rule"].as_str(), one["status"].as_str()), (Some("exit_loop"), Some("success")), "{one:#}");
    assert!(one["action"].as_str().unwrap().contains("brought our settings back"), "{one:#}");
    assert_eq!(ground.config(&id).await["gateway"]["bind"], "loopback");
    assert_eq!(ground.sh("systemctl is-active \"openclaw-$1\"", &[&id]).await, "active");
    ground.end().await;
}

/// A second look that fails proves nothing: the line is read again, until it is known.
#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_proved_is_read_again() {
    let Some(mut ground) = Ground::new("repairs::what_could_not_be_proved_is_read_again").await else { return };
    let id = ground.provisioned(json!({})).await;
    fleet::repair::scan(&ground.site.app).await.unwrap();
    let path = format!("{}/.openclaw/openclaw.json", ground.home(&id).await);
    ground.sh("cp -p \"$1\" \"$1.aside\" && printf '{' >\"$1\"", &[&path]).await;
    let said = "lane task error: lane=main error=\"No API key found for provider \"tidepool\". Auth store: x\"";
    log(&ground, &id, Some("diagnostic"), said, json!({})).await;
    let root = ground.site.root.clone();
    let unseen = ground.site.admin.post("/repairs/preview", json!({"instance_id": id})).token(&root).ok().await;
    assert!(unseen["unseen"].to_string().contains("no_api_key: the second look failed"), "{unseen}");
    let scanned = fleet::repair::scan(&ground.site.app).await.unwrap();
    assert!(scanned.begun.is_empty(), "{scanned:?}");
    ground.sh("mv \"$1.aside\" \"$1\"", &[&path]).await;
    edit(&ground, &id, "del c['models']['providers']['tidepool']['apiKey']").await;
    let scanned = fleet::repair::scan(&ground.site.app).await.unwrap();
    assert!(scanned.begun.iter().any(|one| one.ends_with("no_api_key")), "{scanned:?}");
    let repairs = settled(&ground).await;
    assert!(repairs.iter().all(|one| one["status"] == "success"), "{repairs:?}");
    ground.end().await;
}

on_both! {
    async fn employees_see_what_was_repaired_of_their_own(site: Site) {
        site.instances("a", 1).await;
        let (ada, token) = site.quick_employee("ada@example.com").await;
        let (_, bob) = site.quick_employee("bob@example.com").await;
        let note = async |rule: &str| {
            let new = store::repair::New {
                rule, instance_id: &InstanceId::named("a0"), status: store::repair::Status::Success, before: "/srv/assistants/7: gone", action: "restarted it",
                after: "it is ready", created_at: site.app.clock.now(),
            };
            let mut tx = site.app.db.begin().await.unwrap();
            store::repair::insert(&mut tx, &new).await.unwrap();
            tx.commit().await.unwrap();
        };
        note("exit_loop").await;
        site.wait(Duration::from_secs(1));
        site.admin.patch("/instances/a0/assign", json!({"user_id": ada})).token(&site.root).ok().await;
        site.wait(Duration::from_secs(1));
        note("no_api_key").await;
        let seen = site.employee.get("/me/instances/a0/repairs").token(&token).ok().await;
        assert_eq!(seen["total"], 1, "not what was before her time");
        let one = &seen["list"][0];
        assert_eq!((&one["rule"], &one["action"], &one["status"]), (&json!("no_api_key"), &json!("restarted it"), &json!("success")));
        assert!(!seen.to_string().contains("/srv"), "{seen}");
        site.employee.get("/me/instances/a0/repairs").token(&bob).refused("4040").await;
    }
}
