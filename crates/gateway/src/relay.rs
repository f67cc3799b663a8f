//! Forwards a stream from the provider to the client. It reads the events as they pass, and logs the request before the
//! last byte is sent.
//!
//! When the client disconnects before the first byte or after the finish reason, the stream is read to its end for its
//! usage (`read_on`). When it disconnects in between, the provider is cancelled, and the part that was read counts.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::Body as _;
use tokio::time::{Instant, Sleep, sleep_until, timeout, timeout_at};

use crate::error::Refusal;
use crate::provider::Answer;
use crate::sse::Reader;
use crate::ticket::{Outcome, Ticket};

/// A provider also bills text that waits in buffers because the client read slowly. Before the provider is cancelled,
/// the buffers are read until nothing arrives for this long: more than a packet takes to a far provider and back, since a
/// full buffer that is read has to be filled again.
const QUIET: Duration = Duration::from_millis(300);

/// `None` once the flow was moved out.
pub struct Relay(Option<Box<Flow>>);

struct Flow {
    answer: Answer,
    reader: Reader,
    out: VecDeque<Bytes>,
    ticket: Ticket,
    /// Nothing more is read from the provider.
    over: bool,
    /// Something was forwarded to the client.
    passed: bool,
    /// The client has read everything so far and waits for more.
    keeps_up: bool,
    /// Bytes received from the provider.
    came: usize,
    began: Instant,
    /// How long the provider may be silent, when it last sent something, and the timer for that.
    patience: Duration,
    heard: Instant,
    alarm: Pin<Box<Sleep>>,
}

impl Relay {
    pub fn new(answer: Answer, hide_usage: bool, mut ticket: Ticket, patience: Duration) -> Relay {
        ticket.begins();
        let protocol = ticket.protocol();
        let heard = Instant::now();
        Relay(Some(Box::new(Flow {
            answer,
            reader: Reader::new(protocol, hide_usage),
            out: VecDeque::with_capacity(2),
            ticket,
            over: false,
            passed: false,
            keeps_up: false,
            came: 0,
            began: heard,
            patience,
            heard,
            alarm: Box::pin(sleep_until(heard + patience)),
        })))
    }

    pub fn is_over(&self) -> bool {
        self.0.as_ref().is_none_or(|flow| flow.over && flow.out.is_empty())
    }

    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match &mut self.0 {
            Some(flow) => {
                let piece = flow.poll(cx);
                flow.passed |= matches!(piece, Poll::Ready(Some(_)));
                flow.keeps_up = piece.is_pending();
                piece
            }
            None => Poll::Ready(None),
        }
    }

    /// Reads a stream to its usage when the client disconnected before it began.
    pub async fn read_on(mut self) {
        if let Some(mut flow) = self.0.take() {
            flow.read_on().await;
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let Some(mut flow) = self.0.take() else { return };
        // After a panic, or when the gateway stops, it is not the client that disconnected.
        if flow.ticket.is_finished() || std::thread::panicking() || flow.ticket.gateway().is_stopping() {
            return;
        }
        flow.ticket.leaves();
        let (readers, key) = (flow.ticket.gateway().readers.clone(), flow.ticket.key().clone());
        readers.take(&key, async move {
            if !flow.is_to_be_read_on() && !flow.keeps_up {
                flow.drain().await;
            }
            if flow.is_to_be_read_on() {
                flow.read_on().await;
            } else {
                flow.cancel();
            }
        });
    }
}

impl Flow {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            if let Some(piece) = self.out.pop_front() {
                self.ticket.passed(piece.len());
                return Poll::Ready(Some(piece));
            }
            if self.over {
                return Poll::Ready(None);
            }
            match Pin::new(&mut self.answer).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(bytes) = frame.into_data() {
                        self.came(bytes);
                    }
                }
                Poll::Ready(Some(Err(error))) => self.broke_off(&format!("the provider broke off: {error}")),
                Poll::Ready(None) => self.ended(),
                Poll::Pending => {
                    if !self.is_late(cx) {
                        return Poll::Pending;
                    }
                    self.broke_off("the provider fell silent in the middle of its answer");
                }
            }
        }
    }

    fn came(&mut self, bytes: Bytes) {
        self.heard = Instant::now();
        self.came += bytes.len();
        self.ticket.answer_came();
        self.reader.take(bytes, &mut self.out);
        self.ticket.seen.clone_from(&self.reader.seen);
        let timing = &self.ticket.gateway().timing;
        if self.came > timing.stream_bytes || self.began.elapsed() > timing.stream {
            return self.too_long();
        }
        // The last byte has arrived: log the request before it is sent.
        if self.reader.seen.done || self.answer.is_end_stream() {
            self.finish();
        }
    }

    /// Ends the stream with an error that the client understands.
    fn push_error(&mut self, refusal: &Refusal) {
        let event = (self.ticket.protocol().error_event)(refusal, self.reader.events);
        self.out.push_back(event.into());
    }

    fn ended(&mut self) {
        self.over = true;
        self.reader.finish(&mut self.out);
        self.finish();
    }

    /// Logs the request, before the contents of `out` are sent.
    fn finish(&mut self) {
        let seen = &self.reader.seen;
        let outcome = match seen.error && seen.usage.is_none() {
            true => Outcome::BrokenOff("the provider told an error in the middle of its answer"),
            false => Outcome::Answered(seen.usage),
        };
        if self.ticket.finish(&outcome).is_err() {
            // An answer that is not in the log must not look complete: the stream ends with an error instead.
            self.over = true;
            self.out.clear();
            self.push_error(&Refusal::unavailable("the request log cannot be written"));
        }
    }

    fn broke_off(&mut self, why: &str) {
        self.over = true;
        self.reader.break_off(&mut self.out);
        // The client sees it by this event and by the missing end.
        self.push_error(&Refusal::bad_gateway("the provider broke off in the middle of its answer"));
        if let Err(error) = self.ticket.finish(&Outcome::BrokenOff(why)) {
            tracing::error!(%error, "a stream that broke off is not in the log");
        }
    }

    /// Ends an answer that exceeds the limits. The provider bills the part that was read, so that part counts.
    fn too_long(&mut self) {
        self.over = true;
        self.reader.break_off(&mut self.out);
        self.push_error(&Refusal::bad_gateway("the answer is longer than any may be"));
        self.cancel();
    }

    /// Whether the provider has been silent for too long. The timer is moved only when it fires, not at every event.
    fn is_late(&mut self, cx: &mut Context<'_>) -> bool {
        while self.alarm.as_mut().poll(cx).is_ready() {
            let until = self.heard + self.patience;
            if Instant::now() >= until {
                return true;
            }
            self.alarm.as_mut().reset(until);
        }
        false
    }

    /// Whether the stream is worth reading without a client: nothing was forwarded yet, or only the usage is missing.
    fn is_to_be_read_on(&self) -> bool {
        !self.passed || self.has_all_words()
    }

    fn has_all_words(&self) -> bool {
        self.reader.seen.finished >= self.ticket.choices()
    }

    /// Reads until the usage, or until a limit.
    async fn read_on(&mut self) {
        let most = self.came.saturating_add(self.ticket.gateway().timing.read_on.stream_bytes);
        while !self.ticket.is_finished() {
            if self.has_all_words() && self.reader.seen.usage.is_some() {
                self.finish();
            } else if self.came > most {
                self.broke_off("the client left, and the answer is too long to be read without it");
            } else if poll_fn(|cx| self.poll(cx)).await.is_none() {
                break;
            }
        }
    }

    /// Reads what has arrived and waits in buffers.
    async fn drain(&mut self) {
        let limits = self.ticket.gateway().timing.read_on;
        let (end, most) = (Instant::now() + limits.drain, self.came.saturating_add(limits.stream_bytes));
        let reading = async {
            while !self.ticket.is_finished() && !self.has_all_words() && self.came < most {
                match timeout(QUIET, poll_fn(|cx| self.poll(cx))).await {
                    Ok(Some(_)) => {}
                    Ok(None) | Err(_) => break,
                }
            }
        };
        timeout_at(end, reading).await.ok();
    }

    /// Logs the part that was read. Dropping the flow closes the connection to the provider.
    fn cancel(&mut self) {
        if let Err(error) = self.ticket.finish(&Outcome::Cancelled) {
            tracing::error!(%error, "a stream whose client left is not in the log");
        }
    }
}
