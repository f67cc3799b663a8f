//! Every operation of both documents is asked for without a token, with the other side's, and with every
//! role. The operations come from the documents, so a new one is covered, or fails, by itself.

use std::collections::HashSet;

use people::token::Audience;
use queue::permission::{Permission, Role};
use reqwest::Method;
use serde_json::{Value, json};

use crate::kit::{Database, Origin, Site};

/// What anybody may call: logging in, and what a login page needs to know.
const PUBLIC: &[&str] = &[
    "GET /auth/options",
    "POST /auth/login",
    "POST /auth/mfa",
    "POST /auth/mfa/enrolment",
    "POST /auth/mfa/enrolment/confirm",
    "GET /auth/sso",
    "GET /auth/sso/callback",
    "POST /auth/verify",
];

struct Operation {
    name: String,
    method: Method,
    path: String,
    public: bool,
    permission: String,
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
                permission: operation["x-permission"].as_str().unwrap_or_default().to_owned(),
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
    let named: HashSet<String> = Permission::ALL.iter().flat_map(|p| p.operations()).map(|o| (*o).to_owned()).collect();
    let all: Vec<Operation> = operations(Audience::Admin).into_iter().filter(|o| !o.public).collect();
    let there: HashSet<String> = all.iter().map(|o| o.name.clone()).collect();
    assert_eq!(
        named.symmetric_difference(&there).collect::<Vec<_>>(),
        Vec::<&String>::new(),
        "the table and the document"
    );
    for role in Role::ALL {
        let login = async || site.plain_admin(&format!("{}@example.com", base::id::fresh()), role.as_str()).await;
        let token = login().await;
        let me = site.admin.get("/auth/me").token(&token).ok().await;
        for operation in &all {
            // Some operations end the token they are called with.
            let token = if operation.path.starts_with("/auth/") { login().await } else { token.clone() };
            let refused = if operation.endless {
                let url = format!("{}/api/v1{}", site.admin.url, operation.path);
                site.admin.http.get(url).bearer_auth(token).send().await.unwrap().status() == 403
            } else {
                call(&site.admin, operation).token(&token).send().await.status == 403
            };
            let (method, path) = operation.name.split_once(' ').unwrap();
            let needed = Permission::of_operation(method, path).unwrap();
            assert_eq!(refused, !needed.is_of(*role), "{} with {}", operation.name, role.as_str());
            let has = me["permissions"].as_array().unwrap().contains(&json!(needed.as_str()));
            assert_eq!(refused, !has, "{}: what the console shows", operation.name);
            assert_eq!(operation.permission, needed.as_str(), "{}: what the document says", operation.name);
        }
    }
}
