//! Pairing with a bot, without a shell: who asks is shown with the code, the owner allows or refuses, and the instance's
//! configuration has the list of allowed senders.

use std::time::Duration;

use serde_json::{Value, json};
use sim::assistant::Reply;
use sim::bot::Platform;

use crate::kit::simulated::Simulated;
use crate::kit::{Call, Database, Site, used_secret};
use crate::on_both;

const TOKEN: &str = "123456:AAH-a-bot-token-of-a-pairing_1";

/// Ada, with an instance on a simulated server and a bot whose senders are not known yet.
struct Pairing {
    ground: Simulated,
    _platform: Platform,
    unit: String,
    ada: String,
    /// The bot's path below /me.
    bot: String,
}

impl Pairing {
    async fn start(database: Database, release: Option<&str>) -> Pairing {
        used_secret(TOKEN);
        let platform = Platform::start().await.unwrap();
        platform.add(TOKEN, "ada_bot");
        let ground = Simulated::with(database, |options| {
            options.bot_api_url = Some(platform.url.clone());
            if let Some(release) = release {
                options.assistants.version = release.parse().unwrap();
            }
        })
        .await;
        let unit = ground.provisioned("a").await;
        let (user, ada) = ground.site.quick_employee("ada@example.com").await;
        let site = &ground.site;
        site.admin.patch("/instances/a/assign", json!({"user_id": user})).token(&site.root).ok().await;
        let mut pairing = Pairing { ground, _platform: platform, unit, ada, bot: String::new() };
        pairing.configure(json!({"bot_token": TOKEN})).await;
        pairing
    }

    async fn configure(&mut self, body: Value) -> Value {
        let call = self.ground.site.employee.post("/me/instances/a/configure-bot", body).token(&self.ada);
        let made = call.ok().await;
        self.bot = format!("/me/instances/a/chat-bindings/{}", made["id"].as_str().unwrap());
        self.ground.settle().await;
        made
    }

    /// A code that the bot answered to somebody who wrote to it.
    fn code(&self, sender: i64, name: &str) -> String {
        match self.write(sender, name) {
            Reply::Code(code) => code,
            other => panic!("{sender}: {other:?}"),
        }
    }

    fn write(&self, sender: i64, name: &str) -> Reply {
        self.ground.machine.write_to_bot(&self.unit, sender, name, "a_name")
    }

    fn requests(&self) -> Call {
        self.ground.site.employee.get(&format!("{}/pairing-requests", self.bot)).token(&self.ada)
    }

    fn allow(&self, body: Value) -> Call {
        self.ground.site.employee.post(&format!("{}/senders", self.bot), body).token(&self.ada)
    }

    fn delete(&self, path: &str) -> Call {
        self.ground.site.employee.delete(&format!("{}/{path}", self.bot)).token(&self.ada)
    }

    /// The senders whose requests are shown.
    async fn waiting(&self) -> Vec<String> {
        let listed = self.requests().ok().await;
        let list = listed["list"].as_array().unwrap();
        assert_eq!(listed["total"], list.len());
        list.iter().map(|one| one["sender_id"].as_str().unwrap().to_owned()).collect()
    }

    async fn channel(&self) -> Value {
        let config = self.ground.site.admin.get("/instances/a/config").token(&self.ground.site.root).ok().await;
        assert_eq!(config["drift"], json!([]), "what is there is what is wanted");
        let home = self.ground.site.admin.get("/instances/a").token(&self.ground.site.root).ok().await["home"].clone();
        self.ground.config(home.as_str().unwrap())["channels"]["telegram"].clone()
    }

    async fn audit(&self) -> Vec<String> {
        let path = "/audit-logs?action=instance.update&limit=200";
        let audit = self.ground.site.admin.get(path).token(&self.ground.site.root).ok().await;
        audit["list"].as_array().unwrap().iter().map(|entry| entry["detail"].as_str().unwrap().to_owned()).collect()
    }
}

async fn completed(database: Database) {
    let mut pairing = Pairing::start(database, None).await;
    assert_eq!(pairing.channel().await["dmPolicy"], "pairing");
    assert!(pairing.waiting().await.is_empty());
    let code = pairing.code(4711, "Ada");
    let other = pairing.code(4712, "Ada\u{202e}\n");
    let listed = pairing.requests().ok().await;
    let first = &listed["list"][0];
    assert_eq!(
        (&first["sender_id"], &first["name"], &first["username"], &first["code"]),
        (&json!("4711"), &json!("Ada"), &json!("a_name"), &json!(code))
    );
    let times =
        [&first["created_at"], &first["expires_at"]].map(|at| at.as_str().unwrap().parse::<jiff::Timestamp>().unwrap());
    assert_eq!(times[1].duration_since(times[0]), jiff::SignedDuration::from_hours(1));
    assert_eq!((&listed["list"][1]["name"], &listed["list"][1]["code"]), (&json!("Ada"), &json!(other)));

    // Nobody else's business.
    let (_, bob) = pairing.ground.site.quick_employee("bob@example.com").await;
    let (employee, senders) = (pairing.ground.site.employee.clone(), format!("{}/senders", pairing.bot));
    let requests = format!("{}/pairing-requests", pairing.bot);
    employee.get(&requests).token(&bob).refused("4040").await;
    employee.delete(&format!("{requests}/4711")).token(&bob).refused("4040").await;
    for body in [json!({"code": code}), json!({"sender_id": "1"})] {
        employee.post(&senders, body).token(&bob).refused("4040").await;
    }
    employee.delete(&format!("{senders}/4711")).token(&bob).refused("4040").await;

    // By the code, however it is typed.
    pairing.allow(json!({"code": "NOTACODE"})).refused("4040").await;
    let made = pairing.allow(json!({"code": format!(" {} ", code.to_lowercase())})).ok().await;
    assert_eq!((made["senders"].as_array().unwrap().len(), &made["senders"][0]["sender_id"]), (1, &json!("4711")));
    assert_eq!(made["senders"][0]["name"], "Ada");
    assert_eq!(pairing.waiting().await, ["4712"], "who is allowed waits no more");
    pairing.ground.settle().await;
    let channel = pairing.channel().await;
    assert_eq!((&channel["dmPolicy"], &channel["allowFrom"]), (&json!("allowlist"), &json!(["4711"])));
    assert_eq!((pairing.write(4711, "Ada"), pairing.write(4713, "Eve")), (Reply::Chat, Reply::Nothing));

    // By hand, and twice changes nothing.
    for bad in [
        json!({}),
        json!({"code": "A", "sender_id": "1"}),
        json!({"sender_id": "*"}),
        json!({"sender_id": "@ada"}),
        json!({"sender_id": ""}),
    ] {
        pairing.allow(bad).refused("4000").await;
    }
    for _ in 0..2 {
        pairing.allow(json!({"sender_id": "4713"})).ok().await;
    }
    pairing.ground.settle().await;
    assert_eq!(pairing.channel().await["allowFrom"], json!(["4711", "4713"]));
    assert_eq!(pairing.write(4713, "Eve"), Reply::Chat);

    // The same bot again keeps them; with a sender named, it answers that one alone.
    let again = pairing.configure(json!({"bot_token": TOKEN})).await;
    assert_eq!(again["senders"].as_array().unwrap().len(), 2);
    assert_eq!(pairing.channel().await["allowFrom"], json!(["4711", "4713"]));
    let everybody = json!({"bot_token": TOKEN, "chat_id": "*"});
    employee.post("/me/instances/a/configure-bot", everybody).token(&pairing.ada).refused("4000").await;
    let named = pairing.configure(json!({"bot_token": TOKEN, "chat_id": "99"})).await;
    assert_eq!(named["senders"][0]["sender_id"], "99");
    assert_eq!(pairing.channel().await["allowFrom"], json!(["99"]));

    // Removed: the last one makes the bot ask again.
    pairing.allow(json!({"sender_id": "4711"})).ok().await;
    pairing.delete("senders/99").ok().await;
    pairing.delete("senders/99").refused("4040").await;
    pairing.ground.settle().await;
    assert_eq!(pairing.channel().await["allowFrom"], json!(["4711"]));
    pairing.delete("senders/4711").ok().await;
    pairing.ground.settle().await;
    let channel = pairing.channel().await;
    assert_eq!((&channel["dmPolicy"], channel.get("allowFrom")), (&json!("pairing"), None));

    let audit = pairing.audit().await;
    for detail in ["allowed", "removed"] {
        let expected = format!("sender 4711 of telegram bot ada_bot {detail} by ada@example.com");
        assert!(audit.contains(&expected), "{expected}: {audit:#?}");
    }
    let entries = |who: &str| audit.iter().filter(|entry| entry.contains(who) && entry.contains("allowed")).count();
    assert_eq!((entries("sender 4713"), entries("sender 4711")), (1, 2), "what changes nothing is not recorded");
    assert!(!audit.iter().any(|entry| entry.contains(&code)), "a code is nobody's business");
}

#[tokio::test(flavor = "multi_thread")]
async fn pairing_is_completed_sqlite() {
    completed(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pairing_is_completed_postgres() {
    if let Some(database) = Database::postgres(module_path!()).await {
        completed(database).await;
    }
}

/// Strangers fill the queue of three: the owner makes room, and a request that nobody answers ends by itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_refused_or_ends_after_an_hour() {
    let pairing = Pairing::start(Database::sqlite(), None).await;
    for sender in 1..=3 {
        pairing.code(sender, "Stranger");
    }
    assert_eq!(pairing.write(4711, "Ada"), Reply::Nothing, "there is no room");
    pairing.delete("pairing-requests/2").ok().await;
    assert_eq!(pairing.waiting().await, ["1", "3"]);
    pairing.code(4711, "Ada");
    pairing.delete("pairing-requests/2").refused("4040").await;
    let audit = pairing.audit().await;
    assert_eq!(audit[0], "sender 2 of telegram bot ada_bot refused by ada@example.com");
    pairing.ground.site.wait(Duration::from_secs(3601));
    assert!(pairing.waiting().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_release_is_paired_too_and_cannot_refuse() {
    let pairing = Pairing::start(Database::sqlite(), Some("2026.5.28")).await;
    let code = pairing.code(4711, "Ada");
    let message = pairing.delete("pairing-requests/4711").refused("4090").await;
    assert!(message.contains("ends an hour after"), "{message}");
    pairing.allow(json!({"code": code})).ok().await;
    pairing.ground.settle().await;
    assert_eq!(pairing.write(4711, "Ada"), Reply::Chat);
}

/// What a server says instead of requests is an error that names no detail, and a page that asks all the time is slowed.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_an_error_and_has_a_limit() {
    let pairing = Pairing::start(Database::sqlite(), None).await;
    pairing.ground.machine.refuse("read-pairing-requests", "Error: file is not a database");
    let message = pairing.requests().refused("5020").await;
    assert_eq!(message, "the pairing requests of the instance cannot be read");
    pairing.allow(json!({"code": "AAAAAAAA"})).refused("5020").await;
    pairing.allow(json!({"sender_id": "4711"})).ok().await;
    pairing.ground.machine.go_on();
    for _ in 2..30 {
        pairing.requests().ok().await;
    }
    pairing.requests().refused("4290").await;
    pairing.allow(json!({"sender_id": "4712"})).ok().await;
}

/// Administrators do the same. Who may not read about people sees no names.
#[tokio::test(flavor = "multi_thread")]
async fn administrators_allow_senders_too() {
    let pairing = Pairing::start(Database::sqlite(), None).await;
    let site = &pairing.ground.site;
    let bot = pairing.bot.strip_prefix("/me").unwrap();
    let code = pairing.code(4711, "Ada");
    pairing.code(4712, "Stranger");
    let listed = site.admin.get(&format!("{bot}/pairing-requests")).token(&site.root).ok().await;
    assert_eq!((&listed["total"], &listed["list"][0]["code"]), (&json!(2), &json!(code)));
    site.admin.delete(&format!("{bot}/pairing-requests/4712")).token(&site.root).ok().await;
    site.admin.post(&format!("{bot}/senders"), json!({"code": code})).token(&site.root).ok().await;
    let operator = site.plain_admin("operator@example.com", "operator").await;
    site.admin.get(&format!("{bot}/pairing-requests")).token(&operator).refused("4030").await;
    for (who, name) in [(&site.root, "Ada"), (&operator, "")] {
        let shown = site.admin.get("/instances/a/chat-bindings").token(who).ok().await;
        let sender = &shown["list"][0]["senders"][0];
        assert_eq!((&sender["sender_id"], &sender["name"]), (&json!("4711"), &json!(name)));
    }
    site.admin.delete(&format!("{bot}/senders/4711")).token(&site.root).ok().await;
    assert!(pairing.audit().await.contains(&"sender 4711 of telegram bot ada_bot removed".to_owned()));
}

store::record! { struct Count { n: i64 } }

on_both! {
    async fn a_platform_that_is_not_served_is_refused_and_the_served_are_named(site: Site) {
        let ids = site.instances("a", 1).await;
        for path in ["chat-bindings", "configure-bot"] {
            let body = json!({"platform": "discord", "bot_token": "a-bot-token-of-another-platform"});
            let message = site.admin.post(&format!("/instances/{}/{path}", ids[0]), body).token(&site.root).refused("4000").await;
            assert_eq!(message, "platform: is not supported; supported: telegram");
        }
        assert_eq!(site.admin.get("/instances/a0/chat-bindings").token(&site.root).ok().await["total"], 0);
    }

    async fn senders_are_as_many_as_fit_and_go_with_their_bot(site: Site) {
        let ids = site.instances("a", 1).await;
        let path = format!("/instances/{}/chat-bindings", ids[0]);
        let bot = json!({"platform": "telegram", "bot_token": "a-bot-with-many-senders", "chat_id": "1"});
        let made = site.admin.post(&path, bot).token(&site.root).ok().await;
        let one = format!("{path}/{}", made["id"].as_str().unwrap());
        let allow = |sender: usize| site.admin.post(&format!("{one}/senders"), json!({"sender_id": sender.to_string()})).token(&site.root);
        for sender in 1..=20 {
            allow(sender).ok().await;
        }
        allow(21).refused("4090").await;
        site.admin.delete(&format!("{one}/senders/1")).token(&site.root).ok().await;
        let listed = site.admin.get(&path).token(&site.root).ok().await;
        assert_eq!((&listed["list"][0]["chat_id"], listed["list"][0]["senders"].as_array().unwrap().len()), (&json!(""), 19));
        allow(21).ok().await;
        site.admin.delete(&one).token(&site.root).ok().await;
        let rows: Vec<Count> = site.app.db.all("SELECT COUNT(*) AS n FROM chat_sender", vec![]).await.unwrap();
        assert_eq!(rows[0].n, 0, "other people's names do not outlive the bot");
    }
}
