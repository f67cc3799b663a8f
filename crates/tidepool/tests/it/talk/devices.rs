//! Browsers that connect straight to their instance: the platform approves their devices, for their owner and to chat alone.

use serde_json::{Value, json};

use crate::kit::talk::{Client, Talk, dial};
use crate::kit::{Database, Options};

const PAGE: &str = "https://pages.example";

/// Shows itself to the gateway as a page's device does; the payload of its hello, or its refusal.
async fn knock(talk: &Talk, device: &str, scopes: &[&str]) -> Result<Value, Value> {
    let url = format!("http://127.0.0.1:{}/", talk.assistant.port);
    let mut page = Client::over(dial(&url, &[("origin", PAGE)]).await.unwrap());
    page.event("connect.challenge").await;
    let connect = json!({
        "minProtocol": 4, "maxProtocol": 4, "role": "operator", "scopes": scopes, "caps": [],
        "client": {"id": "openclaw-control-ui", "mode": "webchat", "platform": "web", "version": "1"},
        "auth": {"token": talk.gateway_token}, "device": {"id": device},
    });
    page.request("connect", connect).await
}

async fn cases(database: Database) {
    let talk = Talk::with(database, Options::default(), |assistance| {
        assistance.pairing = true;
        assistance.origins.push(PAGE.to_owned());
    })
    .await;
    let site = &talk.site;
    let approve = |token: &str, request: &Value, device: &str| {
        let body = json!({"request_id": request, "device_id": device});
        site.employee.post("/me/instances/a0/devices", body).token(token)
    };
    let chat = ["operator.read", "operator.write"];
    let refused = knock(&talk, "laptop", &chat).await.unwrap_err();
    assert_eq!((&refused["code"], &refused["details"]["code"]), (&json!("NOT_PAIRED"), &json!("PAIRING_REQUIRED")));
    let request = &refused["details"]["requestId"];

    // Not by another, not for another device, not what nobody asked for.
    let (_, bobs) = site.quick_employee("bob@example.com").await;
    approve(&bobs, request, "laptop").refused("4040").await;
    approve(&talk.token, request, "phone").refused("4040").await;
    approve(&talk.token, &json!("nonsense"), "laptop").refused("4040").await;
    knock(&talk, "laptop", &chat).await.unwrap_err();

    assert_eq!(approve(&talk.token, request, "laptop").ok().await["device_id"], "laptop");
    assert_eq!(knock(&talk, "laptop", &chat).await.unwrap()["auth"]["scopes"], json!(chat));
    approve(&talk.token, request, "laptop").refused("4040").await;
    let log = site.admin.get("/audit-logs?action=instance.update").token(&site.root).ok().await;
    let newest = &log["list"][0];
    assert_eq!(newest["detail"], "device laptop may chat, on behalf of ada@example.com", "{newest}");

    // One that would administrate the gateway, although it is its owner's.
    let refused = knock(&talk, "curious", &["operator.read", "operator.admin"]).await.unwrap_err();
    approve(&talk.token, &refused["details"]["requestId"], "curious").refused("4030").await;
    knock(&talk, "curious", &["operator.read", "operator.admin"]).await.unwrap_err();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_comes_straight_is_approved_sqlite() {
    cases(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_comes_straight_is_approved_postgres() {
    if let Some(database) = Database::postgres(module_path!()).await {
        cases(database).await;
    }
}
