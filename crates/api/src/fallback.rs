//! What is answered where nothing is: unknown paths, versions and methods, all in the envelope.

use axum::extract::Request;
use base::{Error, Kind};

use crate::error::ApiError;

pub const SERVED_VERSIONS: &str = "v1";

pub async fn unknown_path(request: Request) -> ApiError {
    let path = request.uri().path();
    let version = path.strip_prefix("/api/").and_then(|rest| rest.split('/').next());
    match version {
        Some(version) if version != "v1" => {
            Error::new(Kind::NotFound, format!("unknown api version; served: {SERVED_VERSIONS}")).into()
        }
        _ => Kind::NotFound.into(),
    }
}

pub async fn unknown_method() -> ApiError {
    Kind::MethodNotAllowed.into()
}
