//! Chat-bots end to end: configured with the platform, told to the instance, delivered by webhook, taken off again.

use std::time::Duration;

use fleet::registry::TYPES;
use queue::worker::{Timing, Worker};
use serde_json::{Value, json};
use sim::bot::Platform;
use testkit::until_ok;
use tokio::sync::watch;

use crate::kit::hosts::Ground;
use crate::kit::talk::Talk;
use crate::kit::{Database, Options, Site, used_secret};

const TOKEN: &str = "123456:AAH-a-bot-token-of-a-test_1";

async fn talk(platform: &Platform, database: Database, webhooks: Option<&'static str>) -> Talk {
    used_secret(TOKEN);
    let options = Options { bot_api_url: Some(platform.url.clone()), webhooks, ..Options::default() };
    Talk::with(database, options, |_| {}).await
}

fn worker(site: &Site) -> watch::Sender<bool> {
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(
        Worker::new(site.app.clone(), TYPES, Timing { poll: Duration::from_millis(50), ..Timing::default() })
            .run(stopped),
    );
    stop
}

async fn until(what: &str, mut done: impl FnMut() -> bool) {
    testkit::until(what, async || done()).await;
}

/// The tasks that this query finds, once they are as they should be.
async fn until_tasks(site: &Site, what: &str, query: &str, done: impl Fn(&Value) -> bool) {
    until_ok(what, async || {
        let tasks = site.admin.get(&format!("/tasks?{query}")).token(&site.root).ok().await;
        if done(&tasks) { Ok(()) } else { Err(tasks) }
    })
    .await;
}

async fn both_sides(database: Database) {
    let platform = Platform::start().await.unwrap();
    let talk = talk(&platform, database, Some("https://ai.example.com/portal")).await;
    let site = &talk.site;
    let _worker = worker(site);
    let (admin, employee) = (site.admin.clone(), site.employee.clone());
    let configure = |token: &str| {
        employee.post("/me/instances/a0/configure-bot", json!({"bot_token": token, "chat_id": "77"})).token(&talk.token)
    };
    let status = || employee.get("/me/instances/a0/bot-status").token(&talk.token);
    let empty = json!({"configured": false, "platform": "telegram", "bot_username": "", "is_active": 0, "mode": "", "webhook_url": "",
        "pending_update_count": null, "last_error": null});
    assert_eq!(status().ok().await, empty);

    let words = configure(TOKEN).refused("4000").await;
    assert_eq!(words, "the bot platform refused: Unauthorized");
    configure("../../etc").refused("4000").await;
    platform.set_broken(true);
    configure(TOKEN).refused("5030").await;
    platform.set_broken(false);
    assert_eq!(
        employee.get("/me/instances/a0/chat-bindings").token(&talk.token).ok().await["total"],
        0,
        "a refusal leaves nothing"
    );

    platform.add(TOKEN, "ada_bot");
    let made = configure(TOKEN).ok().await;
    assert_eq!(
        (&made["bot_username"], &made["bot_token"], &made["chat_id"]),
        (&json!("ada_bot"), &json!("…st_1"), &json!("77"))
    );
    let hook = format!("https://ai.example.com/portal/hooks/bot/{}", made["id"].as_str().unwrap());
    assert_eq!(platform.bot(TOKEN).webhook, hook);
    used_secret(&platform.bot(TOKEN).secret);
    assert_eq!(platform.calls(TOKEN)[1..], ["getMe", "setWebhook"]);
    platform.set_trouble(TOKEN, 3, "Wrong response from the webhook: 503");
    let shown = status().ok().await;
    assert_eq!(
        shown,
        json!({"configured": true, "platform": "telegram", "bot_username": "ada_bot", "is_active": 1, "mode": "webhook",
        "webhook_url": hook, "pending_update_count": 3, "last_error": "Wrong response from the webhook: 503"})
    );
    assert_eq!(admin.get("/instances/a0/bot-status").token(&site.root).ok().await, shown);
    platform.set_broken(true);
    let away = status().ok().await;
    assert_eq!(
        (&away["configured"], &away["pending_update_count"], &away["last_error"]),
        (&json!(true), &Value::Null, &json!("the bot platform cannot be reached"))
    );
    platform.set_broken(false);

    // A message of the platform's, as its proxy hands it on.
    let secret = platform.bot(TOKEN).secret;
    talk.assistant.set_webhook_secret(&secret);
    let path = hook.replace("https://ai.example.com/portal", "");
    let update = |id: i64| json!({"update_id": id, "message": {"text": "hello", "from": {"id": 77}}});
    let post = |secret: Option<&str>, body: Value| {
        let call = employee.raw(reqwest::Method::POST, &path).json(body);
        match secret {
            Some(secret) => call.header("x-telegram-bot-api-secret-token", secret),
            None => call,
        }
    };
    for _ in 0..2 {
        post(Some(&secret), update(1)).ok().await;
    }
    post(None, update(2)).refused("4010").await;
    post(Some("wrong"), update(3)).refused("4010").await;
    let unknown = employee
        .raw(reqwest::Method::POST, "/hooks/bot/nothing")
        .json(update(4))
        .header("x-telegram-bot-api-secret-token", &secret);
    unknown.refused("4040").await;
    let big = "x".repeat(1 << 20);
    post(Some(&secret), json!({"update_id": 5, "text": big})).refused("4130").await;
    let delivered = talk.assistant.delivered();
    assert_eq!(delivered.len(), 1);
    assert_eq!(delivered[0].update, update(1), "as it came");
    assert!(!delivered[0].headers.iter().any(|name| name.contains("forwarded")));

    // In use elsewhere; the same again; another in its place.
    let b = json!({"id": "b0", "name": "B", "server_id": "here"});
    admin.post("/assistant-instances", b).token(&site.root).ok().await;
    admin.post("/instances/b0/configure-bot", json!({"bot_token": TOKEN})).token(&site.root).refused("4090").await;
    let bare = json!({"bot_token": TOKEN});
    let again = employee.post("/me/instances/a0/configure-bot", bare).token(&talk.token).ok().await;
    assert_ne!(again["id"], made["id"]);
    assert_eq!(again["chat_id"], "77", "whose messages it answers stays, where nothing is said of it");
    let second = json!({"bot_token": "999999:a-second-bot"});
    employee.post("/me/instances/a0/chat-bindings", second).token(&talk.token).refused("4090").await;
    assert!(platform.bot(TOKEN).webhook.ends_with(again["id"].as_str().unwrap()));
    post(Some(&secret), update(6)).refused("4040").await;
    let other = "654321:another-bot-token-of-a-test";
    used_secret(other);
    platform.add(other, "other_bot");
    admin.post("/instances/a0/configure-bot", json!({"bot_token": other})).token(&site.root).ok().await;
    let listed = employee.get("/me/instances/a0/chat-bindings").token(&talk.token).ok().await;
    assert_eq!((&listed["total"], &listed["list"][0]["bot_username"]), (&json!(1), &json!("other_bot")));
    until("the old bot's webhook is cleared", || platform.bot(TOKEN).webhook.is_empty()).await;
    assert!(platform.bot(other).webhook.starts_with("https://"));
    // Taken off: the platform delivers nowhere, and a platform that is away is told later.
    platform.set_broken(true);
    let path = format!("/me/instances/a0/chat-bindings/{}", listed["list"][0]["id"].as_str().unwrap());
    employee.delete(&path).token(&talk.token).ok().await;
    let query = "type=clear_webhook&status=failed";
    until_tasks(site, "the clearing fails", query, |tasks| tasks["total"] != 0).await;
    platform.set_broken(false);
    site.wait(Duration::from_secs(30));
    until("the webhook is cleared at last", || platform.bot(other).webhook.is_empty()).await;
    assert_eq!(status().ok().await, empty);
    // An instance that is given away takes no bot along.
    configure(TOKEN).ok().await;
    admin.patch("/instances/a0/assign", json!({"user_id": null})).token(&site.root).ok().await;
    let (bob, _) = site.quick_employee("bob@example.com").await;
    admin.patch("/instances/a0/assign", json!({"user_id": bob})).token(&site.root).ok().await;
    until("ada's bot is cleared", || platform.bot(TOKEN).webhook.is_empty()).await;
    configure(TOKEN).refused("4040").await;
    // Whoever uses the bot elsewhere by then keeps what they set.
    configure_elsewhere(site, &platform).await;
}

/// A webhook that is not ours outlives the end of our binding.
async fn configure_elsewhere(site: &Site, platform: &Platform) {
    let configure = json!({"bot_token": TOKEN});
    let made = site.admin.post("/instances/b0/configure-bot", configure).token(&site.root).ok().await;
    platform.set_webhook(TOKEN, "https://elsewhere.example/hook");
    let path = format!("/instances/b0/chat-bindings/{}", made["id"].as_str().unwrap());
    site.admin.delete(&path).token(&site.root).ok().await;
    until_tasks(site, "all clearing is done", "type=clear_webhook", |tasks| {
        tasks["list"].as_array().unwrap().iter().all(|task| task["status"] == "done")
    })
    .await;
    assert_eq!(platform.bot(TOKEN).webhook, "https://elsewhere.example/hook");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bot_by_webhook_sqlite() {
    both_sides(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bot_by_webhook_postgres() {
    if let Some(database) = Database::postgres(module_path!()).await {
        both_sides(database).await;
    }
}

/// Whose instance goes while the platform is still asked about a bot leaves no bot behind, and no webhook.
#[tokio::test(flavor = "multi_thread")]
async fn a_bot_that_comes_when_the_instance_is_gone_is_refused() {
    let platform = Platform::start().await.unwrap();
    let talk = talk(&platform, Database::sqlite(), Some("https://ai.example.com/portal")).await;
    let site = &talk.site;
    platform.add(TOKEN, "ada_bot");
    let held = platform.hold("setWebhook");
    let body = json!({"bot_token": TOKEN});
    let configuring =
        tokio::spawn(site.employee.post("/me/instances/a0/configure-bot", body).token(&talk.token).send());
    until("the platform is asked", || platform.calls(TOKEN) == ["getMe", "setWebhook"]).await;
    site.admin.patch("/instances/a0/assign", json!({"user_id": null})).token(&site.root).ok().await;
    drop(held);
    assert_eq!(configuring.await.unwrap().status, 404);
    assert_eq!(site.admin.get("/instances/a0/chat-bindings").token(&site.root).ok().await["total"], 0);
    until("the webhook is taken back", || platform.bot(TOKEN).webhook.is_empty()).await;
    assert_eq!(platform.calls(TOKEN), ["getMe", "setWebhook", "deleteWebhook"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_https_a_bot_is_polled_and_no_webhook_is_set() {
    let platform = Platform::start().await.unwrap();
    let talk = talk(&platform, Database::sqlite(), None).await;
    platform.add(TOKEN, "ada_bot");
    let configure =
        talk.site.employee.post("/me/instances/a0/configure-bot", json!({"bot_token": TOKEN})).token(&talk.token);
    let made = configure.ok().await;
    assert_eq!(platform.calls(TOKEN), ["getMe"]);
    let status = talk.site.employee.get("/me/instances/a0/bot-status").token(&talk.token).ok().await;
    assert_eq!(
        (&status["mode"], &status["webhook_url"], &status["last_error"]),
        (&json!("polling"), &json!(""), &Value::Null)
    );
    let hook = format!("/hooks/bot/{}", made["id"].as_str().unwrap());
    let post = talk
        .site
        .employee
        .raw(reqwest::Method::POST, &hook)
        .json(json!({}))
        .header("x-telegram-bot-api-secret-token", "x");
    post.refused("4040").await;
}

/// On a real server: what the instance's configuration says of its bot, in both modes, and after it is gone.
async fn configuration(name: &str, webhooks: Option<&'static str>) {
    let Some(fleet) = crate::kit::hosts::fleet(name) else { return };
    let platform = Platform::start().await.unwrap();
    platform.add(TOKEN, "ada_bot");
    used_secret(TOKEN);
    let options = Options {
        bot_api_url: Some(platform.url.clone()),
        webhooks,
        assistants: Ground::defaults(),
        ..Options::default()
    };
    let mut ground = Ground::with_options(fleet, "h1", options).await;
    let id = ground.provisioned(json!({})).await;
    let site = &ground.site;
    let configure = json!({"bot_token": TOKEN, "chat_id": "77"});
    let made = site.admin.post(&format!("/instances/{id}/configure-bot"), configure).token(&site.root).ok().await;
    let written = ground.latest("write_config").await;
    ground.done(&written).await;
    let channel = ground.config(&id).await["channels"]["telegram"].clone();
    assert_eq!(
        (&channel["enabled"], &channel["botToken"], &channel["dmPolicy"], &channel["allowFrom"]),
        (&json!(true), &json!(TOKEN), &json!("allowlist"), &json!(["77"]))
    );
    match webhooks {
        Some(_) => {
            let detail = site.admin.get(&format!("/instances/{id}")).token(&site.root).ok().await;
            assert_eq!(channel["webhookUrl"], platform.bot(TOKEN).webhook);
            assert_eq!(channel["webhookSecret"], platform.bot(TOKEN).secret);
            assert_eq!(channel["webhookPort"].as_i64(), detail["gateway_port"].as_i64().map(|port| port + 4));
            assert_eq!(
                (&channel["webhookHost"], &channel["webhookPath"]),
                (&json!("127.0.0.1"), &json!("/telegram-webhook"))
            );
        }
        None => assert!(channel.get("webhookUrl").is_none(), "{channel}"),
    }
    let path = format!("/instances/{id}/chat-bindings/{}", made["id"].as_str().unwrap());
    site.admin.delete(&path).token(&site.root).ok().await;
    let written = ground.latest("write_config").await;
    ground.done(&written).await;
    assert_eq!(ground.config(&id).await["channels"]["telegram"], json!({"enabled": false}));
    until("the webhook is cleared", || platform.bot(TOKEN).webhook.is_empty()).await;
    if webhooks.is_some() {
        // At once, and again when no gateway can set it any more.
        until_tasks(&ground.site, "it is looked at again", "type=clear_webhook", |tasks| tasks["total"] == 2).await;
    }
    ground.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_s_configuration_follows_a_bot_by_webhook() {
    configuration(module_path!(), Some("https://ai.example.com")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_s_configuration_follows_a_bot_that_is_polled() {
    configuration(module_path!(), None).await;
}
