//! Gateways that a server has already are discovered and adopted: nothing is changed that the preview did not say.

mod cell_move;
mod hosts;
mod many;
mod record;

use serde_json::{Value, json};
use sim::host::Instance;
use store::instance::Runner;

use crate::kit::simulated::Simulated;
use crate::kit::{Database, database_before, used_secret};

const TOKEN: &str = "the-token-that-a-gateway-had-before";

/// A gateway that somebody else made.
fn add(ground: &Simulated, user: &str, name: &str, port: u16) {
    used_secret(TOKEN);
    let home = format!("/home/{name}");
    ground.machine.add_as(user, &Instance { unit: format!("{name}.service"), home, port, token: TOKEN.into() });
}

fn config_path(name: &str) -> String {
    format!("/home/{name}/.openclaw/openclaw.json")
}

async fn discovered(ground: &Simulated) -> Vec<Value> {
    let found = ground.site.admin.get("/servers/s/discover").token(&ground.site.root).ok().await;
    assert_eq!(found["complete"], true);
    found["list"].as_array().unwrap().clone()
}

fn wish(name: &str, more: Value) -> Value {
    let mut wish = json!({"key": format!("unit:{name}.service"), "id": name, "name": format!("Assistant of {name}")});
    wish.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    wish
}

async fn adopt(ground: &Simulated, token: &str, wishes: Vec<Value>) -> Vec<Value> {
    let body = json!({"list": wishes});
    let preview = ground.site.admin.post("/servers/s/adopt/preview", body.clone()).token(token).ok().await;
    let done = ground.site.admin.post("/servers/s/adopt", body).token(token).ok().await;
    let refusals =
        |list: &Value| list["list"].as_array().unwrap().iter().map(|one| one["refusal"].clone()).collect::<Vec<_>>();
    assert_eq!(refusals(&preview), refusals(&done), "the preview says what is refused");
    done["list"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_keeps_its_own_provider_is_not_touched() {
    let ground = Simulated::new().await;
    let site = &ground.site;
    ground.provisioned("ours").await;
    add(&ground, "ada", "ada", 19000);
    let found = discovered(&ground).await;
    assert_eq!(found.len(), 2, "{found:#?}");
    let ada = found.iter().find(|one| one["key"] == "unit:ada.service").unwrap();
    assert_eq!((&ada["user"], &ada["home"], &ada["port"]), (&json!("ada"), &json!("/home/ada"), &json!(19000)));
    assert_eq!((&ada["instance_id"], &ada["obstacle"], &ada["running"]), (&Value::Null, &Value::Null, &json!(true)));
    assert!(found.iter().any(|one| one["instance_id"] == "ours"), "{found:#?}");
    assert!(!ada.to_string().contains(TOKEN), "{ada}");

    let (before, starts) = (ground.machine.read(&config_path("ada")), ground.machine.starts("ada.service"));
    let done = adopt(&ground, &site.root, vec![wish("ada", json!({"keeps_llm": true}))]).await;
    assert_eq!((&done[0]["refusal"], &done[0]["task_id"]), (&Value::Null, &Value::Null), "{done:#?}");
    ground.settle().await;
    site.admin.get("/instances/health-check").token(&site.root).ok().await;
    fleet::reconcile::pass::run(&site.app).await.unwrap();
    fleet::key_check::rewrite_wrong(&site.app).await.unwrap();
    ground.settle().await;
    assert_eq!((ground.machine.read(&config_path("ada")), ground.machine.starts("ada.service")), (before, starts));
    let shown = site.admin.get("/instances/ada").token(&site.root).ok().await;
    assert_eq!(
        (&shown["isolation"], &shown["runs_as"], &shown["own_llm"]),
        (&json!("adopted"), &json!("ada"), &json!(true))
    );
    assert_eq!((&shown["health_status"], &shown["gateway_token"]), (&json!("healthy"), &json!(TOKEN)), "{shown:#}");
    let audit = site.admin.get("/audit-logs?action=instance.create").token(&site.root).ok().await;
    assert!(audit.to_string().contains("adopted unit:ada.service of ada on Server s, port 19000"), "{audit:#}");

    // It is known now, and nobody adopts it twice.
    assert!(discovered(&ground).await.iter().any(|one| one["instance_id"] == "ada"));
    let again = adopt(&ground, &site.root, vec![wish("ada", json!({"id": "second"}))]).await;
    assert_eq!(again[0]["refusal"], "it is the instance ada");
    // Nobody but a super administrator gives it away, and it is in no pool.
    let (_, employee) = site.quick_employee("eva@example.com").await;
    site.employee.post("/me/instances/claim", json!({"instance_id": "ada"})).token(&employee).refused("4092").await;

    // A restart is a person's to ask for. When the record goes, the home and its user stay.
    let restarted = ground.enqueue("restart_instance", json!({"instance_id": "ada"})).await;
    ground.settle().await;
    ground.done(&restarted).await;
    assert_eq!(ground.machine.starts("ada.service"), starts + 1);
    site.admin.delete("/assistant-instances/ada").token(&site.root).ok().await;
    ground.settle().await;
    assert!(ground.machine.read(&config_path("ada")).is_some());
    assert!(ground.machine.read("/etc/systemd/system/ada.service").is_some());
    site.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_gets_our_gateway_is_changed_as_the_preview_said() {
    let ground = Simulated::new().await;
    let site = &ground.site;
    add(&ground, "ada", "ada", 19000);
    let (user, _) = site.quick_employee("ada@example.com").await;
    let wish = wish("ada", json!({"email": "ada@example.com"}));
    let body = json!({"list": [wish]});
    let before = ground.machine.read(&config_path("ada"));
    let preview = site.admin.post("/servers/s/adopt/preview", body).token(&site.root).ok().await;
    assert_eq!(ground.machine.read(&config_path("ada")), before, "a preview changes nothing");
    assert_eq!(site.admin.get("/instances").token(&site.root).ok().await["total"], 0);
    let preview = &preview["list"][0];
    let changes: Vec<(&str, &str)> = preview["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| (change["name"].as_str().unwrap(), change["effect"].as_str().unwrap()))
        .collect();
    assert!(changes.iter().any(|(name, _)| name.starts_with("models.providers.tidepool")), "{preview:#}");
    assert!(!preview.to_string().contains(TOKEN), "{preview:#}");

    let starts = ground.machine.starts("ada.service");
    let done = adopt(&ground, &site.root, vec![wish]).await;
    let task = base::id::TaskId::named(done[0]["task_id"].as_str().unwrap());
    ground.settle().await;
    ground.done(&task).await;
    let config = ground.config("/home/ada");
    assert!(config["models"]["providers"]["tidepool"]["apiKey"].as_str().unwrap().starts_with("sk-"), "{config:#}");
    assert_eq!(config["gateway"]["auth"]["token"], TOKEN, "its token is taken over");
    let shown = site.admin.get("/instances/ada").token(&site.root).ok().await;
    assert_eq!(shown["assigned_user_id"], json!(user));
    assert_eq!(ground.machine.starts("ada.service"), starts, "nothing was restarted");
    // What needs a restart is asked for, and is exactly what the preview said.
    let state = site.admin.get("/instances/ada/state").token(&site.root).ok().await;
    let left: Vec<&str> = state["fields"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|field| field["effect"] == "restart")
        .map(|field| field["name"].as_str().unwrap())
        .collect();
    let cold: Vec<&str> = changes.iter().filter(|(_, effect)| *effect == "restart").map(|(name, _)| *name).collect();
    assert_eq!(left, cold, "{state:#}");
    assert_eq!(preview["needs_restart"], json!(!cold.is_empty()));
    site.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_roots_or_given_to_somebody_is_a_super_administrators() {
    let ground = Simulated::new().await;
    let site = &ground.site;
    add(&ground, "root", "main", 19000);
    add(&ground, "ada", "ada", 19100);
    let operator = site.plain_admin("op@example.com", "operator").await;
    let admin = site.plain_admin("plain@example.com", "admin").await;
    site.quick_employee("ada@example.com").await;
    for path in ["/servers/s/adopt", "/servers/s/adopt/preview"] {
        let body = json!({"list": [wish("ada", json!({}))]});
        site.admin.post(path, body).token(&admin).refused("4030").await;
        site.admin.post(path, json!({"list": []})).token(&operator).refused("4000").await;
    }
    site.admin.get("/servers/s/discover").token(&admin).refused("4030").await;
    let wishes = vec![
        wish("main", json!({"keeps_llm": true})),
        wish("ada", json!({"keeps_llm": true, "email": "ada@example.com"})),
        wish("gone", json!({})),
    ];
    let done = adopt(&ground, &operator, wishes).await;
    let refusals: Vec<&str> = done.iter().map(|one| one["refusal"].as_str().unwrap()).collect();
    assert!(refusals[0].contains("it runs as root: only a super administrator"), "{refusals:#?}");
    assert!(refusals[1].contains("instances.assign_unisolated"), "{refusals:#?}");
    assert_eq!(refusals[2], "it is not on the server any more");
    let done = adopt(&ground, &operator, vec![wish("ada", json!({"keeps_llm": true}))]).await;
    assert_eq!(done[0]["refusal"], Value::Null);
    let done = adopt(&ground, &site.root, vec![wish("main", json!({"keeps_llm": true}))]).await;
    assert_eq!(done[0]["refusal"], Value::Null);
    site.admin.get("/instances/health-check").token(&site.root).ok().await;
    let main = site.admin.get("/instances/main").token(&site.root).ok().await;
    assert_eq!(main["isolation"], "shared", "{main:#}");
    site.check().await;
}

/// One that is refused does not hold up the others.
#[tokio::test(flavor = "multi_thread")]
async fn many_are_adopted_at_once() {
    let ground = Simulated::new().await;
    let site = &ground.site;
    for n in 0..20u16 {
        add(&ground, &format!("user{n}"), &format!("a{n}"), 19000 + 20 * n);
    }
    ground.machine.write(&config_path("a7"), "{ gateway: ");
    ground.machine.write(&config_path("a8"), r#"{"gateway": {"port": 19160}}"#);
    let wishes = (0..20).map(|n| wish(&format!("a{n}"), json!({"keeps_llm": n % 2 == 0}))).collect();
    let done = adopt(&ground, &site.root, wishes).await;
    let refused: Vec<(&str, &str)> =
        done.iter().filter_map(|one| Some((one["instance_id"].as_str()?, one["refusal"].as_str()?))).collect();
    let expected =
        [("a7", "its configuration is no JSON5 document"), ("a8", "its gateway has no token: set gateway.auth.token")];
    assert_eq!(refused, expected);
    ground.settle().await;
    assert_eq!(site.admin.get("/instances").token(&site.root).ok().await["total"], 18);
    let tasks = site.admin.get("/tasks?type=reconcile_instance&status=done").token(&site.root).ok().await;
    assert_eq!(tasks["total"], 9, "{tasks:#}");
    site.check().await;
}

/// A configuration may name its employee. What is no e-mail address is not shown.
#[tokio::test(flavor = "multi_thread")]
async fn a_field_of_the_configuration_names_the_employee() {
    let ground = Simulated::new().await;
    for (name, port, owner) in [("ada", 19000, "ada@example.com"), ("bob", 19100, "sk-a-secret-of-his")] {
        add(&ground, name, name, port);
        let mut config = ground.config(&format!("/home/{name}"));
        config["env"] = json!({"vars": {"OWNER": owner}});
        ground.machine.write(&config_path(name), &config.to_string());
    }
    let (admin, root) = (&ground.site.admin, &ground.site.root);
    let found = admin.get("/servers/s/discover?email_field=env.vars.OWNER").token(root).ok().await;
    let emails: Vec<&Value> = found["list"].as_array().unwrap().iter().map(|one| &one["email"]).collect();
    assert_eq!(emails, [&json!("ada@example.com"), &Value::Null]);
    assert!(discovered(&ground).await.iter().all(|one| one["email"] == Value::Null), "nobody asked");
    for bad in ["../x", "/etc/passwd", "a//b", "a%0Ab"] {
        admin.get(&format!("/servers/s/discover?email_file={bad}")).token(root).refused("4000").await;
    }
}

/// What older releases made keeps its place: those in a container are run by it, all others by their unit, and none has a
/// model provider of its own.
async fn instances_of_an_older_release(database: Database) {
    let db = database_before(24, &database.url).await;
    for (id, container) in [("i", ""), ("c", "claw")] {
        let sql = "INSERT INTO instance (id, id_key, server_id, container_id, pooled, name, gateway_port, gateway_url, gateway_token, model, \
            health_status, notes, config_json, created_at, updated_at) VALUES (?, ?, 's', ?, 0, '', 18000, '', '', '', 'unknown', '', '{}', 0, 0)";
        db.run(sql, store::args![id, id, container]).await.unwrap();
    }
    assert_eq!(store::migrate::run(&db).await.unwrap().first(), Some(&24));
    let found = async |id: &str| {
        let found = store::instance::find(&db, &base::id::InstanceId::named(id)).await.unwrap().unwrap();
        (found.own_llm, found.runner)
    };
    assert_eq!(found("i").await, (false, Runner::Unit));
    assert_eq!(found("c").await, (false, Runner::Container));
}

#[tokio::test]
async fn instances_of_an_older_release_sqlite() {
    instances_of_an_older_release(Database::sqlite()).await;
}

#[tokio::test]
async fn instances_of_an_older_release_postgres() {
    if let Some(database) = Database::postgres(module_path!()).await {
        instances_of_an_older_release(database).await;
    }
}
