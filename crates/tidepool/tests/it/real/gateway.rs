//! The real OpenClaw, started as a plain process, talks through the embedded gateway with its own sub key.

use std::path::Path;

use serde_json::{Value, json};

use super::openclaw::OpenClaw;
use crate::kit::{PASSWORD, Process, free_port, used_secret};

#[tokio::test(flavor = "multi_thread")]
async fn openclaw_talks_through_our_gateway_and_the_employees_usage_shows_it() {
    let (folder, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let gateway = format!("127.0.0.1:{}", free_port());
    let mut server = Process::serve(
        folder.path(),
        &[
            ("TIDEPOOL_BOOTSTRAP_ADMIN_EMAIL", "root@example.com"),
            ("TIDEPOOL_BOOTSTRAP_ADMIN_PASSWORD", PASSWORD),
            ("TIDEPOOL_PROVIDER_ECHO", "true"),
            ("TIDEPOOL_GATEWAY_LISTEN", &gateway),
        ],
    );
    server.ready().await;
    let login = json!({"email": "root@example.com", "password": PASSWORD});
    let root = server.admin.post("/auth/login", login).ok().await["token"].as_str().unwrap().to_owned();
    let post = async |path: &str, body: Value| server.admin.post(path, body).token(&root).ok().await;
    let machine = post("/servers", json!({"name": "Here", "host": "local"})).await;
    post(
        "/assistant-instances",
        json!({"id": "real-1", "name": "Real", "server_id": machine["id"], "model": "gpt-4o"}),
    )
    .await;
    let user =
        post("/users", json!({"email": "ada@example.com", "name": "Ada", "department": "Tests", "password": PASSWORD}))
            .await;
    post(&format!("/users/{}/assign-instance", user["id"].as_str().unwrap()), json!({"instance_id": "real-1"})).await;
    post("/keys", json!({"instance_id": "real-1"})).await;
    let key = sub_key(folder.path(), "real-1").await;

    let mut assistant = OpenClaw::start(
        home.path(),
        &json!({
            "models": {"mode": "merge", "providers": {"tidepool": {"baseUrl": format!("http://{gateway}/v1"), "apiKey": key,
                "api": "openai-completions", "models": [{"id": "gpt-4o", "name": "gpt-4o", "contextWindow": 128_000, "maxTokens": 4096}]}}},
            "agents": {"defaults": {"skipBootstrap": true, "model": {"primary": "tidepool/gpt-4o"}}},
        }),
    );
    let http = reqwest::Client::new();
    assistant.ready(&http, home.path()).await;
    let ask = json!({"model": "openclaw", "messages": [{"role": "user", "content": "What lives in a tide pool?"}]});
    let request = http.post(format!("{}/v1/chat/completions", assistant.url)).bearer_auth(&assistant.token).json(&ask);
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    // The echo repeats the last message that it was sent, which is OpenClaw's own context around the question.
    let said = answer["choices"][0]["message"]["content"].as_str().unwrap_or_default();
    assert!(!said.is_empty() && answer["choices"][0]["finish_reason"] == "stop", "{answer}");

    let login = json!({"email": "ada@example.com", "password": PASSWORD});
    let token = server.employee.post("/auth/login", login).ok().await["token"].as_str().unwrap().to_owned();
    let usage = server.employee.get("/me/usage/logs").token(&token).ok().await;
    let rows = usage["logs"].as_array().unwrap();
    assert!(!rows.is_empty(), "{usage}");
    assert!(rows.iter().all(|r| r["instance_id"] == "real-1" && r["model"] == "gpt-4o"), "{usage}");
    let row = rows.iter().find(|r| r["status"] == "success").unwrap();
    assert!(row["prompt_tokens"].as_i64().unwrap() > 0 && row["completion_tokens"].as_i64().unwrap() > 0);
    let summary = server.employee.get("/me/usage/summary").token(&token).ok().await;
    let requests = rows.iter().filter(|r| r["status"] == "success").count();
    assert_eq!(summary["today"]["requests"].as_u64(), Some(requests as u64));
    println!("OpenClaw made {requests} requests, {} tokens", summary["today"]["total_tokens"]);

    // Revoked, its assistant is turned away at once.
    server
        .admin
        .patch(&format!("/users/{}", user["id"].as_str().unwrap()), json!({"status": "revoked"}))
        .token(&root)
        .ok()
        .await;
    let models = http.get(format!("http://{gateway}/v1/models")).bearer_auth(&key).send().await.unwrap();
    assert_eq!(models.status(), 401);
}

/// The key itself: the API shows it masked, so it is read where it is kept.
pub async fn sub_key(folder: &Path, name: &str) -> String {
    let db = store::Db::open(&base::Secret::new(format!("sqlite:{}", folder.join("data/tidepool.db").display())))
        .await
        .unwrap();
    let master = std::fs::read_to_string(folder.join("data/master_key.key")).unwrap();
    let sealer = store::seal::Sealer::new(&base::Secret::new(master.trim())).unwrap();
    let key = store::gateway_key::named(&db, name).await.unwrap().unwrap().key(&sealer).unwrap();
    used_secret(key.expose());
    key.expose().to_owned()
}
