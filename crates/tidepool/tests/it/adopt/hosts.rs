//! A real server with gateways that somebody else made, each run by something else: a unit of the system, a unit of a user, a process that
//! nothing starts again, a container, and a configuration that cannot be parsed. They are adopted while they run.

use serde_json::{Value, json};

use super::TOKEN;
use crate::kit::hosts::{CURRENT, Ground};
use crate::kit::used_secret;

/// Makes a user with a configuration of OpenClaw: name, home, port, token, where it listens.
const MAKE: &str = r#"
    user=$1 home=$2 port=$3 token=$4 bind=$5
    mkdir -p "${home%/*}" && useradd --no-create-home --home-dir "$home" --shell /bin/sh "$user"
    install -d -m 700 -o "$user" -g "$user" "$home" "$home/.openclaw" "$home/.openclaw/workspace"
    printf '{"gateway": {"mode": "local", "port": %s, "bind": "%s", "auth": {"mode": "token", "token": "%s"}}}' "$port" "$bind" "$token" \
        >"$home/.openclaw/openclaw.json"
    echo "what was written before" >"$home/.openclaw/workspace/NOTES.md"
    chown -R "$user:" "$home/.openclaw""#;

const UNIT: &str = r#"
    user=$1 home=$2 port=$3 program=$4
    { printf '[Service]\nUser=%s\nEnvironment=HOME=%s\nEnvironment=OPENCLAW_STATE_DIR=%s/.openclaw\n' "$user" "$home" "$home"
      printf 'Environment=OPENCLAW_CONFIG_PATH=%s/.openclaw/openclaw.json\nExecStart=%s gateway run --port %s\n' "$home" "$program" "$port"
      printf '[Install]\nWantedBy=multi-user.target\n'; } >"/etc/systemd/system/$user.service"
    systemctl daemon-reload && systemctl enable -q --now "$user""#;

const USER_UNIT: &str = r#"
    user=$1 home=$2 port=$3 program=$4
    loginctl enable-linger "$user"
    runuser -u "$user" -- mkdir -p "$home/.config/systemd/user"
    { printf '[Service]\nEnvironment=OPENCLAW_STATE_DIR=%s/.openclaw\nEnvironment=OPENCLAW_CONFIG_PATH=%s/.openclaw/openclaw.json\n' "$home" "$home"
      printf 'ExecStart=%s gateway run --port %s\n[Install]\nWantedBy=default.target\n' "$program" "$port"; } >"$home/.config/systemd/user/openclaw-gateway.service"
    chown "$user:" "$home/.config/systemd/user/openclaw-gateway.service"
    uid=$(id -u "$user")
    for i in $(seq 300); do [ -S "/run/user/$uid/systemd/private" ] && break; sleep 0.1; done
    runuser -u "$user" -- env XDG_RUNTIME_DIR="/run/user/$uid" sh -c 'systemctl --user daemon-reload && systemctl --user enable -q --now openclaw-gateway'"#;

// The process must outlive this command, and be in no unit.
const PROCESS: &str = r#"
    user=$1 home=$2 port=$3 program=$4
    setsid -f runuser -u "$user" -- env HOME="$home" OPENCLAW_STATE_DIR="$home/.openclaw" \
        OPENCLAW_CONFIG_PATH="$home/.openclaw/openclaw.json" "$program" gateway run --port "$port" </dev/null >/dev/null 2>&1"#;

// The image has a shell alone; the stand-in and its Python are the server's. Inside it has another home and another port.
const CONTAINER: &str = r#"
    name=$1 home=$2 port=$3 program=$4
    docker image inspect tiny >/dev/null 2>&1 || {
        files=$(for f in /bin/sh /bin/sleep /bin/echo; do echo $f; ldd $f | grep -o '/[^ ]*'; done | sort -u)
        tar -ch $files 2>/dev/null | docker import - tiny
    }
    docker run -d --init --name "$name" --user "$(id -u "$name"):$(id -g "$name")" -p "127.0.0.1:$port:18789" \
        -v /usr:/usr:ro -v /lib:/lib:ro -v /lib64:/lib64:ro -v /bin:/bin:ro -v /opt/tidepool:/opt/tidepool:ro -v "$home/.openclaw:/data/.openclaw" \
        -e HOME=/data -e OPENCLAW_STATE_DIR=/data/.openclaw -e OPENCLAW_CONFIG_PATH=/data/.openclaw/openclaw.json \
        --tmpfs /tmp:mode=1777 tiny "$program" gateway run --port 18789"#;

const STOP: &str = r#"
    for user; do
        docker rm -f "$user" >/dev/null 2>&1
        [ ! -e "/etc/systemd/system/$user.service" ] || systemctl disable -q --now "$user"
        rm -f "/etc/systemd/system/$user.service"
        loginctl disable-linger "$user" 2>/dev/null
        systemctl stop "user@$(id -u "$user").service" 2>/dev/null
        pkill -KILL -u "$user"
        for i in $(seq 50); do pgrep -u "$user" >/dev/null || break; sleep 0.1; done
        userdel "$user"
    done
    systemctl daemon-reload"#;

/// What somebody else made on a server.
struct Theirs {
    ground: Ground,
    mark: String,
    ports: Vec<(&'static str, String)>,
}

const NAMES: [&str; 5] = ["unit", "user", "bare", "box", "broken"];

impl Theirs {
    async fn new(name: &str) -> Option<Theirs> {
        used_secret(TOKEN);
        let mut ground = Ground::new(name).await?;
        // An id begins with its time, which cases that begin together share.
        let mark = base::id::fresh().chars().rev().take(8).collect();
        let ports = NAMES.iter().map(|name| (*name, ground.next_port().to_string())).collect();
        let theirs = Theirs { ground, mark, ports };
        for name in NAMES {
            // The container has a port of its own inside.
            let (port, bind) = if name == "box" { ("18789", "lan") } else { (theirs.port(name), "loopback") };
            theirs.ground.sh(MAKE, &[&theirs.user(name), &theirs.home(name), port, TOKEN, bind]).await;
        }
        theirs.ground.sh("echo '{gateway: ' >\"$1/.openclaw/openclaw.json\"", &[&theirs.home("broken")]).await;
        let program = format!("/opt/tidepool/openclaw/{CURRENT}/openclaw");
        for (name, script) in [("unit", UNIT), ("user", USER_UNIT), ("bare", PROCESS), ("box", CONTAINER)] {
            theirs.ground.sh(script, &[&theirs.user(name), &theirs.home(name), theirs.port(name), &program]).await;
            theirs.ground.listens(theirs.port(name)).await;
        }
        theirs.await_container().await;
        Some(theirs)
    }

    /// Docker listens before the gateway in the container does.
    async fn await_container(&self) {
        testkit::until_ok("the gateway in the container answers", async || {
            let said = self.ground.sh("curl -s -m 2 \"http://127.0.0.1:$1/healthz\" || :", &[self.port("box")]).await;
            if said.contains("live") { Ok(()) } else { Err(said) }
        })
        .await;
    }

    fn user(&self, name: &str) -> String {
        format!("{name}{}", self.mark)
    }

    fn home(&self, name: &str) -> String {
        format!("{}/{name}", self.ground.base_dir)
    }

    fn port(&self, name: &str) -> &str {
        &self.ports.iter().find(|(known, _)| *known == name).unwrap().1
    }

    async fn get(&self, path: &str) -> Value {
        self.ground.site.admin.get(path).token(&self.ground.site.root).ok().await
    }

    async fn discovered(&self) -> Vec<Value> {
        let found = self.get(&format!("/servers/{}/discover?email_file=.owner", self.ground.server)).await;
        assert_eq!(found["complete"], true);
        found["list"].as_array().unwrap().clone()
    }

    /// What discovery says of one of them.
    async fn found(&self, name: &str) -> Value {
        let (user, home) = (self.user(name), self.home(name));
        let list = self.discovered().await;
        let is_it = |one: &&Value| one["user"] == json!(user) && (one["home"] == json!(home) || name == "box");
        list.iter().find(is_it).unwrap_or_else(|| panic!("{name}: {list:#?}")).clone()
    }

    /// Adopts one of them under the name of its user.
    async fn adopt(&self, name: &str, more: Value) -> Value {
        let mut wish =
            json!({"key": self.found(name).await["key"], "id": self.user(name), "name": name, "keeps_llm": true});
        wish.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let path = format!("/servers/{}/adopt", self.ground.server);
        let done = self.ground.site.admin.post(&path, json!({"list": [wish]})).token(&self.ground.site.root).ok().await;
        done["list"][0].clone()
    }

    /// Its files and its process, as they are now.
    async fn facts(&self, name: &str) -> String {
        let script = r#"
            sha256sum <"$2/.openclaw/openclaw.json"; ls -la --time-style=full-iso "$2/.openclaw"
            case $3 in
            unit) systemctl show -p MainPID,NRestarts "$1" ;;
            box) docker inspect --format '{{.State.Pid}} {{.State.StartedAt}} {{.RestartCount}}' "$1" ;;
            *) pgrep -u "$1" -x openclaw-gatewa ;;
            esac"#;
        self.ground.sh(script, &[&self.user(name), &self.home(name), name]).await
    }

    async fn checked(&self, name: &str) -> Value {
        self.get("/instances/health-check").await;
        self.ground.show(&self.user(name)).await
    }

    async fn end(self) {
        let users: Vec<String> = NAMES.iter().map(|name| self.user(name)).collect();
        self.ground.sh(STOP, &users.iter().map(String::as_str).collect::<Vec<_>>()).await;
        self.ground.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_runner_is_found_and_adopted_and_nothing_is_restarted() {
    let Some(theirs) =
        Theirs::new("adopt::hosts::every_kind_of_runner_is_found_and_adopted_and_nothing_is_restarted").await
    else {
        return;
    };
    theirs.ground.sh("echo 'eva@example.com' >\"$1/.owner\"", &[&theirs.home("user")]).await;
    let expected = [
        ("unit", "unit", Value::Null),
        ("user", "user_unit", Value::Null),
        ("bare", "process", Value::Null),
        ("box", "container", Value::Null),
        ("broken", "home", json!("home")),
    ];
    for (name, runner, obstacle) in &expected {
        let found = theirs.found(name).await;
        assert_eq!((&found["runner"], &found["obstacle"]), (&json!(runner), obstacle), "{name}: {found:#}");
        assert_eq!(found["running"], json!(*name != "broken"), "{name}");
        assert_eq!(found["only_observed"], json!(*name == "bare"), "{name}");
        if *name != "broken" {
            assert_eq!(found["port"].to_string(), theirs.port(name), "{name}");
        }
    }
    assert_eq!(theirs.found("unit").await["version"], CURRENT);
    assert_eq!(theirs.found("user").await["email"], "eva@example.com");
    assert_eq!(theirs.found("user").await["lingers"], true);
    assert_eq!(theirs.found("box").await["home"], "/data");
    assert_eq!(theirs.found("broken").await["config"], "broken");

    for name in ["unit", "user", "bare", "box"] {
        let before = theirs.facts(name).await;
        let done = theirs.adopt(name, json!({})).await;
        assert_eq!((&done["refusal"], &done["task_id"]), (&Value::Null, &Value::Null), "{name}: {done:#}");
        let shown = theirs.checked(name).await;
        assert_eq!(shown["health_status"], "healthy", "{name}: {shown:#}");
        assert_eq!((&shown["isolation"], &shown["runs_as"]), (&json!("adopted"), &json!(theirs.user(name))), "{name}");
        assert_eq!(theirs.facts(name).await, before, "{name}: not a byte, and not a restart");
        assert_eq!(theirs.found(name).await["instance_id"], json!(theirs.user(name)));
    }
    assert_eq!(theirs.ground.show(&theirs.user("box")).await["container_id"], json!(theirs.user("box")));
    let refused = theirs.adopt("broken", json!({})).await;
    assert_eq!(refused["refusal"], "nothing runs it: there is only a configuration");
    // What nothing starts is neither repaired nor started when it is gone: that is left to people.
    let id = theirs.user("bare");
    theirs.ground.sh("pkill -KILL -u \"$1\" -x openclaw-gatewa", &[&id]).await;
    for _ in 0..3 {
        theirs.checked("bare").await;
    }
    let gone = theirs.checked("bare").await;
    assert_eq!((&gone["health_status"], &gone["runs_as"]), (&json!("unhealthy"), &json!(id)), "{gone:#}");
    let app = &theirs.ground.site.app;
    let (begun, left) = fleet::recovery::recover(app).await.unwrap();
    assert!(begun.is_empty() && left.is_empty(), "{begun:?} {left:?}");
    fleet::repair::scan(app).await.unwrap();
    assert_eq!(theirs.get(&format!("/repairs?instance_id={id}")).await["total"], 0);
    // The guardian knows each of their processes.
    fleet::guardian::run(theirs.ground.site.app.clone(), "guardian_process_check").await.unwrap();
    let events = theirs.get("/guardian/events?dimension=guardian_process_check&status=failed").await.to_string();
    for name in ["unit", "user", "bare", "box"] {
        assert!(!events.contains(&theirs.home(name)), "{name}: {events}");
    }
    theirs.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_it_restarts_it_writes_its_log_and_gets_our_configuration() {
    let Some(theirs) =
        Theirs::new("adopt::hosts::what_runs_it_restarts_it_writes_its_log_and_gets_our_configuration").await
    else {
        return;
    };
    for name in ["unit", "user", "box"] {
        let id = theirs.user(name);
        let done = theirs.adopt(name, json!({"keeps_llm": false, "restart": true})).await;
        assert_eq!(done["refusal"], Value::Null, "{name}: {done:#}");
        theirs.ground.done(&base::id::TaskId::named(done["task_id"].as_str().unwrap())).await;
        let config = theirs.ground.sh("cat \"$1/.openclaw/openclaw.json\"", &[&theirs.home(name)]).await;
        let config: Value = serde_json::from_str(&config).unwrap();
        assert!(config["models"]["providers"]["tidepool"]["apiKey"].is_string(), "{name}: {config:#}");
        // Inside of a container it keeps its own port.
        let port = if name == "box" { "18789" } else { theirs.port(name) };
        assert_eq!(config["gateway"]["port"].to_string(), port, "{name}");
        let before = theirs.facts(name).await;
        theirs.ground.run("restart_instance", json!({"instance_id": id})).await;
        assert_ne!(theirs.facts(name).await, before, "{name}: it was restarted");
        assert_eq!(theirs.checked(name).await["health_status"], "healthy", "{name}");
        let log = theirs.get(&format!("/instances/{id}/logs?lines=20")).await;
        assert!(log["list"].as_array().unwrap().len() <= 20, "{name}: {log:#}");
    }
    // An upgrade of somebody else's image is not ours to make, and nothing starts a process.
    let task = theirs
        .ground
        .fails("upgrade_instance", json!({"instance_id": theirs.user("box"), "version": "2026.9.5"}))
        .await;
    assert!(task.error.contains("image"), "{}", task.error);
    theirs.adopt("bare", json!({})).await;
    let id = theirs.user("bare");
    let task = theirs.ground.fails("restart_instance", json!({"instance_id": id})).await;
    assert!(task.error.contains("only observed"), "{}", task.error);
    let patched = theirs.ground.site.admin.patch(&format!("/assistant-instances/{id}"), json!({"model": "gpt-4o"}));
    assert_eq!(patched.token(&theirs.ground.site.root).ok().await["task_id"], Value::Null);
    // When its record goes, the process goes on; what else was adopted is stopped, and stays.
    for name in ["bare", "user", "box"] {
        theirs
            .ground
            .site
            .admin
            .delete(&format!("/assistant-instances/{}", theirs.user(name)))
            .token(&theirs.ground.site.root)
            .ok()
            .await;
        theirs.ground.done(&theirs.ground.latest("retire_instance").await).await;
        let runs = theirs.ground.sh("pgrep -u \"$1\" -x openclaw-gatewa || echo none", &[&theirs.user(name)]).await;
        assert_eq!(runs == "none", name != "bare", "{name}");
        assert!(
            theirs.ground.sh("ls \"$1/.openclaw\"", &[&theirs.home(name)]).await.contains("openclaw.json"),
            "{name}"
        );
    }
    theirs.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_and_a_unit_of_a_user_are_moved_into_cells() {
    let Some(theirs) = Theirs::new("adopt::hosts::a_process_and_a_unit_of_a_user_are_moved_into_cells").await else {
        return;
    };
    for name in ["bare", "user"] {
        let id = theirs.user(name);
        theirs.adopt(name, json!({})).await;
        // What it counts when it starts is its own.
        let files = "cd \"$1/.openclaw\" && find . -type f ! -name boots | sort | xargs sha256sum";
        let before = theirs.ground.sh(files, &[&theirs.home(name)]).await;
        theirs.ground.run("move_into_cell", json!({"instance_id": id})).await;
        let now = theirs.checked(name).await;
        assert_eq!(
            (&now["runner"], &now["isolation"], &now["cell"]),
            (&json!("unit"), &json!("own"), &json!("confined")),
            "{name}: {now:#}"
        );
        assert_eq!(now["health_status"], "healthy", "{name}: {now:#}");
        let home = theirs.ground.home(&id).await;
        let notes = theirs.ground.sh("cat \"$1/.openclaw/workspace/NOTES.md\"", &[&home]).await;
        assert_eq!(notes, "what was written before");
        let owner = theirs.ground.sh("stat -c %U \"$1/.openclaw/workspace/NOTES.md\"", &[&home]).await;
        assert_eq!(json!(owner), now["runs_as"], "{name}");
        assert_eq!(
            theirs.ground.sh(files, &[&theirs.home(name)]).await,
            before,
            "{name}: what was adopted stays as it was"
        );
        let runs = theirs.ground.sh("pgrep -u \"$1\" -x openclaw-gatewa || echo none", &[&theirs.user(name)]).await;
        assert_eq!(runs, "none", "{name}");
        assert_eq!(theirs.found(name).await["instance_id"], json!(id), "{name}");

        theirs.ground.run("move_back", json!({"instance_id": id})).await;
        let back = theirs.checked(name).await;
        assert_eq!((&back["home"], &back["isolation"]), (&json!(theirs.home(name)), &json!("adopted")), "{name}");
        let expected = if name == "user" { ("user_unit", "healthy") } else { ("process", "unhealthy") };
        assert_eq!(
            (&back["runner"], &back["health_status"]),
            (&json!(expected.0), &json!(expected.1)),
            "{name}: {back:#}"
        );
        assert_eq!(theirs.ground.sh(files, &[&theirs.home(name)]).await, before, "{name}");
        let users = theirs.ground.sh("getent passwd | grep -c \"^$1:\" || :", &[&owner]).await;
        assert_eq!(users, "0", "{name}: the user of its cell is gone");
    }
    theirs.end().await;
}
