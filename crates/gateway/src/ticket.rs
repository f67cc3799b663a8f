//! One request from its authentication to its line in the log. A ticket is finished once: with what was answered, or, when it
//! is dropped, with the fact that the client left.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use store::request_log::{ERROR, SUCCESS};

use crate::Gateway;
use crate::keys::Caller;
use crate::limit::{Reserved, Used};
use crate::live;
use crate::log::Record;
use crate::log::record::shortened;
use crate::models::Model;
use crate::tokens::{self, Usage};

/// The model in the row of a request whose model there is not: names are made up without end.
const NO_MODEL: &str = "unknown";

/// How a request ended.
pub enum Outcome<'a> {
    /// Answered whole, with the provider's usage if it gave one.
    Answered(Option<Usage>),
    /// Refused or failed before a byte of an answer.
    Failed(&'a str),
    /// The provider broke off in the middle of its answer.
    BrokenOff(&'a str),
    /// The client did not wait for the end; the usage, if it was told by then.
    Left(Option<Usage>),
}

/// Who answers.
#[derive(Clone)]
pub struct By {
    pub model: Arc<Model>,
    pub provider: Arc<str>,
}

pub struct Ticket {
    gateway: Arc<Gateway>,
    pub id: Arc<str>,
    caller: Arc<Caller>,
    began: Instant,
    stream: bool,
    prompt_bytes: usize,
    by: Option<By>,
    reserved: Reserved,
    live: Option<Arc<live::Entry>>,
    /// An answer goes on to the client: what it costs counts, whoever leaves.
    begun: bool,
    /// Bytes of what the model wrote so far.
    pub written: usize,
    /// The usage that was told so far.
    pub told: Option<Usage>,
    finished: bool,
    /// It used more than was reserved for it, and other processes do not know yet.
    pub overdrawn: bool,
}

impl Ticket {
    pub fn new(gateway: Arc<Gateway>, caller: Arc<Caller>) -> Ticket {
        Ticket {
            id: gateway.ids.next(),
            gateway,
            caller,
            began: Instant::now(),
            stream: false,
            prompt_bytes: 0,
            by: None,
            reserved: Reserved::default(),
            live: None,
            begun: false,
            written: 0,
            told: None,
            finished: false,
            overdrawn: false,
        }
    }

    /// What is asked, of whom first.
    pub fn asks(&mut self, by: By, stream: bool, prompt_bytes: usize) {
        (self.stream, self.prompt_bytes) = (stream, prompt_bytes);
        let (id, name) = (self.id.clone(), self.caller.name.clone());
        let at = self.gateway.app.clock.now();
        self.live = Some(self.gateway.live.begin(id, name, by.model.id.clone(), stream, at));
        self.by = Some(by);
    }

    pub fn holds(&mut self, reserved: Reserved) {
        self.reserved = reserved;
    }

    /// Who is asked now.
    pub fn turns_to(&mut self, by: By) {
        if let Some(live) = &self.live {
            live.set_by(&by.model.id, &by.provider);
        }
        self.by = Some(by);
    }

    /// From here on the answer goes to the client.
    pub fn begins(&mut self) {
        self.begun = true;
        if let Some(live) = &self.live {
            live.answering();
        }
    }

    pub fn passed(&self, bytes: usize) {
        if let Some(live) = &self.live {
            live.passed(bytes);
        }
    }

    fn estimate(&self) -> Usage {
        let completion = tokens::estimated(self.written);
        Usage { prompt: tokens::estimated(self.prompt_bytes), completion, estimated: true }
    }

    /// Writes the request down, then settles its quotas. When it cannot be written, the answer must not go out.
    pub fn finish(&mut self, outcome: &Outcome<'_>) -> io::Result<()> {
        if std::mem::replace(&mut self.finished, true) {
            return Ok(());
        }
        if let Some(live) = self.live.take() {
            self.gateway.live.end(&live);
        }
        let (succeeded, usage, error) = match outcome {
            Outcome::Answered(usage) => (true, usage.unwrap_or_else(|| self.estimate()), ""),
            Outcome::Failed(why) => (false, Usage::default(), *why),
            Outcome::BrokenOff(why) => (false, self.estimate(), *why),
            Outcome::Left(usage) if self.begun => {
                (true, usage.unwrap_or_else(|| self.estimate()), "the client left before the end of the answer")
            }
            Outcome::Left(_) => (false, Usage::default(), "the client left before an answer began"),
        };
        let quota = match &self.by {
            Some(by) if succeeded => by.model.price.quota(usage.total()),
            _ => 0,
        };
        let used = if succeeded { Used { tokens: usage.total(), units: quota } } else { Used::default() };
        let took = self.began.elapsed();
        if let Some(by) = &self.by {
            by.model.counts.count(succeeded, usage, took);
        }
        let record = Record {
            id: (&*self.id).into(),
            token: (&*self.caller.name).into(),
            model: self.by.as_ref().map_or(NO_MODEL, |by| &by.model.id).into(),
            provider: self.by.as_ref().map_or("", |by| &by.provider).into(),
            kind: if succeeded { SUCCESS } else { ERROR },
            stream: self.stream,
            prompt_tokens: usage.prompt,
            completion_tokens: usage.completion,
            quota,
            duration_ms: i64::try_from(took.as_millis()).unwrap_or(i64::MAX),
            at_ms: self.gateway.app.clock.now().as_millisecond(),
            estimated: usage.estimated,
            error: shortened(error).into(),
            holds: self.reserved.holds(used).into_iter().map(|(subject, used)| (subject.into(), used)).collect(),
        };
        let written = self.gateway.log.append(&record);
        // Also when it could not be written: what was used is used, as long as this process remembers it.
        self.overdrawn = self.reserved.settle(used);
        written
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        let outcome = if std::thread::panicking() {
            Outcome::Failed("internal error")
        } else if self.gateway.is_stopping() {
            Outcome::BrokenOff("the gateway was stopped before the end of the answer")
        } else {
            Outcome::Left(self.told)
        };
        if let Err(error) = self.finish(&outcome) {
            tracing::error!(%error, request = &*self.id, "a request that nobody waited for is not in the log");
        }
    }
}
