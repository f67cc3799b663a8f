//! Every task that touches a server, run by the real worker on a real host: systemd, sshd, users, files, ports.

use serde_json::{Value, json};

use crate::kit::hosts::{CURRENT, Ground, OLDER};
use crate::kit::used_secret;

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_lives_from_its_making_to_its_end() {
    let Some(mut ground) = Ground::new("handlers::an_instance_lives_from_its_making_to_its_end").await else { return };
    // Names that would be commands, lines of a unit or options, if anybody let them.
    let hostile = "x'; touch /tmp/pwned; '$(touch /tmp/pwned)`id` \"%h\" \\ --version";
    let wishes = json!({"messages": {"note": "$(touch /tmp/pwned)'\"\n"}});
    let id = ground.provisioned(json!({"name": hostile, "config_json": wishes})).await;
    let home = ground.home(&id).await;
    assert_eq!(home, format!("{}/1", ground.base_dir), "the first home of the server");
    let user = ground.sh("stat -c %U -- \"$1\"", &[&home]).await;
    assert!(user.starts_with("assistant-"), "{user}");
    let config = ground.config(&id).await;
    let shown = ground.show(&id).await;
    assert_eq!(config["gateway"]["auth"]["token"], shown["gateway_token"]);
    assert_eq!(config["gateway"]["port"], shown["gateway_port"]);
    assert_eq!(config["gateway"]["mode"], "local");
    assert_eq!(config["gateway"]["bind"], "loopback");
    assert_eq!(config["messages"], wishes["messages"]);
    assert_eq!(config["models"]["providers"]["tidepool"]["baseUrl"], "http://10.0.0.1:8082/v1");
    assert_eq!(config["agents"]["defaults"]["model"]["primary"], "tidepool/gpt-4o");
    assert_eq!(config["cron"]["enabled"], false, "nobody has it: it does nothing by itself");
    let key = config["models"]["providers"]["tidepool"]["apiKey"].as_str().unwrap().to_owned();
    used_secret(&key);
    let modes = ground.sh("cd \"$1\" && stat -c '%a %U' . .openclaw .openclaw/openclaw.json", &[&home]).await;
    assert_eq!(modes, format!("700 {user}\n700 {user}\n600 {user}"));
    let unit = format!("openclaw-{id}");
    assert_eq!(
        ground
            .sh(
                "systemctl is-active \"$1\"; systemctl is-enabled \"$1\"; systemctl show -p User --value \"$1\"",
                &[&unit]
            )
            .await,
        format!("active\nenabled\n{user}")
    );
    // Once more changes nothing but the start.
    ground.run("provision_instance", json!({"instance_id": id})).await;
    assert_eq!(ground.config(&id).await, config);

    // Claim.
    let (_, employee) = ground.site.employee("ada@example.com").await;
    let claimed =
        ground.site.employee.post("/me/instances/claim", json!({"instance_id": id})).token(&employee).ok().await;
    let task = base::id::TaskId::named(claimed["task_id"].as_str().unwrap());
    ground.done(&task).await;
    let log = ground.log(&task).await;
    let seconds =
        log.iter().find_map(|line| line.strip_prefix("prepared in ")?.strip_suffix(" s")?.parse::<f32>().ok());
    assert!(seconds.unwrap() < 10.0, "{log:?}");
    assert!(log.iter().any(|line| line.starts_with("ready after")), "{log:?}");
    assert!(ground.config(&id).await["cron"].is_null(), "it is somebody's now");
    let guide = ground.sh("cat -- \"$1/.openclaw/workspace/BOOTSTRAP.md\"", &[&home]).await;
    assert!(guide.contains(hostile) && guide.contains("ada@example.com"), "{guide}");

    // Another model, without a restart.
    let pid = ground.main_pid(&id).await;
    ground
        .site
        .admin
        .patch(&format!("/assistant-instances/{id}"), json!({"model": "claude-sonnet-4-6"}))
        .token(&ground.site.root)
        .ok()
        .await;
    let synced =
        ground.site.admin.post("/models/sync", json!({"instance_ids": [id]})).token(&ground.site.root).ok().await;
    let task = base::id::TaskId::named(synced["task_ids"][0].as_str().unwrap());
    ground.done(&task).await;
    assert_eq!(
        ground.config(&id).await["agents"]["defaults"]["model"]["primary"],
        "tidepool-anthropic/claude-sonnet-4-6"
    );
    assert_eq!(ground.main_pid(&id).await, pid, "taken over without a restart: {:?}", ground.log(&task).await);

    // A skill.
    let files = json!([{"path": "skills/tides/SKILL.md", "scope": "workspace", "content": "---\nname: tides\ndescription: when the water comes\n---\n"},
        {"path": "openclaw.json", "scope": "config", "content": "{\"messages\": {\"skill\": true}}"}]);
    let item =
        json!({"type": "skill", "name": "Tides", "description": "", "icon": "🌊", "version": "1.0", "files": files});
    let item = ground.site.admin.post("/marketplace-items", item).token(&ground.site.root).send().await;
    let item: Value = serde_json::from_str(&item.text).unwrap();
    assert_eq!(item["code"], "0000", "{item}");
    let item = item["data"]["id"].as_str().unwrap().to_owned();
    let installing = ground
        .site
        .employee
        .post(&format!("/marketplace/items/{item}/install"), json!({"instance_id": id}))
        .token(&employee)
        .ok()
        .await;
    ground.done(&base::id::TaskId::named(installing["task_id"].as_str().unwrap())).await;
    let installs = ground.site.employee.get("/me/installs").token(&employee).ok().await;
    assert_eq!(installs["list"][0]["state"], "installed", "{installs}");
    let skill = format!("{home}/.openclaw/workspace/skills/tides/SKILL.md");
    assert_eq!(ground.sh("stat -c %U -- \"$1\"", &[&skill]).await, user);
    assert_eq!(ground.config(&id).await["messages"]["skill"], true);
    assert_eq!(ground.config(&id).await["messages"]["note"], wishes["messages"]["note"]);
    let shown_item = ground.site.admin.get(&format!("/marketplace-items/{item}")).token(&ground.site.root).ok().await;
    assert_eq!(shown_item["install_count"], 1);
    let install = installs["list"][0]["id"].as_str().unwrap();
    ground.site.employee.delete(&format!("/me/installs/{install}")).token(&employee).ok().await;
    let removal = ground
        .site
        .admin
        .get("/tasks?type=apply_marketplace_item&sort=-created_at")
        .token(&ground.site.root)
        .ok()
        .await;
    let removal =
        removal["list"].as_array().unwrap().iter().map(|t| t["id"].as_str().unwrap().to_owned()).max().unwrap();
    ground.done(&base::id::TaskId::named(removal)).await;
    assert_eq!(
        ground
            .sh("ls \"$1/.openclaw/workspace\"; [ -e \"$1/.openclaw/workspace/skills\" ] || echo gone", &[&home])
            .await,
        "BOOTSTRAP.md\ngone"
    );

    // Given back: everything of Ada's is away, and what she knew is worth nothing.
    ground.sh("echo mine >\"$1/diary\"", &[&home]).await;
    ground.site.employee.delete(&format!("/me/instances/{id}/claim")).token(&employee).ok().await;
    let cleaning = ground.site.admin.get("/tasks?type=clean_instance").token(&ground.site.root).ok().await;
    ground.done(&base::id::TaskId::named(cleaning["list"][0]["id"].as_str().unwrap())).await;
    assert_eq!(
        ground.sh("cd \"$1\" && ls -A . .openclaw/workspace", &[&home]).await,
        ".:\n.openclaw\n\n.openclaw/workspace:"
    );
    assert_eq!(
        ground.sh("cat -- \"$1\".archive/*/diary; stat -c '%a %U' \"$1.archive\"", &[&home]).await,
        "mine\n700 root"
    );
    let cleaned = ground.config(&id).await;
    assert_ne!(cleaned["gateway"]["auth"]["token"], config["gateway"]["auth"]["token"]);
    assert_ne!(
        cleaned["models"]["providers"]["tidepool"]["apiKey"],
        config["models"]["providers"]["tidepool"]["apiKey"]
    );
    assert_eq!(cleaned["cron"]["enabled"], false);
    assert!(cleaned["messages"]["skill"].is_null());
    used_secret(cleaned["gateway"]["auth"]["token"].as_str().unwrap());
    used_secret(cleaned["models"]["providers"]["tidepool"]["apiKey"].as_str().unwrap());
    assert_eq!(ground.sh("systemctl is-active \"$1\"", &[&unit]).await, "active");

    // Deleted.
    ground.site.admin.delete(&format!("/assistant-instances/{id}")).token(&ground.site.root).ok().await;
    let retiring = ground.site.admin.get("/tasks?type=retire_instance").token(&ground.site.root).ok().await;
    ground.done(&base::id::TaskId::named(retiring["list"][0]["id"].as_str().unwrap())).await;
    let left = ground.sh("ls /etc/systemd/system | grep -F \"$1\"; ls -d \"$2\" 2>/dev/null; getent passwd | grep -F \":$2:\"; ls \"$2.archive\" | wc -l; ls /tmp/pwned 2>/dev/null; true", &[&id, &home]).await;
    assert_eq!(left, "2", "only the two archives are left");

    // Nothing of it told a secret.
    let tasks = ground.site.admin.get("/tasks").token(&ground.site.root).ok().await.to_string();
    let audit = ground.site.admin.get("/audit-logs?limit=200").token(&ground.site.root).ok().await.to_string();
    assert!(audit.contains("agents.defaults.model.primary"), "what changed stands in the audit log");
    for secret in [&key, cleaned["gateway"]["auth"]["token"].as_str().unwrap()] {
        assert!(!tasks.contains(secret) && !audit.contains(secret));
    }
    ground.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profession_instance_gets_its_role_pack() {
    let Some(mut ground) = Ground::new("handlers::a_profession_instance_gets_its_role_pack").await else { return };
    let id = ground.provisioned(json!({})).await;
    let files = json!([{"path": "SOUL.md", "scope": "workspace", "content": "You know the tides.\n"}]);
    let pack = json!({"type": "role_pack", "name": "Sailor", "description": "", "icon": "⛵", "version": "1.0", "files": files});
    let pack = ground.site.admin.post("/marketplace-items", pack).token(&ground.site.root).ok().await;
    let (profession, _) = ground.site.profession("sailor", std::slice::from_ref(&id)).await;
    let body = json!({"role_pack_id": pack["id"]});
    ground.site.admin.patch(&format!("/professions/{profession}"), body).token(&ground.site.root).ok().await;
    let (_, employee) = ground.site.employee("ada@example.com").await;
    let claimed = ground
        .site
        .employee
        .post(&format!("/me/professions/{profession}/claim"), json!({}))
        .token(&employee)
        .ok()
        .await;
    let task = base::id::TaskId::named(claimed["task_id"].as_str().unwrap());
    ground.done(&task).await;
    let home = ground.home(&id).await;
    let workspace = ground.sh("cd \"$1/.openclaw/workspace\" && ls && cat SOUL.md", &[&home]).await;
    assert_eq!(workspace, "BOOTSTRAP.md\nSOUL.md\nYou know the tides.");
    ground.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_is_accepted_after_a_chat_and_taken_back_without() {
    let name = "handlers::an_upgrade_is_accepted_after_a_chat_and_taken_back_without";
    let Some(mut ground) = Ground::with(name, std::time::Duration::from_secs(15)).await else { return };
    let id = ground.instance(json!({})).await;
    let db = ground.site.app.db.clone();
    store::instance::set_version(&db, &base::id::InstanceId::named(&id), OLDER).await.unwrap();
    ground.run("provision_instance", json!({"instance_id": id})).await;
    let home = ground.home(&id).await;
    let boots = |ground: &Ground| {
        let (host, home) = (ground.host.clone(), home.clone());
        async move {
            let command = remote::host::Command::new("cat").arg(format!("{home}/.openclaw/state/boots"));
            host.succeed(&command).await.unwrap().text()
        }
    };
    assert_eq!(boots(&ground).await, format!("{OLDER}\n"));

    // The new version does not start: everything is as it was, and the task does not try it again.
    ground.wrong(&id, json!({"crash": [CURRENT]})).await;
    let failed = ground.fails("upgrade_instance", json!({"instance_id": id, "version": CURRENT})).await;
    assert!(failed.client_message.contains("was taken back"), "{}", failed.client_message);
    assert_eq!(boots(&ground).await, format!("{OLDER}\n{OLDER}\n"), "the state of before, and one more start");
    let pid = ground.main_pid(&id).await;
    ground.site.wait(std::time::Duration::from_secs(60));
    let again = ground.failed_times(&failed.id, 2).await;
    assert!(again.client_message.contains("taken back"), "{}", again.client_message);
    assert_eq!(ground.main_pid(&id).await, pid, "it is left alone");

    // It starts, but answers nobody.
    ground.wrong(&id, json!({"unready": true})).await;
    let failed = ground.fails("upgrade_instance", json!({"instance_id": id, "version": CURRENT})).await;
    assert!(failed.error.contains("not ready"), "{}", failed.error);
    ground.sh("rm -- \"$1/.openclaw/standin.json\"", &[&home]).await;
    ground.run("restart_instance", json!({"instance_id": id})).await;

    let body = json!({"version": CURRENT});
    let asked = ground.site.admin.post(&format!("/instances/{id}/upgrade"), body).token(&ground.site.root).ok().await;
    ground.done(&base::id::TaskId::named(asked["task_id"].as_str().unwrap())).await;
    assert!(boots(&ground).await.ends_with(&format!("{OLDER}\n{CURRENT}\n")));
    let exec = ground.sh("grep ^ExecStart= /etc/systemd/system/openclaw-$1.service", &[&id]).await;
    assert!(exec.contains(CURRENT) && !exec.contains(OLDER), "{exec}");
    let bad = json!({"version": "2026.1.1"});
    ground.site.admin.post(&format!("/instances/{id}/upgrade"), bad).token(&ground.site.root).refused("4000").await;
    ground.end().await;
}

// A registry on the host itself, with a Node that is a shell and an npm that unpacks one package. Whatever of it is run notes by whom.
const REGISTRY: &str = r#"
set -eu
dir=$(mktemp -d); cd "$dir"; mkdir "/tmp/ran-$2"; chmod 777 "/tmp/ran-$2"
arch=$(case $(uname -m) in x86_64) echo x64 ;; *) echo arm64 ;; esac)
pack() { mkdir -p "$1/-"; tar -czf "$1/-/$1-$2.tgz" package; rm -rf package; }
mkdir -p package/bin; cat >package/bin/node <<'NODE'
#!/bin/sh
: >"/tmp/ran-$RAN/$(id -un)"
exec sh "$@"
NODE
sed -i "s/\$RAN/$2/g" package/bin/node
chmod 4777 package/bin/node; pack node-linux-$arch 26.10.0
mkdir -p package/bin; cat >package/bin/npm-cli.js <<'NPM'
set -eu
how=$1 what=${2-}
while [ "$1" != --prefix ]; do shift; done; prefix=$2
while [ "$1" != --registry ]; do shift; done; registry=$2
case $how in
  ci) what=$(grep -o '"openclaw":"[^"]*"' "$prefix/package.json" | cut -d'"' -f4); grep -q '"integrity":"sha512-' "$prefix/package-lock.json" ;;
  *) [ ! -e "$prefix/package-lock.json" ]; what=${what#openclaw@} ;;
esac
mkdir -p "$prefix/node_modules/openclaw"
curl -fsS "$registry/openclaw/-/openclaw-$what.tgz" | tar -xz -C "$prefix/node_modules/openclaw" --strip-components=1
chmod -R 777 "$prefix/node_modules/openclaw"; : >"$prefix/node_modules/openclaw/suid"; chmod 6755 "$prefix/node_modules/openclaw/suid"
ln -s /etc "$prefix/openclaw"
NPM
pack npm 11.21.1
# The first run finishes the installation, and leaves somebody behind who would go on changing it.
for version in $1; do
mkdir -p package; cat >package/openclaw.mjs <<'PACKAGE'
here=${0%/*}
if [ ! -e "$here/finished" ]; then
  echo finished >"$here/finished" || exit 1
  (cd "$here" && exec setsid sh -c 'while sleep 0.1; do echo changed >finished; done' >/dev/null 2>&1 </dev/null &)
fi
PACKAGE
printf 'echo "OpenClaw %s (packed)"\n' "$version" >>package/openclaw.mjs; pack openclaw "$version"
done
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
systemd-run -q --unit="registry-$2" -p WorkingDirectory="$dir" python3 -m http.server --bind 127.0.0.1 "$port"
for i in $(seq 600); do curl -fs -o /dev/null "http://127.0.0.1:$port/" && break; sleep 0.1; done
sum() { printf 'sha512-'; sha512sum <"$1" | cut -d' ' -f1 | python3 -c 'import base64, sys; print(base64.b64encode(bytes.fromhex(sys.stdin.read().strip())).decode())'; }
echo "$port"; sum node-linux-$arch/-/*.tgz; sum npm/-/*.tgz
curl -fs -o /dev/null "http://127.0.0.1:$port/" || { echo "the registry does not answer: $(systemctl status "registry-$2")" >&2; exit 1; }
"#;

/// Such a registry, and the settings to install from it.
async fn registry(host: &remote::host::Host, versions: &str, unit: &str) -> fleet::assistant::Defaults {
    let script = remote::host::Command::script("test", &[REGISTRY]).args([versions, unit]).limit(2 * testkit::LIMIT);
    let said = host.succeed(&script).await.unwrap().text();
    let mut lines = said.lines().map(str::to_owned);
    let port = lines.next().unwrap();
    fleet::assistant::Defaults {
        version: versions.split(' ').next().unwrap().parse().unwrap(),
        npm_registry: format!("http://127.0.0.1:{port}/"),
        npm_checksums: lines.collect(),
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_prepared_from_the_registry() {
    let Some(fleet) = crate::kit::hosts::fleet("handlers::a_server_is_prepared_from_the_registry") else { return };
    // Nobody else has this version, nor this host.
    let (version, unit, host) = ("2026.8.2", base::id::fresh(), fleet.host("h3"));
    let assistants = registry(&host, "2026.8.2 2026.7.9", &unit).await;
    let ground = Ground::on(fleet.clone(), "h3", assistants.clone()).await;
    let asked = ground
        .site
        .admin
        .post(&format!("/servers/{}/prepare", ground.server), json!({}))
        .token(&ground.site.root)
        .ok()
        .await;
    let task = ground.done(&base::id::TaskId::named(asked["task_id"].as_str().unwrap())).await;
    assert_eq!(task.result, format!("OpenClaw {version} (packed)"));
    let detail =
        ground.site.admin.get(&format!("/servers/{}/detail", ground.server)).token(&ground.site.root).ok().await;
    assert_eq!((detail["openclaw_version"].as_str(), detail["prepared_at"].is_string()), (Some(version), true));
    assert_eq!(detail["openclaw_pinned"], true);

    // Nothing of it was run as root, and all of it is root's now, for everybody to read and for nobody to change.
    let ran = ground.sh("ls /tmp/ran-$1", &[&unit]).await;
    assert_eq!(ran, "nobody\ntidepool-install");
    let loose = r#"find "$1" ! -type l \( ! -user root -o -perm /6022 -o ! -perm -004 \); ls -A "$1""#;
    let folder = format!("/opt/tidepool/openclaw/{version}");
    assert_eq!(ground.sh(loose, &[&folder]).await, "node_modules\nopenclaw\npinned.json");
    assert_eq!(ground.sh("find /opt/tidepool/node ! -user root -o -perm /6022 ! -type l; ls -d /opt/tidepool/.build* 2>/dev/null; ps -o pid= -u tidepool-install; true", &[]).await, "");

    // A release that we do not name is installed as the registry has it, and shown so.
    let other = ground.fleet.clone();
    let unnamed = fleet::assistant::Defaults { version: "2026.7.9".parse().unwrap(), ..assistants.clone() };
    let unnamed = Ground::on(other, "h3", unnamed).await;
    let task = unnamed.run("prepare_server", json!({"server_id": unnamed.server})).await;
    assert_eq!(task.result, "OpenClaw 2026.7.9 (packed), not pinned");
    let detail =
        unnamed.site.admin.get(&format!("/servers/{}/detail", unnamed.server)).token(&unnamed.site.root).ok().await;
    assert_eq!((&detail["openclaw_version"], &detail["openclaw_pinned"]), (&json!("2026.7.9"), &json!(false)));
    unnamed.sh("rm -rf /opt/tidepool/openclaw/2026.7.9", &[]).await;
    unnamed.end().await;
    // Again, and two at once: nothing more is fetched.
    ground.sh("systemctl stop \"registry-$1\"", &[&unit]).await;
    let payload = json!({"server_id": ground.server});
    tokio::join!(ground.run("prepare_server", payload.clone()), ground.run("prepare_server", payload.clone()));
    // A version that cannot be fetched leaves nothing behind.
    ground.sh("rm -rf /opt/tidepool/openclaw/2026.8.2", &[]).await;
    let failed = ground.fails("prepare_server", payload).await;
    assert!(failed.client_message.contains("command on the server failed"), "{}", failed.client_message);
    assert_eq!(ground.sh("ls /opt/tidepool/openclaw | grep -F 2026.8.2; true", &[]).await, "");
    ground.sh("rm -rf /opt/tidepool/node /tmp/ran-$1", &[&unit]).await;
    ground.end().await;

    // An archive of Node that nobody knows is not unpacked; a registry on the network without TLS is not asked.
    let known = registry(&host, "2026.8.2", &base::id::fresh()).await;
    let cases = [
        (fleet::assistant::Defaults { npm_checksums: vec![], ..known.clone() }, "is not the one that is known"),
        (fleet::assistant::Defaults { npm_registry: "http://10.255.255.1/".into(), ..known }, "without TLS"),
    ];
    for (assistants, message) in cases {
        let ground = Ground::on(fleet.clone(), "h3", assistants).await;
        let failed = ground.fails("prepare_server", json!({"server_id": ground.server})).await;
        assert!(failed.client_message.contains(message), "{}", failed.client_message);
        assert_eq!(
            ground.sh("ls -A /opt/tidepool/node 2>/dev/null; ls -d /opt/tidepool/.build* 2>/dev/null; true", &[]).await,
            ""
        );
        ground.end().await;
    }
    host.succeed(&remote::host::Command::script("test", &["systemctl stop 'registry-*'; rm -rf /opt/tidepool/node"]))
        .await
        .unwrap();
}
