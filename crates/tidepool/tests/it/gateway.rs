//! The embedded LLM gateway as a part of the product.

use base::Secret;
use llm::provider::Settings;
use llm::usage::spent;
use serde_json::{Value, json};
use sim::llm::one_api;

use crate::kit::{Database, Gateway, Options, PASSWORD, Process, Site, run, used_secret};

fn echo() -> Options {
    Options { gateway: Gateway::Served(Settings { echo: true, ..Settings::default() }), ..Options::default() }
}

async fn chat(site: &Site, key: &str, text: &str) -> (u16, Value) {
    let body = json!({"model": "gpt-4o", "messages": [{"role": "user", "content": text}]});
    let url = format!("{}/v1/chat/completions", site.gateway.as_deref().unwrap());
    let answer = site.admin.http.post(url).bearer_auth(key).json(&body).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

/// An employee's assistant asks with its sub key: what it uses is the employee's, and the employee's limit binds it.
async fn an_assistants_requests_are_its_users(database: Database) {
    let site = Site::with(database, echo()).await;
    let (user, _) = site.quick_employee("ada@example.com").await;
    site.admin.patch(&format!("/users/{user}"), json!({"quota_daily": 10})).token(&site.root).ok().await;
    let instance = site.instances("one", 1).await.remove(0);
    let assign = json!({"instance_id": instance});
    site.admin.post(&format!("/users/{user}/assign-instance"), assign).token(&site.root).ok().await;
    let key = site.key(&instance, Some(&instance), None).await;
    let (status, answer) = chat(&site, &key, "two words").await;
    assert_eq!((status, &answer["choices"][0]["message"]["content"]), (200, &json!("two words")));
    assert!(!site.app.feed.pull().await.stale);
    let user = base::id::UserId::named(user);
    let midnight = site.app.zone.midnight(site.app.clock.now());
    assert_eq!(spent(&site.app, &user, midnight).await.unwrap(), 4);
    let live = site.admin.get("/llm-live").token(&site.root).ok().await;
    assert_eq!(live["total"], 0, "nothing is under way: {live}");
    for key in site.admin.get("/keys?q=admin-token").token(&site.root).ok().await["list"].as_array().unwrap() {
        assert_eq!(key["name"], "admin-token", "the platform's own, made at first need");
    }
    assert_eq!(chat(&site, &key, "and some words more").await.0, 200, "this one crosses the limit");
    let (status, refused) = chat(&site, &key, "no").await;
    assert_eq!((status, &refused["error"]["code"]), (429, &json!("insufficient_quota")));
    assert!(refused["error"]["message"].as_str().unwrap().contains("limit 10 tokens, used 12"), "{refused}");
    site.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_assistants_requests_are_its_users_sqlite() {
    an_assistants_requests_are_its_users(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_assistants_requests_are_its_users_postgres() {
    if let Some(database) = Database::postgres("gateway::an_assistants_requests_are_its_users_postgres").await {
        an_assistants_requests_are_its_users(database).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_binary_serves_a_gateway_when_it_is_the_embedded_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Process::serve(folder.path(), &[("TIDEPOOL_PROVIDER_OPENAI_KEY", "a-key-of-no-provider")]);
    server.ready().await;
    let http = server.admin.http.clone();
    let url = format!("http://{}", server.gateway);
    assert!(http.get(format!("{url}/healthz")).send().await.unwrap().status().is_success());
    let answer = http.get(format!("{url}/v1/models")).bearer_auth("sk-nobody").send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 401);
    assert_eq!(std::fs::read_dir(folder.path().join("data/gateway")).unwrap().count(), 1, "its replica's folder");
    server.terminate();
    let (status, text) = server.end();
    assert!(status.success(), "{text}");
    assert_eq!(std::fs::read_dir(folder.path().join("data/gateway")).unwrap().count(), 0, "given up at the end");
    // Another gateway, or another role: nobody listens.
    let foreign = [
        ("TIDEPOOL_GATEWAY_KIND", "litellm"),
        ("TIDEPOOL_GATEWAY_URL", "http://127.0.0.1:9"),
        ("TIDEPOOL_GATEWAY_ADMIN_TOKEN", "of-no-gateway"),
        ("TIDEPOOL_GATEWAY_LOG_URL", "postgres://127.0.0.1:9/none"),
    ];
    for environment in [&foreign[..], &[("TIDEPOOL_ROLES", "employee,admin")]] {
        let mut server = Process::serve(folder.path(), environment);
        server.ready().await;
        assert!(http.get(format!("http://{}/healthz", server.gateway)).send().await.is_err());
    }
}

/// With a foreign gateway the employee API reserves: what a request in hand holds counts until it has ended.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_reserved_counts_until_the_last_request_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let url = Secret::new(format!("sqlite:{}", folder.path().join("one-api.db").display()));
    let gateway = one_api::start(one_api::Options::new(url)).await.unwrap();
    used_secret(gateway.admin_token.expose());
    let environment = [
        ("TIDEPOOL_GATEWAY_KIND", "one-api"),
        ("TIDEPOOL_GATEWAY_URL", gateway.url.as_str()),
        ("TIDEPOOL_GATEWAY_ADMIN_TOKEN", gateway.admin_token.expose()),
        ("TIDEPOOL_GATEWAY_LOG_URL", gateway.log_url.expose()),
        ("TIDEPOOL_TIMEZONE", "Europe/Berlin"),
        ("TIDEPOOL_BOOTSTRAP_ADMIN_EMAIL", "root@example.com"),
        ("TIDEPOOL_BOOTSTRAP_ADMIN_PASSWORD", PASSWORD),
    ];
    let mut server = Process::serve(folder.path(), &environment);
    server.ready().await;
    // One connection for each request: none of an earlier one stands for a new one.
    let http = reqwest::Client::builder().pool_max_idle_per_host(0).build().unwrap();
    let login = json!({"email": "root@example.com", "password": PASSWORD});
    let root = server.admin.post("/auth/login", login).ok().await["token"].as_str().unwrap().to_owned();
    let user = json!({"email": "ada@example.com", "password": PASSWORD, "quota_daily": 10_000_000});
    let user = server.admin.post("/users", user).token(&root).ok().await["id"].clone();
    let host = json!({"id": "s", "name": "S", "host": "192.0.2.1"});
    server.admin.post("/servers", host).token(&root).ok().await;
    let instance = json!({"id": "a0", "name": "A", "server_id": "s", "model": "gpt-4o"});
    server.admin.post("/assistant-instances", instance).token(&root).ok().await;
    server.admin.patch("/instances/a0/assign", json!({"user_id": user})).token(&root).ok().await;
    let login = json!({"email": "ada@example.com", "password": PASSWORD});
    let ada = server.employee.post("/auth/login", login).ok().await["token"].as_str().unwrap().to_owned();
    // An answer that is too long for all buffers on its way, of which its client reads nothing.
    let question = json!({"instance_id": "a0", "message": "a ".repeat(100_000), "stream": true});
    let asking = server.employee.http.post(format!("{}/api/v1/me/chat", server.employee.url));
    let unread = asking.bearer_auth(&ada).json(&question).send().await.unwrap();
    assert_eq!(unread.status().as_u16(), 200);
    let url = Secret::new(format!("sqlite:{}", folder.path().join("data/tidepool.db").display()));
    let db = store::Db::open(&url).await.unwrap();
    // Of whatever day it is to the server.
    let ours = format!("subject LIKE 'user:{}:%'", user.as_str().unwrap());
    let granted = async || {
        let sql = format!("SELECT CAST(COALESCE(SUM(granted), 0) AS BIGINT) AS n FROM quota_grant WHERE {ours}");
        db.first::<Granted>(&sql, vec![]).await.unwrap().unwrap().n
    };
    assert!(granted().await > 0);
    // The database remembers whether the grant was given up before the client left.
    for statement in [
        "CREATE TABLE client_left (n INTEGER NOT NULL)".into(),
        "CREATE TABLE given_up (after_client_left INTEGER NOT NULL)".into(),
        format!(
            "CREATE TRIGGER given_up_update AFTER UPDATE ON quota_grant WHEN NEW.{ours} AND NEW.granted <= 0 \
             BEGIN INSERT INTO given_up SELECT COUNT(*) FROM client_left; END"
        ),
        format!(
            "CREATE TRIGGER given_up_delete AFTER DELETE ON quota_grant WHEN OLD.{ours} AND OLD.granted > 0 \
             BEGIN INSERT INTO given_up SELECT COUNT(*) FROM client_left; END"
        ),
    ] {
        db.run(&statement, vec![]).await.unwrap();
    }
    server.terminate();
    let health = format!("{}/healthz", server.employee.url);
    testkit::until("it takes no new connections", async || http.get(&health).send().await.is_err()).await;
    assert!(granted().await > 0, "its request is still under way");
    db.run("INSERT INTO client_left VALUES (1)", vec![]).await.unwrap();
    drop(unread);
    let (status, text) = server.end();
    assert!(status.success(), "{text}");
    assert_eq!(granted().await, 0);
    let given_up: Vec<GivenUp> = db.all("SELECT after_client_left FROM given_up", vec![]).await.unwrap();
    assert!(!given_up.is_empty() && given_up.iter().all(|at| at.after_client_left == 1), "{given_up:?}");
    assert_eq!(std::fs::read_dir(folder.path().join("data/gateway")).unwrap().count(), 0);
}

store::record! {
    struct Granted { n: i64 }
}

store::record! {
    #[derive(Debug)]
    struct GivenUp { after_client_left: i64 }
}

#[test]
fn check_says_who_answers() {
    let folder = tempfile::tempdir().unwrap();
    let said = |environment: &[(&str, &str)]| {
        let output = run(folder.path(), &["check"], environment);
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(said(&[]).contains("embedded, on 127.0.0.1:8082, as http://127.0.0.1:8082"));
    assert!(said(&[]).contains("none has a key"));
    let keys = [("TIDEPOOL_PROVIDER_OPENAI_KEY", "of-openai"), ("TIDEPOOL_PROVIDER_GOOGLE_KEY", "of-google")];
    let shown = said(&keys);
    assert!(shown.contains("openai (chat, responses, embeddings), google (chat"), "{shown}");
    assert!(!shown.contains("of-openai"), "{shown}");
    assert!(said(&[("TIDEPOOL_PROVIDER_ECHO", "true")]).contains("repeating"));
    assert!(said(&[("TIDEPOOL_GATEWAY_LISTEN", "0.0.0.0:9000")]).contains("http://127.0.0.1:9000"));
}
