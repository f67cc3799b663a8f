//! A JSON body: its type, size and fields checked, each refusal naming what is wrong.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse as _;
use base::{Error, Kind};
use serde::de::DeserializeOwned;

use crate::error::ApiError;
use crate::state::Shared;

pub struct Body<T>(pub T);

impl<T: DeserializeOwned> FromRequest<Shared> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &Shared) -> Result<Body<T>, ApiError> {
        if !is_json(request.headers()) {
            return Err(Error::new(Kind::BadRequest, "the body must be application/json").into());
        }
        let bytes = Bytes::from_request(request, state).await.map_err(|rejection| {
            match rejection.into_response().status() {
                StatusCode::PAYLOAD_TOO_LARGE => Error::from(Kind::TooLarge),
                _ => Error::new(Kind::BadRequest, "the body could not be read"),
            }
        })?;
        read(&bytes).map(Body).map_err(ApiError)
    }
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    let mut from = serde_json::Deserializer::from_slice(bytes);
    let value: T = serde_path_to_error::deserialize(&mut from).map_err(|e| {
        let field = e.path().to_string();
        let problem = e.inner().to_string();
        // serde_json ends its messages with a position that says nothing about a one-line body.
        let problem = problem.split(" at line ").next().unwrap_or_default();
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
