//! Assistants are strangers to each other: as whom they run, what is offered to whom, and what a holder leaves to the next.

use std::time::Duration;

use base::id::InstanceId;
use fleet::assistant::isolation;
use serde_json::{Value, json};
use store::instance::Isolation;

use crate::kit::hosts::Ground;
use crate::kit::{Database, Site, database_before};
use crate::on_both;

fn of(id: &str) -> Value {
    json!({"instance_id": id})
}

async fn found(site: &Site, id: &str, isolation: Isolation, user: &str) {
    store::instance::set_isolation(&site.app.db, &InstanceId::named(id), isolation, user).await.unwrap();
}

on_both! {
    /// Whoever holds an assistant runs any command as its user: one that runs as root is root's to give.
    async fn what_runs_as_root_is_given_by_a_super_administrator_only(site: Site) {
        let plain = site.plain_admin("plain@example.com", "admin").await;
        site.server("s").await;
        let make = |id: &str, more: Value| {
            let mut body = json!({"id": id, "name": id, "server_id": "s"});
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            site.admin.post("/assistant-instances", body)
        };
        for place in [json!({"is_main": true}), json!({"home": "/root"}), json!({"unit": "openclaw"}), json!({"container_id": "claw"})] {
            make("refused", place).token(&plain).refused("4030").await;
        }
        let message = make("main", json!({"is_main": true, "provision": true})).token(&site.root).refused("4000").await;
        assert!(message.contains("provision"), "{message}");
        let main = make("main", json!({"is_main": true})).token(&site.root).ok().await;
        assert_eq!(main["isolation"], "shared", "{main}");
        let contained = make("contained", json!({"container_id": "claw"})).token(&site.root).ok().await;
        assert_eq!(contained["isolation"], "adopted", "nobody cleans it for the next holder: {contained}");
        make("chosen", json!({"home": "/home/claw"})).token(&site.root).ok().await;
        make("plain", json!({})).token(&plain).ok().await;
        site.installed(&["plain".into()]).await;

        let (user, token) = site.quick_employee("ada@example.com").await;
        let (_, other) = site.quick_employee("bob@example.com").await;
        let (profession, _) = site.profession("p", &[]).await;
        for (isolation, name) in [(Isolation::Unknown, "unknown"), (Isolation::Adopted, "adopted"), (Isolation::Shared, "shared")] {
            found(site, "chosen", isolation, "root").await;
            let offered = site.employee.get("/instances/available").token(&token).ok().await;
            let ids: Vec<&str> = offered["list"].as_array().unwrap().iter().map(|i| i["id"].as_str().unwrap()).collect();
            assert_eq!((ids, offered["total"].as_i64()), (vec!["plain"], Some(1)), "{name}");
            let free = site.admin.get("/instances?offered=true").token(&site.root).ok().await;
            assert_eq!(free["total"], 1, "{name}");
            for id in ["chosen", "main", "contained"] {
                site.employee.post("/me/instances/claim", json!({"instance_id": id})).token(&token).refused("4092").await;
                let body = json!({"profession_id": profession, "instance_id": id});
                let message = site.admin.post("/profession-pool", body).token(&site.root).refused("4090").await;
                assert!(message.contains("only a super administrator assigns it"), "{name}: {message}");
                let message = site.admin.patch(&format!("/instances/{id}/assign"), json!({"user_id": user})).token(&plain).refused("4030").await;
                assert!(message.contains("only a super administrator"), "{name}: {message}");
            }
        }
        let claimed = site.employee.post("/me/instances/claim", json!({})).token(&other).ok().await;
        assert_eq!(claimed["instance"]["id"], "plain", "any that is offered");

        // A super administrator may, and that is on record; nothing of it is cleaned when it goes to the next.
        let assign = |to: Value| site.admin.patch("/instances/chosen/assign", json!({"user_id": to})).token(&site.root);
        assign(json!(user)).ok().await;
        let audit = site.admin.get("/audit-logs?q=although").token(&site.root).ok().await;
        assert!(audit["list"][0]["detail"].as_str().unwrap().contains("although it runs as root"), "{audit}");
        assign(Value::Null).ok().await;
        let (next, _) = site.quick_employee("cleo@example.com").await;
        assign(json!(next)).ok().await;
        assert_eq!(site.admin.get("/tasks?type=clean_instance").token(&site.root).ok().await["total"], 0);
    }

    /// Once it is known, a pool does not offer it any more; whoever has it keeps it.
    async fn what_is_found_to_run_as_root_leaves_its_pool(site: Site) {
        let ids = site.ready_instances("a", 2).await;
        let (profession, entries) = site.profession("p", &ids).await;
        let (_, token) = site.quick_employee("ada@example.com").await;
        let path = format!("/me/professions/{profession}/claim");
        let held = site.employee.post(&path, json!({})).token(&token).ok().await["instance"]["id"].as_str().unwrap().to_owned();
        for id in &ids {
            found(site, id, Isolation::Shared, "root").await;
        }
        let (_, other) = site.quick_employee("bob@example.com").await;
        site.employee.post(&path, json!({})).token(&other).refused("4092").await;
        isolation::withdraw(&site.app).await.unwrap();
        isolation::withdraw(&site.app).await.unwrap();
        let pool = site.admin.get("/profession-pool").token(&site.root).ok().await;
        let status = |id: &str| pool["list"].as_array().unwrap().iter().find(|e| e["instance_id"] == id).unwrap()["status"].clone();
        let idle = ids.iter().find(|id| **id != held).unwrap();
        assert_eq!((status(&held), status(idle)), (json!("allocated"), json!("maintenance")), "{pool}");
        let alerts = site.admin.get("/alerts?rule=instance_not_isolated&open=true").token(&site.root).ok().await;
        assert_eq!(alerts["total"], 1, "{alerts}");
        assert!(alerts["list"][0]["message"].as_str().unwrap().contains("it runs as root"), "{alerts}");
        // Nobody puts it back, and it does not come back by being given back.
        for entry in &entries {
            site.admin.patch(&format!("/profession-pool/{entry}"), json!({"status": "idle"})).token(&site.root).send().await;
        }
        site.employee.delete(&format!("/me/instances/{held}/claim")).token(&token).send().await;
        let pool = site.admin.get("/profession-pool").token(&site.root).ok().await;
        assert!(pool["list"].as_array().unwrap().iter().all(|e| e["status"] == "maintenance"), "{pool}");
        assert_eq!(site.admin.get("/tasks?type=clean_instance").token(&site.root).ok().await["total"], 0);
    }
}

/// A database of the release before: main instances are known to be shared, homes have to be looked at, and nothing else changes.
async fn an_older_database(database: Database) {
    let db = database_before(12, &database.url).await;
    let mut tx = db.begin().await.unwrap();
    for (id, home, is_main) in [("main", "", true), ("housed", "/srv/assistants/1", false), ("new", "", false)] {
        let sql = "INSERT INTO instance (id, id_key, server_id, pooled, name, gateway_port, gateway_url, gateway_token, model, \
            health_status, notes, config_json, is_main, home, created_at, updated_at) \
            VALUES (?, ?, 's', 1, ?, ?, 'ws://127.0.0.1:1', '', '', 'healthy', '', '{}', ?, ?, 0, 0)";
        let port = 20_000 + 10 * id.len() as i64;
        tx.run(sql, store::args![id, id, id, port, is_main, home]).await.unwrap();
    }
    tx.run(
        "INSERT INTO profession (id, name, code, code_key, icon, tagline, description, created_at) \
         VALUES ('p', 'P', 'p', 'p', '', '', '', 0)",
        vec![],
    )
    .await
    .unwrap();
    for id in ["main", "housed", "new"] {
        let sql = "INSERT INTO pool_entry (id, profession_id, instance_id, server_id, status, created_at) VALUES (?, 'p', ?, 's', 'idle', 0)";
        tx.run(sql, store::args![id, id]).await.unwrap();
    }
    tx.commit().await.unwrap();
    drop(db);

    let site = Site::start(database).await;
    isolation::withdraw(&site.app).await.unwrap();
    for (id, isolation, status) in
        [("main", "shared", "maintenance"), ("housed", "unknown", "idle"), ("new", "none", "idle")]
    {
        let instance = store::instance::find(&site.app.db, &InstanceId::named(id)).await.unwrap().unwrap();
        assert_eq!(instance.isolation.as_str(), isolation, "{id}");
        let entry = store::pool::of_instance(&site.app.db, &InstanceId::named(id)).await.unwrap().unwrap();
        assert_eq!(entry.status.as_str(), status, "{id}");
    }
    let alerts = site.admin.get("/alerts?rule=instance_not_isolated&open=true").token(&site.root).ok().await;
    assert_eq!(alerts["total"], 1, "{alerts}");
    site.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_database_is_brought_up_to_date_sqlite() {
    an_older_database(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_database_is_brought_up_to_date_postgres() {
    if let Some(database) = Database::postgres("isolation::an_older_database_is_brought_up_to_date_postgres").await {
        an_older_database(database).await;
    }
}

async fn ground(name: &str) -> Option<Ground> {
    Ground::new(&format!("isolation::{name}")).await
}

/// Whoever held an assistant may have left anything that their user can leave.
#[tokio::test(flavor = "multi_thread")]
async fn the_next_holder_finds_nothing_of_the_last_and_gets_another_user() {
    let Some(mut ground) = ground("the_next_holder_finds_nothing_of_the_last_and_gets_another_user").await else {
        return;
    };
    let id = ground.provisioned(json!({})).await;
    let shown = ground.show(&id).await;
    let user = shown["runs_as"].as_str().unwrap().to_owned();
    assert_eq!(shown["isolation"], "own", "{shown}");
    let uid: i64 = ground.sh("id -u \"$1\"", &[&user]).await.parse().unwrap();
    assert!((store::unix_user::FIRST..=store::unix_user::LAST).contains(&uid), "{uid}");
    let home = ground.home(&id).await;
    let (ada, _) = ground.site.quick_employee("ada@example.com").await;
    let (bob, _) = ground.site.quick_employee("bob@example.com").await;
    let assign = |to: Value| {
        ground.site.admin.patch(&format!("/instances/{id}/assign"), json!({"user_id": to})).token(&ground.site.root)
    };
    assign(json!(ada)).ok().await;
    ground.done(&ground.latest("write_config").await).await;

    // A daemon that left its unit, one that starts itself again for as long as it can, files where everybody may write, a crontab, a
    // job of at, lingering, and IPC objects.
    let left = r#"
        user=$1
        # Not by loginctl: it would start the user's manager, which is masked, and remove the IPC objects below when that has failed.
        mkdir -p /var/lib/systemd/linger && : >"/var/lib/systemd/linger/$user"
        runuser -u "$user" -- sh -c '
            setsid sh -c "while :; do sleep 1000 & wait; done" </dev/null >/dev/null 2>&1 &
            setsid sh -c "f() { sleep 0.05; f & exit; }; f" </dev/null >/dev/null 2>&1 &
            mkdir -p /tmp/left-$0/deep && echo x >/tmp/left-$0/deep/file && ln -s /etc/passwd /tmp/left-$0/link
            echo x >/var/tmp/left-$0; echo x >/dev/shm/left-$0
            ipcmk -M 64 >/dev/null; ipcmk -S 1 >/dev/null; ipcmk -Q >/dev/null' "$user"
        mkdir -p /var/spool/cron/crontabs /var/spool/cron/atjobs
        echo '* * * * * touch /tmp/again' >"/var/spool/cron/crontabs/$user"
        echo 'touch /tmp/again' >"/var/spool/cron/atjobs/a0000-$user"
        chown "$user" "/var/spool/cron/crontabs/$user" "/var/spool/cron/atjobs/a0000-$user"
        # What somebody else put into a folder of theirs stays.
        chmod 777 "/tmp/left-$user" && echo theirs >"/tmp/left-$user/of-root"
    "#;
    ground.sh(left, &[&user]).await;
    let there = r#"
        # One that has ended and is not reaped yet is none.
        grep -lsE "^Uid:.*[[:space:]]$2([[:space:]]|\$)" /proc/[0-9]*/status | xargs -r grep -LsE '^State:.[ZX]' | wc -l
        find /tmp /var/tmp /dev/shm /var/spool/cron /var/lib/systemd/linger /run/user -xdev -uid "$2" 2>/dev/null | wc -l
        ls /var/lib/systemd/linger 2>/dev/null | grep -cx "$1"
        awk -v u="$2" '$5 == u || $8 == u' /proc/sysvipc/shm /proc/sysvipc/sem /proc/sysvipc/msg | wc -l
    "#;
    let uid = uid.to_string();
    let before: Vec<u32> = ground.sh(there, &[&user, &uid]).await.lines().map(|n| n.parse().unwrap()).collect();
    assert!(before[0] >= 3 && before[1] >= 6 && before[2] == 1 && before[3] == 3, "it was all there: {before:?}");

    assign(Value::Null).ok().await;
    assign(json!(bob)).ok().await;
    ground.done(&ground.latest("clean_instance").await).await;
    assert_eq!(ground.sh(there, &[&user, &uid]).await, "0\n0\n0\n0", "processes, files, lingering, IPC");
    assert_eq!(ground.sh("getent passwd \"$1\" \"$2\"; getent group \"$1\"; cat \"/tmp/left-$1/of-root\"; rm -rf \"/tmp/left-$1\"", &[&user, &uid]).await, "theirs");
    let shown = ground.show(&id).await;
    let next = shown["runs_as"].as_str().unwrap().to_owned();
    assert_ne!(next, user);
    assert_eq!(shown["isolation"], "own");
    let now = ground.sh("stat -c %U \"$1\"; systemctl show -p User --value \"openclaw-$2\"; systemctl is-active \"openclaw-$2\"; stat -c %u \"$1\"", &[&home, &id]).await;
    let lines: Vec<&str> = now.lines().collect();
    assert_eq!(lines[..3], [next.as_str(), next.as_str(), "active"]);
    assert_ne!(lines[3], uid, "another number");
    assert_eq!(ground.sh("ls -A \"$1\"", &[&home]).await, ".openclaw");

    ground.site.admin.delete(&format!("/assistant-instances/{id}")).token(&ground.site.root).ok().await;
    ground.done(&ground.latest("retire_instance").await).await;
    assert_eq!(ground.sh("getent passwd \"$1\"; ls -d \"$2\" 2>/dev/null; true", &[&next, &home]).await, "");
    ground.end().await;
}

/// Before, such an assistant ran as whoever logs in: as root, with a key that root's processes can use.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_that_cannot_be_made_fails_the_task() {
    let Some(mut ground) = ground("a_user_that_cannot_be_made_fails_the_task").await else { return };
    // useradd takes no home with a colon, which would end the field in /etc/passwd.
    let home = format!("{}/a:b", ground.base_dir);
    let id = ground.instance(json!({"home": home})).await;
    let failed = ground.fails("provision_instance", of(&id)).await;
    assert_eq!(failed.client_message, "a command on the server failed");
    assert!(failed.error.contains("useradd"), "{}", failed.error);
    let left = ground
        .sh("ls -d \"$1\" 2>/dev/null; ls \"/etc/systemd/system/openclaw-$2.service\" 2>/dev/null; true", &[&home, &id])
        .await;
    assert_eq!(left, "", "nothing was made in its place");

    // Nor is one made where somebody else could put another home in its place, or where root or the login user lives.
    ground.sh("install -d -o guest -g guest \"$1/guests\"; install -d -m 1777 \"$1/open\" && chmod 777 \"$1/open\"; install -d \"$1/roots\"", &[&ground.base_dir]).await;
    for (home, message) in [
        ("guests/x", "must be root's, and writable by nobody else"),
        ("open/x", "must be root's, and writable by nobody else"),
        ("roots", "root's"),
    ] {
        let id = ground.instance(json!({"home": format!("{}/{home}", ground.base_dir)})).await;
        let failed = ground.fails("provision_instance", of(&id)).await;
        assert!(failed.client_message.contains(message), "{home}: {} {}", failed.client_message, failed.error);
    }
    ground.end().await;
}

/// What was there before the platform came is not the platform's to clean, rename or delete.
#[tokio::test(flavor = "multi_thread")]
async fn an_adopted_home_is_left_as_it_is() {
    let Some(mut ground) = ground("an_adopted_home_is_left_as_it_is").await else { return };
    let (user, home) = (format!("claw{}", &base::id::fresh()[..8]), format!("{}/claw", ground.base_dir));
    ground.sh("mkdir -p \"${2%/*}\" && useradd --no-create-home --home-dir \"$2\" \"$1\" && install -d -m 700 -o \"$1\" -g \"$1\" \"$2\" \"$2/.openclaw\" && echo kept >\"$2/diary\"", &[&user, &home]).await;
    let id = ground.provisioned(json!({"home": home})).await;
    let shown = ground.show(&id).await;
    assert_eq!((shown["isolation"].as_str(), shown["runs_as"].as_str()), (Some("adopted"), Some(user.as_str())));
    let cleaned = ground.run("clean_instance", of(&id)).await;
    assert!(
        cleaned.result.contains("it is not cleaned") && cleaned.result.contains("the platform did not make"),
        "{}",
        cleaned.result
    );
    ground.site.admin.delete(&format!("/assistant-instances/{id}")).token(&ground.site.root).ok().await;
    let retired = ground.done(&ground.latest("retire_instance").await).await;
    assert!(retired.result.contains("its home stays"), "{}", retired.result);
    let left = ground
        .sh(
            "cat \"$2/diary\"; stat -c %U \"$2\"; ls -d \"$2.archive\" 2>/dev/null; id -un \"$1\"; userdel \"$1\"",
            &[&user, &home],
        )
        .await;
    assert_eq!(left, format!("kept\n{user}\n{user}"));
    ground.end().await;
}

/// The health check looks as whom everything runs: what somebody changed by hand is seen, and what older releases made is recognised.
#[tokio::test(flavor = "multi_thread")]
async fn a_health_check_sees_as_whom_everything_runs() {
    let Some(mut ground) = ground("a_health_check_sees_as_whom_everything_runs").await else { return };
    let own = ground.provisioned(json!({})).await;
    let changed = ground.provisioned(json!({})).await;
    let neighbour = ground.instance(json!({"home": format!("{}/.openclaw", ground.home(&own).await)})).await;
    let login = ground.instance(json!({"home": "/root"})).await;
    let old = ground.provisioned(json!({})).await;
    // As a release before this one made it: a user by the home's number, in no record.
    let home = ground.home(&old).await;
    let name = format!("assistant-{}", home.rsplit('/').next().unwrap());
    let was = ground.show(&old).await["runs_as"].as_str().unwrap().to_owned();
    ground.sh("systemctl stop \"openclaw-$3\"; getent passwd \"$1\" >/dev/null && exit 1; usermod -l \"$1\" \"$2\" && groupmod -n \"$1\" \"$2\" && sed -i \"s/^User=.*/User=$1/\" \"/etc/systemd/system/openclaw-$3.service\" && systemctl daemon-reload && systemctl start \"openclaw-$3\"", &[&name, &was, &old]).await;
    ground
        .site
        .app
        .db
        .run("UPDATE unix_user SET removed_at = 1 WHERE instance_id = ?", store::args![&old])
        .await
        .unwrap();
    ground.site.app.db.run("UPDATE instance SET isolation = 'unknown', runs_as = ''", vec![]).await.unwrap();
    ground
        .sh(
            "sed -i 's/^User=.*/User=root/' \"/etc/systemd/system/openclaw-$1.service\" && systemctl daemon-reload",
            &[&changed],
        )
        .await;

    // A look that a busy machine did not come to the end of says nothing.
    testkit::until_ok("all are seen as they are", async || {
        fleet::health::check(&ground.site.app).await.unwrap();
        let mut all = vec![];
        for id in [&own, &changed, &neighbour, &login, &old] {
            all.push(ground.show(id).await["isolation"].as_str().unwrap().to_owned());
        }
        if all == ["shared", "shared", "shared", "shared", "own"] { Ok(()) } else { Err(all) }
    })
    .await;
    ground.site.admin.delete(&format!("/assistant-instances/{neighbour}")).token(&ground.site.root).ok().await;
    let shown = testkit::until_ok_within(Duration::from_secs(60), "nobody else lives there", async || {
        fleet::health::check(&ground.site.app).await.unwrap();
        let shown = ground.show(&own).await;
        if shown["isolation"] == "own" { Ok(shown) } else { Err(shown["isolation"].clone()) }
    })
    .await;
    assert!(shown["runs_as"].as_str().unwrap().starts_with("assistant-"), "{shown}");
    ground.end().await;
}
