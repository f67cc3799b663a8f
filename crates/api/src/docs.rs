//! The OpenAPI document as it is served: the JSON itself, and a page that people can read.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::Router;
use axum::http::header;
use axum::response::{Html, IntoResponse};
use axum::routing::get;
use serde_json::Value;

use crate::state::Shared;

pub fn routes(document: Value) -> Router<Shared> {
    let page: Arc<str> = page(&document).into();
    let json: Arc<str> = document.to_string().into();
    Router::new().route("/docs", get(move || async move { Html(page.to_string()) })).route(
        "/openapi.json",
        get(move || async move { ([(header::CONTENT_TYPE, "application/json")], json.to_string()).into_response() }),
    )
}

const STYLE: &str = "\
    :root{color-scheme:light dark;--line:#8884;--soft:#8881;--accent:#0b6e7f}\
    @media (prefers-color-scheme:dark){:root{--accent:#5fd0e0}}\
    body{font:16px/1.5 system-ui,sans-serif;margin:0;display:grid;grid-template-columns:minmax(12rem,18rem) minmax(0,1fr)}\
    nav{position:sticky;top:0;height:100vh;overflow:auto;padding:1rem;box-sizing:border-box;border-right:1px solid var(--line);font-size:.85rem}\
    nav ul{list-style:none;padding:0;margin:.25rem 0 1rem}nav a{text-decoration:none;display:block;padding:.15rem 0;overflow-wrap:anywhere}\
    main{padding:1rem 2rem 4rem;max-width:60rem}a{color:var(--accent)}\
    section{border-top:1px solid var(--line);padding:1rem 0}\
    h2{margin:2rem 0 .5rem}h3{font:600 1.05rem ui-monospace,monospace;overflow-wrap:anywhere;margin:0 0 .5rem}\
    .m{display:inline-block;min-width:4.5rem;color:var(--accent)}\
    table{border-collapse:collapse;width:100%;font-size:.9rem;margin:.5rem 0}th,td{text-align:left;padding:.3rem .6rem .3rem 0;border-bottom:1px solid var(--line);vertical-align:top}\
    code,pre{font:.85rem ui-monospace,monospace}pre{background:var(--soft);padding:.75rem;overflow:auto;border-radius:6px}\
    @media (max-width:767px){body{display:block}nav{position:static;height:auto;border:0}main{padding:1rem}}";

fn page(document: &Value) -> String {
    let title = text(&document["info"]["title"]);
    let mut nav = String::new();
    let mut main = String::new();
    let mut tags: Vec<&str> = vec![];
    let operations = operations(document);
    for (_, _, operation) in &operations {
        let tag = operation["tags"][0].as_str().unwrap_or("api");
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    for tag in tags {
        let _ = write!(nav, "<b>{}</b><ul>", escape(tag));
        let _ = write!(main, "<h2>{}</h2>", escape(tag));
        for (path, method, operation) in operations.iter().filter(|o| o.2["tags"][0].as_str() == Some(tag)) {
            let id = escape(&text(&operation["operationId"]));
            let _ = write!(nav, "<li><a href=\"#{id}\">{} {}</a></li>", method.to_uppercase(), escape(path));
            write_operation(&mut main, document, path, method, operation, &id);
        }
        nav.push_str("</ul>");
    }
    let about = paragraphs(&text(&document["info"]["description"]));
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>{title}</title><style>{STYLE}</style></head>\
         <body><nav aria-label=\"Operations\">{nav}</nav><main><h1>{title}</h1>{about}\
         <p><a href=\"openapi.json\">The same as an OpenAPI 3.1 document</a></p>{main}</main></body></html>"
    )
}

fn operations(document: &Value) -> Vec<(&str, &str, &Value)> {
    let mut all = vec![];
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in item.as_object().into_iter().flatten() {
            all.push((path.as_str(), method.as_str(), operation));
        }
    }
    all
}

fn write_operation(out: &mut String, document: &Value, path: &str, method: &str, operation: &Value, id: &str) {
    let _ = write!(
        out,
        "<section id=\"{id}\"><h3><span class=\"m\">{}</span> {}</h3>{}{}",
        method.to_uppercase(),
        escape(path),
        paragraphs(&text(&operation["summary"])),
        paragraphs(&text(&operation["description"]))
    );
    let parameters = operation["parameters"].as_array().map_or(&[][..], Vec::as_slice);
    if !parameters.is_empty() {
        out.push_str(
            "<table><thead><tr><th>Parameter</th><th>In</th><th>Type</th><th>Meaning</th></tr></thead><tbody>",
        );
        for p in parameters {
            let _ = write!(
                out,
                "<tr><td><code>{}</code></td><td>{}</td><td>{}</td><td>{}</td></tr>",
                escape(&text(&p["name"])),
                escape(&text(&p["in"])),
                escape(&kind(document, &p["schema"])),
                marked(&text(&p["description"]))
            );
        }
        out.push_str("</tbody></table>");
    }
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    if !body.is_null() {
        out.push_str("<p>Body</p>");
        write_fields(out, document, body);
    }
    let answer =
        &operation["responses"]["200"]["content"]["application/json"]["schema"]["allOf"][1]["properties"]["data"];
    if !answer.is_null() && answer["type"] != "null" {
        out.push_str("<p>Answer (<code>data</code>)</p>");
        write_fields(out, document, answer);
    }
    out.push_str("<p>Answers: ");
    for (status, response) in operation["responses"].as_object().into_iter().flatten() {
        let _ = write!(out, "<code>{}</code> {}; ", escape(status), escape(&text(&response["description"])));
    }
    out.push_str("</p></section>");
}

fn write_fields(out: &mut String, document: &Value, schema: &Value) {
    let fields = fields(document, schema);
    if fields.is_empty() {
        let _ = write!(out, "<p><code>{}</code></p>", escape(&kind(document, resolve(document, schema))));
        return;
    }
    out.push_str("<table><thead><tr><th>Field</th><th>Type</th><th>Meaning</th></tr></thead><tbody>");
    for (name, required, field) in fields {
        let mark = if required { "" } else { "?" };
        write_field(out, document, &format!("{name}{mark}"), field);
        // One level down is what a reader needs of a list's items.
        let inner = if field["items"].is_null() { field } else { &field["items"] };
        for (name, _, field) in self::fields(document, inner) {
            write_field(out, document, &format!("\u{a0}\u{a0}{name}"), field);
        }
    }
    out.push_str("</tbody></table>");
}

fn write_field(out: &mut String, document: &Value, name: &str, field: &Value) {
    let _ = write!(
        out,
        "<tr><td><code>{}</code></td><td>{}</td><td>{}</td></tr>",
        escape(name),
        escape(&kind(document, field)),
        marked(&text(&field["description"]))
    );
}

/// The fields of an object, those of its parts included: name, whether it must be there, schema.
fn fields<'a>(document: &'a Value, schema: &'a Value) -> Vec<(&'a str, bool, &'a Value)> {
    let schema = resolve(document, schema);
    let parts = schema["allOf"].as_array().map_or(&[][..], Vec::as_slice);
    let mut all: Vec<_> = parts.iter().flat_map(|part| fields(document, part)).collect();
    let required =
        |name: &str| schema["required"].as_array().is_some_and(|r| r.iter().any(|n| n.as_str() == Some(name)));
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        all.push((name.as_str(), required(name), field));
    }
    all
}

fn resolve<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str().and_then(|r| r.strip_prefix('#')) {
        Some(pointer) => document.pointer(pointer).unwrap_or(schema),
        None => schema,
    }
}

/// A schema in a few words. Named texts and numbers are told by their limits, objects by their name.
fn kind(document: &Value, schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = resolve(document, schema);
        let is_object = !target["properties"].is_null() || !target["allOf"].is_null();
        let name = reference.rsplit('/').next().unwrap_or_default();
        // What leads nowhere resolves to itself.
        let by_name = is_object || target["$ref"].is_string();
        return if by_name { name.to_owned() } else { kind(document, target) };
    }
    if let Some(words) = schema["enum"].as_array() {
        let word = |w: &Value| w.as_str().map_or_else(|| w.to_string(), str::to_owned);
        return words.iter().map(word).collect::<Vec<_>>().join(" | ");
    }
    if let Some(choices) = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array()) {
        return choices.iter().map(|c| kind(document, c)).collect::<Vec<_>>().join(" or ");
    }
    let limits = [
        ("minLength", "at least", " characters"),
        ("maxLength", "at most", " characters"),
        ("minimum", "from", ""),
        ("maximum", "to", ""),
    ];
    let parts: Vec<String> = limits
        .iter()
        .filter(|(name, ..)| schema[*name].is_number())
        .map(|(name, before, after)| format!("{before} {}{after}", schema[*name]))
        .collect();
    let plain = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().map(text).collect::<Vec<_>>().join(" or "),
        Value::String(name) if name == "array" => format!("list of {}", kind(document, &schema["items"])),
        other => text(other),
    };
    if parts.is_empty() { plain } else { format!("{plain}, {}", parts.join(", ")) }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn paragraphs(text: &str) -> String {
    text.split("\n\n").filter(|p| !p.trim().is_empty()).fold(String::new(), |mut out, p| {
        let _ = write!(out, "<p>{}</p>", marked(p));
        out
    })
}

/// A text whose words between backticks are code.
fn marked(text: &str) -> String {
    let pieces = text.split('`').enumerate();
    pieces.fold(String::new(), |mut out, (i, piece)| {
        let _ =
            if i % 2 == 1 { write!(out, "<code>{}</code>", escape(piece)) } else { write!(out, "{}", escape(piece)) };
        out
    })
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
