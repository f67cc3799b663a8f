//! Cells: who may say what about them, how instances come into them and out again, and what a server does with the lines.

mod disk;
mod taken_back;

use base::id::InstanceId;
use fleet::assistant::{Assistant, cell as on_server};
use serde_json::{Value, json};
use store::{Db, migrate};

use crate::hostile::{shell, variables};
use crate::kit::hosts::Ground;
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
        let ids = site.ready_instances("a", 2).await;
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

/// A database as it was before a step, with one instance in it.
async fn filled_before(database: &Database, step: i64) -> Db {
    let db = database_before(step, &database.url).await;
    let mut tx = db.begin().await.unwrap();
    let sql = "INSERT INTO instance (id, id_key, server_id, pooled, name, gateway_port, gateway_url, gateway_token, model, \
        health_status, notes, config_json, is_main, home, isolation, runs_as, created_at, updated_at) \
        VALUES ('old', 'old', 's', 0, 'Old', 20000, 'ws://127.0.0.1:1', '', '', 'healthy', '', '{}', 0, '/srv/assistants/1', 'own', 'assistant-1', 0, 0)";
    tx.run(sql, vec![]).await.unwrap();
    tx.commit().await.unwrap();
    db
}

/// A database of the release before: what its instances are in is not known until somebody looks, and every value has its default.
async fn an_older_database(database: Database) {
    drop(filled_before(&database, 15).await);
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

/// What is open in a unit was written when nobody kept that apart from what was asked for.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_open_in_an_older_database_stays_known() {
    let database = Database::sqlite();
    let db = filled_before(&database, 18).await;
    let sql = "INSERT INTO cell (instance_id, state, openings) VALUES ('old', 'confined', 'docker')";
    db.run(sql, vec![]).await.unwrap();
    migrate::run(&db).await.unwrap();
    let cell = store::cell::find(&db, &InstanceId::named("old")).await.unwrap();
    assert_eq!(cell.openings_written().to_string(), "docker");
}

/// A server that cannot do what a cell cannot do without gets no assistant in half a cell.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_do_what_a_cell_needs_gets_no_assistant() {
    let ground = Simulated::new().await;
    ground.machine.odd_about_cells(&["refused PrivateUsers Failed to set up user namespacing status 217"]);
    let site = &ground.site;
    let body = json!({"id": "a", "name": "Assistant", "server_id": "s", "model": "gpt-4o"});
    let made = site.admin.post("/assistant-instances", body).token(&site.root).ok().await;
    crate::kit::used_secret(made["gateway_token"].as_str().unwrap());
    let asked = ground.enqueue("provision_instance", json!({"instance_id": "a"})).await;
    let working = ground.work();
    let failed = ground.ended(&asked).await;
    working.stop().await;
    assert!(failed.error.contains("PrivateUsers"), "{:?} {}", failed.status, failed.error);
    assert_eq!(ground.machine.read("/etc/systemd/system/openclaw-a.service"), None);
    // What a cell can do without is left out by name.
    ground.machine.odd_about_cells(&["refused ProtectClock Unknown assignment status 1"]);
    let working = ground.work();
    ground.over(&asked).await;
    working.stop().await;
    let cell = site.admin.get("/instances/a/cell").token(&site.root).ok().await;
    assert_eq!((&cell["state"], &cell["left_out"]), (&json!("confined"), &json!(["ProtectClock"])), "{cell}");
    site.check().await;
}

/// Whatever a tenant started or planned while it was outside of its cell is gone when it is inside.
#[tokio::test(flavor = "multi_thread")]
async fn what_ran_beside_the_cell_ends_when_an_assistant_enters_it() {
    let name = "cell::what_ran_beside_the_cell_ends_when_an_assistant_enters_it";
    let Some(mut ground) = Ground::new(name).await else { return };
    let id = ground.provisioned(json!({})).await;
    ground.run("confine_instance", json!({"instance_id": id, "confined": false})).await;
    let user = ground.show(&id).await["runs_as"].as_str().unwrap().to_owned();
    // As a release before this one left it: an account that can be logged in to, and what cron and at were given. The hosts have neither.
    let plant = r#"
        usermod --expiredate '' "$1" >/dev/null
        mkdir -p /var/spool/cron/crontabs /var/spool/cron/atjobs
        for file in "/var/spool/cron/crontabs/$1" "/var/spool/cron/atjobs/a-$1"; do echo '* * * * * true' >"$file"; chown "$1" "$file"; done
        systemd-run -q --unit="beside-$1" -p "User=$1" sleep 600
        systemctl show -p MainPID --value "beside-$1""#;
    let pid = ground.sh(plant, &[&user]).await;
    let look = r#"
        [ ! -e "/proc/$2" ] || grep -q '^State:.[ZX]' "/proc/$2/status" || echo process
        ls /var/spool/cron/crontabs /var/spool/cron/atjobs | grep -F "$1"
        getent shadow "$1" | cut -d: -f8"#;
    assert_eq!(ground.sh(look, &[&user, &pid]).await, format!("process\na-{user}\n{user}"));
    ground.run("confine_instance", json!({"instance_id": id, "confined": true})).await;
    assert_eq!(ground.sh(look, &[&user, &pid]).await, "1", "nothing but the day on which the account ended");
    ground.sh("systemctl reset-failed \"beside-$1\" 2>/dev/null; true", &[&user]).await;
    ground.end().await;
}

/// The unit decides what is open, not what was asked for: an opening that could not be closed counts until it is.
#[tokio::test(flavor = "multi_thread")]
async fn an_opening_that_could_not_be_closed_counts_until_it_is() {
    let ground = Simulated::new().await;
    let unit = ground.provisioned("a").await;
    let site = &ground.site;
    let open = async |openings: Value| {
        site.admin.put("/instances/a/cell/openings", json!({"openings": openings})).token(&site.root).ok().await
    };
    let isolation = async || {
        fleet::health::check(&site.app).await.unwrap();
        site.admin.get("/instances/a").token(&site.root).ok().await["isolation"].clone()
    };
    open(json!(["docker"])).await;
    ground.settle().await;
    assert!(ground.unit(&unit).contains("/run/docker.sock"));
    assert_eq!(isolation().await, "opened");

    ground.machine.refuse("chat.send", "the model is away");
    open(json!([])).await;
    let closing = ground.latest("confine_instance").await;
    let working = ground.work();
    assert!(ground.ended(&closing).await.error.contains("taken back"));
    working.stop().await;
    ground.machine.go_on();
    assert!(ground.unit(&unit).contains("/run/docker.sock"));
    assert_eq!(isolation().await, "opened", "its unit still has the opening");
    let cell = site.admin.get("/instances/a/cell").token(&site.root).ok().await;
    assert_eq!((&cell["openings"], &cell["openings_written"]), (&json!([]), &json!(["docker"])), "{cell}");

    // Asking for the same again is enough.
    open(json!([])).await;
    let again = ground.latest("confine_instance").await;
    assert_ne!(again.as_str(), closing.as_str());
    ground.settle().await;
    ground.done(&again).await;
    assert!(!ground.unit(&unit).contains("/run/docker.sock"));
    assert_eq!(isolation().await, "own");
    site.check().await;
}

/// A name server at a cloud's metadata address can be asked; that its secrets can be, too, is said.
#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_is_left_open_for_its_name_server_is_named() {
    let ground = Simulated::new().await;
    ground.machine.odd_about_cells(&["resolver 192.0.2.53", "resolver 169.254.169.254"]);
    let unit = ground.provisioned("a").await;
    let cell = ground.site.admin.get("/instances/a/cell").token(&ground.site.root).ok().await;
    assert_eq!(
        cell["not_enforced"],
        json!(["IPAddressDeny=169.254.169.254 (its name server)", "disk quota"]),
        "{cell}"
    );
    let text = ground.unit(&unit);
    assert!(text.contains("IPAddressDeny=") && !text.contains("IPAddressDeny=169.254.169.254\n"), "{text}");
    ground.site.check().await;
}

/// A cell is what was written, not the line above it: a unit that somebody changed is seen by the next look.
#[tokio::test(flavor = "multi_thread")]
async fn a_unit_that_was_changed_by_hand_is_seen() {
    let ground = Simulated::new().await;
    let unit = ground.provisioned("a").await;
    let site = &ground.site;
    let state = async || {
        fleet::health::check(&site.app).await.unwrap();
        site.admin.get("/instances/a").token(&site.root).ok().await["cell"].clone()
    };
    assert_eq!(state().await, "confined");
    let path = format!("/etc/systemd/system/{unit}");
    let text = ground.unit(&unit);
    ground.machine.write(&path, &text.replace("NoNewPrivileges=yes\n", ""));
    assert_eq!(state().await, "altered");
    let audit = site.admin.get("/audit-logs?level=WARN&q=altered").token(&site.root).ok().await;
    assert_eq!(audit["total"], 1, "{audit}");
    // It comes into its cell again as any other.
    ground.enqueue("confine_instance", json!({"instance_id": "a", "confined": true})).await;
    ground.settle().await;
    assert_eq!((state().await, ground.unit(&unit)), (json!("confined"), text));
    // The platform's own changes are none.
    site.admin.patch("/assistant-instances/a", json!({"gateway_port": 19500})).token(&site.root).ok().await;
    ground.settle().await;
    assert!(ground.unit(&unit).contains(" --port 19500 "));
    assert_eq!(state().await, "confined");
    site.check().await;
}

/// A file beside the unit that changes it is seen by the next look.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_weakens_a_cell_unseen() {
    let Some(mut ground) = Ground::new("cell::nobody_weakens_a_cell_unseen").await else { return };
    let id = ground.provisioned(json!({})).await;
    fleet::health::check(&ground.site.app).await.unwrap();
    assert_eq!(ground.show(&id).await["cell"], "confined");
    let drop_in = r#"
        folder=/etc/systemd/system/openclaw-$1.service.d
        mkdir "$folder" && printf '[Service]\nNoNewPrivileges=no\nPrivateUsers=no\n' >"$folder/more.conf" && systemctl daemon-reload"#;
    // A look that a busy machine did not come to the end of says nothing.
    let becomes = async |state: &str| {
        testkit::until(state, async || {
            fleet::health::check(&ground.site.app).await.unwrap();
            ground.show(&id).await["cell"] == state
        })
        .await;
    };
    ground.sh(drop_in, &[&id]).await;
    becomes("altered").await;
    ground.sh("rm -r \"/etc/systemd/system/openclaw-$1.service.d\" && systemctl daemon-reload", &[&id]).await;
    becomes("confined").await;
    ground.end().await;
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
    let output = on_server::run(&assistant, remote::host::Command::script("test", &[script])).await.unwrap();
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
