//! From the product's one error to status, code and message: the only file that knows HTTP statuses.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base::{Error, Kind};

use crate::envelope;

/// The status and code of each kind of error.
pub fn status_and_code(kind: Kind) -> (StatusCode, &'static str) {
    match kind {
        Kind::BadRequest => (StatusCode::BAD_REQUEST, "4000"),
        Kind::Unauthorized => (StatusCode::UNAUTHORIZED, "4010"),
        Kind::WrongLogin => (StatusCode::UNAUTHORIZED, "4011"),
        Kind::WrongCode => (StatusCode::UNAUTHORIZED, "4012"),
        Kind::NoAccess => (StatusCode::FORBIDDEN, "4030"),
        Kind::AccountRevoked => (StatusCode::FORBIDDEN, "4031"),
        Kind::NotFound => (StatusCode::NOT_FOUND, "4040"),
        Kind::SsoNotConfigured => (StatusCode::NOT_FOUND, "4041"),
        Kind::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "4050"),
        Kind::Conflict => (StatusCode::CONFLICT, "4090"),
        Kind::AlreadyHolds => (StatusCode::CONFLICT, "4091"),
        Kind::NoIdleInstance => (StatusCode::CONFLICT, "4092"),
        Kind::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "4130"),
        Kind::TooManyRequests => (StatusCode::TOO_MANY_REQUESTS, "4290"),
        Kind::QuotaUsedUp => (StatusCode::TOO_MANY_REQUESTS, "4291"),
        Kind::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "5000"),
        Kind::SaveFailed => (StatusCode::INTERNAL_SERVER_ERROR, "5001"),
        Kind::Gateway => (StatusCode::BAD_GATEWAY, "5020"),
        Kind::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "5030"),
        Kind::TimedOut => (StatusCode::GATEWAY_TIMEOUT, "5040"),
    }
}

/// What a handler fails with.
#[derive(Debug)]
pub struct ApiError(pub Error);

impl<E: Into<Error>> From<E> for ApiError {
    fn from(error: E) -> ApiError {
        ApiError(error.into())
    }
}

/// An error in the middle of an event stream, as an event of its own with the envelope.
pub fn error_event(error: Error) -> Vec<u8> {
    let (_, code) = status_and_code(error.kind);
    if let Some(operator) = &error.operator {
        tracing::warn!(code, operator, "an answer broke off");
    }
    format!("event: error\ndata: {}\n\n", envelope::failure_text(code, &error.client)).into_bytes()
}

/// What the log says about a failed request; carried beside the response, never in it.
#[derive(Clone, Debug)]
pub struct ForOperator(pub String);

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let Error { kind, client, operator, retry_after } = self.0;
        let (status, code) = status_and_code(kind);
        let mut response = envelope::failure(code, &client);
        *response.status_mut() = status;
        if let Some(after) = retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(after.as_secs().max(1)));
        }
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        let message = operator.unwrap_or_else(|| client.into_owned());
        response.extensions_mut().insert(ForOperator(message));
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_kind_has_a_code_of_its_own_that_begins_with_its_status() {
        let codes: HashSet<&str> = Kind::ALL.iter().map(|k| status_and_code(*k).1).collect();
        assert_eq!(codes.len(), Kind::ALL.len());
        for kind in Kind::ALL {
            let (status, code) = status_and_code(*kind);
            assert!(code.starts_with(status.as_str()), "{kind:?}");
        }
    }
}
