//! Cells: who may say what about them, how instances come into them and out again, and what a server does with the lines.

use std::time::Duration;

use base::id::InstanceId;
use domain::assistant::{Assistant, cell as on_server};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::hostile::{shell, variables};
use crate::kit::hosts::{CURRENT, Ground};
use crate::kit::simulated::Simulated;
use crate::kit::{Database, Site, database_before};
use crate::on_both;

fn of(id: &str) -> Value {
    json!({"instance_id": id})
}

on_both! {
    /// An instance's own value goes before its profession's, and that before its server's.
    async fn the_nearest_limit_holds_and_nonsense_is_refused(site: Site) {
        let plain = site.plain_admin("plain@example.com", "admin").await;
        let id = &site.instances("a", 1).await[0];
        let (profession, _) = site.profession("p", std::slice::from_ref(id)).await;
        let server = site.admin.get(&format!("/instances/{id}")).token(&plain).ok().await["server_id"].as_str().unwrap().to_owned();
        let held = async || site.admin.get(&format!("/instances/{id}/cell")).token(&plain).ok().await["limits"].clone();
        assert_eq!(held().await, json!({"memory_mib": 2048, "cpu_percent": 200, "tasks": 512, "disk_mib": 10_240}));
        let set = |path: &str, body: Value| site.admin.put(path, body).token(if path.starts_with("/servers") { &site.root } else { &plain });
        set(&format!("/servers/{server}/limits"), json!({"memory_mib": 1024, "tasks": 100})).ok().await;
        assert_eq!(held().await, json!({"memory_mib": 1024, "cpu_percent": 200, "tasks": 100, "disk_mib": 10_240}));
        set(&format!("/professions/{profession}/limits"), json!({"memory_mib": 4096})).ok().await;
        let detail = set(&format!("/instances/{id}/cell/limits"), json!({"disk_mib": 500})).ok().await;
        assert_eq!(detail["own_limits"], json!({"memory_mib": null, "cpu_percent": null, "tasks": null, "disk_mib": 500}));
        assert_eq!(held().await, json!({"memory_mib": 4096, "cpu_percent": 200, "tasks": 100, "disk_mib": 500}));
        let audit = site.admin.get("/audit-logs?q=memory_mib").token(&site.root).ok().await;
        assert_eq!(audit["total"], 2, "{audit}");

        for (field, bad) in [
            ("memory_mib", json!(0)), ("memory_mib", json!(-1)), ("cpu_percent", json!(0)), ("tasks", json!(1)), ("disk_mib", json!(1)),
            ("tasks", json!("many")), ("tasks", json!(1.5)), ("rockets", json!(1)),
        ] {
            let refused = set(&format!("/instances/{id}/cell/limits"), json!({field: bad})).refused("4000").await;
            assert!(refused.contains(field), "{refused}");
        }
        assert_eq!(held().await["disk_mib"], 500, "what is refused changes nothing");
        for path in ["/servers/none/limits", "/professions/none/limits", "/instances/none/cell/limits"] {
            set(path, json!({"tasks": 100})).refused("4040").await;
        }
        // What is left out is not set any more.
        set(&format!("/instances/{id}/cell/limits"), json!({})).ok().await;
        assert_eq!(held().await["disk_mib"], 10_240);
    }

    /// Sudo, Docker and devices are root: only a super administrator opens a cell for them, and nobody is offered such an assistant.
    async fn an_open_cell_counts_as_root(site: Site) {
        let plain = site.plain_admin("plain@example.com", "admin").await;
        let ids = site.instances("a", 2).await;
        let (id, pooled) = (&ids[0], &ids[1]);
        site.profession("p", std::slice::from_ref(pooled)).await;
        let open = |id: &str, openings: Value| site.admin.put(&format!("/instances/{id}/cell/openings"), json!({"openings": openings}));
        open(id, json!(["docker"])).token(&plain).refused("4030").await;
        open(id, json!(["rockets"])).token(&site.root).refused("4000").await;
        open(pooled, json!(["sudo"])).token(&site.root).refused("4090").await;
        open(pooled, json!(["browser"])).token(&site.root).ok().await;

        let (user, token) = site.quick_employee("ada@example.com").await;
        assert_eq!(site.employee.get("/instances/available").token(&token).ok().await["total"], 1);
        let detail = open(id, json!(["docker", "browser", "docker"])).token(&site.root).ok().await;
        assert_eq!(detail["openings"], json!(["browser", "docker"]));
        assert_eq!(site.admin.get(&format!("/instances/{id}")).token(&plain).ok().await["isolation"], "opened");
        assert_eq!(site.employee.get("/instances/available").token(&token).ok().await["total"], 0);
        site.employee.post("/me/instances/claim", json!({"instance_id": id})).token(&token).refused("4092").await;
        let assign = |by: &str| site.admin.patch(&format!("/instances/{id}/assign"), json!({"user_id": user})).token(by);
        assign(&plain).refused("4030").await;
        assign(&site.root).ok().await;
        let audit = site.admin.get("/audit-logs?q=openings&level=WARN").token(&site.root).ok().await;
        assert!(audit["list"][0]["detail"].as_str().unwrap().contains("none → browser,docker"), "{audit}");
        site.admin.post(&format!("/instances/{id}/cell/leave"), json!({})).token(&plain).refused("4030").await;
        // Nor is there another way out.
        let task = |confined: bool| {
            let payload = json!({"instance_id": id, "confined": confined});
            site.admin.post("/tasks", json!({"type": "confine_instance", "payload": payload})).token(&plain)
        };
        task(false).refused("4030").await;
        task(true).ok().await;
    }
}

/// A database of the release before: what its instances are in is not known until somebody looks, and every value has its default.
async fn an_older_database(database: Database) {
    let db = database_before(15, &database.url).await;
    let mut tx = db.begin().await.unwrap();
    let sql = "INSERT INTO instance (id, id_key, server_id, pooled, name, gateway_port, gateway_url, gateway_token, model, \
        health_status, notes, config_json, is_main, home, isolation, runs_as, created_at, updated_at) \
        VALUES ('old', 'old', 's', 0, 'Old', 20000, 'ws://127.0.0.1:1', '', '', 'healthy', '', '{}', 0, '/srv/assistants/1', 'own', 'assistant-1', 0, 0)";
    tx.run(sql, vec![]).await.unwrap();
    tx.commit().await.unwrap();
    drop(db);
    let site = Site::start(database).await;
    let token =
        site.app.sealer.seal(store::instance::token_place("old"), &base::Secret::new("a-token-of-nobody")).unwrap();
    site.app.db.run("UPDATE instance SET gateway_token = ?", store::args![token]).await.unwrap();
    let listed = site.admin.get("/instances").token(&site.root).ok().await;
    let old = &listed["list"][0];
    assert_eq!(
        (&old["id"], &old["cell"], &old["isolation"]),
        (&json!("old"), &json!("unknown"), &json!("own")),
        "{old}"
    );
    let cell = site.admin.get("/instances/old/cell").token(&site.root).ok().await;
    assert_eq!(
        (&cell["limits"]["memory_mib"], &cell["score"], &cell["openings"]),
        (&json!(2048), &Value::Null, &json!([]))
    );
    assert_eq!(
        site.admin.get("/tasks").token(&site.root).ok().await["total"],
        0,
        "nothing is restarted by the upgrade"
    );
    site.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_database_has_no_cells_yet_sqlite() {
    an_older_database(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_database_has_no_cells_yet_postgres() {
    if let Some(database) = Database::postgres("cell::an_older_database_has_no_cells_yet_postgres").await {
        an_older_database(database).await;
    }
}

/// What a home takes is counted by the look at the server: above its limit there is an alert, which ends when it takes less.
#[tokio::test(flavor = "multi_thread")]
async fn a_home_that_takes_more_than_its_limit_raises_an_alert() {
    let ground = Simulated::new().await;
    ground.provisioned("a").await;
    let site = &ground.site;
    domain::health::check(&site.app).await.unwrap();
    let shown = site.admin.get("/instances/a").token(&site.root).ok().await;
    assert_eq!(shown["cell"], "confined");
    assert!(shown["home_bytes"].as_i64().unwrap() > 200 << 20, "{shown}");
    let alerts =
        async || site.admin.get("/alerts?rule=disk_over_limit&open=true").token(&site.root).ok().await["total"].clone();
    assert_eq!(alerts().await, 0);
    let limit = async |mib: i64| {
        site.admin.put("/instances/a/cell/limits", json!({"disk_mib": mib})).token(&site.root).ok().await;
        let working = ground.work();
        ground.done(&ground.latest("confine_instance").await).await;
        working.stop().await;
        // It is not counted again at every look.
        domain::health::check(&site.app).await.unwrap();
        let after_a_look = alerts().await;
        site.app.clock.advance(SignedDuration::from_mins(31));
        domain::health::check(&site.app).await.unwrap();
        (after_a_look, alerts().await)
    };
    assert_eq!(limit(100).await, (json!(0), json!(1)));
    assert_eq!(limit(9000).await, (json!(1), json!(0)));
    site.check().await;
}

/// A worker that goes away in the middle: the next one goes back to what was before.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_the_cell_that_was_broken_off_is_taken_back() {
    let ground = Simulated::new().await;
    let unit = ground.provisioned("a").await;
    let text = || String::from_utf8(ground.machine.read(&format!("/etc/systemd/system/{unit}")).unwrap()).unwrap();
    let before = text();
    assert!(before.contains("\n# The cell.\nProtectSystem=strict\n"), "{before}");
    let asked = ground.enqueue("confine_instance", json!({"instance_id": "a", "confined": false})).await;
    // It goes away before the chat that would have it accepted.
    ground.broken_off("chat.send", async || !text().contains("# The cell.")).await;
    let working = ground.work();
    let failed = ground.ended(&asked).await;
    assert!(failed.error.contains("broken off"), "{}", failed.error);
    assert_eq!(text(), before);
    assert_eq!(ground.site.admin.get("/instances/a").token(&ground.site.root).ok().await["cell"], "confined");
    working.stop().await;
    ground.site.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_assistant_is_confined_and_its_limits_change_without_a_restart() {
    let name = "cell::a_new_assistant_is_confined_and_its_limits_change_without_a_restart";
    let Some(mut ground) = Ground::new(name).await else { return };
    let id = ground.provisioned(json!({})).await;
    let cell = ground.site.admin.get(&format!("/instances/{id}/cell")).token(&ground.site.root).ok().await;
    assert_eq!((&cell["state"], &cell["left_out"]), (&json!("confined"), &json!([])), "{cell}");
    assert!(cell["score"].as_f64().unwrap() <= 3.0, "{cell}");
    // Debian's systemd looks at no bind(); the testbed's kernel has none of these controllers.
    let lacking = &cell["not_enforced"];
    for directive in ["SocketBindDeny", "MemoryMax", "TasksMax", "CPUQuota"] {
        assert!(lacking.as_array().unwrap().contains(&json!(directive)), "{directive}: {lacking}");
    }
    let unit = format!("/etc/systemd/system/openclaw-{id}.service");
    let text = ground.sh("cat \"$1\"", &[&unit]).await;
    for line in ["NoNewPrivileges=yes", "ProtectSystem=strict", "MemoryMax=2048M", "TasksMax=512", "CPUQuota=200%"] {
        assert!(text.lines().any(|one| one == line), "{line}: {text}");
    }
    // Nothing of the tenant's own can have a manager that starts programs beside the cell, whoever asks for one.
    let user = ground.show(&id).await["runs_as"].as_str().unwrap().to_owned();
    let manager = "systemctl start \"user@$(id -u \"$1\").service\" 2>&1; true";
    assert!(ground.sh(manager, &[&user]).await.contains("is masked"));

    // What the platform runs for it runs in the very same cell.
    let assistant = Assistant::open(&ground.site.app, &InstanceId::named(&id)).await.unwrap();
    let script = "sed -n 's/^NoNewPrivs:.//p' /proc/self/status; ls \"${HOME%/*}\"; ls /proc | grep -c '^[0-9]'; touch /etc/x 2>&1";
    let output = on_server::run(&assistant, remote::host::Command::script(script)).await.unwrap();
    let said = output.text();
    let lines: Vec<&str> = said.lines().collect();
    let number = ground.home(&id).await.rsplit('/').next().unwrap().to_owned();
    assert_eq!(lines[..2], ["1", number.as_str()], "{said}");
    assert!(lines[2].parse::<u32>().unwrap() < 10 && lines[3].contains("Read-only file system"), "{said}");

    let pid = ground.main_pid(&id).await;
    ground
        .site
        .admin
        .put(&format!("/instances/{id}/cell/limits"), json!({"memory_mib": 512}))
        .token(&ground.site.root)
        .ok()
        .await;
    let changed = ground.done(&ground.latest("confine_instance").await).await;
    assert_eq!(changed.result, "its limits were changed, without a restart");
    assert_eq!(ground.main_pid(&id).await, pid);
    let shown = ground.sh("systemctl show -p MemoryMax,MemoryHigh --value \"openclaw-$1\"", &[&id]).await;
    assert_eq!(shown, format!("{}\n{}", 460 << 20, 512 << 20));
    ground.end().await;
}

/// What cannot run in its cell is put back as it was, with all that it had.
#[tokio::test(flavor = "multi_thread")]
async fn an_assistant_that_does_not_come_up_in_its_cell_is_put_back() {
    let name = "cell::an_assistant_that_does_not_come_up_in_its_cell_is_put_back";
    let Some(mut ground) = Ground::with(name, Duration::from_secs(20)).await else { return };
    let id = ground.provisioned(json!({})).await;
    let unit = format!("/etc/systemd/system/openclaw-{id}.service");
    let left = ground.run("confine_instance", json!({"instance_id": id, "confined": false})).await;
    assert_eq!(left.result, "it runs outside of its cell");
    assert_eq!(ground.show(&id).await["cell"], "unconfined");
    let before = ground.sh("cat \"$1\"", &[&unit]).await;
    assert!(!before.contains("# The cell."));
    // A restart and an upgrade leave it as it is: it comes into its cell when somebody says so.
    ground.run("restart_instance", of(&id)).await;
    assert_eq!(ground.sh("cat \"$1\"", &[&unit]).await, before);

    ground.wrong(&id, json!({"outside_only": true})).await;
    let failed = ground.fails("confine_instance", json!({"instance_id": id, "confined": true})).await;
    assert!(failed.error.contains("failed and was taken back"), "{}", failed.error);
    assert_eq!(
        ground.sh("cat \"$1\"; systemctl is-active \"openclaw-$2\"", &[&unit, &id]).await,
        format!("{before}\nactive")
    );
    assert_eq!(ground.show(&id).await["cell"], "unconfined");
    let audit =
        ground.site.admin.get("/audit-logs?level=ERROR&action=instance.update").token(&ground.site.root).ok().await;
    assert_eq!(audit["total"], 1, "{audit}");
    ground.wrong(&id, json!({})).await;
    let many =
        ground.site.admin.post("/cells/enter", json!({"instance_ids": [id]})).token(&ground.site.root).ok().await;
    ground.done(&base::id::TaskId::named(many["task_ids"][0].as_str().unwrap())).await;
    assert_eq!(ground.show(&id).await["cell"], "confined");
    assert!(ground.sh("cat \"$1\"", &[&unit]).await.contains(CURRENT));

    // Somebody with root takes the cell away by hand: the next look says so.
    ground.sh("sed -i '/^# The cell/,/^$/d' \"$1\" && systemctl daemon-reload", &[&unit]).await;
    domain::health::check(&ground.site.app).await.unwrap();
    assert_eq!(ground.show(&id).await["cell"], "unconfined");
    let audit =
        ground.site.admin.get("/audit-logs?level=WARN&q=gone+from+its+unit").token(&ground.site.root).ok().await;
    assert_eq!(audit["total"], 1, "{audit}");
    // A unit of somebody else's has no cell, and says so.
    ground.sh("sed -i '1d' \"$1\" && systemctl daemon-reload", &[&unit]).await;
    domain::health::check(&ground.site.app).await.unwrap();
    assert_eq!(ground.show(&id).await["cell"], "foreign");
    let path = format!("/instances/{id}/cell/enter");
    let refused = ground.site.admin.post(&path, json!({})).token(&ground.site.root).refused("4090").await;
    assert!(refused.contains("not ours"), "{refused}");
    ground.end().await;
}

/// What each opening gives, by its name, to an assistant in its own shell.
const OPENED: &str = r#"
    unshare -Ur true && echo browser
    test -c "/dev/test-$OWN_PORT" && echo devices
    docker ps -q && echo docker
    [ "$(sudo -n id -u)" = 0 ] && echo sudo
    true
"#;

#[tokio::test(flavor = "multi_thread")]
async fn each_opening_gives_what_it_names() {
    let name = "cell::each_opening_gives_what_it_names";
    let Some(mut ground) = Ground::new(name).await else { return };
    let id = ground.provisioned(json!({})).await;
    let env = variables(&ground, &id, &id).await;
    // The server lets its user call one program as root, and has a device more than every server has.
    let (user, port) = (&env["OWN_USER"], &env["OWN_PORT"]);
    let allow = r#"
        printf '%s ALL=(root) NOPASSWD: /usr/bin/id\n' "$1" >"/etc/sudoers.d/$1" && chmod 440 "/etc/sudoers.d/$1"
        mknod -m 666 "/dev/test-$2" c 1 3
    "#;
    ground.sh(allow, &[user, port]).await;
    let has_docker = ground.fleet.machine("h1").docker;
    for (openings, expected) in [
        (json!([]), vec![]),
        (json!(["browser"]), vec!["browser"]),
        (json!(["devices"]), vec!["devices"]),
        (json!(["docker"]), if has_docker { vec!["docker"] } else { vec![] }),
        // No filter of system calls can stand beside it: namespaces and devices come with it.
        (json!(["sudo"]), vec!["browser", "devices", "sudo"]),
    ] {
        if openings != json!([]) {
            let path = format!("/instances/{id}/cell/openings");
            let body = json!({"openings": openings});
            ground.site.admin.put(&path, body).token(&ground.site.root).ok().await;
            ground.done(&ground.latest("confine_instance").await).await;
        }
        let (_, said) = shell(&ground, &id, OPENED, &env).await;
        let found: Vec<&str> =
            said.lines().filter(|line| ["browser", "devices", "docker", "sudo"].contains(line)).collect();
        assert_eq!(found, expected, "{openings}: {said}");
        let shown = ground.show(&id).await;
        let is_root = openings != json!([]) && openings != json!(["browser"]);
        assert_eq!(
            (&shown["cell"], &shown["isolation"]),
            (&json!("confined"), &json!(if is_root { "opened" } else { "own" }))
        );
    }
    ground.sh("rm -f -- \"/etc/sudoers.d/$1\" \"/dev/test-$2\"", &[user, port]).await;
    ground.end().await;
}
