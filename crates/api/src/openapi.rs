//! The OpenAPI document of one side. Handlers annotate the plain body of their answer; this file walks
//! the finished document once: envelopes around answers, error answers, security, operation ids.

use axum::Router;
use people::token::Audience;
use queue::permission::Permission;
use serde_json::{Map, Value, json};
use utoipa_axum::router::OpenApiRouter;

use crate::envelope::SUCCESS;
use crate::error::status_and_code;
use crate::fallback::SERVED_VERSIONS;
use crate::state::Shared;
use crate::{admin, employee};

const METHODS: &[&str] = &["get", "put", "post", "delete", "patch"];

/// The document of one side, as the binary prints it and the repository keeps it.
pub fn document(side: Audience) -> Value {
    match side {
        Audience::Employee => finish(employee::routes(), side).1,
        Audience::Admin => finish(admin::routes(), side).1,
    }
}

pub fn finish(routes: OpenApiRouter<Shared>, side: Audience) -> (Router<Shared>, Value) {
    let (router, document) = routes.split_for_parts();
    // The document is data of our own making: it always serialises.
    let mut document = serde_json::to_value(document).unwrap_or_default();
    walk(&mut document, side);
    (router, document)
}

fn walk(document: &mut Value, side: Audience) {
    let (title, about) = match side {
        Audience::Employee => ("tidepool employee API", "What employees do: log in, chat, see their usage."),
        Audience::Admin => ("tidepool administration API", "What administrators do: run the fleet and its accounts."),
    };
    document["info"] = json!({
        "title": title,
        "version": env!("CARGO_PKG_VERSION"),
        "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        "description": format!(
            "{about}\n\nEvery JSON answer is an envelope `{{code, data, msg}}`; success is code \"{SUCCESS}\" with HTTP 200, \
             and `data` is null on every error. Every answer carries `X-Request-Id`. Unknown body fields and query \
             parameters are ignored. Times are RFC 3339 with offset.\n\nServed versions: {SERVED_VERSIONS}. A route that \
             will go carries Deprecation and Sunset headers for at least 180 days; a breaking change gets a new version."
        ),
    });
    document["servers"] = json!([{"url": "/api/v1"}]);
    let scheme = side.as_str();
    for (path, item) in document["paths"].as_object_mut().into_iter().flatten() {
        for method in METHODS {
            if let Some(operation) = item.get_mut(method) {
                finish_operation(operation, method, path, side);
            }
        }
    }
    let components = document["components"].as_object_mut();
    let mut none = Map::new();
    let components = components.unwrap_or(&mut none);
    components.insert(
        "securitySchemes".into(),
        json!({scheme: {
            "type": "http", "scheme": "bearer", "bearerFormat": "JWT",
            "description": format!("The token that POST /auth/login answers. Audience \"{scheme}\"."),
        }}),
    );
    let schemas = components.entry("schemas").or_insert_with(|| json!({}));
    schemas["Envelope"] = json!({
        "type": "object",
        "description": "Around every successful answer.",
        "required": ["code", "data", "msg"],
        "properties": {
            "code": {"type": "string", "enum": [SUCCESS]},
            "data": {},
            "msg": {"type": "string", "examples": ["ok"]},
        },
    });
    schemas["Failure"] = json!({
        "type": "object",
        "description": "Every error answer. `msg` is for people, `code` for programs.",
        "required": ["code", "data", "msg"],
        "properties": {
            "code": {"type": "string", "enum": codes()},
            "data": {"type": "null"},
            "msg": {"type": "string"},
        },
    });
}

fn codes() -> Vec<&'static str> {
    base::Kind::ALL.iter().map(|kind| status_and_code(*kind).1).collect()
}

fn finish_operation(operation: &mut Value, method: &str, path: &str, side: Audience) {
    let scheme = side.as_str();
    let tag = operation["tags"][0].as_str().unwrap_or("api").replace('-', "_");
    let verb = operation["operationId"].as_str().unwrap_or("call").to_owned();
    operation["operationId"] = json!(format!("{tag}_{verb}"));

    // A public operation says `security(())`, which utoipa writes as one empty requirement.
    let public = operation["security"] == json!([{}]);
    let needed =
        (side == Audience::Admin && !public).then(|| Permission::of_operation(&method.to_uppercase(), path)).flatten();
    if !public {
        operation["security"] = json!([{scheme: []}]);
    }
    if let Some(permission) = needed {
        let text = operation["description"].as_str().unwrap_or_default();
        let sentence = format!("Needs the permission `{}`: {}.", permission.as_str(), permission.roles_named());
        operation["description"] = json!(format!("{text}\n\n{sentence}").trim());
        operation["x-permission"] = json!(permission.as_str());
        operation["x-roles"] = json!(permission.roles().iter().map(|role| role.as_str()).collect::<Vec<_>>());
    }
    let has_body = operation.get("requestBody").is_some();
    let has_parameters = operation["parameters"].as_array().is_some_and(|p| !p.is_empty());
    if has_body {
        operation["requestBody"]["required"] = json!(true);
    }

    // A file that is JSON by itself says `x-plain`.
    let is_plain = operation["x-plain"] == true;
    let responses = &mut operation["responses"];
    if let Some(success) = responses.get_mut("200").filter(|_| !is_plain) {
        wrap(success);
    }
    let mut may = |status: u16, when: &str, condition: bool| {
        if condition && responses.get(status.to_string()).is_none() {
            responses[status.to_string()] = failure(status, when);
        }
    };
    may(400, "a field or parameter is missing or malformed", has_body || has_parameters);
    may(401, "no token, or one that is not good (any more)", !public);
    may(403, "the role is too low", !public);
    may(404, "nothing is known by that id", path.contains('{'));
    may(409, "the state of things does not allow it", method != "get" && !public);
    may(413, "the body is too large", has_body);
    may(500, "a fault of ours; the log has the request id", true);
    may(503, "a part we need cannot be reached", true);
}

/// Puts the envelope around a plain body; an answer without a body has `data: null`.
fn wrap(response: &mut Value) {
    if response["content"].as_object().is_none_or(Map::is_empty) {
        response["content"] = json!({"application/json": {"schema": {"type": "null"}}});
    }
    let Some(json_body) = response["content"].get_mut("application/json") else { return };
    let plain = json_body["schema"].take();
    json_body["schema"] = json!({
        "allOf": [
            {"$ref": "#/components/schemas/Envelope"},
            {"type": "object", "properties": {"data": plain}},
        ],
    });
    if let Some(example) = json_body.get_mut("example") {
        let plain = example.take();
        *example = json!({"code": SUCCESS, "data": plain, "msg": "ok"});
    }
}

fn failure(status: u16, when: &str) -> Value {
    let kinds: Vec<base::Kind> =
        base::Kind::ALL.iter().copied().filter(|k| status_and_code(*k).0.as_u16() == status).collect();
    let examples: Map<String, Value> = kinds
        .iter()
        .map(|kind| {
            let code = status_and_code(*kind).1;
            (code.to_owned(), json!({"value": {"code": code, "data": null, "msg": kind.message()}}))
        })
        .collect();
    json!({
        "description": when,
        "content": {"application/json": {
            "schema": {"$ref": "#/components/schemas/Failure"},
            "examples": examples,
        }},
    })
}
