//! Streams an answer to the client byte for byte, and stores it.

use std::time::{Duration, Instant};

use base::{Error, Kind};
use reqwest::Response;

use super::event::{Event, Events, Reply};
use super::{Failure, Turn, Used};

/// An answer fails if nothing arrives for this long.
const SILENCE: Duration = Duration::from_secs(120);
/// The maximum size of an event.
const LONGEST: usize = 4 << 20;
/// Limits on the size and the duration of a whole answer, because an endless one would fill the memory. A hundred
/// thousand tokens, one event each, are 25 MB.
const WHOLE: usize = 64 << 20;
const WHOLE_TIME: Duration = Duration::from_secs(3600);

/// What goes to the client next.
#[derive(Debug)]
pub enum Piece {
    Bytes(Vec<u8>),
    /// The answer broke off; nothing follows.
    Failed(Error),
}

/// A streamed answer. If it is dropped before its end, the connection to the gateway is closed and the part that has
/// arrived is stored.
pub struct Streaming {
    /// Taken when the answer is over.
    turn: Option<Turn>,
    response: Response,
    events: Events,
    reply: Reply,
    /// The number of bytes from the gateway, and when the stream began.
    came: usize,
    began: Instant,
    /// No more bytes come from the gateway.
    ended: bool,
}

impl Streaming {
    pub(super) fn new(turn: Turn, response: Response) -> Streaming {
        let (events, reply) = (Events::default(), Reply::default());
        Streaming { turn: Some(turn), response, events, reply, came: 0, began: Instant::now(), ended: false }
    }

    /// The next piece; `None` after the last.
    pub async fn next(&mut self) -> Option<Piece> {
        self.turn.as_ref()?;
        loop {
            if let Some(event) = self.events.next() {
                return Some(self.pass(event).await);
            }
            if self.ended {
                return Some(self.end().await);
            }
            match tokio::time::timeout(SILENCE, self.response.chunk()).await {
                Ok(Ok(Some(bytes))) => {
                    self.came += bytes.len();
                    self.events.push(&bytes);
                }
                Ok(Ok(None)) => self.ended = true,
                Ok(Err(error)) => return Some(self.fail(Kind::Gateway.into(), error.without_url()).await),
                Err(_) => return Some(self.fail(Kind::TimedOut.into(), "silence in the middle of an answer").await),
            }
            if self.came > WHOLE || self.began.elapsed() > WHOLE_TIME {
                return Some(self.fail(Kind::Gateway.into(), "an answer without end").await);
            }
            if self.events.len() > LONGEST {
                return Some(self.fail(Kind::Gateway.into(), "an event without end").await);
            }
        }
    }

    async fn pass(&mut self, event: Event) -> Piece {
        let data = event.data();
        if data.trim() == "[DONE]" {
            return self.finish(event.bytes).await;
        }
        self.reply.take(&data);
        Piece::Bytes(event.bytes)
    }

    /// The answer is complete. It is stored before the client gets its last event.
    async fn finish(&mut self, last: Vec<u8>) -> Piece {
        let Some(turn) = self.turn.take() else { return Piece::Bytes(last) };
        let (content, used) = self.said();
        match turn.finish(content, used).await {
            Ok(()) => Piece::Bytes(last),
            Err(error) => Piece::Failed(error),
        }
    }

    /// The gateway closed the connection. Some gateways omit `[DONE]` after a complete answer.
    async fn end(&mut self) -> Piece {
        let mut rest = self.events.rest();
        let said = String::from_utf8_lossy(&rest);
        if self.reply.finished || said.contains("data: [DONE]") {
            if !said.contains("data: [DONE]") {
                rest.extend_from_slice(b"data: [DONE]\n\n");
            }
            return self.finish(rest).await;
        }
        let why = self.reply.error.take().unwrap_or_else(|| "the answer broke off".into());
        self.fail(Kind::Gateway.into(), why).await
    }

    async fn fail(&mut self, error: Error, why: impl std::fmt::Display) -> Piece {
        let error = error.with_operator(why);
        let Some(mut turn) = self.turn.take() else { return Piece::Failed(error) };
        let (content, used) = self.said();
        // In a task of its own: the partial answer is stored even if the client disconnects now.
        let failing = tokio::spawn(async move {
            turn.store_half(&content, &used).await;
            turn.failed(Failure { error, answered: true, of_key: false }).await
        });
        Piece::Failed(failing.await.unwrap_or_else(Error::internal))
    }

    /// The answer so far and what it used.
    fn said(&mut self) -> (String, Used) {
        let (prompt_tokens, completion_tokens) = (self.reply.prompt_tokens, self.reply.completion_tokens);
        (std::mem::take(&mut self.reply.content), Used { prompt_tokens, completion_tokens })
    }
}

impl Drop for Streaming {
    /// The client left. Dropping the response closes the connection to the gateway.
    fn drop(&mut self) {
        let Some(mut turn) = self.turn.take() else { return };
        let (content, used) = self.said();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { turn.store_half(&content, &used).await });
        }
    }
}
