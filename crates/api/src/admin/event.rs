//! Live events for the console.

use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::response::Response;
use futures_util::stream;
use queue::event::{self, Event, Listener, Next};
use queue::permission::Permission;
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::error::ApiError;
use crate::event_stream::{self, LOOK, Session, Watched};
use crate::extract::{Admin, State};
use crate::state::Shared;

/// Whoever wants more begins again, where it stopped.
const LONGEST: Duration = Duration::from_secs(3600);

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default().routes(routes!(events))
}

struct Stream {
    api: State,
    listener: Listener,
    session: Watched,
    began: Instant,
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
    let text = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let last = text.and_then(|id| id.trim().parse().ok());
    // From before the listening: whoever is cut off before the first event misses nothing.
    let hello = last.unwrap_or_else(|| api.app.clock.now().as_millisecond());
    let listener = event::listen(&api.app.engine, last).await?;
    let session = Watched::of(&headers, &api.app, Permission::ReadFleet);
    let begun = Stream { api, listener, session, began: Instant::now(), hello: Some(hello) };
    let pieces = stream::unfold(begun, |mut stream| async move {
        let piece = stream.next().await?;
        Some((Bytes::from(piece), stream))
    });
    Ok(event_stream::response(pieces))
}

impl Stream {
    async fn next(&mut self) -> Option<String> {
        if let Some(id) = self.hello.take() {
            return Some(format!("retry: 1000\nid: {id}\n\n"));
        }
        if self.began.elapsed() >= LONGEST {
            return None;
        }
        // Whoever was revoked hears no more.
        if self.session.look(&self.api.app).await == Session::Ended {
            return None;
        }
        // Something is said at least as often as the session is looked at.
        match self.listener.next(LOOK).await {
            Next::Event(Event { id, kind, of }) => {
                Some(format!("id: {id}\nevent: {kind}\ndata: {}\n\n", json!({"id": of})))
            }
            Next::Quiet => Some(": nothing new\n\n".into()),
            Next::End => None,
        }
    }
}
