//! Upgrades of the real OpenClaw in a host: from older releases with the history kept, and one that fails and is taken back.

use base::id::{InstanceId, TaskId};
use fleet::assistant::Defaults;
use openclaw::frame::Request;
use serde_json::{Value, json};

use crate::kit::assistant::{START, Talk, model_server};
use crate::kit::hosts::{CURRENT, Ground, fleet, is_real};
use crate::kit::used_secret;

const MAIN: &str = "agent:main:main";

struct Upgraded {
    ground: Ground,
    id: String,
    port: u16,
    token: String,
}

impl Upgraded {
    /// An instance that runs this release.
    async fn at(version: &str) -> Upgraded {
        let fleet = fleet("real::upgrade").expect("make test-real starts hosts");
        assert!(is_real(&fleet.host("h4"), version).await, "OpenClaw {version} is not on h4");
        let gateway_url = model_server(&fleet.host("h4")).await;
        let assistants = Defaults { gateway_url, start_limit: START, least_memory: 64 << 20, ..Default::default() };
        let mut ground = Ground::on(fleet, "h4", assistants).await;
        let id = ground.instance(json!({})).await;
        store::instance::set_version(&ground.site.app.db, &InstanceId::named(&id), version).await.unwrap();
        ground.run("provision_instance", json!({"instance_id": id})).await;
        let shown = ground.show(&id).await;
        let port = u16::try_from(shown["gateway_port"].as_u64().unwrap()).unwrap();
        let token = shown["gateway_token"].as_str().unwrap().to_owned();
        used_secret(&token);
        Upgraded { ground, id, port, token }
    }

    async fn talk(&self) -> Talk {
        Talk::open(&self.ground.host, self.port, &self.token).await
    }

    async fn history(&self) -> Value {
        self.talk().await.ask(|id| Request::chat_history(id, MAIN, None)).await
    }

    async fn ask_for(&self, version: &str) -> TaskId {
        let site = &self.ground.site;
        let asked = site.admin.post(&format!("/instances/{}/upgrade", self.id), json!({"version": version}));
        TaskId::named(asked.token(&site.root).ok().await["task_id"].as_str().unwrap())
    }

    async fn end(self) {
        self.ground.sh("systemctl stop 'model-*' || true", &[]).await;
        self.ground.end().await;
    }
}

async fn keeps_its_history(version: &str) {
    let upgraded = Upgraded::at(version).await;
    let (reply, _) = upgraded.talk().await.say("remember the lighthouse").await;
    assert_eq!(reply.trim(), "gpt-4o remembers: lighthouse");
    let task = upgraded.ask_for(CURRENT).await;
    upgraded.ground.done(&task).await;
    println!("{version} to {CURRENT}: {:#?}", upgraded.ground.log(&task).await);
    let history = upgraded.history().await.to_string();
    assert!(history.contains("remember the lighthouse") && history.contains("gpt-4o remembers"), "{history}");
    let (reply, _) = upgraded.talk().await.say("remember the harbour").await;
    assert_eq!(reply.trim(), "gpt-4o remembers: lighthouse harbour", "it answers with what it knew");
    upgraded.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn from_2026_5_28() {
    keeps_its_history("2026.5.28").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn from_2026_8_2() {
    keeps_its_history("2026.8.2").await;
}

/// A release that does everything as the one it stands on, but serves nobody.
const BROKEN: &str = r#"
dir=/opt/tidepool/openclaw/2026.9.9
mkdir -p "$dir"
printf '#!/bin/sh\ncase $1 in --version) echo "OpenClaw 2026.9.9 (broken)";; gateway) exit 1;; *) exec /opt/tidepool/openclaw/%s/openclaw "$@";; esac\n' "$1" >"$dir/openclaw"
chmod 755 "$dir/openclaw"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn one_that_fails_is_taken_back() {
    let upgraded = Upgraded::at(CURRENT).await;
    upgraded.talk().await.say("remember the lighthouse").await;
    upgraded.ground.sh(BROKEN, &[CURRENT]).await;
    let task = upgraded.ask_for("2026.9.9").await;
    let failed = upgraded.ground.failed_times(&task, 1).await;
    assert!(failed.client_message.contains("was taken back"), "{}", failed.client_message);
    println!("taken back: {:#?}", upgraded.ground.log(&task).await);
    let history = upgraded.history().await.to_string();
    assert!(history.contains("remember the lighthouse"), "{history}");
    let (reply, _) = upgraded.talk().await.say("still there?").await;
    assert_eq!(reply.trim(), "gpt-4o remembers: lighthouse");
    upgraded.ground.sh("rm -rf /opt/tidepool/openclaw/2026.9.9", &[]).await;
    upgraded.end().await;
}
