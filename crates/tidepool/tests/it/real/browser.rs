//! The whole product with the real OpenClaw, in Chromium: web/e2e/real.spec.ts talks to it straight, over the relay, and in its own
//! window.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::kit::assistant::{START, model_server};
use crate::kit::hosts::{CURRENT, fleet, is_real};
use crate::kit::{PASSWORD, Process};
use remote::host::Command;

const PORT: u16 = 19_400;
const EMAIL: &str = "ada@example.com";

#[tokio::test(flavor = "multi_thread")]
async fn the_real_one_answers_in_a_browser() {
    let fleet = fleet("real::browser").expect("make test-real starts hosts");
    let host = fleet.host("h4");
    assert!(is_real(&host, CURRENT).await, "OpenClaw {CURRENT} is not on h4");
    let models = model_server(&host).await;
    let folder = tempfile::tempdir().unwrap();
    let mut server = Process::serve(
        folder.path(),
        &[
            ("TIDEPOOL_BOOTSTRAP_ADMIN_EMAIL", "root@example.com"),
            ("TIDEPOOL_BOOTSTRAP_ADMIN_PASSWORD", PASSWORD),
            ("TIDEPOOL_GATEWAY_PUBLIC_URL", &models),
        ],
    );
    server.ready().await;
    let login = json!({"email": "root@example.com", "password": PASSWORD});
    let root = server.admin.post("/auth/login", login).ok().await["token"].as_str().unwrap().to_owned();
    let post = async |path: &str, body: Value| server.admin.post(path, body).token(&root).ok().await;
    let machine = fleet.machine("h4");
    let base_dir = format!("/srv/t-{}", base::id::fresh());
    let place = json!({"name": "A real one", "host": machine.relay, "ssh_port": machine.port, "ssh_key_path": fleet.key, "base_dir": base_dir});
    let place = post("/servers", place).await;
    let id = format!("i-{}", base::id::fresh());
    // A name that only the browser knows: the platform has its own way.
    let gateway = format!("pearl.test:{PORT}");
    let instance = json!({"id": id, "name": "Pearl", "server_id": place["id"], "model": "gpt-4o", "gateway_port": PORT, "gateway_url": format!("ws://{gateway}")});
    let _way = fleet.open("h4", PORT);
    post("/assistant-instances", instance).await;
    let made = post("/tasks", json!({"type": "provision_instance", "payload": {"instance_id": id}})).await;
    let began = Instant::now();
    loop {
        let path = format!("/tasks/{}", made["id"].as_str().unwrap());
        let task = server.admin.get(&path).token(&root).ok().await;
        match task["status"].as_str().unwrap() {
            "done" => break,
            "failed" | "dead" => panic!("{task}"),
            _ => assert!(began.elapsed() < START, "{task}"),
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    let user =
        post("/users", json!({"email": EMAIL, "name": "Ada", "department": "Tests", "password": PASSWORD})).await;
    post(&format!("/users/{}/assign-instance", user["id"].as_str().unwrap()), json!({"instance_id": id})).await;

    let web = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web");
    let shown = tokio::process::Command::new("npx")
        .args(["playwright", "test", "-c", "e2e", "real.spec.ts"])
        .current_dir(web)
        .env("TIDEPOOL_TEST_REAL_URL", &server.employee.url)
        .env("TIDEPOOL_TEST_REAL_EMAIL", EMAIL)
        .env("TIDEPOOL_TEST_REAL_PASSWORD", PASSWORD)
        .env("TIDEPOOL_TEST_REAL_GATEWAY", gateway)
        .env("TIDEPOOL_TEST_REAL_NAMES", format!("MAP pearl.test {}", machine.relay))
        .output()
        .await
        .unwrap();
    let message = String::from_utf8_lossy(&shown.stdout);
    println!("{message}");
    let script = r#"
        systemctl disable --now "openclaw-$1" && rm -f "/etc/systemd/system/openclaw-$1.service" && systemctl daemon-reload
        systemctl stop 'model-*' || true
        getent passwd | grep -F ":$2/" | cut -d: -f1 | while read -r user; do userdel "$user" 2>/dev/null; done
        rm -rf -- "$2""#;
    host.succeed(&Command::script("test", &[script]).args([id, base_dir])).await.unwrap();
    assert!(shown.status.success(), "{message}");
}
