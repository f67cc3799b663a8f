//! A browser's WebSocket as the relay takes it: whose page it is, and frames in the relay's own type.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::extract::ws::{CloseFrame, Message as Theirs, WebSocket, WebSocketUpgrade};
use axum::http::{HeaderMap, Uri, header};
use axum::response::Response;
use base::{Error, Kind};
use bytes::Bytes;
use fleet::relay::{self, End, Place, RelayMode, Visitor};
use futures_util::{Sink, SinkExt as _, StreamExt as _};
use openclaw::frame::MAX_BYTES;
use remote::assistant::{CloseCode, CloseFrame as OurClose, Message, SocketError, Utf8Bytes};

use crate::error::ApiError;
use crate::state::Shared;

/// Allocated for each socket as long as it lives; most frames are small, and a large one is read in pieces of this size.
const BUFFER: usize = 4 * 1024;

/// Refuses the pages of others. What is no browser sends no Origin; it needs a ticket all the same.
pub fn check_origin(headers: &HeaderMap, ours: &str) -> Result<(), ApiError> {
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().unwrap_or_default();
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let same_host = origin.parse::<Uri>().is_ok_and(|uri| {
        let authority = uri.authority().map(|a| a.as_str());
        authority.is_some() && authority == host
    });
    if origin == ours || same_host {
        return Ok(());
    }
    Err(Error::new(Kind::NoAccess, "origin not allowed").into())
}

/// Opens the socket only to say why it is refused: a page cannot read the answer to a socket that did not open.
pub fn refuse(upgrade: WebSocketUpgrade, why: &'static str) -> Response {
    upgrade.read_buffer_size(BUFFER).max_message_size(BUFFER).max_frame_size(BUFFER).on_upgrade(
        move |socket| async move {
            let (sink, stream) = socket.split();
            let mut reader = stream.map(|said| said.map_err(fault).and_then(ours));
            End::new(End::REFUSED, why).tell(&mut reader, &mut MessageSink(sink)).await;
        },
    )
}

/// Takes the socket over, and carries it until it ends.
pub fn take(api: Shared, upgrade: WebSocketUpgrade, visitor: Visitor, place: Place, mode: RelayMode) -> Response {
    upgrade
        .read_buffer_size(BUFFER)
        .max_message_size(MAX_BYTES)
        .max_frame_size(MAX_BYTES)
        .on_upgrade(move |socket| carry(api, socket, visitor, place, mode))
}

async fn carry(api: Shared, socket: WebSocket, visitor: Visitor, place: Place, mode: RelayMode) {
    let (sink, stream) = socket.split();
    let reader = stream.map(|said| said.map_err(fault).and_then(ours));
    relay::carry(api.app.clone(), visitor, place, mode, reader, MessageSink(sink)).await;
}

/// What is told to a browser. One that left in the middle of a word is told goodbye all the same, so a failure is not the last
/// use, as `SinkExt::sink_map_err` takes for granted: it panics.
struct MessageSink<S>(S);

impl<S: Sink<Theirs, Error = axum::Error> + Unpin> Sink<Message> for MessageSink<S> {
    type Error = SocketError;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SocketError>> {
        self.0.poll_ready_unpin(cx).map_err(fault)
    }

    fn start_send(mut self: Pin<&mut Self>, message: Message) -> Result<(), SocketError> {
        self.0.start_send_unpin(theirs(message)?).map_err(fault)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SocketError>> {
        self.0.poll_flush_unpin(cx).map_err(fault)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SocketError>> {
        self.0.poll_close_unpin(cx).map_err(fault)
    }
}

fn fault(error: axum::Error) -> SocketError {
    match error.into_inner().downcast::<SocketError>() {
        Ok(error) => *error,
        Err(_) => SocketError::ConnectionClosed,
    }
}

fn ours(message: Theirs) -> Result<Message, SocketError> {
    Ok(match message {
        Theirs::Text(text) => {
            Message::Text(Utf8Bytes::try_from(Bytes::from(text)).map_err(|_| SocketError::AttackAttempt)?)
        }
        Theirs::Binary(bytes) => Message::Binary(bytes),
        Theirs::Ping(bytes) => Message::Ping(bytes),
        Theirs::Pong(bytes) => Message::Pong(bytes),
        Theirs::Close(close) => Message::Close(
            close.map(|close| OurClose { code: CloseCode::from(close.code), reason: close.reason.as_str().into() }),
        ),
    })
}

fn theirs(message: Message) -> Result<Theirs, SocketError> {
    Ok(match message {
        Message::Text(text) => Theirs::Text(Bytes::from(text).try_into().map_err(|_| SocketError::AttackAttempt)?),
        Message::Binary(bytes) => Theirs::Binary(bytes),
        Message::Ping(bytes) => Theirs::Ping(bytes),
        Message::Pong(bytes) => Theirs::Pong(bytes),
        Message::Close(close) => Theirs::Close(
            close.map(|close| CloseFrame { code: close.code.into(), reason: close.reason.as_str().into() }),
        ),
        Message::Frame(_) => return Err(SocketError::AttackAttempt),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A browser that is gone.
    struct Gone;

    impl Sink<Theirs> for Gone {
        type Error = axum::Error;

        fn poll_ready(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), axum::Error>> {
            Poll::Ready(Err(axum::Error::new(SocketError::AlreadyClosed)))
        }

        fn start_send(self: Pin<&mut Self>, _: Theirs) -> Result<(), axum::Error> {
            Err(axum::Error::new(SocketError::AlreadyClosed))
        }

        fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), axum::Error>> {
            self.poll_ready(cx)
        }

        fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), axum::Error>> {
            self.poll_ready(cx)
        }
    }

    #[tokio::test]
    async fn who_left_in_the_middle_of_a_word_is_told_goodbye_without_a_panic() {
        let mut writer = MessageSink(Gone);
        assert!(matches!(writer.send(Message::text("a word")).await, Err(SocketError::AlreadyClosed)));
        let mut reader = futures_util::stream::empty();
        End::lost().tell(&mut reader, &mut writer).await;
        assert!(writer.close().await.is_err());
    }
}
