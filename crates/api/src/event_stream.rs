//! Server-sent events: the answer that carries them, and the look at whether whoever listens for long still may.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use fleet::App;
use futures_util::{Stream, StreamExt as _};
use jiff::{SignedDuration, Timestamp};
use people::session;
use queue::permission::Permission;

use crate::extract::bearer;

/// How often the token is looked at again.
pub const LOOK: Duration = Duration::from_secs(15);

pub fn response(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    let mut response = Response::new(Body::from_stream(pieces.map(Ok::<_, std::convert::Infallible>)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // nginx would keep the events back until it has a page full.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// An administrator's session that a long answer outlives, unless it looks.
pub struct Watched {
    token: String,
    needs: Permission,
    looked: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Session {
    /// It stood a moment ago; nobody was asked.
    Stands,
    /// Looked at just now, and it stands.
    Seen,
    Ended,
}

impl Watched {
    /// The session by which a request came that was let in just now.
    pub fn of(headers: &HeaderMap, app: &App, needs: Permission) -> Watched {
        Watched { token: bearer(headers).unwrap_or_default().to_owned(), needs, looked: app.clock.now() }
    }

    pub async fn look(&mut self, app: &App) -> Session {
        let now = app.clock.now();
        // A clock that was set back is a reason to look, too.
        let since = now.duration_since(self.looked);
        if !since.is_negative() && since < SignedDuration::try_from(LOOK).unwrap_or(SignedDuration::MAX) {
            return Session::Stands;
        }
        self.looked = now;
        match session::admin(app, &self.token).await {
            // The role may be another by now.
            Ok(account) if self.needs.is_of(account.role) => Session::Seen,
            _ => Session::Ended,
        }
    }
}
