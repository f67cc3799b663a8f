//! Every task that touches a server, run by the real worker on a real host: systemd, sshd, users, files, ports.

use serde_json::{Value, json};

use crate::kit::hosts::{CURRENT, Ground};
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
    assert_eq!(ground.config(&id).await["agents"]["defaults"]["model"]["primary"], "tidepool/claude-sonnet-4-6");
    assert_eq!(ground.main_pid(&id).await, pid, "taken over without a restart: {:?}", ground.log(&task).await);

    // A skill.
    let files = json!([{"path": "skills/tides/SKILL.md", "scope": "workspace", "content": "---\nname: tides\ndescription: when the water comes\n---\n"},
        {"path": "openclaw.json", "scope": "config", "content": "{\"messages\": {\"skill\": true}, \"gateway\": {\"controlUi\": {\"basePath\": \"/x\"}}}"}]);
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
    assert_eq!(CURRENT, "2026.9.6");
    ground.end().await;
}
