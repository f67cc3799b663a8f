//! The parts of a path. What cannot be an id of ours names nothing.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use base::Kind;
use serde::de::DeserializeOwned;

use crate::error::ApiError;

pub struct Path<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Path<T>, ApiError> {
        let raw = RawPathParams::from_request_parts(parts, state).await.map_err(|_| Kind::NotFound)?;
        if raw.iter().any(|(_, value)| value.contains('\0')) {
            return Err(Kind::NotFound.into());
        }
        let path = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        path.map(|p| Path(p.0)).map_err(|_| Kind::NotFound.into())
    }
}
