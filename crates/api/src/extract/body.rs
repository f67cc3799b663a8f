//! A JSON body: its type, size and fields checked, each refusal naming what is wrong.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, FailedToBufferBody};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use base::{Error, Kind};
use serde::de::DeserializeOwned;

use crate::error::ApiError;
use crate::state::Shared;

pub struct Body<T>(pub T);

/// How long a body may take to arrive.
const PATIENCE: Duration = Duration::from_secs(30);

impl<T: DeserializeOwned> FromRequest<Shared> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &Shared) -> Result<Body<T>, ApiError> {
        let unmarked = !request.headers().contains_key(header::CONTENT_TYPE);
        if !unmarked && !is_json(request.headers()) {
            return Err(Error::new(Kind::BadRequest, "the body must be application/json").into());
        }
        let arrived = tokio::time::timeout(PATIENCE, Bytes::from_request(request, state)).await;
        let late = |_| Error::new(Kind::BadRequest, "the body did not arrive in time");
        let bytes = arrived.map_err(late)?.map_err(|rejection| match rejection {
            BytesRejection::FailedToBufferBody(FailedToBufferBody::LengthLimitError(_)) => Error::from(Kind::TooLarge),
            _ => Error::new(Kind::BadRequest, "the body could not be read"),
        })?;
        // No body at all is an empty object: whether that is enough is the route's to say.
        match (unmarked, bytes.is_empty()) {
            (true, true) => read(b"{}").map(Body).map_err(ApiError),
            (true, false) => Err(Error::new(Kind::BadRequest, "the body must be application/json").into()),
            (false, _) => read(&bytes).map(Body).map_err(ApiError),
        }
    }
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
