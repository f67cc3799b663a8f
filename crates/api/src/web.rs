//! The web app of one side: its files, its page for every navigation, and what is said when it was not built.

use std::borrow::Cow;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, header};
use axum::response::{IntoResponse, Response};

use crate::fallback;
use crate::state::Shared;

/// Hashed names never change their content.
const FOREVER: &str = "public, max-age=31536000, immutable";

/// Everything that is no route: a file, the page itself, or nothing.
pub async fn serve(State(api): State<Shared>, request: Request) -> Response {
    let path = request.uri().path();
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    if !is_read || path == "/api" || path.starts_with("/api/") {
        return fallback::unknown_path(request).await.into_response();
    }
    let name = path.trim_start_matches('/');
    if name != "index.html"
        && let Some(bytes) = (api.assets)(name)
    {
        let cache = if name.starts_with("assets/") { FOREVER } else { "no-cache" };
        return file(bytes, mime(name), cache);
    }
    if path != "/" && !wants_page(&request) {
        return fallback::unknown_path(request).await.into_response();
    }
    match (api.assets)("index.html") {
        Some(page) => {
            // The page's relative links count from the prefix under which people see it.
            let page = String::from_utf8_lossy(&page);
            let base = format!("<base href=\"{}\">", api.public_url.prefix());
            file(
                page.replacen("<base href=\"/\">", &base, 1).into_bytes().into(),
                "text/html; charset=utf-8",
                "no-cache",
            )
        }
        None => file(NOT_BUILT.as_bytes().into(), "text/html; charset=utf-8", "no-cache"),
    }
}

/// A browser that goes somewhere, not a script that fetches something.
fn wants_page(request: &Request) -> bool {
    let accept = request.headers().get(header::ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or_default();
    accept.contains("text/html")
}

fn file(bytes: Cow<'static, [u8]>, kind: &'static str, cache: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CACHE_CONTROL, HeaderValue::from_static(cache)),
    ];
    (headers, bytes.into_owned()).into_response()
}

fn mime(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        "html" => "text/html; charset=utf-8",
        _ => "application/octet-stream",
    }
}

const NOT_BUILT: &str = "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>tidepool</title></head>\
    <body><main><h1>The web app is not part of this build</h1><p>Run <code>make build</code> to build it in. \
    The API works: see <a href=\"api/v1/docs\">its documentation</a>.</p></main></body></html>";
