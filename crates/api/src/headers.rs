//! The security headers of every response.

use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use people::token::Audience;

use crate::state::Shared;

/// Scripts come from our own files only. Styles may stand inline: components place them so.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
    img-src 'self' data: blob:; font-src 'self'; connect-src 'self' ws: wss:; manifest-src 'self'; \
    base-uri 'self'; form-action 'self'; frame-ancestors 'none'";

const FIXED: &[(&str, &str)] = &[
    ("content-security-policy", CONTENT_SECURITY_POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("permissions-policy", "camera=(), geolocation=(), payment=(), usb=()"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
];

pub async fn security(State(api): State<Shared>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in FIXED {
        headers.entry(HeaderName::from_static(name)).or_insert(HeaderValue::from_static(value));
    }
    let windows = &api.app.embed;
    if api.side == Audience::Employee && windows.enabled {
        let policy = format!("{CONTENT_SECURITY_POLICY}; frame-src {}", windows.frame_source());
        let ours = HeaderValue::from_static(CONTENT_SECURITY_POLICY);
        if headers.get(header::CONTENT_SECURITY_POLICY) == Some(&ours)
            && let Ok(policy) = HeaderValue::from_str(&policy)
        {
            headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        }
    }
    if api.public_url.is_https() {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    }
    // Answers are about somebody: nothing between us keeps them. Files of the web app say otherwise themselves.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}
