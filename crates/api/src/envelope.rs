//! The envelope `{code, data, msg}` around every JSON answer: the only file that knows it.

use axum::Json;
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use base::Error;
use futures_util::{Stream, StreamExt as _, stream};
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

/// A success whose data is too much to have at once: one JSON value, in pieces.
pub fn in_pieces(data: impl Stream<Item = Result<Bytes, Error>> + Send + 'static) -> Response {
    let whole = serde_json::to_string(&Envelope { code: SUCCESS, data: (), msg: "ok" }).unwrap_or_default();
    let (head, tail) = whole.split_once("null").unwrap_or_default();
    let piece = |text: &str| {
        let text = Bytes::from(text.to_owned());
        stream::once(async move { Ok::<_, Error>(text) })
    };
    let body = Body::from_stream(piece(head).chain(data).chain(piece(tail)));
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
}

/// The same failure as a text, for streams.
pub fn failure_text(code: &str, msg: &str) -> String {
    serde_json::to_string(&Envelope { code, data: (), msg }).unwrap_or_default()
}

/// A failure: no data, whatever happened.
pub fn failure(code: &str, msg: &str) -> Response {
    Json(Envelope { code, data: (), msg }).into_response()
}
