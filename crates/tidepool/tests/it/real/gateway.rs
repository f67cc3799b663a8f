//! The real OpenClaw, started as a plain process, talks through the embedded gateway with its own sub key.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::kit::{PASSWORD, Process, free_port, used_secret};

/// An OpenClaw gateway, ended when the test forgets it.
struct OpenClaw {
    child: Child,
    url: String,
    token: String,
}

impl OpenClaw {
    /// Starts one whose only provider is ours.
    fn start(installed: &Path, home: &Path, gateway_url: &str, key: &str) -> OpenClaw {
        let port = free_port();
        let token = format!("test-token-{}", base::id::fresh());
        used_secret(&token);
        let state = home.join(".openclaw");
        std::fs::create_dir_all(&state).unwrap();
        let config = json!({
            "gateway": {"mode": "local", "port": port, "bind": "loopback", "auth": {"mode": "token", "token": token},
                "http": {"endpoints": {"chatCompletions": {"enabled": true}}}},
            "logging": {"file": state.join("openclaw.log")},
            "update": {"checkOnStart": false},
            "models": {"mode": "merge", "providers": {"tidepool": {"baseUrl": format!("{gateway_url}/v1"), "apiKey": key,
                "api": "openai-completions", "models": [{"id": "gpt-4o", "name": "gpt-4o", "contextWindow": 128_000, "maxTokens": 4096}]}}},
            "agents": {"defaults": {"skipBootstrap": true, "model": {"primary": "tidepool/gpt-4o"}}},
        });
        std::fs::write(state.join("openclaw.json"), config.to_string()).unwrap();
        let node = installed.join("node_modules/node/bin");
        let output = std::fs::File::create(home.join("console.log")).unwrap();
        let child = Command::new(node.join("node"))
            .arg(installed.join("node_modules/openclaw/openclaw.mjs"))
            .args(["gateway", "run", "--port", &port.to_string(), "--allow-unconfigured"])
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin", node.display()))
            .env("HOME", home)
            .env("OPENCLAW_STATE_DIR", &state)
            .env("OPENCLAW_CONFIG_PATH", state.join("openclaw.json"))
            .env("OPENCLAW_NO_RESPAWN", "1")
            .env("OPENCLAW_DISABLE_BONJOUR", "1")
            .env("CI", "1")
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap();
        OpenClaw { child, url: format!("http://127.0.0.1:{port}"), token }
    }

    async fn ready(&mut self, http: &reqwest::Client, home: &Path) {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(240) {
            let answer = http.get(format!("{}/readyz", self.url)).send().await;
            if answer.is_ok_and(|a| a.status().is_success()) {
                return;
            }
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("OpenClaw ended with {status}: {}", std::fs::read_to_string(home.join("console.log")).unwrap());
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        panic!("OpenClaw did not come up: {}", std::fs::read_to_string(home.join("console.log")).unwrap());
    }
}

impl Drop for OpenClaw {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn openclaw_talks_through_our_gateway_and_the_employees_usage_shows_it() {
    let installed = std::env::var("TIDEPOOL_TEST_OPENCLAW").expect("make test-real says where OpenClaw is");
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

    let mut assistant = OpenClaw::start(Path::new(&installed), home.path(), &format!("http://{gateway}"), &key);
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
async fn sub_key(folder: &Path, name: &str) -> String {
    let db = store::Db::open(&base::Secret::new(format!("sqlite:{}", folder.join("data/tidepool.db").display())))
        .await
        .unwrap();
    let master = std::fs::read_to_string(folder.join("data/master_key.key")).unwrap();
    let sealer = store::seal::Sealer::new(&base::Secret::new(master.trim())).unwrap();
    let key = store::gateway_key::named(&db, name).await.unwrap().unwrap().key(&sealer).unwrap();
    used_secret(key.expose());
    key.expose().to_owned()
}
