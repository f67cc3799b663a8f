//! A query string: its fields checked, a refusal naming the parameter.

use axum::extract::FromRequestParts;
use axum::http::Uri;
use axum::http::request::Parts;
use base::{Error, Kind};
use serde::de::DeserializeOwned;

use crate::error::ApiError;

/// What SQLite compares with has at most 50,000 bytes, four for each letter that is looked for.
const LONGEST: usize = 10_000;

pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Query<T>, ApiError> {
        read(parts.uri.query().unwrap_or_default()).map(Query)
    }
}

pub(super) fn read<T: DeserializeOwned>(query: &str) -> Result<T, ApiError> {
    // PostgreSQL keeps no NUL in a text; no filter of ours means one.
    if query.contains("%00") {
        return Err(Error::new(Kind::BadRequest, "the query must not contain a NUL character").into());
    }
    if query.len() > LONGEST {
        return Err(Error::new(Kind::BadRequest, format!("the query must have at most {LONGEST} bytes")).into());
    }
    // Rebuilt because axum reads a query from a URI only.
    let uri: Uri = format!("/?{query}").parse().map_err(|_| Error::new(Kind::BadRequest, "malformed query"))?;
    let read = axum::extract::Query::<T>::try_from_uri(&uri);
    read.map(|q| q.0).map_err(|e| {
        let text = e.body_text();
        let problem = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text);
        Error::new(Kind::BadRequest, problem.to_owned()).into()
    })
}
