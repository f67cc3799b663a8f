//! Every operation of both documents is asked for without a token, with the other side's, and with too low
//! a role. The operations come from the documents, so a new one is covered, or fails, by itself.

use domain::token::Audience;
use reqwest::Method;
use serde_json::{Value, json};

use crate::kit::{Database, Origin, Site};

/// What anybody may call: logging in, and what a login page needs to know.
const PUBLIC: &[&str] =
    &["GET /auth/options", "POST /auth/login", "GET /auth/sso", "GET /auth/sso/callback", "POST /auth/verify"];

struct Operation {
    name: String,
    method: Method,
    path: String,
    public: bool,
    super_admin: bool,
    /// Its answer does not end.
    endless: bool,
    body: Option<Value>,
}

fn operations(side: Audience) -> Vec<Operation> {
    let document = api::openapi::document(side);
    let mut all = vec![];
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let method: Method = method.to_uppercase().parse().unwrap();
            let filled = path.split('/').map(|part| if part.starts_with('{') { "nobody" } else { part });
            all.push(Operation {
                name: format!("{method} {path}"),
                path: filled.collect::<Vec<_>>().join("/"),
                public: operation["security"] == json!([{}]),
                super_admin: operation["x-role"] == "super_admin",
                endless: operation["responses"]["200"]["content"]
                    .as_object()
                    .is_some_and(|content| content.len() == 1 && content.contains_key("text/event-stream")),
                // A body that no operation takes: identity is looked at first.
                body: operation.get("requestBody").map(|_| json!(7)),
                method,
            });
        }
    }
    assert!(all.len() > 8, "the document lost its operations");
    all
}

fn call(origin: &Origin, operation: &Operation) -> crate::kit::Call {
    let call = origin.call(operation.method.clone(), &operation.path);
    match &operation.body {
        Some(body) => call.json(body.clone()),
        None => call,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_asks_who_is_there() {
    let site = Site::start(Database::sqlite()).await;
    let (_, employee) = site.employee("ada@example.com").await;
    let sides = [(Audience::Employee, &site.employee, &site.root), (Audience::Admin, &site.admin, &employee)];
    for (side, origin, wrong_token) in sides {
        for operation in operations(side) {
            assert_eq!(
                operation.public,
                PUBLIC.contains(&operation.name.as_str()),
                "{}: public, or not?",
                operation.name
            );
            if operation.public {
                let reply = call(origin, &operation).send().await;
                assert_ne!(reply.status, 401, "{} is public", operation.name);
                continue;
            }
            for token in [None, Some("rubbish"), Some(wrong_token.as_str())] {
                let call = call(origin, &operation);
                let call = match token {
                    Some(token) => call.token(token),
                    None => call,
                };
                let reply = call.send().await;
                assert_eq!(reply.json()["code"], "4010", "{} with {token:?}", operation.name);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_looks_at_the_role() {
    let site = Site::start(Database::sqlite()).await;
    for operation in operations(Audience::Admin).iter().filter(|o| !o.public) {
        if operation.endless {
            let token = site.plain_admin(&format!("{}@example.com", base::id::fresh()), "admin").await;
            let url = format!("{}/api/v1{}", site.admin.url, operation.path);
            let answer = site.admin.http.get(url).bearer_auth(token).send().await.unwrap();
            assert_eq!(answer.status() == 403, operation.super_admin, "{}", operation.name);
            continue;
        }
        // Some operations end the token they are called with.
        let token = site.plain_admin(&format!("{}@example.com", base::id::fresh()), "admin").await;
        let reply = call(&site.admin, operation).token(&token).send().await;
        let refused = reply.status == 403;
        assert_eq!(refused, operation.super_admin, "{}: {}", operation.name, reply.text);
    }
    let writes_for_super_admins = operations(Audience::Admin).iter().filter(|o| o.super_admin).count();
    assert!(writes_for_super_admins >= 3, "writing /admin-users is for super_admins");
}
