//! Keys that the LLM gateway refuses, and keys that an instance does not have: what the health check and key_validity_check
//! make of them, on a simulated server.

use base::Secret;
use serde_json::{Value, json};
use sim::host::Power;
use sim::llm::one_api;
use sim::with;
use testkit::until_ok;

use crate::keys::adapter;
use crate::kit::simulated::Simulated;
use crate::kit::{Gateway, used_secret};

async fn health(simulated: &Simulated, id: &str) -> (String, String, i64) {
    let checked = simulated.site.admin.get("/instances/health-check").token(&simulated.site.root).ok().await;
    let one = checked["list"].as_array().unwrap().iter().find(|one| one["id"] == id).unwrap().clone();
    let text = |field: &str| one[field].as_str().unwrap().to_owned();
    (text("health_status"), text("layer"), one["health_fail_count"].as_i64().unwrap())
}

fn is(status: &str, layer: &str) -> (String, String, i64) {
    (status.to_owned(), layer.to_owned(), 0)
}

async fn validity(simulated: &Simulated) -> String {
    simulated.site.run_job(&simulated.site.root, "key_validity_check").await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_whose_key_the_gateway_refuses_is_key_invalid() {
    let folder = tempfile::tempdir().unwrap();
    let url = Secret::new(format!("sqlite:{}", folder.path().join("one-api.db").display()));
    let gateway = one_api::start(one_api::Options::new(url)).await.unwrap();
    let simulated = Simulated::at(Gateway::Foreign(adapter(&gateway, "one-api"))).await;
    let site = &simulated.site;
    simulated.provisioned("a").await;
    simulated.provisioned("b").await;
    simulated.settle().await;
    assert_eq!(health(&simulated, "a").await, is("healthy", "key"));
    assert!(validity(&simulated).await.ends_with(" 0 refused"));

    // Somebody switches it off at the gateway.
    let switch = async |status: i64| {
        gateway.tables.run("UPDATE tokens SET status = ? WHERE name = ?", with![status, "a"]).await.unwrap();
    };
    switch(2).await;
    assert_eq!(health(&simulated, "a").await, is("key_invalid", "key"));
    assert_eq!(health(&simulated, "b").await, is("healthy", "key"), "and nobody else's");
    let shown = site.admin.get("/instances/a").token(&site.root).ok().await;
    assert_eq!(shown["health_status"], "key_invalid");
    for _ in 0..2 {
        assert!(validity(&simulated).await.ends_with(" 1 refused: a"));
    }
    let audit = site.admin.get("/audit-logs?action=key.sync&level=ERROR").token(&site.root).ok().await;
    let of_a = |entry: &&Value| entry["detail"].as_str().unwrap().contains("the gateway says: invalid");
    assert_eq!(audit["list"].as_array().unwrap().iter().filter(of_a).count(), 1, "recorded once: {audit}");

    switch(1).await;
    assert_eq!(health(&simulated, "a").await, is("healthy", "key"));
    // While the gateway cannot be asked, what was known stays.
    switch(2).await;
    assert_eq!(health(&simulated, "a").await, is("key_invalid", "key"));
    drop(gateway);
    assert_eq!(health(&simulated, "a").await, is("key_invalid", "key"));
    assert_eq!(health(&simulated, "b").await, is("healthy", "key"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_an_instance_does_not_have_is_written_to_it() {
    let simulated = Simulated::new().await;
    let site = &simulated.site;
    for id in ["a", "b"] {
        simulated.provisioned(id).await;
    }
    simulated.settle().await;
    let home = async |id: &str| {
        let shown = site.admin.get(&format!("/instances/{id}")).token(&site.root).ok().await;
        shown["home"].as_str().unwrap().to_owned()
    };
    let (home, other_home) = (home("a").await, home("b").await);
    let key_in = |config: &Value| config["models"]["providers"]["tidepool"]["apiKey"].as_str().map(str::to_owned);
    let stored = store::gateway_key::named(&site.app.db, "a").await.unwrap().unwrap();
    let stored = stored.key(&site.app.sealer).unwrap();
    used_secret(stored.expose());
    assert_eq!(key_in(&simulated.config(&home)).as_deref(), Some(stored.expose()));
    assert!(validity(&simulated).await.ends_with(" 0 refused"), "nothing is written where all is well");

    // Another key, and none at all.
    for wrong in [json!("sk-of-somebody-else"), Value::Null] {
        let mut config = simulated.config(&home);
        let others = simulated.config(&other_home);
        match wrong {
            Value::Null => drop(config["models"]["providers"]["tidepool"].as_object_mut().unwrap().remove("apiKey")),
            wrong => config["models"]["providers"]["tidepool"]["apiKey"] = wrong,
        }
        simulated.machine.write(&format!("{home}/.openclaw/openclaw.json"), &config.to_string());
        // A server that is away is skipped, until it answers again.
        simulated.machine.set_power(Power::Down);
        assert!(validity(&simulated).await.ends_with(" 0 refused"));
        simulated.machine.set_power(Power::Up);
        until_ok("the key is written again", async || {
            let summary = validity(&simulated).await;
            if summary.ends_with(" 0 refused; written again to a") { Ok(()) } else { Err(summary) }
        })
        .await;
        simulated.settle().await;
        assert_eq!(key_in(&simulated.config(&home)).as_deref(), Some(stored.expose()));
        assert_eq!(simulated.config(&other_home), others, "the other one is left alone");
        assert!(validity(&simulated).await.ends_with(" 0 refused"));
    }
    let repairs = site.admin.get("/repairs?limit=50").token(&site.root).ok().await;
    let repairs = repairs["list"].as_array().unwrap();
    assert_eq!(repairs.len(), 2, "{repairs:?}");
    for one in repairs {
        let fields = ["instance_id", "rule", "status"].map(|field| one[field].as_str().unwrap());
        assert_eq!(fields, ["a", "no_api_key", "success"], "{one}");
        assert!(!one.to_string().contains(stored.expose()), "no secrets");
    }
    site.check().await;
}
