//! The body of an answer to a client.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Response;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http_body::{Body, Frame, SizeHint};

use crate::error::{Refusal, Shape};
use crate::relay::Relay;

pub enum Reply {
    /// A complete body, in the pieces in which it arrived.
    Whole(VecDeque<Bytes>),
    /// Forwarded as it arrives.
    Stream(Relay),
}

impl Reply {
    pub fn full(body: impl Into<Bytes>) -> Reply {
        let body = body.into();
        Reply::Whole(if body.is_empty() { VecDeque::new() } else { [body].into() })
    }
}

/// Whose failure it is, in one word for programs. Anthropic's errors have no field for it.
const FAILURE: HeaderName = HeaderName::from_static("x-tidepool-error");

impl Refusal {
    pub fn response(&self, shape: Shape, id: Option<&str>) -> Response<Reply> {
        let mut response = Response::new(Reply::full(self.body(shape, id)));
        *response.status_mut() = self.status;
        if let Some(headers) = &self.headers {
            *response.headers_mut() = headers.as_ref().clone();
        }
        response.headers_mut().insert(FAILURE, HeaderValue::from_static(self.code));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(wait) = self.retry_after {
            // Round up: a client that retries a moment too early is refused again.
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        }
        response
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match self.get_mut() {
            Reply::Whole(pieces) => Poll::Ready(pieces.pop_front()),
            Reply::Stream(relay) => relay.poll(cx),
        };
        piece.map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Reply::Whole(pieces) => pieces.is_empty(),
            Reply::Stream(relay) => relay.is_over(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Reply::Whole(pieces) => SizeHint::with_exact(pieces.iter().map(|piece| piece.len() as u64).sum()),
            Reply::Stream(_) => SizeHint::default(),
        }
    }
}
