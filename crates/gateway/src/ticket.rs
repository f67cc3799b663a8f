//! One request from its authentication to its line in the log. A ticket is finished once: with what was answered, or, when it
//! is dropped, with the fact that the client left. Whoever leaves once a provider was asked pays: what the provider said, or what
//! was passed on, or at least what was reserved.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use llm::input;
use store::request_log::{ERROR, SUCCESS};

use crate::Gateway;
use crate::keys::Caller;
use crate::limit::{Reserved, Used};
use crate::live;
use crate::log::Record;
use crate::log::record::shortened;
use crate::models::Model;
use crate::progress::Progress;
use crate::request::{Asked, Output};
use crate::sse::Seen;
use crate::tokens::Usage;

/// The model in the row of a request whose model there is not: names are made up without end.
const NO_MODEL: &str = "unknown";

const LEFT_BEFORE: &str = "the client left before an answer began";
const LEFT_IN_THE_MIDDLE: &str = "the client left before the end of the answer";

/// What a provider writes until it notices that it was cancelled.
const ON_ITS_WAY: i64 = 32;

/// How a request ended.
pub enum Outcome<'a> {
    /// Answered whole, with the provider's usage if it gave one.
    Answered(Option<Usage>),
    /// Refused or failed before a byte of an answer.
    Failed(&'a str),
    /// The provider broke off in the middle of its answer.
    BrokenOff(&'a str),
    /// The client left in the middle of a stream, and the provider was cancelled.
    Cancelled,
    /// The client left, and nobody read on to the end.
    Left,
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
    /// What the request may cost: the input's tokens, and the output.
    input: i64,
    output: Output,
    by: Option<By>,
    progress: Arc<Progress>,
    reserved: Reserved,
    live: Option<Arc<live::Entry>>,
    /// An answer goes on to the client.
    begun: bool,
    /// What is known of the answer so far.
    pub seen: Seen,
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
            input: 0,
            output: Output::default(),
            by: None,
            progress: Arc::default(),
            reserved: Reserved::default(),
            live: None,
            begun: false,
            seen: Seen::default(),
            finished: false,
            overdrawn: false,
        }
    }

    pub fn gateway(&self) -> &Arc<Gateway> {
        &self.gateway
    }

    /// The name of the sub key.
    pub fn key(&self) -> &Arc<str> {
        &self.caller.name
    }

    pub fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// How many answers are asked for.
    pub fn choices(&self) -> usize {
        self.output.choices
    }

    /// What is asked, of whom first, and how many tokens the input may have.
    pub fn asks(&mut self, by: By, asked: &Asked, input: i64) {
        (self.stream, self.input, self.output) = (asked.stream, input, asked.output);
        let (id, name) = (self.id.clone(), self.caller.name.clone());
        let at = self.gateway.app.clock.now();
        self.live = Some(self.gateway.live.begin(id, name, by.model.id.clone(), asked.stream, at));
        self.by = Some(by);
    }

    pub fn holds(&mut self, reserved: Reserved) {
        self.reserved = reserved;
    }

    /// Who is asked now. From here on it may be billed.
    pub fn turns_to(&mut self, by: By) {
        self.progress.set_asked(true);
        if let Some(live) = &self.live {
            live.set_by(&by.model.id, &by.provider);
        }
        self.by = Some(by);
    }

    /// Whoever was asked refused it, and bills nothing.
    pub fn is_refused(&mut self) {
        self.progress.set_asked(false);
    }

    /// The client left.
    pub fn leaves(&mut self) {
        self.progress.leave();
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

    /// What stands in for usage that was not told: the provider's own numbers as far as there are any, the estimate of the
    /// input, and what the model wrote. Thinking that was asked for and not shown is counted as if it was all used.
    fn estimate(&self, more: i64) -> Usage {
        let reported = self.seen.usage.unwrap_or_default();
        let hidden = if self.seen.thought == 0 { self.output.thinking } else { 0 };
        let written = input::text_tokens(self.seen.written);
        let most = if self.output.is_named { self.output.tokens.max(written) } else { i64::MAX };
        let completion = (written + hidden + more).min(most).max(reported.completion);
        // Some begin with zeros.
        let prompt = if reported.prompt > 0 { reported.prompt } else { self.input };
        Usage { prompt, completion, estimated: true }
    }

    /// What counts where nobody knows how the answer ended.
    fn at_least_reserved(&self) -> Usage {
        let estimate = self.estimate(0);
        Usage { completion: estimate.completion.max(self.output.tokens), ..estimate }
    }

    /// Writes the request down, then settles its quotas. When it cannot be written, the answer must not go out.
    pub fn finish(&mut self, outcome: &Outcome<'_>) -> io::Result<()> {
        if std::mem::replace(&mut self.finished, true) {
            return Ok(());
        }
        if let Some(live) = self.live.take() {
            self.gateway.live.end(&live);
        }
        let left = self.progress.has_left();
        let gone = if self.begun { LEFT_IN_THE_MIDDLE } else { LEFT_BEFORE };
        let (succeeded, usage, error) = match outcome {
            Outcome::Answered(Some(usage)) => (true, *usage, if left { gone } else { "" }),
            Outcome::Answered(None) if left => (true, self.at_least_reserved(), gone),
            Outcome::Answered(None) => (true, self.estimate(0), ""),
            Outcome::Failed(why) => (false, Usage::default(), *why),
            // Refused, only later than usual.
            Outcome::BrokenOff(why) if left && self.seen.error && self.seen.written == 0 => {
                (false, Usage::default(), *why)
            }
            Outcome::BrokenOff(_) if left => (true, self.at_least_reserved(), gone),
            Outcome::BrokenOff(why) => (false, self.estimate(0), *why),
            Outcome::Cancelled => (true, self.estimate(ON_ITS_WAY), gone),
            Outcome::Left if self.progress.is_asked() => (true, self.at_least_reserved(), gone),
            Outcome::Left => (false, Usage::default(), gone),
        };
        if left {
            let counted = match (succeeded, usage.estimated) {
                (false, _) => "nothing",
                (true, false) => "told",
                (true, true) => "estimated",
            };
            metrics::counter!("tidepool_gateway_left_total", "counted" => counted).increment(1);
        }
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
        } else if self.gateway.is_stopping() && !self.progress.has_left() {
            Outcome::BrokenOff("the gateway was stopped before the end of the answer")
        } else {
            Outcome::Left
        };
        if let Err(error) = self.finish(&outcome) {
            tracing::error!(%error, request = &*self.id, "a request that nobody waited for is not in the log");
        }
    }
}
