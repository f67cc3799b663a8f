//! What a holder of the real OpenClaw leaves to the next, and links that its own shell puts in the way of root.

use fleet::assistant::Defaults;
use serde_json::{Value, json};

use crate::hostile::{attacks, variables};
use crate::kit::assistant::{START, Talk, model_server};
use crate::kit::hosts::{CURRENT, Ground, fleet, is_real};

async fn ground(name: &str) -> Ground {
    let fleet = fleet(name).expect("make test-real starts hosts");
    assert!(is_real(&fleet.host("h4"), CURRENT).await, "OpenClaw {CURRENT} is not on h4");
    let gateway_url = model_server(&fleet.host("h4")).await;
    let assistants = Defaults { gateway_url, start_limit: START, least_memory: 64 << 20, ..Default::default() };
    Ground::on(fleet, "h4", assistants).await
}

async fn talk(ground: &Ground, id: &str) -> Talk {
    let shown = ground.show(id).await;
    let port = u16::try_from(shown["gateway_port"].as_i64().unwrap()).unwrap();
    Talk::open(&ground.host, port, shown["gateway_token"].as_str().unwrap()).await
}

/// Without a cell, so that all of it lies where the next holder would find it.
#[tokio::test(flavor = "multi_thread")]
async fn leaves_nothing_to_the_next() {
    let mut ground = ground("real::stranger::leaves_nothing_to_the_next").await;
    let id = ground.provisioned(json!({})).await;
    ground.run("confine_instance", json!({"instance_id": id, "confined": false})).await;
    let user = ground.show(&id).await["runs_as"].as_str().unwrap().to_owned();
    let uid = ground.sh("id -u \"$1\"", &[&user]).await;
    let (ada, _) = ground.site.quick_employee("ada@example.com").await;
    let (bob, _) = ground.site.quick_employee("bob@example.com").await;
    let assign = |to: Value| {
        ground.site.admin.patch(&format!("/instances/{id}/assign"), json!({"user_id": to})).token(&ground.site.root)
    };
    assign(json!(ada)).ok().await;
    ground.done(&ground.latest("write_config").await).await;
    let left = "mkdir -p /tmp/left-$(id -u) && echo mine >/tmp/left-$(id -u)/note && echo mine >/var/tmp/left-$(id -u) && \
        echo mine >/dev/shm/left-$(id -u) && ipcmk -M 64 && (setsid sh -c 'while :; do sleep 1000; done' </dev/null >/dev/null 2>&1 &) ; echo left-it";
    let (said, _) = talk(&ground, &id).await.say(&format!("shell: {left}")).await;
    assert!(said.contains("left-it"), "{said}");
    let there = r#"
        grep -lsE "^Uid:.*[[:space:]]$1([[:space:]]|\$)" /proc/[0-9]*/status | wc -l
        find /tmp /var/tmp /dev/shm -xdev -uid "$1" 2>/dev/null | wc -l
        awk -v u="$1" '$8 == u' /proc/sysvipc/shm | wc -l
    "#;
    let before: Vec<u32> = ground.sh(there, &[&uid]).await.lines().map(|n| n.parse().unwrap()).collect();
    assert!(before[0] >= 3 && before[1] >= 4 && before[2] == 1, "it was all there: {before:?}");
    assign(Value::Null).ok().await;
    assign(json!(bob)).ok().await;
    ground.done(&ground.latest("clean_instance").await).await;
    assert_eq!(ground.sh(there, &[&uid]).await, "0\n0\n0", "processes, files, IPC");
    let shown = ground.show(&id).await;
    assert_ne!(shown["runs_as"], user.as_str());
    let (said, _) = talk(&ground, &id).await.say("shell: id -u; ls /tmp /var/tmp /dev/shm").await;
    assert!(!said.contains("left-") && !said.contains(&uid), "{said}");
    ground.end().await;
}

/// Its shell tool puts links in every place that tasks visit, for as long as they run.
#[tokio::test(flavor = "multi_thread")]
async fn leads_root_nowhere_by_links() {
    let mut ground = ground("real::stranger::leads_root_nowhere_by_links").await;
    let own = ground.provisioned(json!({})).await;
    let canary = format!("{}/canary", ground.base_dir);
    ground
        .sh(
            "install -d -m 755 \"$1\" \"$1/folder\" && echo alive >\"$1/file\" && echo alive >\"$1/folder/file\"",
            &[&canary],
        )
        .await;
    let look = "cd \"$1\" && find . -printf '%p %u %m %s\\n' | sort && cat file folder/*";
    let before = ground.sh(look, &[&canary]).await;
    let mut env = variables(&ground, &own, &own).await;
    env.insert("CANARY_FILE".into(), format!("{canary}/file"));
    env.insert("CANARY_DIR".into(), format!("{canary}/folder"));
    env.insert("SECONDS_TO_RUN".into(), "60".into());
    let attack = attacks().into_iter().find(|attack| attack.name == "links_in_a_loop").unwrap();
    let exports: String = env.iter().map(|(name, value)| format!("export {name}='{value}'\n")).collect();
    let write = r#"install -d -m 700 -o "$1" -g "$1" "$2" && cat >"$2/attack" && chown "$1:" "$2/attack""#;
    let put = remote::host::Command::script("test", &[write]).args([env["OWN_USER"].as_str(), env["SCRATCH"].as_str()]);
    ground.host.succeed(&put.stdin(format!("{exports}{}", attack.script))).await.unwrap();
    // It begins when the answer is out: the assistant itself stumbles over the links.
    let run = format!(
        "shell: (setsid sh -c 'sleep 3; . {}/attack' </dev/null >/dev/null 2>&1 &) ; echo begun",
        env["SCRATCH"]
    );
    let (said, _) = talk(&ground, &own).await.say(&run).await;
    assert!(said.contains("begun"), "{said}");
    let linked = "for i in $(seq 300); do [ -L \"$1/.openclaw\" ] && exit 0; sleep 0.05; done; exit 1";
    ground.sh(linked, &[&env["OWN_HOME"]]).await;
    for kind in ["write_config", "sync_models_to_instance", "restart_instance"] {
        let id = ground.enqueue(kind, json!({"instance_id": own})).await;
        ground.failed_or_done(&id).await;
        fleet::health::check(&ground.site.app).await.unwrap();
    }
    ground.site.admin.delete(&format!("/assistant-instances/{own}")).token(&ground.site.root).ok().await;
    ground.failed_or_done(&ground.latest("retire_instance").await).await;
    assert_eq!(ground.sh(look, &[&canary]).await, before, "something of root's was reached through a link");
    ground.end().await;
}
