//! The OpenAPI documents: the committed snapshots are what the code says, and what is said is well formed.

use people::token::Audience;
use serde_json::Value;
use std::collections::HashSet;

fn snapshot(side: &str) -> String {
    std::fs::read_to_string(format!("{}/../../openapi/{side}.json", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn the_snapshots_are_what_the_code_says() {
    for (name, side) in [("employee", Audience::Employee), ("admin", Audience::Admin)] {
        let now = serde_json::to_string_pretty(&api::openapi::document(side)).unwrap();
        assert!(
            snapshot(name).trim() == now.trim(),
            "openapi/{name}.json is not what the code says: run `make openapi` and look at the difference. A change that \
             breaks clients belongs into a new version of the API."
        );
    }
}

/// The web apps' lists are made from it.
#[test]
fn the_registry_is_what_the_code_says() {
    let now = serde_json::to_string_pretty(&fleet::registry::document()).unwrap();
    assert_eq!(snapshot("registry").trim(), now, "run `make openapi`");
}

#[test]
fn operations_have_ids_of_their_own_answers_in_the_envelope_and_errors() {
    for side in [Audience::Employee, Audience::Admin] {
        let document = api::openapi::document(side);
        assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
        let mut ids = HashSet::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                let name = format!("{method} {path}");
                let id = operation["operationId"].as_str().unwrap();
                assert!(ids.insert(id.to_owned()), "{name}: {id} is taken");
                assert!(operation["summary"].is_string(), "{name} says what it does");
                assert!(operation["responses"]["500"].is_object(), "{name} can fail");
                // The one file that is JSON by itself.
                let is_file = name == "get /me/chat/export";
                assert_eq!(operation["x-plain"] == true, is_file, "{name}");
                let body = operation.pointer("/responses/200/content/application~1json/schema");
                if let Some(body) = body.filter(|_| !is_file) {
                    assert_eq!(body["allOf"][0]["$ref"], "#/components/schemas/Envelope", "{name}");
                }
            }
        }
        every_reference_resolves(&document, &document);
    }
}

fn every_reference_resolves(document: &Value, value: &Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if name == "$ref" {
                    let pointer = field.as_str().unwrap().trim_start_matches('#');
                    assert!(document.pointer(pointer).is_some(), "{pointer} is not in the document");
                }
                every_reference_resolves(document, field);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| every_reference_resolves(document, item)),
        _ => {}
    }
}
