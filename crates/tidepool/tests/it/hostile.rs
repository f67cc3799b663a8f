//! A hostile tenant: every attack of testbed/hostile, run by an assistant in its own shell on a real host. Without its cell most of them
//! succeed; inside of it none does.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::kit::hosts::Ground;

/// What an attack came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Succeeded,
    Refused,
    /// The server lacks what would refuse it, or it cannot be judged there.
    NotEnforceable,
}

pub struct Attack {
    pub name: String,
    pub script: String,
    /// What the server must have for it to be refused; empty where any server will do.
    enforced_where: String,
}

impl Attack {
    pub fn outcome(&self, status: i64, said: &str) -> Outcome {
        match status {
            0 if !self.enforced_where.is_empty() => Outcome::NotEnforceable,
            0 => Outcome::Succeeded,
            1 => Outcome::Refused,
            2 => Outcome::NotEnforceable,
            // A program that the kernel ended was stopped, too; anything else is a fault of the attack itself.
            128..=159 => Outcome::Refused,
            other => panic!("{} ended with {other}: {said}", self.name),
        }
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testbed/hostile")
}

pub fn attacks() -> Vec<Attack> {
    let mut all: Vec<Attack> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "sh"))
        .map(|path| {
            let script = std::fs::read_to_string(&path).unwrap();
            let field = |name: &str| {
                let line = script.lines().find_map(|line| line.strip_prefix(&format!("# {name}:")));
                line.unwrap_or_else(|| panic!("{path:?} does not say `{name}`")).trim().to_owned()
            };
            assert!(!field("Tries").is_empty() && !field("Refused by").is_empty(), "{path:?}");
            Attack {
                name: path.file_stem().unwrap().to_str().unwrap().to_owned(),
                enforced_where: field("Enforced where"),
                script,
            }
        })
        .collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(all.len() > 50);
    all
}

/// What an attack is told about its tenant and about the assistant next door.
pub async fn variables(ground: &Ground, own: &str, neighbour: &str) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for (front, id) in [("OWN", own), ("NEIGHBOUR", neighbour)] {
        let shown = ground.show(id).await;
        let text = |name: &str| shown[name].as_str().unwrap().to_owned();
        all.insert(format!("{front}_USER"), text("runs_as"));
        all.insert(format!("{front}_HOME"), text("home"));
        all.insert(format!("{front}_PORT"), shown["gateway_port"].to_string());
        all.insert(format!("{front}_UNIT"), format!("openclaw-{id}.service"));
    }
    all.insert("NEIGHBOUR_PID".into(), ground.main_pid(neighbour).await);
    all.insert("LOGIN_USER".into(), "root".into());
    all.insert("LOGIN_HOME".into(), "/root".into());
    all.insert("SCRATCH".into(), format!("{}/scratch", all["OWN_HOME"]));
    all
}

/// The tenant, who runs the attacks, and the assistant next door.
struct Scene<'a> {
    ground: &'a Ground,
    own: String,
    neighbour: String,
}

impl Scene<'_> {
    async fn variables(&self) -> BTreeMap<String, String> {
        variables(self.ground, &self.own, &self.neighbour).await
    }

    async fn shell(&self, script: &str, env: &BTreeMap<String, String>) -> (i64, String) {
        shell(self.ground, &self.own, script, env).await
    }

    /// Every attack but the one by links, which is a test of its own.
    async fn attacks(&self, attacks: &[Attack], env: &BTreeMap<String, String>) -> Tally {
        let mut tally = Tally::default();
        for attack in attacks.iter().filter(|attack| attack.name != "links_in_a_loop") {
            let (status, said) = self.shell(&attack.script, env).await;
            let outcome = attack.outcome(status, &said);
            writeln!(tally.table, "{:<50} {outcome:?}: {said}", attack.name).unwrap();
            match outcome {
                Outcome::Refused => tally.refused += 1,
                Outcome::NotEnforceable => tally.not_enforceable.push(attack.name.clone()),
                Outcome::Succeeded => tally.succeeded.push(attack.name.clone()),
            }
        }
        tally
    }
}

/// What became of all attacks.
#[derive(Default)]
struct Tally {
    refused: usize,
    not_enforceable: Vec<String>,
    succeeded: Vec<String>,
    table: String,
}

/// Runs a script in the shell of an assistant, a stand-in: whatever its program may do, this may.
pub async fn shell(ground: &Ground, id: &str, script: &str, env: &BTreeMap<String, String>) -> (i64, String) {
    let shown = ground.show(id).await;
    let body = json!({"script": script, "env": env});
    // The token and the script go through standard input: everybody on the server can read arguments.
    let request = format!(
        "url = \"http://127.0.0.1:{}/shell\"\nheader = \"Authorization: Bearer {}\"\nheader = \"Content-Type: application/json\"\ndata-binary = {}\n",
        shown["gateway_port"],
        shown["gateway_token"].as_str().unwrap(),
        Value::String(body.to_string())
    );
    let command = remote::host::Command::new("curl")
        .args(["-sS", "-m", "60", "--fail-with-body", "-K", "-"])
        .stdin(request)
        .limit(std::time::Duration::from_secs(70));
    let answer = ground.host.succeed(&command).await.unwrap().text();
    let answer: Value = serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer}"));
    (answer["status"].as_i64().unwrap(), answer["said"].as_str().unwrap().trim().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_every_attack_is_refused_inside_of_the_cell_and_most_succeed_without() {
    let name = "hostile::heavy_every_attack_is_refused_inside_of_the_cell_and_most_succeed_without";
    let Some(mut ground) = Ground::new(name).await else { return };
    let own = ground.provisioned(json!({})).await;
    let neighbour = ground.provisioned(json!({})).await;
    // The neighbour stands outside of its cell, so that a refusal is the doing of the attacker's.
    for id in [&own, &neighbour] {
        ground.run("confine_instance", json!({"instance_id": id, "confined": false})).await;
        assert_eq!(ground.show(id).await["cell"], "unconfined");
    }
    let (attacks, scene) = (attacks(), Scene { ground: &ground, own, neighbour });
    let env = scene.variables().await;
    // A process of the tenant's user beside its unit, as the platform's own commands are for a moment; and files of the neighbour's.
    let beside = async || {
        let user = env["OWN_USER"].as_str();
        ground.sh("setsid runuser -u \"$1\" -- sleep 900 </dev/null >/dev/null 2>&1 &", &[user]).await;
        let find = "for i in $(seq 100); do pgrep -n -x -u \"$1\" sleep && exit; sleep 0.1; done; exit 1";
        ground.sh(find, &[user]).await
    };
    let prepare = r#"
        install -d -m 700 -o "$1" -g "$1" "$2"
        runuser -u "$3" -- sh -c 'umask 022; for folder in /tmp /var/tmp /dev/shm; do echo theirs >"$folder/neighbour-$0"; done; ipcmk -M 64 -p 0666 >/dev/null' "$4"
    "#;
    let args = [&env["OWN_USER"], &env["SCRATCH"], &env["NEIGHBOUR_USER"], &env["NEIGHBOUR_PORT"]].map(String::as_str);
    ground.sh(prepare, &args).await;
    let message = |env: &BTreeMap<String, String>, outside: &str| {
        let mut env = env.clone();
        env.insert("OUTSIDE_PID".into(), outside.to_owned());
        env
    };
    let outside_before = beside().await;
    let env_before = message(&env, &outside_before);

    let mut before = BTreeMap::new();
    for attack in attacks.iter().filter(|attack| attack.name != "links_in_a_loop") {
        // Where the server could not refuse it, it succeeded all the same.
        let (status, said) = scene.shell(&attack.script, &env_before).await;
        let outcome = if status == 0 { Outcome::Succeeded } else { attack.outcome(status, &said) };
        before.insert(attack.name.clone(), outcome);
    }
    ground.run("confine_instance", json!({"instance_id": scene.own, "confined": true})).await;
    let shown = ground.site.admin.get(&format!("/instances/{}/cell", scene.own)).token(&ground.site.root).ok().await;
    assert_eq!((&shown["state"], &shown["left_out"]), (&json!("confined"), &json!([])), "{shown}");
    assert!(shown["score"].as_f64().unwrap() <= 3.0, "{shown}");
    // What ran beside it ended when it came into its cell.
    let outside = beside().await;
    assert_ne!(outside, outside_before);
    let mut env = message(&env, &outside);
    env.insert("NEIGHBOUR_PID".into(), ground.main_pid(&scene.neighbour).await);

    let closed = scene.attacks(&attacks, &env).await;
    println!("without the cell: {before:#?}\ninside of it:\n{}", closed.table);
    let had_success = before.values().filter(|outcome| **outcome == Outcome::Succeeded).count();
    testkit::publish(
        "hostile",
        &format!(
            "hostile tenant: {} refused, {} not enforceable here ({}), {} succeeded; without the cell {had_success} of them succeed",
            closed.refused,
            closed.not_enforceable.len(),
            closed.not_enforceable.join(", "),
            closed.succeeded.len()
        ),
    );
    assert!(closed.succeeded.is_empty(), "{:?}\n{}", closed.succeeded, closed.table);
    assert!(had_success >= 20, "attacks that never succeed prove little: {had_success}\n{}", closed.table);

    // The opening for a browser is no way out either: it gives a namespace of its own, and nothing that is in the cell's way.
    let open = json!({"openings": ["browser"]});
    let path = format!("/instances/{}/cell/openings", scene.own);
    ground.site.admin.put(&path, open).token(&ground.site.root).ok().await;
    ground.done(&ground.latest("confine_instance").await).await;
    let outside = beside().await;
    let env = message(&env, &outside);
    let open = scene.attacks(&attacks, &env).await;
    println!("with the opening for a browser:\n{}", open.table);
    assert!(open.succeeded.is_empty(), "{:?}\n{}", open.succeeded, open.table);
    let more: Vec<&String> = open.not_enforceable.iter().filter(|one| !closed.not_enforceable.contains(one)).collect();
    assert_eq!(more, ["new_user_namespace"], "{}", open.table);
    ground
        .sh(
            "kill \"$1\"; rm -f /tmp/neighbour-\"$2\" /var/tmp/neighbour-\"$2\" /dev/shm/neighbour-\"$2\"",
            &[&outside, &env["NEIGHBOUR_PORT"]],
        )
        .await;
    ground.end().await;
}

/// While the platform works on an instance as root, its tenant puts links in every place that is visited.
#[tokio::test(flavor = "multi_thread")]
async fn heavy_no_link_leads_root_out_of_a_home_while_tasks_run() {
    let name = "hostile::heavy_no_link_leads_root_out_of_a_home_while_tasks_run";
    let Some(mut ground) = Ground::new(name).await else { return };
    let own = ground.provisioned(json!({})).await;
    let neighbour = ground.provisioned(json!({})).await;
    let canary = format!("{}/canary", ground.base_dir);
    let plant = r#"
        install -d -m 755 "$1" "$1/folder" && echo alive >"$1/file" && echo alive >"$1/folder/file" && echo '{"gateway":{}}' >"$1/folder/openclaw.json"
        chmod 644 "$1/file" "$1/folder"/*
    "#;
    ground.sh(plant, &[&canary]).await;
    let look = "cd \"$1\" && find . -printf '%p %u %m %s\\n' | sort && cat file folder/*";
    let before = ground.sh(look, &[&canary]).await;
    let scene = Scene { ground: &ground, own: own.clone(), neighbour };
    let mut env = scene.variables().await;
    env.insert("CANARY_FILE".into(), format!("{canary}/file"));
    env.insert("CANARY_DIR".into(), format!("{canary}/folder"));
    env.insert("SECONDS_TO_RUN".into(), "25".into());
    let attack = attacks().into_iter().find(|attack| attack.name == "links_in_a_loop").unwrap();
    // It must go on when its gateway is stopped, as a daemon outside of the unit would: the tenant's user runs it by itself.
    let started = format!(
        "install -d -m 700 -o \"$1\" -g \"$1\" \"$2\"; printf %s \"$3\" >\"$2/attack.sh\"; chmod 755 \"$2/attack.sh\"; {} setsid runuser -u \"$1\" -- timeout 60 sh \"$2/attack.sh\" </dev/null >/dev/null 2>&1 &",
        env.iter().map(|(name, value)| format!("{name}='{value}'")).collect::<Vec<_>>().join(" ")
    );
    ground.sh(&started, &[&env["OWN_USER"], &env["SCRATCH"], &attack.script]).await;
    for _ in 0..2 {
        for (kind, more) in [
            ("write_config", json!({})),
            ("sync_models_to_instance", json!({})),
            ("confine_instance", json!({"confined": false})),
            ("upgrade_instance", json!({"version": "2026.5.28"})),
            ("restart_instance", json!({})),
        ] {
            let mut payload = json!({"instance_id": own});
            payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let id = ground.enqueue(kind, payload).await;
            // Whether it goes well is the tenant's own affair: what it may not do is to reach beyond its home. A change of its cell that
            // the tenant broke in the middle is tried again before anything else.
            ground.failed_or_done_in_its_turn(&id).await;
            fleet::health::check(&ground.site.app).await.unwrap();
        }
    }
    assert_eq!(ground.sh(look, &[&canary]).await, before, "something of root's was reached through a link");
    ground.sh("pkill -KILL -u \"$1\"; true", &[&env["OWN_USER"]]).await;
    ground.site.admin.delete(&format!("/assistant-instances/{own}")).token(&ground.site.root).ok().await;
    ground.failed_or_done_in_its_turn(&ground.latest("retire_instance").await).await;
    assert_eq!(ground.sh(look, &[&canary]).await, before);
    ground.end().await;
}
