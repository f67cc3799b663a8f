//! The real OpenClaw at work in its cell: it talks, and uses its shell, its files, a skill with a script and a browser.

use base::id::TaskId;
use fleet::assistant::Defaults;
use remote::host::Command;
use serde_json::{Value, json};

use crate::kit::assistant::{START, Talk, model_server};
use crate::kit::hosts::{CURRENT, Ground, fleet, is_real};

async fn ground(name: &str) -> Ground {
    let fleet = fleet(name).expect("make test-real starts hosts");
    let host = fleet.host("h4");
    assert!(is_real(&host, CURRENT).await, "OpenClaw {CURRENT} is not on h4");
    let has_browser = host.run(&Command::new("test").args(["-x", "/usr/bin/chromium"])).await.unwrap().succeeded();
    assert!(has_browser, "h4 has no Chromium: it is started with HOSTS_CHROMIUM=h4");
    let gateway_url = model_server(&host).await;
    let assistants = Defaults { gateway_url, start_limit: START, least_memory: 64 << 20, ..Default::default() };
    Ground::on(fleet, "h4", assistants).await
}

async fn talk(ground: &Ground, id: &str) -> Talk {
    let shown = ground.show(id).await;
    assert_eq!(shown["cell"], "confined");
    let port = u16::try_from(shown["gateway_port"].as_i64().unwrap()).unwrap();
    Talk::open(&ground.host, port, shown["gateway_token"].as_str().unwrap()).await
}

/// Has the assistant use a tool, and answers what came of it.
async fn uses(talk: &mut Talk, tool: &str, arguments: Value) -> String {
    let (said, _) = talk.say(&format!("tool: {tool} {arguments}")).await;
    said.strip_prefix("it said: ").unwrap_or_else(|| panic!("{tool}: {said}")).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn shell_files_and_a_skill_with_a_script_work_in_the_cell() {
    let mut ground = ground("real::tools::shell_files_and_a_skill_with_a_script_work_in_the_cell").await;
    let id = ground.provisioned(json!({})).await;
    let mut talk = talk(&ground, &id).await;
    let (said, _) = talk.say("remember the pearl").await;
    assert_eq!(said.trim(), "gpt-4o remembers: pearl");
    let shown = ground.show(&id).await;
    let (home, user) = (shown["home"].as_str().unwrap(), shown["runs_as"].as_str().unwrap());
    let (said, _) = talk
        .say("shell: echo $((6 * 7)) as $(id -un) in $HOME, $(sed -n 's/^NoNewPrivs:.//p' /proc/self/status)")
        .await;
    assert!(said.contains(&format!("42 as {user} in {home}, 1")), "{said}");

    let note = "notes/water.txt";
    uses(&mut talk, "write", json!({"path": note, "content": "low water at six\n"})).await;
    let read = uses(&mut talk, "read", json!({"path": note})).await;
    assert!(read.contains("low water at six"), "{read}");
    let edits = json!({"path": note, "edits": [{"oldText": "six", "newText": "seven"}]});
    let edited = uses(&mut talk, "edit", edits).await;
    let path = format!("{home}/.openclaw/workspace/{note}");
    let there = ground.sh("cat -- \"$1\"; stat -c %U -- \"$1\"", &[&path]).await;
    assert_eq!(there, format!("low water at seven\n{user}"), "{edited}");
    // The file tools are as confined as the shell.
    let read = uses(&mut talk, "read", json!({"path": "/etc/shadow"})).await;
    assert!(!read.contains("root:"), "{read}");
    let written = uses(&mut talk, "write", json!({"path": "/etc/tidepool-was-here", "content": "x"})).await;
    assert_eq!(ground.sh("ls /etc/tidepool-was-here 2>/dev/null; true", &[]).await, "", "{written}");

    // A skill, as an assistant learns one: its words are among the instructions from then on, and its script runs.
    let words =
        "---\nname: tides\ndescription: when the water comes\n---\n# Tides\nRun `sh skills/tides/tides.sh HARBOUR`.\n";
    let script = "#!/bin/sh\nprintf 'high water at %s: %s\\n' \"$1\" \"$(date -u -d '1970-01-01 12:34' +%H:%M)\" | tee \"$HOME/last-tide\"\n";
    for (name, content) in [("SKILL.md", words), ("tides.sh", script)] {
        uses(&mut talk, "write", json!({"path": format!("skills/tides/{name}"), "content": content})).await;
    }
    let mut said = String::new();
    for _ in 0..10 {
        said = talk.say("prompt: tides").await.0;
        if said.contains("skills/tides/SKILL.md") {
            break;
        }
    }
    assert!(said.contains("skills/tides/SKILL.md"), "{said}");
    let taught = uses(&mut talk, "read", json!({"path": "skills/tides/SKILL.md"})).await;
    assert!(taught.contains("tides.sh HARBOUR"), "{taught}");
    let (said, _) = talk.say("shell: sh skills/tides/tides.sh Husum").await;
    assert!(said.contains("high water at Husum: 12:34"), "{said}");
    assert_eq!(ground.sh("cat -- \"$1/last-tide\"", &[home]).await, "high water at Husum: 12:34");
    ground.end().await;
}

/// Serves a page on the server's own loopback; answers its address.
async fn page(ground: &Ground) -> String {
    let script = r#"
        mkdir -p "$1/page" && printf '<!doctype html><title>Tide table</title><h1>High water at noon</h1><script>document.body.append("made by "+"a script")</script>' >"$1/page/index.html"
        chmod 755 "$1/page"
        port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
        systemd-run -q --unit="model-page-$port" python3 -m http.server -d "$1/page" --bind 127.0.0.1 "$port"
        for i in $(seq 100); do curl -fs -o /dev/null "http://127.0.0.1:$port/" && break; sleep 0.1; done
        echo "http://127.0.0.1:$port/"
    "#;
    ground.sh(script, &[&ground.base_dir]).await
}

/// Has the assistant open a page in its browser and read it; answers the command lines of the browser's processes, and how many of them
/// are in a user namespace of their own.
async fn browse(ground: &Ground, id: &str, url: &str) -> (String, usize) {
    let mut talk = talk(ground, id).await;
    // On a busy machine a browser starts more slowly than the assistant waits for it, and says then that it may be asked again.
    let mut opened = String::new();
    for _ in 0..6 {
        opened = uses(&mut talk, "browser", json!({"action": "open", "url": url})).await;
        if !opened.contains("timed out") {
            break;
        }
    }
    assert!(opened.contains(url), "{opened}");
    let shown = uses(&mut talk, "browser", json!({"action": "snapshot"})).await;
    assert!(shown.contains("High water at noon"), "{shown}");
    let text = uses(&mut talk, "browser", json!({"action": "text"})).await;
    assert!(text.contains("made by a script"), "{text}");
    let user = ground.show(id).await["runs_as"].as_str().unwrap().to_owned();
    let lines = ground.sh("pgrep -u \"$1\" -a -f lib/chromium/chromium", &[&user]).await;
    let apart = r#"
        own=$(readlink "/proc/$2/ns/user")
        for pid in $(pgrep -u "$1" -f lib/chromium/chromium); do readlink "/proc/$pid/ns/user"; done | grep -cvxF "$own" || true
    "#;
    let apart = ground.sh(apart, &[&user, &ground.main_pid(id).await]).await;
    (lines, apart.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_works_in_the_cell() {
    let mut ground = ground("real::tools::a_browser_works_in_the_cell").await;
    let url = page(&ground).await;
    // The assistant refuses addresses of its own server unless it is allowed to see them.
    let config = |no_sandbox: bool| json!({"config_json": {"browser": {"noSandbox": no_sandbox, "ssrfPolicy": {"allowedHostnames": ["127.0.0.1"]}}}});
    // In a closed cell Chromium cannot build its own sandbox.
    let id = ground.provisioned(config(true)).await;
    let (lines, apart) = browse(&ground, &id, &url).await;
    assert!(lines.contains("--no-sandbox") && apart == 0, "{apart}: {lines}");

    let set = ground.site.admin.patch(&format!("/instances/{id}/config"), config(false)).token(&ground.site.root);
    ground.done(&TaskId::named(set.ok().await["task_id"].as_str().unwrap())).await;
    let path = format!("/instances/{id}/cell/openings");
    let open = json!({"openings": ["browser"]});
    ground.site.admin.put(&path, open).token(&ground.site.root).ok().await;
    ground.done(&ground.latest("confine_instance").await).await;
    assert_eq!(ground.show(&id).await["isolation"], "own", "such a cell is no less than another");
    let (lines, apart) = browse(&ground, &id, &url).await;
    assert!(!lines.contains("--no-sandbox") && apart >= 2, "{apart}: {lines}");
    ground.end().await;
}
