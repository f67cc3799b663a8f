//! The real OpenClaw in a host: provisioned, claimed, talked to over its WebSocket, with a model server beside it.

use std::time::Duration;

use base::id::TaskId;
use openclaw::frame::Request;
use serde_json::json;
use testkit::until_ok_within;

use crate::kit::assistant::{START, Talk, model_server};
use crate::kit::hosts::{CURRENT, Ground, fleet, is_real};
use crate::kit::talk::{Client, Closed, MAIN, ticket, words};
use crate::kit::{skip, used_secret};

/// A ground on the host with the real OpenClaw, with a model server beside it.
async fn with_the_real_one(name: &str) -> Option<Ground> {
    let fleet = fleet(name)?;
    if !fleet.has("h4") || !is_real(&fleet.host("h4"), CURRENT).await {
        skip(name, "the real OpenClaw is not on h4");
        return None;
    }
    let gateway_url = model_server(&fleet.host("h4")).await;
    let assistants =
        fleet::assistant::Defaults { gateway_url, start_limit: START, least_memory: 64 << 20, ..Default::default() };
    Some(Ground::on(fleet, "h4", assistants).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_the_real_one_is_provisioned_claimed_talked_to_and_taught() {
    let name = "openclaw::heavy_the_real_one_is_provisioned_claimed_talked_to_and_taught";
    let Some(mut ground) = with_the_real_one(name).await else { return };
    let id = ground.provisioned(json!({})).await;
    let seen = ground.site.admin.get(&format!("/instances/{id}/config")).token(&ground.site.root).ok().await;
    assert_eq!((&seen["drift"], &seen["version"]), (&json!([]), &json!(CURRENT)), "{seen}");

    // Claimed: what comes before its own start is quick.
    let (_, employee) = ground.site.employee("ada@example.com").await;
    let claim = ground.site.employee.post("/me/instances/claim", json!({"instance_id": id}));
    let claimed = claim.token(&employee).ok().await;
    let task = TaskId::named(claimed["task_id"].as_str().unwrap());
    ground.done(&task).await;
    let log = ground.log(&task).await;
    let prepared =
        log.iter().find_map(|line| line.strip_prefix("prepared in ")?.strip_suffix(" s")?.parse::<f32>().ok());
    assert!(prepared.unwrap() < 10.0, "{log:?}");

    // A chat over its WebSocket.
    let shown = ground.show(&id).await;
    let (port, token) = (shown["gateway_port"].as_u64().unwrap(), shown["gateway_token"].as_str().unwrap());
    used_secret(token);
    let port = u16::try_from(port).unwrap();
    let mut talk = Talk::open(&ground.host, port, token).await;
    let (reply, pieces) = talk.say("remember the shore").await;
    assert_eq!(reply.trim(), "gpt-4o remembers: shore");
    assert!(pieces > 0, "the reply came as a stream");

    // Another model: taken over while it runs, or by a restart where it is too busy to say so in time.
    let change = ground.site.admin.patch(&format!("/assistant-instances/{id}"), json!({"model": "claude-sonnet-4-6"}));
    change.token(&ground.site.root).ok().await;
    ground.run("sync_models_to_instance", json!({"instance_id": id})).await;
    let mut talk = Talk::open(&ground.host, port, token).await;
    let (reply, _) = talk.say("and now?").await;
    assert_eq!(reply.trim(), "claude-sonnet-4-6 remembers: shore", "the same conversation");

    // A key that it does not know is refused before it is written.
    let path = format!("/instances/{id}/config");
    let set = ground.site.admin.patch(&path, json!({"config_json": {"bogus": 1}})).token(&ground.site.root).ok().await;
    let failed = ground.failed_times(&TaskId::named(set["task_id"].as_str().unwrap()), 1).await;
    assert!(failed.client_message.contains("Unrecognized key: \"bogus\""), "{}", failed.client_message);
    ground.site.admin.patch(&path, json!({"config_json": {}})).token(&ground.site.root).ok().await;

    // A skill, and OpenClaw lists it.
    let content = "---\nname: tides\ndescription: when the water comes\n---\n# Tides\n";
    let files = json!([{"path": "skills/tides/SKILL.md", "scope": "workspace", "content": content}]);
    let item =
        json!({"type": "skill", "name": "Tides", "description": "", "icon": "🌊", "version": "1.0", "files": files});
    let item = ground.site.admin.post("/marketplace-items", item).token(&ground.site.root).ok().await;
    let install = format!("/marketplace/items/{}/install", item["id"].as_str().unwrap());
    let install = ground.site.employee.post(&install, json!({"instance_id": id})).token(&employee).ok().await;
    ground.done(&TaskId::named(install["task_id"].as_str().unwrap())).await;
    let mut talk = Talk::open(&ground.host, port, token).await;
    let skills = talk.ask(|id| Request::new(id, "skills.status", json!({}))).await;
    let listed = skills["skills"].as_array().unwrap().iter().any(|skill| skill["name"] == "tides");
    assert!(listed, "{skills}");
    // The conversation that was open before sees it too.
    let (said, _) = talk.say("prompt: tides").await;
    assert!(said.contains("skills/tides/SKILL.md"), "{said}");
    // What was said before the restart is still there.
    let history = talk.ask(|id| Request::chat_history(id, "agent:main:main", None)).await;
    let said = history["messages"].to_string();
    assert!(said.contains("remember the shore") && said.contains("claude-sonnet-4-6 remembers"), "{said}");
    drop(talk);

    // Given back: the next one finds nothing of it, not even what its shell tool may have started and left.
    let user = shown["runs_as"].as_str().unwrap();
    let uid = ground.sh("id -u \"$1\"", &[user]).await;
    ground
        .sh(
            "runuser -u \"$1\" -- sh -c 'setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo x >/tmp/left-$0' \"$1\"",
            &[user],
        )
        .await;
    ground.site.employee.delete(&format!("/me/instances/{id}/claim")).token(&employee).ok().await;
    let cleaning = ground.site.admin.get("/tasks?type=clean_instance").token(&ground.site.root).ok().await;
    ground.done(&TaskId::named(cleaning["list"][0]["id"].as_str().unwrap())).await;
    let left = ground
        .sh("pgrep -u \"$2\"; find /tmp /var/tmp /dev/shm -uid \"$2\"; getent passwd \"$1\"; true", &[user, &uid])
        .await;
    assert_eq!(left, "", "of {user}");
    let shown = ground.show(&id).await;
    assert_ne!(shown["runs_as"], user);
    let token = shown["gateway_token"].as_str().unwrap();
    used_secret(token);
    let mut talk = Talk::open(&ground.host, port, token).await;
    let history = talk.ask(|id| Request::chat_history(id, "agent:main:main", None)).await;
    assert!(!history.to_string().contains("shore"), "{history}");
    ground.sh("systemctl stop 'model-*' || true", &[]).await;
    ground.end().await;
}

/// A browser's socket to an own instance, that has heard the relay's hello; how it was closed, where it was not let through.
async fn connect(ground: &Ground, employee: &str, id: &str) -> Result<Client, Closed> {
    let ticket = ticket(&ground.site.employee, employee, id).await;
    let mut client = Client::open(&ground.site.employee, id, &ticket, &[]).await.unwrap();
    assert_eq!(client.next().await?["event"], "relay.hello");
    Ok(client)
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_the_real_one_is_talked_to_through_the_relay() {
    let name = "openclaw::heavy_the_real_one_is_talked_to_through_the_relay";
    let Some(mut ground) = with_the_real_one(name).await else { return };
    let id = ground.provisioned(json!({})).await;
    let (user, employee) = ground.site.employee("ada@example.com").await;
    ground
        .site
        .admin
        .patch(&format!("/instances/{id}/assign"), json!({"user_id": user}))
        .token(&ground.site.root)
        .ok()
        .await;
    // Its background jobs go on with that: what is asked while it takes that over may be lost to it.
    ground.done(&ground.latest("write_config").await).await;

    // Two at once: both see what one of them asked.
    let mut one = connect(&ground, &employee, &id).await.unwrap();
    let mut two = connect(&ground, &employee, &id).await.unwrap();
    one.send("run-1", "remember the shore").await;
    for client in [&mut one, &mut two] {
        assert_eq!(words(&client.chat("run-1", "final").await).trim(), "gpt-4o remembers: shore");
    }
    // What is not on the list does not get there.
    assert_eq!(one.request("config.get", json!({})).await.unwrap_err()["code"], "FORBIDDEN");

    // Streamed, and aborted: by whoever asked alone.
    one.send("run-2", "count 600").await;
    let delta = one.chat("run-2", "delta").await;
    assert!(words(&delta).starts_with("word1"), "{delta}");
    let abort = json!({"sessionKey": MAIN, "runId": "run-2"});
    assert_eq!(two.request("chat.abort", abort.clone()).await.unwrap_err()["message"], "unauthorized");
    let aborted = one.request("chat.abort", abort).await.unwrap();
    assert_eq!(aborted["aborted"], true, "{aborted}");
    assert!(words(&one.chat("run-2", "aborted").await).starts_with("word1"));

    // Dropped in the middle: the run goes on, and whoever comes back hears the rest.
    one.send("run-3", "count 120").await;
    one.chat("run-3", "delta").await;
    drop(one);
    let mut one = connect(&ground, &employee, &id).await.unwrap();
    let history = one.request("chat.history", json!({"sessionKey": MAIN})).await.unwrap();
    assert_eq!(history["inFlightRun"]["runId"], "run-3", "{history}");
    assert_eq!(one.send("run-3", "count 120").await["status"], "in_flight");
    assert!(words(&one.chat("run-3", "final").await).trim().ends_with("word120"));

    // Restarted in the middle: told, and found again.
    one.send("run-4", "count 50").await;
    one.chat("run-4", "delta").await;
    ground.sh("systemctl restart --no-block \"openclaw-$1\"", &[&id]).await;
    one.event("shutdown").await;
    assert_eq!(one.closed().await.0, 1012);
    let mut one = until_ok_within(START, "it comes back", async || {
        // There are 120 tickets a minute, and the site's clock stands.
        ground.site.wait(Duration::from_secs(1));
        let closed = match connect(&ground, &employee, &id).await {
            Ok(client) => return Ok(client),
            Err(closed) => closed,
        };
        assert!(matches!(closed.0, 1011..=1013), "{closed:?}");
        Err(closed)
    })
    .await;
    let history = one.request("chat.history", json!({"sessionKey": MAIN})).await.unwrap().to_string();
    assert!(history.contains("remember the shore") && history.contains("word1"), "{history}");
    one.send("run-5", "remember the harbour").await;
    assert_eq!(words(&one.chat("run-5", "final").await).trim(), "gpt-4o remembers: shore harbour");
    let token = ground.show(&id).await["gateway_token"].as_str().unwrap().to_owned();
    assert!(!one.heard.contains(&token) && !two.heard.contains(&token));
    ground.sh("systemctl stop 'model-*' || true", &[]).await;
    ground.end().await;
}
