//! Why a socket ends, as the browser sees it: a close code and a reason.

use std::borrow::Cow;
use std::time::Duration;

use base::{Error, Kind};
use futures_util::{SinkExt as _, StreamExt as _};
use remote::assistant::{CapacityError, CloseCode, CloseFrame, Message, SocketError};
use tokio::time::timeout;

use super::{ClientRead, ClientWrite};

/// Timeout of the close handshake.
const GOODBYE: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    pub code: u16,
    pub reason: Cow<'static, str>,
}

impl End {
    pub const NORMAL: u16 = 1000;
    pub const UNSUPPORTED: u16 = 1003;
    pub const NOT_UTF8: u16 = 1007;
    /// The visitor has no access, or violates the protocol. The browser must not retry with the same login.
    pub const REFUSED: u16 = 1008;
    pub const TOO_LARGE: u16 = 1009;
    /// The instance cannot be reached.
    pub const INSTANCE: u16 = 1011;
    pub const RESTART: u16 = 1012;
    pub const LATER: u16 = 1013;

    pub fn new(code: u16, reason: impl Into<Cow<'static, str>>) -> End {
        End { code, reason: reason.into() }
    }

    /// The end for an error while reading from the browser.
    pub fn of_browser(error: &SocketError) -> End {
        match error {
            SocketError::Capacity(CapacityError::MessageTooLong { .. }) => {
                End::new(End::TOO_LARGE, "a frame is too long")
            }
            SocketError::Utf8(_) => End::new(End::NOT_UTF8, "a frame is not UTF-8"),
            SocketError::Protocol(_) => End::new(1002, "no WebSocket frame"),
            _ => End::new(End::NORMAL, "the browser left"),
        }
    }

    /// The end for a close by the gateway. Some codes are passed on; any other close counts as a lost instance.
    pub fn of_gateway(close: Option<CloseFrame>) -> End {
        match close.map(|close| (u16::from(close.code), close.reason.as_str().to_owned())) {
            Some((code @ (End::REFUSED | End::TOO_LARGE | End::RESTART | End::LATER), reason)) => {
                End::new(code, reason)
            }
            _ => End::lost(),
        }
    }

    pub fn lost() -> End {
        End::new(End::INSTANCE, "the connection to the instance was lost")
    }

    /// All sockets together have reached their memory limit.
    pub fn full() -> End {
        End::new(End::LATER, "too much is under way at present")
    }

    /// Sends the close frame and gives the browser a moment to read it: if a connection is closed with unread bytes,
    /// the frame is lost.
    pub async fn tell(&self, reader: &mut impl ClientRead, writer: &mut impl ClientWrite) {
        let mut reason = self.reason.as_ref();
        // A close frame holds 125 bytes, two of them the code.
        while reason.len() > 123 {
            reason = &reason[..reason.floor_char_boundary(reason.len().min(124) - 1)];
        }
        let frame = CloseFrame { code: CloseCode::from(self.code), reason: reason.into() };
        let goodbye = async {
            writer.send(Message::Close(Some(frame))).await.ok();
            while let Some(Ok(message)) = reader.next().await {
                if matches!(message, Message::Close(_)) {
                    break;
                }
            }
        };
        timeout(GOODBYE, goodbye).await.ok();
    }
}

impl From<Error> for End {
    fn from(error: Error) -> End {
        let code = match error.kind {
            Kind::Unauthorized | Kind::NotFound | Kind::NoAccess => End::REFUSED,
            Kind::TooManyRequests => End::LATER,
            _ => End::INSTANCE,
        };
        if let Some(operator) = &error.operator {
            tracing::warn!(operator, "a socket was refused");
        }
        let reason = match error.kind {
            Kind::Unauthorized => "the session ended".into(),
            Kind::NotFound => "the instance is not yours".into(),
            _ => error.client,
        };
        End::new(code, reason)
    }
}
