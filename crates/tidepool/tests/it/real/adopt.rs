//! Gateways of the real OpenClaw that somebody else made are adopted while they are used, and moved into cells and back.

use base::id::TaskId;
use fleet::assistant::Defaults;
use remote::host::Host;
use serde_json::{Value, json};
use testkit::until_ok_within;

use crate::kit::assistant::{START, model_server};
use crate::kit::conversation::{Conversation, Spoken, ask_once};
use crate::kit::existing::{Existing, OF_CONTAINERS, OWN_MODEL, Plan, Runner, sh};
use crate::kit::hosts::{CURRENT, Ground, OLDER, fleet, is_real};
use crate::kit::talk::{Client, ticket, words};
use crate::kit::used_secret;

/// A site whose servers have gateways already.
struct Scene {
    ground: Ground,
    /// The host with the real OpenClaw, and the one with Docker.
    hosts: [Host; 2],
    /// The server with Docker.
    docker: String,
    /// Model servers that the gateways use on their own, of each host.
    providers: [String; 2],
    /// The LLM gateway of the platform.
    llm: String,
    mark: String,
}

impl Scene {
    async fn new(name: &str) -> Scene {
        let fleet = fleet(name).expect("make test-real starts hosts");
        let hosts = [fleet.host("h4"), fleet.host("h1")];
        for version in [CURRENT, OLDER] {
            assert!(is_real(&hosts[0], version).await, "OpenClaw {version} is not on h4");
        }
        let llm = model_server(&hosts[0]).await;
        let providers = [model_server(&hosts[0]).await, model_server(&hosts[1]).await];
        let assistants =
            Defaults { gateway_url: llm.clone(), start_limit: START, least_memory: 64 << 20, ..Default::default() };
        let machine = fleet.machine("h1").clone();
        let ground = Ground::on(fleet, "h4", assistants).await;
        let docker = base::id::fresh();
        let body = json!({"id": docker, "name": "With Docker", "host": machine.relay, "ssh_port": machine.port,
            "ssh_key_path": ground.fleet.key, "base_dir": ground.base_dir});
        ground.site.admin.post("/servers", body).token(&ground.site.root).ok().await;
        let mark = base::id::fresh().chars().rev().filter(char::is_ascii_alphanumeric).take(8).collect();
        Scene { ground, hosts, docker, providers, llm, mark }
    }

    /// A name that no other case has.
    fn name(&self, name: &str) -> String {
        format!("{name}{}", self.mark)
    }

    fn plan<'a>(&'a mut self, name: &'a str, more: Value) -> Plan<'a> {
        Plan { name, port: self.ground.next_port(), provider: &self.providers[0], more }
    }

    async fn container(&mut self, name: &str) -> Existing {
        let (port, door) = (self.ground.next_port(), self.ground.next_port());
        let provider = self.providers[1].replace("127.0.0.1", OF_CONTAINERS);
        let plan = Plan { name, port, provider: &provider, more: json!({}) };
        Existing::container(&self.hosts[1], &plan, door).await
    }

    fn host(&self, of: &Existing) -> &Host {
        &self.hosts[usize::from(of.runner == Runner::Container)]
    }

    async fn talk(&self, to: &Existing) -> Conversation {
        Conversation::begin(self.host(to), to.door, &to.token, &to.name).await
    }

    async fn get(&self, path: &str) -> Value {
        self.ground.site.admin.get(path).token(&self.ground.site.root).ok().await
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        self.ground.site.admin.post(path, body).token(&self.ground.site.root).ok().await
    }

    async fn refused(&self, path: &str, code: &str) -> String {
        self.ground.site.admin.post(path, json!({})).token(&self.ground.site.root).refused(code).await
    }

    /// What discovery says of both servers.
    async fn discovered(&self) -> Vec<Value> {
        let mut all = vec![];
        for server in [&self.ground.server, &self.docker] {
            let path = format!("/servers/{server}/discover?email_file=.config/owner&email_field=env.vars.OWNER");
            let found = self.get(&path).await;
            assert_eq!(found["complete"], true);
            all.extend(found["list"].as_array().unwrap().clone());
        }
        all
    }

    /// What discovery says of one gateway.
    async fn find(&self, one: &Existing) -> Value {
        let all = self.discovered().await;
        let is = |found: &&Value| match one.runner {
            Runner::Container => found["name"] == one.name.as_str(),
            _ => found["home"] == one.home.as_str(),
        };
        all.iter().find(is).unwrap_or_else(|| panic!("{} was not found: {all:#?}", one.name)).clone()
    }

    /// Runs a task of an instance that a person asks for.
    async fn do_now(&self, id: &str, what: &str, body: Value) {
        let task = self.post(&format!("/instances/{id}/{what}"), body).await;
        self.ground.done(&TaskId::named(task["task_id"].as_str().unwrap())).await;
    }

    /// Waits until the check of every five minutes says that all of them work.
    async fn until_healthy(&self, all: &[&Existing]) {
        until_ok_within(START, "all are healthy", async || {
            let reports = self.get("/instances/health-check").await["list"].as_array().unwrap().clone();
            let ill = |one: &&&Existing| {
                let is = |report: &&Value| report["id"] == one.name.as_str() && report["health_status"] == "healthy";
                !reports.iter().any(|report| is(&report))
            };
            if all.iter().any(|one| ill(&one)) { Err(reports) } else { Ok(()) }
        })
        .await;
    }

    async fn end(self) {
        let servers = [&self.llm, &self.providers[0], &self.providers[1]];
        for (host, url) in [&self.hosts[0], &self.hosts[0], &self.hosts[1]].into_iter().zip(servers) {
            let port = url.rsplit(':').next().unwrap();
            sh(host, "systemctl stop \"model-$1\"; rm -f \"/run/model-$1.py\"", &[port], "").await;
        }
        self.ground.end().await;
    }
}

fn wish(found: &Value, id: &str, more: Value) -> Value {
    let mut wish = json!({"key": found["key"], "id": id, "name": format!("Assistant {id}"), "restart": false});
    wish.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    wish
}

/// The entry of a list of answers that is about an instance.
fn of<'a>(answer: &'a Value, id: &str) -> &'a Value {
    answer["list"].as_array().unwrap().iter().find(|one| one["instance_id"] == id).unwrap()
}

/// Of a look at files: their names and their sums. A start touches a file of OpenClaw's own.
fn sums(files: &str) -> Vec<&str> {
    files.lines().filter(|line| line.contains("  ./")).collect()
}

/// The model of its agents, without its provider.
fn model_of(config: &Value) -> String {
    let primary = config["agents"]["defaults"]["model"]["primary"].as_str().unwrap();
    primary.split_once('/').unwrap().1.to_owned()
}

fn effects<'a>(fields: &'a Value, effect: &str) -> Vec<&'a str> {
    let fields = fields.as_array().unwrap().iter().filter(|field| field["effect"] == effect);
    fields.map(|field| field["name"].as_str().unwrap()).collect()
}

/// Two units of the system, one of a user's own, a bare process, a container, a broken configuration, and an older release.
#[tokio::test(flavor = "multi_thread")]
async fn seven_gateways_are_adopted_while_they_are_used() {
    let mut scene = Scene::new("real::adopt::seven").await;
    let names = ["keeper", "mover", "lone", "bare", "broken", "older", "boxed"].map(|name| scene.name(name));
    let owned = json!({"env": {"vars": {"OWNER": "lone@example.com"}}});
    let h4 = scene.hosts[0].clone();
    let lone = Existing::user_unit(&h4, &scene.plan(&names[2], owned)).await;
    let keeper = Existing::unit(&h4, &scene.plan(&names[0], json!({})), CURRENT).await;
    let mover = Existing::unit_of_node(&h4, &scene.plan(&names[1], json!({}))).await;
    let bare = Existing::process(&h4, &scene.plan(&names[3], json!({}))).await;
    let broken = Existing::broken(&h4, &scene.plan(&names[4], json!({}))).await;
    let older = Existing::unit(&h4, &scene.plan(&names[5], json!({})), OLDER).await;
    let boxed = scene.container(&names[6]).await;
    let running = [&keeper, &mover, &lone, &bare, &older, &boxed];
    let mut talks = vec![];
    for one in running {
        talks.push(scene.talk(one).await);
    }
    let mut before = vec![];
    for one in running {
        before.push((one.starts().await, one.files().await));
    }

    // What they are.
    let mut found = vec![];
    for one in running {
        let seen = scene.find(one).await;
        let runner = match one.runner {
            Runner::Unit => "unit",
            Runner::UserUnit => "user_unit",
            Runner::Process => "process",
            Runner::Container => "container",
        };
        assert_eq!((&seen["runner"], &seen["port"]), (&json!(runner), &json!(one.port)), "{seen:#}");
        assert_eq!(
            (&seen["running"], &seen["obstacle"], &seen["model"]),
            (&json!(true), &Value::Null, &json!(OWN_MODEL)),
            "{seen:#}"
        );
        assert_eq!((&seen["has_token"], &seen["instance_id"]), (&json!(true), &Value::Null), "{seen:#}");
        assert!(seen["last_session_at"].is_string() && !seen.to_string().contains(&one.token), "{seen:#}");
        found.push(seen);
    }
    let [keeper_found, mover_found, lone_found, bare_found, older_found, boxed_found] = &found[..] else {
        unreachable!()
    };
    for seen in [keeper_found, mover_found, boxed_found] {
        assert_eq!(seen["version"], CURRENT, "{seen:#}");
    }
    assert_eq!(older_found["version"], OLDER, "{older_found:#}");
    assert_eq!((&lone_found["lingers"], &lone_found["email"]), (&json!(true), &json!("lone@example.com")));
    assert_eq!(bare_found["only_observed"], true);
    let broken_found = scene.find(&broken).await;
    assert_eq!((&broken_found["obstacle"], &broken_found["config"]), (&json!("config_broken"), &json!("broken")));

    // What would be done, and what is done.
    let (user, employee) = scene.ground.site.quick_employee("lone@example.com").await;
    let here = json!({"list": [
        wish(keeper_found, &keeper.name, json!({"keeps_llm": true})),
        wish(mover_found, &mover.name, json!({"keeps_llm": false})),
        wish(lone_found, &lone.name, json!({"keeps_llm": true, "email": "lone@example.com"})),
        wish(bare_found, &bare.name, json!({"keeps_llm": false})),
        wish(&broken_found, &broken.name, json!({"keeps_llm": true})),
        wish(older_found, &older.name, json!({"keeps_llm": true})),
    ]});
    let there = json!({"list": [wish(boxed_found, &boxed.name, json!({"keeps_llm": true}))]});
    let (server, docker) = (scene.ground.server.clone(), scene.docker.clone());
    let mut task = None;
    for (server, body) in [(server, here), (docker, there)] {
        let preview = scene.post(&format!("/servers/{server}/adopt/preview"), body.clone()).await;
        let done = scene.post(&format!("/servers/{server}/adopt"), body.clone()).await;
        for wished in body["list"].as_array().unwrap() {
            let id = wished["id"].as_str().unwrap();
            let (preview, done) = (of(&preview, id), of(&done, id));
            assert_eq!(preview["refusal"], done["refusal"], "{preview:#}");
            if id == broken.name {
                assert_eq!(done["refusal"], "its configuration is no JSON5 document");
                continue;
            }
            assert_eq!(done["refusal"], Value::Null, "{done:#}");
            if id == mover.name {
                let hot = effects(&preview["changes"], "hot");
                assert!(hot.iter().any(|name| name.starts_with("models.providers.tidepool")), "{preview:#}");
                task = Some((TaskId::named(done["task_id"].as_str().unwrap()), preview.clone()));
                continue;
            }
            assert_eq!((&preview["changes"], &preview["needs_restart"]), (&json!([]), &json!(false)), "{preview:#}");
            assert_eq!(
                (&preview["only_observed"], &done["task_id"]),
                (&json!(id == bare.name), &Value::Null),
                "{preview:#}"
            );
        }
    }
    let (task, preview) = task.unwrap();
    scene.ground.done(&task).await;

    // How they are afterwards, also once everything has run that runs by itself.
    scene.until_healthy(&running).await;
    let site = &scene.ground.site;
    for job in ["reconcile", "auto_recovery", "log_scan", "llm_self_heal", "key_validity_check"] {
        println!("{job}: {}", site.run_job(&site.root, job).await);
    }
    for (one, seen) in running.into_iter().zip(&found) {
        let shown = scene.ground.show(&one.name).await;
        assert_eq!((&shown["runner"], &shown["isolation"]), (&seen["runner"], &json!("adopted")), "{shown:#}");
        assert_eq!(
            (&shown["own_llm"], &shown["runs_as"]),
            (&json!(one.name != mover.name), &seen["user"]),
            "{shown:#}"
        );
        assert_eq!(shown["gateway_token"], one.token.as_str());
        let logs = format!("/instances/{}/logs", one.name);
        if one.runner == Runner::Process {
            site.admin.get(&logs).token(&site.root).refused("4090").await;
            let restart = format!("/instances/{}/restart", one.name);
            println!("a restart of a bare process: {}", scene.refused(&restart, "4090").await);
        } else {
            let lines = scene.get(&logs).await;
            assert!(lines.to_string().contains("[gateway]"), "{} has no log: {lines:#}", one.name);
            assert!(!lines.to_string().contains(&one.token), "{}", one.name);
        }
        let config = scene.get(&format!("/instances/{}/config", one.name)).await;
        let version = if one.name == older.name { OLDER } else { CURRENT };
        assert_eq!(config["version"], version, "{}", one.name);
        assert_eq!(scene.find(one).await["instance_id"], one.name.as_str());
    }
    assert_eq!(scene.ground.show(&lone.name).await["assigned_user_id"], json!(user));
    let restarts = scene.get("/tasks?type=restart_instance").await;
    assert_eq!(restarts["total"], 0, "{restarts:#}");

    // Nobody who used them noticed.
    let mut spoken: Vec<Spoken> = vec![];
    for talk in &mut talks {
        talk.goes_on(3).await;
    }
    for talk in talks {
        spoken.push(talk.end().await);
    }
    for ((one, spoken), (starts, files)) in running.into_iter().zip(&spoken).zip(&before) {
        spoken.require_whole();
        println!("{}: {} messages, the last reply {:?}", one.name, spoken.words.len(), spoken.replies.last());
        assert_eq!(one.starts().await, *starts, "{} was restarted", one.name);
        if one.name != mover.name {
            assert_eq!(one.files().await, *files, "{} was changed", one.name);
        }
        let reply = spoken.replies.last().unwrap();
        let model = model_of(&one.config().await);
        assert!(reply.starts_with(&format!("{model} remembers: ")), "{} has {model}: {reply}", one.name);
        assert_eq!(model == "own-1", one.name != mover.name, "{} has {model}", one.name);
    }

    // What gets our gateway has it, and what needs a restart is what the preview said.
    let config = mover.config().await;
    let key = config["models"]["providers"]["tidepool"]["apiKey"].as_str().unwrap();
    used_secret(key);
    assert!(key.starts_with("sk-") && config["models"]["providers"]["own"].is_object(), "{}", mover.name);
    assert_eq!(config["models"]["providers"]["tidepool"]["baseUrl"], format!("{}/v1", scene.llm));
    assert_eq!(config["gateway"]["auth"]["token"], mover.token.as_str());
    let state = scene.get(&format!("/instances/{}/state", mover.name)).await;
    assert_eq!(effects(&state["fields"], "hot"), Vec::<&str>::new(), "{state:#}");
    assert_eq!(effects(&state["fields"], "restart"), effects(&preview["changes"], "restart"), "{state:#}");

    // Its holder talks to an adopted one through the platform.
    let ticket = ticket(&site.employee, &employee, &lone.name).await;
    let mut client = Client::open(&site.employee, &lone.name, &ticket, &[]).await.unwrap();
    client.event("relay.hello").await;
    client.send("run-of-the-platform", "remember the platform").await;
    let reply = client.chat("run-of-the-platform", "final").await;
    assert!(words(&reply).starts_with("own-1 remembers: ") && words(&reply).contains("platform"), "{reply:#}");

    // A restart that a person asks for is one.
    for (number, one) in [(0, &keeper), (5, &boxed), (1, &mover)] {
        scene.do_now(&one.name, "restart", json!({})).await;
        assert_ne!(one.starts().await, before[number].0, "{} was not restarted", one.name);
        one.ready().await;
        if one.runner == Runner::Container {
            one.open_door().await;
        }
        let (reply, known) = ask_once(scene.host(one), one.door, &one.token, "afterwards").await;
        assert!(reply.contains("afterwards") && known.contains(&spoken[number].words[0]), "{}: {reply}", one.name);
        if one.name != mover.name {
            let (now, then) = (one.files().await, &before[number].1);
            assert_eq!(sums(&now), sums(then), "{} was changed", one.name);
        }
    }
    let state = scene.get(&format!("/instances/{}/state", mover.name)).await;
    assert_eq!(effects(&state["fields"], "restart"), Vec::<&str>::new(), "{state:#}");
    scene.until_healthy(&running).await;

    for one in [keeper, mover, lone, bare, broken, older, boxed] {
        one.remove().await;
    }
    scene.end().await;
}

/// Whoever gets an adopted container talks to it, as with every other assistant.
#[tokio::test(flavor = "multi_thread")]
async fn the_holder_of_a_container_talks_to_it_through_the_platform() {
    let mut scene = Scene::new("real::adopt::container").await;
    let name = scene.name("boxed");
    let boxed = scene.container(&name).await;
    let (_, employee) = scene.ground.site.quick_employee("ada@example.com").await;
    let found = scene.find(&boxed).await;
    let body = json!({"list": [wish(&found, &name, json!({"keeps_llm": true, "email": "ada@example.com"}))]});
    let done = scene.post(&format!("/servers/{}/adopt", scene.docker), body).await;
    assert_eq!(of(&done, &name)["refusal"], Value::Null, "{done:#}");
    scene.until_healthy(&[&boxed]).await;
    let site = &scene.ground.site;
    let ticket = ticket(&site.employee, &employee, &name).await;
    let mut client = Client::open(&site.employee, &name, &ticket, &[]).await.unwrap();
    client.event("relay.hello").await;
    client.send("first", "remember the lighthouse").await;
    assert_eq!(words(&client.chat("first", "final").await).trim(), "own-1 remembers: lighthouse");
    boxed.remove().await;
    scene.end().await;
}

/// A unit of a user's own and a bare process are moved into cells, and the unit is moved back.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_moved_into_a_cell_keeps_its_history_and_leaves_all_that_it_was() {
    let mut scene = Scene::new("real::adopt::moved").await;
    let names = ["lone", "bare"].map(|name| scene.name(name));
    let h4 = scene.hosts[0].clone();
    let lone = Existing::user_unit(&h4, &scene.plan(&names[0], json!({}))).await;
    let bare = Existing::process(&h4, &scene.plan(&names[1], json!({}))).await;
    for one in [&lone, &bare] {
        let (reply, _) = ask_once(&h4, one.port, &one.token, "lighthouse").await;
        assert_eq!(reply.trim(), "own-1 remembers: lighthouse");
        let found = scene.find(one).await;
        let body = json!({"list": [wish(&found, &one.name, json!({"keeps_llm": true}))]});
        let done = scene.post(&format!("/servers/{}/adopt", scene.ground.server), body).await;
        assert_eq!(of(&done, &one.name)["refusal"], Value::Null, "{done:#}");
        let back = format!("/instances/{}/move-back", one.name);
        scene.refused(&back, "4090").await;
    }
    let left = [lone.possessions().await, bare.possessions().await];

    // The unit keeps its own provider; the process gets ours.
    for (number, (one, keeps_llm)) in [(&lone, true), (&bare, false)].into_iter().enumerate() {
        scene.do_now(&one.name, "move-into-cell", json!({"keeps_llm": keeps_llm})).await;
        let shown = scene.ground.show(&one.name).await;
        assert_eq!((&shown["cell"], &shown["isolation"]), (&json!("confined"), &json!("own")), "{shown:#}");
        assert_eq!((&shown["runner"], &shown["own_llm"]), (&json!("unit"), &json!(keeps_llm)), "{shown:#}");
        assert_eq!(shown["moved_from"]["home"], one.home.as_str(), "{shown:#}");
        assert!(shown["home"].as_str().unwrap().starts_with(&scene.ground.base_dir), "{shown:#}");
        assert_ne!(shown["runs_as"], one.name.as_str(), "{shown:#}");
        let model = model_of(&scene.ground.config(&one.name).await);
        assert_eq!(model == "own-1", keeps_llm, "{model}");
        let (reply, known) = ask_once(&h4, one.port, &one.token, "harbour").await;
        assert_eq!(reply.trim(), format!("{model} remembers: lighthouse harbour"), "it answers with what it knew");
        assert!(known.contains(&"lighthouse".to_owned()), "{known:?}");
        assert_eq!(one.possessions().await, left[number], "what was in {} stays there", one.home);
        let user = scene
            .ground
            .sh(
                "ps -o user:40= -p $(ss -Hltnp \"sport = :$1\" | grep -o 'pid=[0-9]*' | cut -d = -f 2 | sort -u)",
                &[&one.port.to_string()],
            )
            .await;
        assert_eq!(user.trim(), shown["runs_as"].as_str().unwrap(), "whoever has its port is its new user");
    }
    let unit = lone.starts().await;
    assert!(unit.contains("MainPID=0") && unit.contains("UnitFileState=disabled"), "{unit}");
    assert_eq!(scene.ground.sh("pgrep -u \"$1\" openclaw || true", &[&bare.name]).await, "", "the process has ended");
    scene.until_healthy(&[&lone, &bare]).await;

    scene.do_now(&lone.name, "move-back", json!({})).await;
    lone.ready().await;
    let unit = lone.starts().await;
    assert!(!unit.contains("MainPID=0") && unit.contains("UnitFileState=enabled"), "{unit}");
    let shown = scene.ground.show(&lone.name).await;
    assert_eq!((&shown["runner"], &shown["isolation"]), (&json!("user_unit"), &json!("adopted")), "{shown:#}");
    assert_eq!((&shown["home"], &shown["moved_from"]), (&json!(lone.home), &Value::Null), "{shown:#}");
    assert_eq!(lone.possessions().await, left[0]);
    let (reply, _) = ask_once(&h4, lone.port, &lone.token, "pier").await;
    assert_eq!(reply.trim(), "own-1 remembers: lighthouse pier", "what was said in the cell stayed there");
    scene.until_healthy(&[&lone, &bare]).await;

    lone.remove().await;
    bare.remove().await;
    scene.end().await;
}
