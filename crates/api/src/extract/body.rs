//! A JSON body: its type, size and fields checked, each refusal naming what is wrong.

use std::convert::Infallible;
use std::time::Duration;

use axum::RequestExt as _;
use axum::body::HttpBody as _;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use base::{Error, Kind};
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError};
use serde::de::DeserializeOwned;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::error::ApiError;
use crate::state::Shared;

pub struct Body<T>(pub T);

/// How long a body may take to arrive.
const PATIENCE: Duration = Duration::from_secs(30);
/// What all unfinished bodies of the process may take together, in units: 128 MiB.
static ROOM: Semaphore = Semaphore::const_new((128 << 20) / UNIT);
const UNIT: usize = 4 << 10;
/// What each may take in any case.
const FREE: usize = 16 << 10;
/// How much of a body that is refused is taken, for how long, and of how many at once: the buffer of each is half a megabyte.
const DISCARDED: usize = 32 << 20;
const DISCARD: Duration = Duration::from_secs(3);
static DISCARDING: Semaphore = Semaphore::const_new(32);

impl<T: DeserializeOwned> FromRequest<Shared> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &Shared) -> Result<Body<T>, ApiError> {
        let unmarked = !request.headers().contains_key(header::CONTENT_TYPE);
        if !unmarked && !is_json(request.headers()) {
            return Err(Error::new(Kind::BadRequest, "the body must be application/json").into());
        }
        let Collected { bytes, room: _room } = collect(request).await?;
        // No body at all is an empty object: whether that is enough is the route's to say.
        match (unmarked, bytes.is_empty()) {
            (true, true) => read(b"{}").map(Body).map_err(ApiError),
            (true, false) => Err(Error::new(Kind::BadRequest, "the body must be application/json").into()),
            (false, _) => read(&bytes).map(Body).map_err(ApiError),
        }
    }
}

/// A whole body, and what it takes of the room for all of them while it is looked at.
pub struct Collected {
    pub bytes: Vec<u8>,
    room: Option<SemaphorePermit<'static>>,
}

/// Reads the body of a request, up to the limit of its route. Many that never end take no more than the room for all bodies.
pub async fn collect(request: Request) -> Result<Collected, Error> {
    let late = |_| Error::new(Kind::BadRequest, "the body did not arrive in time");
    let declared = request.body().size_hint().lower();
    if limit_of(&request).is_some_and(|limit| declared > limit) {
        // Whoever asks before sending is spared it.
        if !request.headers().contains_key(header::EXPECT)
            && let Ok(turn) = DISCARDING.try_acquire()
        {
            tokio::spawn(discard(request.into_body(), turn));
        }
        return Err(Kind::TooLarge.into());
    }
    let mut body = request.with_limited_body().into_body();
    let collected = async {
        let mut collected = Collected { bytes: vec![], room: None };
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| match is_too_large(&error) {
                true => Error::from(Kind::TooLarge),
                false => Error::new(Kind::BadRequest, "the body could not be read"),
            })?;
            let Ok(data) = frame.into_data() else { continue };
            collected.bytes.extend_from_slice(&data);
            collected.take_room()?;
        }
        Ok(collected)
    };
    tokio::time::timeout(PATIENCE, collected).await.map_err(late)?
}

/// The limit of a request's route. axum keeps it to itself, but puts it around a body of unknown length.
fn limit_of(request: &Request) -> Option<u64> {
    let endless = futures_util::stream::pending::<Result<Bytes, Infallible>>();
    let mut same = Request::new(axum::body::Body::from_stream(endless));
    *same.extensions_mut() = request.extensions().clone();
    same.with_limited_body().into_body().size_hint().upper()
}

/// Takes what a client still sends while it is answered, within limits: a connection that is closed over unread bytes takes the answer
/// with it.
async fn discard(mut body: axum::body::Body, _turn: SemaphorePermit<'static>) {
    let mut left = DISCARDED;
    let discarding = async {
        while let Some(Ok(frame)) = body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                break;
            }
        }
    };
    tokio::time::timeout(DISCARD, discarding).await.ok();
}

impl Collected {
    /// The first bytes are free: who sends little is not refused for those who send much.
    fn take_room(&mut self) -> Result<(), Error> {
        let units = |permit: &Option<SemaphorePermit<'_>>| permit.as_ref().map_or(0, SemaphorePermit::num_permits);
        let needed = self.bytes.capacity().saturating_sub(FREE).div_ceil(UNIT);
        let more = u32::try_from(needed.saturating_sub(units(&self.room))).map_err(Error::internal)?;
        if more == 0 {
            return Ok(());
        }
        let busy = || Error::new(Kind::Unavailable, "too many large requests arrive; try again in a moment");
        let room = ROOM.try_acquire_many(more).map_err(|_| busy().retry_after(Duration::from_secs(5)))?;
        match &mut self.room {
            Some(held) => held.merge(room),
            none => *none = Some(room),
        }
        Ok(())
    }
}

fn is_too_large(error: &axum::Error) -> bool {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(one) = cause {
        if one.is::<LengthLimitError>() {
            return true;
        }
        cause = one.source();
    }
    false
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    let mut from = serde_json::Deserializer::from_slice(bytes);
    let value: T = serde_path_to_error::deserialize(&mut from).map_err(|e| {
        let field = e.path().to_string();
        let problem = e.inner().to_string();
        // serde_json ends its messages with a position that says nothing about a one-line body.
        let problem = problem.split(" at line ").next().unwrap_or_default();
        // And it repeats what it was given, which may be a secret: what it expected is enough.
        let expected = problem.strip_prefix("invalid ").and_then(|p| p.rsplit_once(", expected "));
        let problem = expected.map_or_else(|| problem.to_owned(), |(_, expected)| format!("must be {expected}"));
        match field.as_str() {
            "." => Error::new(Kind::BadRequest, format!("bad request: {problem}")),
            field => Error::field(field, problem),
        }
    })?;
    from.end().map_err(|_| Error::new(Kind::BadRequest, "bad request: text after the end of the JSON value"))?;
    Ok(value)
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}
