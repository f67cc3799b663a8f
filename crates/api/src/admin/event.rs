//! Live events for the console.

use std::time::{Duration, Instant};

use axum::body::{Body as HttpBody, Bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use domain::event::{self, Event, Listener, Next};
use domain::session;
use futures_util::stream;
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::error::ApiError;
use crate::extract::{Admin, State};
use crate::state::Shared;

/// How often something is said at least, and the token looked at again.
const QUIET: Duration = Duration::from_secs(15);
/// Whoever wants more begins again, where it stopped.
const LONGEST: Duration = Duration::from_secs(3600);

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default().routes(routes!(events))
}

struct Stream {
    api: State,
    listener: Listener,
    token: String,
    began: Instant,
    looked: Instant,
    /// Said first: how long to wait before coming back, and what to give along then, though nothing was heard.
    hello: Option<i64>,
}

/// What changes, as server-sent events (beyond the spec).
///
/// Events: `instance`, `task`, `guardian`, `guardian_alert`, `guardian_repair`, `metric` (of a server) and `job`, each with data
/// {"id": …}: which one changed; and `reset`: look at everything. With `Last-Event-ID` what changed since comes first. It ends
/// after an hour, or when the token does.
#[utoipa::path(get, path = "/events", tag = "events", params(
    ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that was heard."),
), responses((status = 200, description = "an event stream", content_type = "text/event-stream", body = String)))]
async fn events(_: Admin, api: State, headers: HeaderMap) -> Result<Response, ApiError> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let last = text("last-event-id").and_then(|id| id.trim().parse().ok());
    let token = text("authorization").and_then(|h| h.split_once(' ')).map_or("", |(_, token)| token.trim()).to_owned();
    // From before the listening: whoever is cut off before the first event misses nothing.
    let hello = last.unwrap_or_else(|| api.app.clock.now().as_millisecond());
    let listener = event::listen(&api.app, last).await?;
    let now = Instant::now();
    let begun = Stream { api, listener, token, began: now, looked: now, hello: Some(hello) };
    let pieces = stream::unfold(begun, |mut stream| async move {
        let piece = stream.next().await?;
        Some((Ok::<_, std::convert::Infallible>(Bytes::from(piece)), stream))
    });
    let mut response = Response::new(HttpBody::from_stream(pieces));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // nginx would keep the events back until it has a page full.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

impl Stream {
    async fn next(&mut self) -> Option<String> {
        if let Some(id) = self.hello.take() {
            return Some(format!("retry: 1000\nid: {id}\n\n"));
        }
        if self.began.elapsed() >= LONGEST {
            return None;
        }
        if self.looked.elapsed() >= QUIET {
            // Whoever was revoked hears no more.
            session::admin(&self.api.app, &self.token).await.ok()?;
            self.looked = Instant::now();
        }
        match self.listener.next(QUIET).await {
            Next::Event(Event { id, kind, of }) => {
                Some(format!("id: {id}\nevent: {kind}\ndata: {}\n\n", json!({"id": of})))
            }
            Next::Quiet => Some(": nothing new\n\n".into()),
            Next::End => None,
        }
    }
}
