//! What is bad about servers and what is on them, each met by the real handlers on a real host; and what administrators see of both.

use std::time::Duration;

use fleet::sweep::{self, Since};
use openclaw::sweep::{ConfigFile, Limits};
use serde_json::{Value, json};

use crate::kit::hosts::{Ground, START_LIMIT};

/// Cases on a host of the testbed's; some say how long an assistant may take to start.
macro_rules! on_host {
    ($($(#[$meta:meta])* async fn $name:ident($ground:ident: Ground $(, $limit:expr)?) $body:block)*) => {$(
        $(#[$meta])*
        #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            let limit = [START_LIMIT $(, $limit)?];
            let limit = limit[limit.len() - 1];
            #[allow(unused_mut)]
            if let Some(mut $ground) = Ground::with(concat!("hosts::", stringify!($name)), limit).await {
                $body
                $ground.end().await;
            }
        }
    )*};
}

fn of(id: &str) -> Value {
    json!({"instance_id": id})
}

async fn config_path(ground: &Ground, id: &str) -> String {
    format!("{}/.openclaw/openclaw.json", ground.home(id).await)
}

on_host! {
    async fn a_configuration_that_cannot_be_read_is_never_overwritten(ground: Ground) {
        let id = ground.provisioned(json!({})).await;
        let path = config_path(&ground, &id).await;
        for broken in ["{ \"gateway\": ", "[]", "", "\u{fffd}"] {
            let sum = ground.sh("printf %s \"$2\" >\"$1\"; sha256sum <\"$1\"", &[&path, broken]).await;
            for task in ["write_config", "sync_models_to_instance", "sync_key_to_instance", "restart_instance"] {
                let failed = ground.fails(task, of(&id)).await;
                assert!(failed.client_message.contains("openclaw.json cannot be read"), "{task} {broken:?}: {}", failed.client_message);
            }
            assert_eq!(ground.sh("sha256sum <\"$1\"", &[&path]).await, sum, "{broken:?}");
        }
        ground.site.admin.get(&format!("/instances/{id}/config")).token(&ground.site.root).refused("4090").await;
    }

    async fn a_change_by_hand_is_kept_also_in_between(ground: Ground) {
        let id = ground.provisioned(json!({})).await;
        let path = config_path(&ground, &id).await;
        // Somebody who counts in the file, four times a second, for some seconds.
        let unit = format!("hand-{id}");
        let hand = r#"
import fcntl, json, os, sys, time
folder = os.open(os.path.dirname(sys.argv[1]), os.O_RDONLY)
for n in range(1, 21):
    # What was written between a hand's own reading and writing would be lost to the hand, not to us.
    fcntl.flock(folder, fcntl.LOCK_EX)
    config = json.load(open(sys.argv[1])); config["ui"] = {"n": n}
    new = sys.argv[1] + ".hand"; json.dump(config, open(new, "w")); os.chown(new, os.stat(sys.argv[1]).st_uid, -1); os.rename(new, sys.argv[1])
    fcntl.flock(folder, fcntl.LOCK_UN)
    time.sleep(0.25)
"#;
        ground.sh("systemd-run -q --unit=\"$1\" python3 -c \"$3\" \"$2\"", &[&unit, &path, hand]).await;
        let task = ground.enqueue("write_config", of(&id)).await;
        ground.site.admin.patch(&format!("/assistant-instances/{id}"), json!({"model": "claude-sonnet-4-6"})).token(&ground.site.root).ok().await;
        let synced = ground.enqueue("sync_models_to_instance", of(&id)).await;
        ground.sh("while systemctl is-active -q \"$1\"; do sleep 0.1; done", &[&unit]).await;
        ground.failed_or_done(&task).await;
        let done = ground.failed_or_done(&synced).await;
        let config = ground.config(&id).await;
        assert_eq!(config["ui"]["n"], 20, "what the hand wrote last is there");
        if done {
            assert_eq!(config["agents"]["defaults"]["model"]["primary"], "tidepool-anthropic/claude-sonnet-4-6", "and what we wrote");
        }
        // Between the reading and the writing, for sure: both are there.
        ground.site.admin.patch(&format!("/assistant-instances/{id}"), json!({"model": "gpt-4o-mini"})).token(&ground.site.root).ok().await;
        ground.wrong(&id, json!({"hand": {"talk": {"by": "hand"}}})).await;
        ground.run("sync_models_to_instance", of(&id)).await;
        let config = ground.config(&id).await;
        assert_eq!(config["agents"]["defaults"]["model"]["primary"], "tidepool/gpt-4o-mini");
        assert_eq!((&config["ui"]["n"], &config["talk"]["by"]), (&json!(20), &json!("hand")));
    }

    async fn a_stranger_on_the_port_is_left_alone(ground: Ground) {
        let id = ground.provisioned(json!({})).await;
        let port = ground.show(&id).await["gateway_port"].to_string();
        let stranger = format!("stranger-{id}");
        ground.sh("systemctl stop \"openclaw-$1\"; systemd-run -q --unit=\"$2\" python3 -m http.server --bind 127.0.0.1 \"$3\"", &[&id, &stranger, &port]).await;
        ground.listens(&port).await;
        let failed = ground.fails("restart_instance", of(&id)).await;
        assert!(failed.client_message.contains(&format!("port {port} is held by another program")), "{}", failed.client_message);
        assert!(failed.error.contains("http.server"), "{}", failed.error);
        assert_eq!(ground.sh("systemctl is-active \"$1\"", &[&stranger]).await, "active");
        ground.sh("systemctl stop \"$1\"", &[&stranger]).await;
        ground.run("restart_instance", of(&id)).await;
        // A gateway of the same instance that is left over is ended.
        let home = ground.home(&id).await;
        ground.sh("systemctl stop \"openclaw-$1\"; (OPENCLAW_STATE_DIR=$2/.openclaw OPENCLAW_CONFIG_PATH=$2/.openclaw/openclaw.json setsid /opt/tidepool/openclaw/2026.9.6/openclaw gateway run --port \"$3\" >/dev/null 2>&1 &)", &[&id, &home, &port]).await;
        ground.listens(&port).await;
        let task = ground.run("restart_instance", of(&id)).await;
        let log = ground.log(&task.id).await;
        assert!(log.iter().any(|line| line.contains("freed of a gateway of this instance")), "{log:?}");
    }

    async fn a_missing_unit_is_told_and_made_anew(ground: Ground) {
        let id = ground.provisioned(json!({})).await;
        ground.sh("systemctl stop \"openclaw-$1\"; rm /etc/systemd/system/openclaw-$1.service; systemctl daemon-reload", &[&id]).await;
        let failed = ground.fails("restart_instance", of(&id)).await;
        assert_eq!(failed.client_message, "the service is not set up on the server");
        ground.run("provision_instance", of(&id)).await;
        // One of the same name that somebody else wrote is not ours to change.
        ground.sh("sed -i 1d /etc/systemd/system/openclaw-$1.service", &[&id]).await;
        let failed = ground.fails("provision_instance", of(&id)).await;
        assert!(failed.client_message.contains("did not write"), "{}", failed.client_message);
        ground.sh("sed -i '1i # Written by tidepool.' /etc/systemd/system/openclaw-$1.service", &[&id]).await;
    }

    async fn a_unit_that_systemd_gave_up_is_started_again(ground: Ground) {
        let id = ground.provisioned(json!({})).await;
        // Whoever else has systemd of this host read its units anew lets it begin to count again.
        let limit = ground.sh("for i in $(seq 200); do systemctl restart \"openclaw-$1\" || { echo limit; break; }; done 2>/dev/null", &[&id]).await;
        assert_eq!(limit, "limit");
        let task = ground.run("restart_instance", of(&id)).await;
        assert_eq!(ground.sh("systemctl is-active \"openclaw-$1\"", &[&id]).await, "active", "{}", task.result);
    }

    async fn a_refused_configuration_is_not_tried_again_and_again(ground: Ground, Duration::from_secs(3600)) {
        let id = ground.provisioned(json!({})).await;
        let pid = ground.main_pid(&id).await;
        // An unknown key, wished for: OpenClaw is asked before it is written.
        let set = ground.site.admin.patch(&format!("/instances/{id}/config"), json!({"config_json": {"bogus": 1}})).token(&ground.site.root).ok().await;
        let failed = ground.failed_times(&base::id::TaskId::named(set["task_id"].as_str().unwrap()), 1).await;
        assert!(failed.client_message.contains("Unrecognized key: \"bogus\""), "{}", failed.client_message);
        assert!(ground.config(&id).await["bogus"].is_null());
        // One that somebody wrote by hand: a restart would end it, so there is none.
        let path = config_path(&ground, &id).await;
        ground.sh("sed -i '0,/{/s//{\"bogus\": 1,/' \"$1\"", &[&path]).await;
        let failed = ground.fails("restart_instance", of(&id)).await;
        assert!(failed.client_message.contains("Unrecognized key"), "{}", failed.client_message);
        assert_eq!(ground.main_pid(&id).await, pid);
        ground.sh("sed -i 's/\"bogus\": 1,//' \"$1\"", &[&path]).await;
        // One that only shows when it starts. That is known before the start's time is over, which would be an hour.
        ground.wrong(&id, json!({"refuse": true})).await;
        let failed = ground.fails("restart_instance", of(&id)).await;
        assert!(failed.client_message.contains("refuses its configuration"), "{}", failed.client_message);
        assert!(failed.error.contains("Invalid config, as it was told to say"), "{}", failed.error);
        assert_eq!(ground.sh("systemctl show -p NRestarts,ActiveState --value \"openclaw-$1\"", &[&id]).await, "0\nfailed");
        ground.wrong(&id, json!({})).await;
        ground.run("restart_instance", of(&id)).await;
    }

    async fn a_slow_start_is_waited_for_up_to_its_limit(ground: Ground, Duration::from_secs(15)) {
        let id = ground.provisioned(json!({})).await;
        ground.wrong(&id, json!({"delay": 4})).await;
        let task = ground.run("restart_instance", of(&id)).await;
        let log = ground.log(&task.id).await;
        let took = log.iter().find_map(|line| line.strip_prefix("ready after ")?.strip_suffix(" s")?.parse::<f32>().ok());
        assert!(took.unwrap() >= 4.0, "{log:?}");
        ground.wrong(&id, json!({"delay": 60})).await;
        let failed = ground.fails("restart_instance", of(&id)).await;
        assert_eq!(failed.client_message, "the assistant was not answering after 15 s");
        ground.wrong(&id, json!({"unready": true})).await;
        let failed = ground.fails("restart_instance", of(&id)).await;
        assert_eq!(failed.client_message, "the assistant was alive, but not ready after 15 s");
    }

    async fn an_assistant_that_does_not_reload_is_restarted(ground: Ground) {
        let id = ground.provisioned(json!({})).await;
        ground.wrong(&id, json!({"deaf": true})).await;
        let pid = ground.main_pid(&id).await;
        ground.site.admin.patch(&format!("/assistant-instances/{id}"), json!({"model": "claude-sonnet-4-6"})).token(&ground.site.root).ok().await;
        ground.run("sync_models_to_instance", of(&id)).await;
        assert_ne!(ground.main_pid(&id).await, pid);
        // A second time there is nothing to write, and nothing to restart.
        let pid = ground.main_pid(&id).await;
        let task = ground.run("sync_models_to_instance", of(&id)).await;
        assert!(task.result.ends_with("were there"), "{}", task.result);
        assert_eq!(ground.main_pid(&id).await, pid);
    }

    async fn a_server_is_known_by_its_key(ground: Ground) {
        let server = ground.server.clone();
        let tested = ground.site.admin.post(&format!("/servers/{server}/test"), json!({})).token(&ground.site.root).ok().await;
        let step = |tested: &Value, name: &str| {
            let steps = tested["steps"].as_array().unwrap();
            steps.iter().find(|s| s["step"] == name).unwrap().clone()
        };
        for name in ["address", "host_key", "login", "sudo", "systemd", "openclaw", "free_memory"] {
            assert_eq!(step(&tested, name)["ok"], true, "{tested}");
        }
        let detail = ground.site.admin.get(&format!("/servers/{server}/detail")).token(&ground.site.root).ok().await;
        assert_eq!(detail["host_key"], ground.fleet.machine("h1").host_key, "pinned at the first contact");
        let id = ground.provisioned(json!({})).await;

        // Another key in its place: nothing is done, and it is written down.
        let mut tx = ground.site.app.db.begin().await.unwrap();
        let mut record = store::server::lock(&mut tx, &base::id::ServerId::named(&server)).await.unwrap().unwrap();
        record.host_key = base::NonEmpty::new(&ground.fleet.machine("h2").host_key);
        store::server::update(&mut tx, &record).await.unwrap();
        tx.commit().await.unwrap();
        let failed = ground.fails("restart_instance", of(&id)).await;
        assert_eq!(failed.client_message, "the server's host key changed");
        let tested = ground.site.admin.post(&format!("/servers/{server}/test"), json!({})).token(&ground.site.root).ok().await;
        assert_eq!((&step(&tested, "host_key")["ok"], &step(&tested, "login")["detail"]), (&json!(false), &json!("not tried")));
        let audit = ground.site.admin.get("/audit-logs?action=server.action&level=ERROR").token(&ground.site.root).ok().await;
        assert!(audit["list"][0]["detail"].is_string() && audit.to_string().contains("host key of"), "{audit}");

        // The administrator says that it is all right.
        ground.site.admin.patch(&format!("/servers/{server}"), json!({"forget_host_key": true})).token(&ground.site.root).ok().await;
        ground.run("restart_instance", of(&id)).await;

        // Nobody there.
        let gone = json!({"id": "gone", "name": "Gone", "host": "127.0.0.1", "ssh_port": 9, "ssh_key_path": ground.fleet.key});
        ground.site.admin.post("/servers", gone).token(&ground.site.root).ok().await;
        ground.site.admin.get("/servers/gone/containers").token(&ground.site.root).refused("5030").await;
        let no_key = json!({"id": "no-key", "name": "No key", "host": "127.0.0.1"});
        ground.site.admin.post("/servers", no_key).token(&ground.site.root).ok().await;
        ground.site.admin.get("/servers/no-key/containers").token(&ground.site.root).refused("4090").await;
    }

    async fn a_user_with_sudo_is_enough_and_one_without_is_told(ground: Ground) {
        let machine = ground.fleet.machine("h1").clone();
        let key = std::fs::read_to_string(&ground.fleet.key).unwrap();
        for user in ["fisher", "guest"] {
            // The key itself, kept sealed.
            let body = json!({"id": user, "name": user, "host": machine.relay, "ssh_port": machine.port, "ssh_user": user,
                "ssh_key": key, "base_dir": format!("{}/{user}", ground.base_dir)});
            ground.site.admin.post("/servers", body).token(&ground.site.root).ok().await;
        }
        let id = ground.provisioned(json!({"server_id": "fisher"})).await;
        let owner = ground.sh("stat -c %U \"$1\"", &[&ground.home(&id).await]).await;
        assert!(owner.starts_with("assistant-"), "{owner}");
        let failed = ground.instance(json!({"server_id": "guest"})).await;
        let failed = ground.fails("provision_instance", of(&failed)).await;
        assert_eq!(failed.client_message, "the server's user may not use sudo");

        // The main instance lives in the home of whoever logs in: the platform neither makes it, nor cleans it, nor deletes it.
        let main = ground.instance(json!({"server_id": "fisher", "is_main": true})).await;
        let failed = ground.fails("provision_instance", of(&main)).await;
        assert!(failed.client_message.contains("would run as the login user"), "{}", failed.client_message);
        ground.sh("install -d -o fisher -g fisher ~fisher/.openclaw && echo kept >~fisher/.openclaw/kept", &[]).await;
        let cleaned = ground.run("clean_instance", of(&main)).await;
        assert!(cleaned.result.contains("it is not cleaned: it runs as fisher"), "{}", cleaned.result);
        ground.site.admin.delete(&format!("/assistant-instances/{main}")).token(&ground.site.root).ok().await;
        let retired = ground.done(&ground.latest("retire_instance").await).await;
        assert!(retired.result.contains("its home stays"), "{}", retired.result);
        let left = ground.sh("id -un fisher; cat ~fisher/.openclaw/kept; ls -d /home/fisher.archive 2>/dev/null; rm -rf ~fisher/.openclaw", &[]).await;
        assert_eq!(left, "fisher\nkept");
    }

    /// An ordinary administrator names no unit, and a unit that happens to have the name of an instance is still somebody else's.
    async fn a_unit_that_is_not_ours_is_left_alone(ground: Ground) {
        let id = ground.instance(json!({"home": format!("{}/foreign", ground.base_dir)})).await;
        let unit = format!("openclaw-{id}");
        let there = r#"
            install -d -o guest -g guest "$2/foreign" "$2/foreign/.openclaw"
            echo '{"gateway": {"mode": "local"}}' >"$2/foreign/.openclaw/openclaw.json" && chown -R guest: "$2/foreign"
            printf '[Service]\nUser=guest\nExecStart=/bin/sleep 1000\n[Install]\nWantedBy=multi-user.target\n' >"/etc/systemd/system/$1.service"
            systemctl daemon-reload && systemctl enable --now "$1""#;
        ground.sh(there, &[&unit, &ground.base_dir.clone()]).await;
        let state = "systemctl is-active \"$1\"; systemctl is-enabled \"$1\"; true";
        let failed = ground.fails("restart_instance", of(&id)).await;
        assert!(failed.client_message.contains("is not ours, and nobody adopted it"), "{}", failed.client_message);
        assert_eq!(ground.sh(state, &[&unit]).await, "active\nenabled");
        ground.site.admin.delete(&format!("/assistant-instances/{id}")).token(&ground.site.root).ok().await;
        ground.done(&ground.latest("retire_instance").await).await;
        assert_eq!(ground.sh(state, &[&unit]).await, "active\nenabled");
        // One that a super administrator named is stopped, and stays.
        let adopted = ground.instance(json!({"home": format!("{}/foreign", ground.base_dir), "unit": unit})).await;
        ground.site.admin.delete(&format!("/assistant-instances/{adopted}")).token(&ground.site.root).ok().await;
        ground.done(&ground.latest("retire_instance").await).await;
        assert_eq!(ground.sh(state, &[&unit]).await, "inactive\nenabled");
        ground.sh("systemctl disable -q \"$1\"; rm -f \"/etc/systemd/system/$1.service\"; systemctl daemon-reload", &[&unit]).await;
    }

    async fn a_server_without_memory_takes_no_more_assistants(ground: Ground) {
        let assistants = fleet::assistant::Defaults { least_memory: 1 << 60, ..Default::default() };
        let mut full = Ground::on(ground.fleet.clone(), "h1", assistants).await;
        let id = full.instance(json!({})).await;
        let failed = full.fails("provision_instance", of(&id)).await;
        assert!(failed.client_message.contains("MiB of memory free"), "{}", failed.client_message);
        assert_eq!(full.sh("ls \"$1\" 2>/dev/null; true", &[&full.base_dir]).await, "");
        full.end().await;
        // Homes and odd names that cannot be are refused before anything is made.
        for (n, bad) in [json!({"home": "relative"}), json!({"home": "/srv/../etc"}), json!({"home": "/srv/x\nUser=root"}), json!({"unit": "a b"}), json!({"unit": "../x"})].into_iter().enumerate() {
            let id = ground.instance(bad.clone()).await;
            let failed = ground.fails("provision_instance", of(&id)).await;
            assert!(failed.client_message.contains("home") || failed.client_message.contains("unit"), "{n} {bad}: {}", failed.client_message);
        }
        // An odd home that can be is a home like any other.
        let odd = format!("{}/a b'$(id)\"%h", ground.base_dir);
        let id = ground.provisioned(json!({"home": odd})).await;
        assert_eq!(ground.config(&id).await["logging"]["file"], format!("{odd}/.openclaw/logs/openclaw.jsonl"));
        assert_eq!(ground.sh("systemctl is-active \"openclaw-$1\"", &[&id]).await, "active");
        ground.run("clean_instance", of(&id)).await;
    }

    async fn a_tenants_links_lead_root_nowhere(ground: Ground) {
        let id = ground.provisioned(json!({})).await;
        let home = ground.home(&id).await;
        let owner = ground.sh("stat -c %U \"$1\"", &[&home]).await;
        // A folder of root's that looks like a state, and that everybody may use but for what is precious in it.
        let victim = format!("{}/victim", ground.base_dir);
        let make = r#"
            install -d "$2" "$2/tmp" "$2/cache" && install -d -m 777 "$2/logs" "$2/state" "$2/workspace"
            cp "$1/.openclaw/openclaw.json" "$2/openclaw.json"; chmod 644 "$2/openclaw.json"; cp -r "$1/.openclaw/state/." "$2/state"; chmod -R 777 "$2/state"
            echo precious >"$2/tmp/a"; echo precious >"$2/cache/b"
            runuser -u "$3" -- sh -c 'cd "$1" && mv .openclaw own && ln -s "$2" .openclaw' sh "$1" "$2""#;
        ground.sh(make, &[&home, &victim, &owner]).await;
        let whole = async || ground.sh("cd \"$1\" && cat tmp/a cache/b && stat -c '%U %a' . tmp cache", &[&victim]).await;
        let before = whole().await;
        let failed = ground.fails("upgrade_instance", json!({"instance_id": id, "version": "2026.5.28"})).await;
        assert_eq!(whole().await, before);
        assert_eq!(failed.client_message, "the instance's state folder is missing, or a link");

        // Cleaning takes the link along, and nothing behind it.
        ground.run("clean_instance", of(&id)).await;
        assert_eq!(whole().await, before);
        assert_eq!(ground.sh("readlink \"$1\".archive/*/.openclaw; systemctl is-active \"openclaw-$2\"", &[&home, &id]).await, format!("{victim}\nactive"));
    }

    /// What is asked about all instances of a server at once is asked of their files as their owners.
    async fn a_sweep_reads_no_file_that_its_tenant_cannot(ground: Ground) {
        let id = ground.provisioned(json!({})).await;
        let home = ground.home(&id).await;
        let owner = ground.sh("stat -c %U \"$1\"", &[&home]).await;
        let secret = format!("{}/secret", ground.base_dir);
        let link = r#"
            (umask 077; printf '{"time":"2026-11-15T01:42:01.910+00:00","message":"a secret of root"}\n' >"$2")
            runuser -u "$3" -- sh -c 'cd "$1/.openclaw" && mv openclaw.json mine.json && ln -s "$2" openclaw.json &&
            rm -f logs/openclaw.jsonl && ln -s "$2" logs/openclaw.jsonl' sh "$1" "$2""#;
        ground.sh(link, &[&home, &secret, &owner]).await;
        let look = async || {
            let posts = sweep::fleet(&ground.site.app).await.unwrap();
            let post = posts.into_iter().find(|post| post.server.id.as_str() == ground.server).unwrap();
            let looked = sweep::look(&ground.site.app, &post, &Limits::default(), Since::End).await.unwrap();
            looked.of(0).unwrap().clone()
        };
        let answer = look().await;
        assert!(answer.complete && answer.unit.loaded);
        assert!(answer.log.is_none(), "{:?}", answer.log);
        assert_eq!(answer.config, Some(ConfigFile::Unreadable));
        let back = r#"runuser -u "$2" -- sh -c 'cd "$1/.openclaw" && mv mine.json openclaw.json && rm logs/openclaw.jsonl' sh "$1" "$2""#;
        ground.sh(back, &[&home, &owner]).await;
        assert!(matches!(look().await.config, Some(ConfigFile::Content { .. })));
    }

    async fn containers_are_seen_and_only_four_things_are_done_to_them(ground: Ground) {
        let path = format!("/servers/{}/containers", ground.server);
        let call = |path: String| ground.site.admin.post(&path, json!({})).token(&ground.site.root);
        call(format!("{path}/web/remove")).refused("4000").await;
        if ground.fleet.machine("h1").docker {
            assert!(ground.site.admin.get(&path).token(&ground.site.root).ok().await["list"].is_array());
            call(format!("{path}/nobody/start")).refused("4040").await;
        } else {
            ground.site.admin.get(&path).token(&ground.site.root).refused("5030").await;
        }
        call(format!("{path}/%24(id)/logs")).refused("4040").await;
        call(format!("{path}/-f/stop")).refused("4040").await;
    }

    async fn administrators_see_what_is_on_the_server(ground: Ground) {
        let id = ground.instance(json!({})).await;
        for path in ["config", "logs"] {
            ground.site.admin.get(&format!("/instances/{id}/{path}")).token(&ground.site.root).refused("4090").await;
        }
        let set = ground.site.admin.patch(&format!("/instances/{id}/config"), json!({"config_json": {"ui": {"a": 1}}})).token(&ground.site.root).ok().await;
        assert!(set["task_id"].is_null(), "it is not on its server yet");
        ground.run("provision_instance", of(&id)).await;
        let seen = ground.site.admin.get(&format!("/instances/{id}/config")).token(&ground.site.root).ok().await;
        assert_eq!((&seen["untouched"], &seen["drift"]), (&json!(true), &json!([])), "{seen}");
        assert_eq!((&seen["config"]["gateway"]["auth"]["token"], &seen["config"]["ui"]["a"]), (&json!("***"), &json!(1)));

        let path = config_path(&ground, &id).await;
        ground.sh("sed -i 's/\"a\": *1/\"a\": 2/; s/\"apiKey\": *\"[^\"]*\"/\"apiKey\": \"another-key-of-somebody\"/' \"$1\"", &[&path]).await;
        let seen = ground.site.admin.get(&format!("/instances/{id}/config")).token(&ground.site.root).ok().await;
        assert_eq!(seen["untouched"], false);
        assert!(seen["drift"].as_array().unwrap().contains(&json!({"path": "ui.a", "is": 2, "should": 1})), "{seen}");
        assert!(seen["drift"].as_array().unwrap().contains(&json!({"path": "models.providers.tidepool.apiKey", "is": "***", "should": "***"})));

        let set = ground.site.admin.patch(&format!("/instances/{id}/config"), json!({"config_json": {"ui": {"a": null, "b": [1]}}})).token(&ground.site.root).ok().await;
        ground.done(&base::id::TaskId::named(set["task_id"].as_str().unwrap())).await;
        let config = ground.config(&id).await;
        assert_eq!(config["ui"], json!({"b": [1]}));
        let audit = ground.site.admin.get("/audit-logs?action=instance.update&limit=5").token(&ground.site.root).ok().await;
        let refusal = audit["list"][0].clone();
        assert_eq!(refusal["operator"], "root@example.com");
        assert!(refusal["detail"].as_str().unwrap().contains("models.providers.tidepool.apiKey: \"***\" → \"***\""), "{refusal}");

        // Its log, without its own secrets.
        let token = config["gateway"]["auth"]["token"].as_str().unwrap().to_owned();
        versions_of_the_configuration(&ground, &id, &token).await;
        let logs = ground.site.admin.get(&format!("/instances/{id}/logs?lines=50")).token(&ground.site.root).ok().await;
        assert!(logs["list"].as_array().unwrap().iter().any(|l| l["text"].as_str().unwrap().starts_with("listening on ws://")), "{logs}");
        ground.site.admin.get(&format!("/instances/{id}/logs?lines=0")).token(&ground.site.root).refused("4000").await;
        let url = format!("{}/api/v1/instances/{id}/logs?follow=true&lines=1", ground.site.admin.url);
        let mut stream = ground.site.admin.http.get(url).bearer_auth(&ground.site.root).send().await.unwrap();
        assert_eq!(stream.headers()["content-type"], "text/event-stream");
        ground.sh("systemctl restart \"openclaw-$1\"", &[&id]).await;
        let mut seen = String::new();
        while seen.matches("listening on ws://").count() < 2 {
            let piece = tokio::time::timeout(testkit::LIMIT, stream.chunk()).await.expect("no line").unwrap().unwrap();
            seen.push_str(&String::from_utf8_lossy(&piece));
        }
        assert!(seen.starts_with("data: {") && !seen.contains(&token), "{seen}");

        // Whoever was shut out reads no more of it, once their session is looked at again.
        ground.site.admin.post("/auth/logout", json!({})).token(&ground.site.root).ok().await;
        ground.site.wait(api::event_stream::LOOK);
        ground.sh("systemctl restart \"openclaw-$1\"", &[&id]).await;
        let rest = tokio::time::timeout(testkit::LIMIT, async {
            let mut rest = String::new();
            while let Some(piece) = stream.chunk().await.unwrap() {
                rest.push_str(&String::from_utf8_lossy(&piece));
            }
            rest
        });
        assert_eq!(rest.await.unwrap(), "");
    }
}

/// The one that somebody had changed by hand was replaced last, and is kept.
async fn versions_of_the_configuration(ground: &Ground, id: &str, token: &str) {
    let path = format!("/instances/{id}/config/versions");
    let get = |path: String| ground.site.admin.get(&path).token(&ground.site.root);
    let versions = get(path.clone()).ok().await["list"].as_array().unwrap().clone();
    assert!((1..=5).contains(&versions.len()), "{versions:?}");
    let of = |key: &str| versions.iter().map(|v| v[key].as_str().unwrap()).collect::<Vec<_>>();
    assert!(of("version").is_sorted_by(|a, b| a > b) && of("replaced_at").is_sorted_by(|a, b| a >= b), "newest first");

    let newest = versions[0]["version"].as_str().unwrap();
    let past = get(format!("{path}/{newest}")).ok().await;
    assert_eq!(past["config"]["ui"], json!({"a": 2}));
    assert_eq!(past["bytes"], versions[0]["bytes"]);
    let changes = past["changes"].as_array().unwrap();
    assert!(changes.contains(&json!({"path": "ui.a", "is": null, "should": 2})), "{past}");
    assert!(
        changes.contains(&json!({"path": "models.providers.tidepool.apiKey", "is": "***", "should": "***"})),
        "{past}"
    );
    assert!(!past.to_string().contains(token) && !past.to_string().contains("another-key-of-somebody"));

    for strange in ["20200101T000000.000000000Z", "..%2F..%2Fopenclaw.json", "x", "0$(id)"] {
        get(format!("{path}/{strange}")).refused("4040").await;
    }
    get("/instances/nobody/config/versions".to_owned()).refused("4040").await;
}
