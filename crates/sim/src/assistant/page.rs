//! The gateway's own page: it has absolute paths, a base path as an attribute, and headers that forbid framing.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::Shared;

const PAGE: &str = "<!doctype html><html data-openclaw-control-ui-base-path=\"\"><head><title>OpenClaw</title>\
    <link rel=\"manifest\" href=\"/manifest.webmanifest\"><script type=\"module\" src=\"/assets/index.js\"></script></head>\
    <body><openclaw-app></openclaw-app></body></html>";

/// A short form of the real page's policy.
pub(super) const POLICY: &str = "default-src 'self'; frame-ancestors 'none'; script-src 'self' 'sha256-abc'";

pub(super) async fn serve(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    if request.method() != Method::GET {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    match path.as_str() {
        "/" => page(&shared),
        "/assets/index.js" => (
            [(header::CONTENT_TYPE, "text/javascript"), (header::CACHE_CONTROL, "public, max-age=31536000, immutable")],
            "import './more.js';\n",
        )
            .into_response(),
        "/control-ui-config.json" => config(&shared, request.headers()),
        "/sw.js" => ([(header::CONTENT_TYPE, "text/javascript")], "// a service worker\n").into_response(),
        path if path.starts_with("/chat") => page(&shared),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn page(shared: &Shared) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::SET_COOKIE, "a=b"),
    ];
    let mut response = (headers, PAGE).into_response();
    let policies = shared.policies.iter().filter_map(|policy| policy.parse().ok());
    response.headers_mut().extend(policies.map(|policy| (header::CONTENT_SECURITY_POLICY, policy)));
    response
}

/// Returns the names of the request's headers, so that a test sees which ones pass a proxy.
fn config(shared: &Shared, headers: &HeaderMap) -> Response {
    let bearer = format!("Bearer {}", shared.token);
    if headers.get(header::AUTHORIZATION).and_then(|v| v.to_str().ok()) != Some(bearer.as_str()) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let names: Vec<&str> = headers.keys().map(|name| name.as_str()).collect();
    axum::Json(json!({"assistantName": "Sim", "asked_with": names, "host": headers.get(header::HOST).and_then(|h| h.to_str().ok())})).into_response()
}
