//! Around every request: an id, one log line, the metrics, and a caught panic as an enveloped 500.

use std::any::Any;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base::Error;

use crate::error::{ApiError, ForOperator};
use crate::state::Shared;

pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The account a request turned out to be of: a slot that the identity extractors fill for the log line.
#[derive(Clone, Default)]
pub struct Who(Arc<OnceLock<String>>);

impl Who {
    pub fn tell(parts: &Parts, account: &str) {
        if let Some(who) = parts.extensions.get::<Who>() {
            // Filled twice when two extractors ask: both name the same account.
            who.0.set(account.to_owned()).ok();
        }
    }
}

pub async fn requests(State(api): State<Shared>, mut request: Request, next: Next) -> Response {
    let began = Instant::now();
    let id = base::id::fresh();
    let side = api.side.as_str();
    let method = known(request.method());
    // The pattern, not the path: paths and queries may hold tickets and names.
    let route = request.extensions().get::<MatchedPath>().map_or("unmatched", |m| m.as_str()).to_owned();
    let who = Who::default();
    request.extensions_mut().insert(who.clone());

    let mut response = next.run(request).await;

    let took = began.elapsed();
    let status = response.status().as_u16();
    let account = who.0.get().map_or("", String::as_str);
    let problem = response.extensions().get::<ForOperator>().map_or("", |p| p.0.as_str());
    let ms = took.as_secs_f64() * 1000.0;
    if status >= 500 {
        tracing::error!(request_id = id, side, method, route, status, ms, account, problem, "request failed");
    } else if matches!(route.as_str(), "/healthz" | "/readyz" | "/metrics") {
        tracing::debug!(request_id = id, side, method, route, status, ms, "request");
    } else {
        tracing::info!(request_id = id, side, method, route, status, ms, account, problem, "request");
    }
    let labels = [("side", side.to_owned()), ("method", method.to_owned()), ("route", route)];
    metrics::histogram!("tidepool_http_request_seconds", &labels).record(took.as_secs_f64());
    let [side, method, route] = labels;
    let counted = [side, method, route, ("status", status.to_string())];
    metrics::counter!("tidepool_http_requests_total", &counted).increment(1);
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

/// The method as a label: whatever else a client makes up is one and the same.
fn known(method: &Method) -> &'static str {
    const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    METHODS.iter().find(|m| **m == method.as_str()).copied().unwrap_or("OTHER")
}

/// A panic is a fault of ours: the client learns the request id, the log what it said.
pub fn panicked(panic: Box<dyn Any + Send + 'static>) -> Response {
    let said = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "panic".into());
    ApiError(Error::internal(format_args!("panic: {said}"))).into_response()
}
