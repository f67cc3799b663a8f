//! A neighbour on the port of the real OpenClaw.

use fleet::assistant::Defaults;
use serde_json::json;

use crate::kit::assistant::{START, model_server};
use crate::kit::hosts::{CURRENT, Ground, fleet, is_real};
use crate::neighbour::takes_the_port_of;

#[tokio::test(flavor = "multi_thread")]
async fn hears_nothing() {
    let fleet = fleet("real::neighbour").expect("make test-real starts hosts");
    assert!(is_real(&fleet.host("h4"), CURRENT).await, "OpenClaw {CURRENT} is not on h4");
    let gateway_url = model_server(&fleet.host("h4")).await;
    let assistants = Defaults { gateway_url, start_limit: START, least_memory: 64 << 20, ..Default::default() };
    let mut ground = Ground::on(fleet, "h4", assistants).await;
    let id = ground.provisioned(json!({})).await;
    takes_the_port_of(&ground, &id).await;
    ground.end().await;
}
