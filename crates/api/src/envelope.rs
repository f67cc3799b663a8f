//! The envelope `{code, data, msg}` around every JSON answer: the only file that knows it.

use axum::Json;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// The code of every success.
pub const SUCCESS: &str = "0000";

#[derive(Serialize)]
struct Envelope<'a, T> {
    code: &'a str,
    data: T,
    msg: &'a str,
}

/// A success. `Data(())` answers `data: null`.
pub struct Data<T>(pub T);

impl<T: Serialize> IntoResponse for Data<T> {
    fn into_response(self) -> Response {
        Json(Envelope { code: SUCCESS, data: self.0, msg: "ok" }).into_response()
    }
}

/// The same failure as a text, for streams.
pub fn failure_text(code: &str, msg: &str) -> String {
    serde_json::to_string(&Envelope { code, data: (), msg }).unwrap_or_default()
}

/// A failure: no data, whatever happened.
pub fn failure(code: &str, msg: &str) -> Response {
    Json(Envelope { code, data: (), msg }).into_response()
}
