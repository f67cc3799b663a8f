//! A stream on its way from the provider to the client: passed on as it comes, read as it passes, and written down before its
//! last byte leaves.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::Body as _;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::error::Refusal;
use crate::provider::Answer;
use crate::sse::Reader;
use crate::ticket::{Outcome, Ticket};

pub struct Relay {
    answer: Answer,
    reader: Reader,
    out: VecDeque<Bytes>,
    ticket: Ticket,
    /// Nothing more comes from the provider.
    over: bool,
    /// How long the provider may be silent, since when it is, and who wakes us.
    patience: Duration,
    heard: Instant,
    alarm: Pin<Box<Sleep>>,
}

impl Relay {
    pub fn new(answer: Answer, hide_usage: bool, mut ticket: Ticket, patience: Duration) -> Relay {
        ticket.begins();
        let heard = Instant::now();
        Relay {
            answer,
            reader: Reader::new(hide_usage),
            out: VecDeque::with_capacity(2),
            ticket,
            over: false,
            patience,
            heard,
            alarm: Box::pin(sleep_until(heard + patience)),
        }
    }

    pub fn is_over(&self) -> bool {
        self.over && self.out.is_empty()
    }

    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
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
        self.reader.take(bytes, &mut self.out);
        self.ticket.written = self.reader.seen.written;
        self.ticket.told = self.reader.seen.usage;
        // What follows is the end, or nothing: the last byte is among what came.
        if self.reader.seen.done || self.answer.is_end_stream() {
            self.finish();
        }
    }

    fn ended(&mut self) {
        self.over = true;
        self.reader.finish(&mut self.out);
        self.finish();
    }

    /// Writes the request down, before what is in `out` leaves.
    fn finish(&mut self) {
        let seen = self.reader.seen;
        let outcome = match seen.error && seen.usage.is_none() {
            true => Outcome::BrokenOff("the provider told an error in the middle of its answer"),
            false => Outcome::Answered(seen.usage),
        };
        if self.ticket.finish(&outcome).is_err() {
            // Not answered as if it was written down: the stream ends with an error in place of its end.
            self.over = true;
            self.out.clear();
            self.out.push_back(event(&Refusal::unavailable("the request log cannot be written")));
        }
    }

    fn broke_off(&mut self, why: &str) {
        self.over = true;
        self.reader.finish(&mut self.out);
        // The client learns of it by an event, and by the missing end.
        self.out.push_back(event(&Refusal::bad_gateway("the provider broke off in the middle of its answer")));
        if let Err(error) = self.ticket.finish(&Outcome::BrokenOff(why)) {
            tracing::error!(%error, "a stream that broke off is not in the log");
        }
    }

    /// Whether the provider has been silent for too long. The alarm is moved only when it rings.
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
}

fn event(refusal: &Refusal) -> Bytes {
    let mut event = b"data: ".to_vec();
    event.extend(refusal.body());
    event.extend(b"\n\n");
    event.into()
}
