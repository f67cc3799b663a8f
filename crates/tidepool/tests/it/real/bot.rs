//! A bot of the real OpenClaw: a message reaches the assistant, and its answer the bot platform, by webhook and by polling; and pairing.

use std::process::Stdio;
use std::time::{Duration, Instant};

use fleet::assistant::Defaults;
use serde_json::{Value, json};
use sim::bot::Platform;
use tokio::process::{Child, Command};

use crate::kit::assistant::{START, model_server};
use crate::kit::hosts::{CURRENT, Fleet, Ground, fleet, is_real};
use crate::kit::{Options, used_secret};

pub(super) const TOKEN: &str = "123456:example-of-a-bot-token-that-is-none";
pub(super) const WRITER: i64 = 4711;

/// What listens on this machine's loopback at `port`, listens on the host's too, until this is dropped.
pub(super) fn shared(fleet: &Fleet, machine: &str, port: &str) -> Child {
    let machine = fleet.machine(machine);
    let mut ssh = Command::new("ssh");
    ssh.args(["-N", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes"])
        .args(["-o", "ExitOnForwardFailure=yes", "-p", &machine.port.to_string()])
        .args(["-R", &format!("127.0.0.1:{port}:127.0.0.1:{port}"), &format!("root@{}", machine.relay)])
        .arg("-i")
        .arg(&fleet.key);
    ssh.stdin(Stdio::null()).kill_on_drop(true).spawn().unwrap()
}

pub(super) fn message(number: i64, text: &str) -> Value {
    let person = json!({"id": WRITER, "is_bot": false, "first_name": "Ada"});
    let chat = json!({"id": WRITER, "type": "private", "first_name": "Ada"});
    let now = base::Clock::default().now().as_second();
    json!({"update_id": number, "message": {"message_id": number, "date": now, "chat": chat, "from": person, "text": text}})
}

pub(super) async fn until(what: &str, is: impl Fn() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < START, "{what}: not seen");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn is_answered(webhooks: Option<&'static str>) {
    let fleet = fleet("real::bot").expect("make test-real starts hosts");
    assert!(is_real(&fleet.host("h4"), CURRENT).await, "OpenClaw {CURRENT} is not on h4");
    let platform = Platform::start().await.unwrap();
    platform.add(TOKEN, "ada_bot");
    used_secret(TOKEN);
    let _shared = shared(&fleet, "h4", platform.url.rsplit(':').next().unwrap());
    let gateway_url = model_server(&fleet.host("h4")).await;
    let assistants = Defaults { gateway_url, start_limit: START, least_memory: 64 << 20, ..Default::default() };
    let options = Options { bot_api_url: Some(platform.url.clone()), webhooks, assistants, ..Options::default() };
    let mut ground = Ground::with_options(fleet, "h4", options).await;
    let id = ground.provisioned(json!({})).await;
    let site = &ground.site;
    let configure = json!({"bot_token": TOKEN, "chat_id": WRITER.to_string()});
    let made = site.admin.post(&format!("/instances/{id}/configure-bot"), configure).token(&site.root).ok().await;
    let written = ground.latest("write_config").await;
    ground.done(&written).await;
    // OpenClaw has read its configuration: it has introduced itself to the platform.
    until("the assistant's own call", || platform.calls(TOKEN).iter().any(|call| call == "setMyCommands")).await;

    let said = "remember the lighthouse";
    if webhooks.is_some() {
        let hook = format!("/hooks/bot/{}", made["id"].as_str().unwrap());
        let began = Instant::now();
        loop {
            let secret = platform.bot(TOKEN).secret;
            used_secret(&secret);
            let post = site.employee.raw(reqwest::Method::POST, &hook).json(message(1, said));
            let reply = post.header("x-telegram-bot-api-secret-token", &secret).send().await;
            if reply.status == 200 {
                break;
            }
            assert!(began.elapsed() < START, "{reply:?}");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    } else {
        platform.write(TOKEN, message(1, said));
    }
    let answered = || {
        platform
            .said(TOKEN)
            .iter()
            .any(|m| m["text"].as_str().is_some_and(|t| t.contains("gpt-4o remembers: lighthouse")))
    };
    until("an answer", answered).await;
    println!("the bot said: {:?}", platform.said(TOKEN));
    assert!(platform.said(TOKEN).iter().all(|m| m["chat_id"].to_string().contains(&WRITER.to_string())));
    ground.sh("systemctl stop 'model-*' || true", &[]).await;
    ground.end().await;
}

/// Pairing without a shell: the code that the bot answered is shown and approved, and from then on the bot chats.
#[tokio::test(flavor = "multi_thread")]
async fn pairing_is_completed_in_the_app() {
    let fleet = fleet("real::bot").expect("make test-real starts hosts");
    assert!(is_real(&fleet.host("h4"), CURRENT).await, "OpenClaw {CURRENT} is not on h4");
    let platform = Platform::start().await.unwrap();
    platform.add(TOKEN, "ada_bot");
    used_secret(TOKEN);
    let _shared = shared(&fleet, "h4", platform.url.rsplit(':').next().unwrap());
    let gateway_url = model_server(&fleet.host("h4")).await;
    let assistants = Defaults { gateway_url, start_limit: START, least_memory: 64 << 20, ..Default::default() };
    let options = Options { bot_api_url: Some(platform.url.clone()), assistants, ..Options::default() };
    let mut ground = Ground::with_options(fleet, "h4", options).await;
    let id = ground.provisioned(json!({})).await;
    let site = &ground.site;
    let configure = json!({"bot_token": TOKEN});
    let made = site.admin.post(&format!("/instances/{id}/configure-bot"), configure).token(&site.root).ok().await;
    ground.done(&ground.latest("write_config").await).await;
    until("the assistant's own call", || platform.calls(TOKEN).iter().any(|call| call == "setMyCommands")).await;

    let bot = format!("/instances/{id}/chat-bindings/{}", made["id"].as_str().unwrap());
    let listed = async || site.admin.get(&format!("{bot}/pairing-requests")).token(&site.root).ok().await;
    let codes = || platform.said(TOKEN).iter().filter(|m| m["text"].to_string().contains("Pairing code")).count();
    platform.write(TOKEN, message(1, "let me in"));
    until("a code", || codes() == 1).await;
    let request = listed().await["list"][0].clone();
    let code = request["code"].as_str().unwrap();
    assert!(platform.said(TOKEN)[0]["text"].as_str().unwrap().contains(code), "{request}");
    assert_eq!((&request["sender_id"], &request["name"]), (&json!(WRITER.to_string()), &json!("Ada")));
    // Refused: it is gone, and asks again.
    let refuse = site.admin.delete(&format!("{bot}/pairing-requests/{WRITER}")).token(&site.root);
    refuse.ok().await;
    assert_eq!(listed().await["total"], 0);
    platform.write(TOKEN, message(2, "please"));
    until("another code", || codes() == 2).await;
    let code = listed().await["list"][0]["code"].clone();
    site.admin.post(&format!("{bot}/senders"), json!({"code": code})).token(&site.root).ok().await;
    ground.done(&ground.latest("write_config").await).await;
    platform.write(TOKEN, message(3, "remember the lighthouse"));
    let is_answer = |m: &Value| m["text"].as_str().is_some_and(|t| t.contains("gpt-4o remembers: lighthouse"));
    until("an answer", || platform.said(TOKEN).iter().any(is_answer)).await;
    ground.sh("systemctl stop 'model-*' || true", &[]).await;
    ground.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn by_webhook() {
    is_answered(Some("https://ai.example.com")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn by_polling() {
    is_answered(None).await;
}
