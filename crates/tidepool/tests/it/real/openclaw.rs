//! The real OpenClaw as a plain process.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::kit::{free_port, used_secret};

/// An OpenClaw gateway, ended when the test forgets it.
pub struct OpenClaw {
    child: Child,
    pub url: String,
    pub token: String,
}

impl OpenClaw {
    /// Starts one with this configuration, and what a process of its own needs beside it.
    pub fn start(home: &Path, more: &Value) -> OpenClaw {
        let installed = std::env::var("TIDEPOOL_TEST_OPENCLAW").expect("make test-real says where OpenClaw is");
        let installed = Path::new(&installed);
        let port = free_port();
        let token = format!("test-token-{}", base::id::fresh());
        used_secret(&token);
        let state = home.join(".openclaw");
        std::fs::create_dir_all(&state).unwrap();
        let mut config = json!({
            "gateway": {"mode": "local", "port": port, "bind": "loopback", "auth": {"mode": "token", "token": token},
                "http": {"endpoints": {"chatCompletions": {"enabled": true}}}},
            "logging": {"file": state.join("openclaw.log")},
            "update": {"checkOnStart": false},
        });
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
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

    pub async fn ready(&mut self, http: &reqwest::Client, home: &Path) {
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
