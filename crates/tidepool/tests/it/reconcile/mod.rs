//! What our records want of an instance arrives on its server, and what somebody changed there is restored, asked about or
//! kept. On a simulated server.

mod by_hand;
mod limits;
mod migration;
mod records;

use serde_json::Value;

use crate::kit::simulated::Simulated;

const HOME: &str = "/srv/assistants/1";
const AT_REST: &str = "0 differ: 0 are reconciled, 0 are left to people";

fn path_of_config() -> String {
    format!("{HOME}/.openclaw/openclaw.json")
}

/// Somebody edits the configuration on the server.
fn edit_by_hand(ground: &Simulated, edit: impl Fn(&mut Value)) {
    let mut config = ground.config(HOME);
    edit(&mut config);
    ground.machine.write(&path_of_config(), &config.to_string());
}

async fn pass(ground: &Simulated) -> String {
    fleet::reconcile::pass::run(&ground.site.app).await.unwrap()
}

async fn state(ground: &Simulated) -> Value {
    ground.site.admin.get("/instances/a/state").token(&ground.site.root).ok().await
}

async fn is_asked(ground: &Simulated) -> bool {
    let alerts = ground.site.admin.get("/alerts?open=true").token(&ground.site.root).ok().await;
    alerts["list"].as_array().unwrap().iter().any(|alert| alert["subject"] == "instance:a:configuration")
}

async fn patch(ground: &Simulated, body: Value) -> Value {
    let site = &ground.site;
    site.admin.patch("/assistant-instances/a", body).token(&site.root).ok().await
}
