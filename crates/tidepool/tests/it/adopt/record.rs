//! An instance that is made with exactly the spec's body: its server is looked at, and what has its port is adopted.

use serde_json::{Value, json};
use sim::assistant::{Assistant, Options as Assistance};

use super::{TOKEN, add, config_path};
use crate::kit::simulated::Simulated;
use crate::kit::used_secret;

fn body(id: &str, port: u16) -> Value {
    json!({"id": id, "name": "By the spec", "server_id": "s", "gateway_port": port})
}

async fn shown(ground: &Simulated, id: &str) -> Value {
    ground.site.admin.get(&format!("/instances/{id}")).token(&ground.site.root).ok().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_on_its_port_is_adopted_as_it_is() {
    let ground = Simulated::new().await;
    let site = &ground.site;
    add(&ground, "ada", "ada", 19000);
    let (before, starts) = (ground.machine.read(&config_path("ada")), ground.machine.starts("ada.service"));
    let made = site.admin.post("/assistant-instances", body("one", 19000)).token(&site.root).ok().await;
    assert_eq!(
        (&made["found"], &made["found_detail"], &made["task_id"]),
        (&json!("adopted"), &Value::Null, &Value::Null)
    );
    assert_eq!((&made["home"], &made["unit"]), (&json!("/home/ada"), &json!("ada.service")), "{made:#}");
    assert_eq!((&made["isolation"], &made["gateway_token"]), (&json!("adopted"), &json!(TOKEN)));
    ground.settle().await;
    site.admin.get("/instances/health-check").token(&site.root).ok().await;
    assert_eq!(shown(&ground, "one").await["health_status"], "healthy");
    assert_eq!((ground.machine.read(&config_path("ada")), ground.machine.starts("ada.service")), (before, starts));

    // The same where it is to get our gateway, although it was to be provisioned: what is there is not made again.
    add(&ground, "bob", "bob", 19100);
    let mut other = body("two", 19100);
    other.as_object_mut().unwrap().extend([("keeps_llm".into(), json!(false)), ("provision".into(), json!(true))]);
    other["model"] = json!("gpt-4o");
    let made = site.admin.post("/assistant-instances", other).token(&site.root).ok().await;
    assert_eq!((&made["found"], &made["own_llm"]), (&json!("adopted"), &json!(false)), "{made:#}");
    ground.settle().await;
    ground.done(&base::id::TaskId::named(made["task_id"].as_str().unwrap())).await;
    let config = ground.config("/home/bob");
    assert!(config["models"]["providers"]["tidepool"]["apiKey"].is_string(), "{config:#}");
    assert_eq!(site.admin.get("/tasks?type=provision_instance").token(&site.root).ok().await["total"], 0);
    site.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_is_there_the_record_is_offered_to_nobody_until_somebody_looks_again() {
    let ground = Simulated::new().await;
    let site = &ground.site;
    let made = site.admin.post("/assistant-instances", body("one", 19000)).token(&site.root).ok().await;
    used_secret(made["gateway_token"].as_str().unwrap());
    assert_eq!((&made["found"], &made["isolation"]), (&json!("nothing"), &json!("none")), "{made:#}");
    assert_eq!(made["found_detail"], "no gateway of OpenClaw has port 19000 on the server");
    let (_, employee) = site.quick_employee("eva@example.com").await;
    assert_eq!(site.employee.get("/instances/available").token(&employee).ok().await["total"], 0);
    site.employee.post("/me/instances/claim", json!({"instance_id": "one"})).token(&employee).refused("4092").await;

    // What cannot be adopted is said, and nothing is changed.
    add(&ground, "ada", "ada", 19000);
    let config = String::from_utf8(ground.machine.read(&config_path("ada")).unwrap()).unwrap();
    ground.machine.write(&config_path("ada"), &config.replace(TOKEN, ""));
    let again = async || {
        let body = json!({"keeps_llm": true});
        site.admin.post("/assistant-instances/one/adopt", body).token(&site.root).ok().await
    };
    let found = again().await;
    assert_eq!(
        (&found["found"], &found["found_detail"]),
        (&json!("nothing"), &json!("its gateway has no token: set gateway.auth.token"))
    );
    ground.machine.write(&config_path("ada"), &config);
    assert_eq!(again().await["found"], "adopted");
    assert_eq!(shown(&ground, "one").await["home"], "/home/ada");
    let body = json!({"keeps_llm": true});
    site.admin.post("/assistant-instances/one/adopt", body.clone()).token(&site.root).refused("4090").await;
    let admin = site.plain_admin("plain@example.com", "admin").await;
    site.admin.post("/assistant-instances/one/adopt", body).token(&admin).refused("4030").await;
    site.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_is_there_it_is_provisioned_if_that_is_wanted() {
    let ground = Simulated::new().await;
    let site = &ground.site;
    let mut spec = body("one", 19000);
    spec["provision"] = json!(true);
    let made = site.admin.post("/assistant-instances", spec).token(&site.root).ok().await;
    used_secret(made["gateway_token"].as_str().unwrap());
    assert_eq!(made["found"], "provisioning", "{made:#}");
    ground.settle().await;
    ground.done(&base::id::TaskId::named(made["task_id"].as_str().unwrap())).await;
    assert_eq!(shown(&ground, "one").await["isolation"], "own");

    // A port that nobody asked for says nothing about who has it, and who may not adopt only makes a record.
    add(&ground, "ada", "ada", 18789);
    let made = site
        .admin
        .post("/assistant-instances", json!({"id": "two", "name": "n", "server_id": "s"}))
        .token(&site.root)
        .ok()
        .await;
    used_secret(made["gateway_token"].as_str().unwrap());
    assert_eq!((&made["found"], &made["home"]), (&json!("not_looked"), &json!("")), "{made:#}");
    let admin = site.plain_admin("plain@example.com", "admin").await;
    let made = site.admin.post("/assistant-instances", body("three", 19500)).token(&admin).ok().await;
    assert_eq!(made["found"], "not_looked");
    site.check().await;
}

/// A server that nobody can log in to: what answers at its own address counts as there.
#[tokio::test(flavor = "multi_thread")]
async fn what_answers_at_its_address_needs_no_server() {
    let Some(own) = crate::kit::talk::own_address("adopt::record::what_answers_at_its_address_needs_no_server") else {
        return;
    };
    let ground = Simulated::new().await;
    let site = &ground.site;
    used_secret(TOKEN);
    let server = json!({"id": "away", "name": "Away", "host": "198.51.100.1"});
    site.admin.post("/servers", server).token(&site.root).ok().await;
    let assistant = Assistant::start(Assistance { address: own, ..Assistance::new(TOKEN) }).await.unwrap();
    let make = async |id: &str, token: &str| {
        let url = format!("ws://{own}:{}", assistant.port);
        let body = json!({"id": id, "name": "Far", "server_id": "away", "gateway_url": url, "gateway_token": token});
        site.admin.post("/assistant-instances", body).token(&site.root).ok().await
    };
    let made = make("far", TOKEN).await;
    assert_eq!(
        (&made["found"], &made["runner"], &made["isolation"]),
        (&json!("answers"), &json!("address"), &json!("adopted")),
        "{made:#}"
    );
    // One that refuses the token is not there.
    let other = "another-token-of-nobody";
    used_secret(other);
    let refused = make("stranger", other).await;
    assert_eq!((&refused["found"], &refused["runner"]), (&json!("nothing"), &json!("unit")), "{refused:#}");

    let status = async |id: &str| {
        site.admin.get("/instances/health-check").token(&site.root).ok().await;
        shown(&ground, id).await["health_status"].clone()
    };
    assert_eq!(status("far").await, "healthy");
    // Nothing of it can be changed from here.
    for path in ["/instances/far/restart", "/instances/far/reconcile", "/instances/far/move-into-cell"] {
        site.admin.post(path, json!({})).token(&site.root).refused("4090").await;
    }
    let bot = json!({"platform": "telegram", "bot_token": "123456:a-bot-that-nobody-has"});
    used_secret("123456:a-bot-that-nobody-has");
    site.admin.post("/instances/far/chat-bindings", bot).token(&site.root).refused("4090").await;
    let patched = site.admin.patch("/assistant-instances/far", json!({"model": "gpt-4o"})).token(&site.root).ok().await;
    assert_eq!(patched["task_id"], Value::Null, "nothing is written there");
    drop(assistant);
    for _ in 0..3 {
        status("far").await;
    }
    assert_eq!(shown(&ground, "far").await["health_status"], "unhealthy");
    site.check().await;
}
