//! One request from its authentication to its line in the log. A ticket is finished once: with the answer, or, when it
//! is dropped, with the fact that the client disconnected. A client that disconnects after a provider was asked still
//! pays: the usage that the provider reported, or the part that was read, or at least the reserved amount.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::price::Cost;
use jiff::Timestamp;
use llm::input;
use store::request_log::RequestType;

use crate::Gateway;
use crate::keys::Caller;
use crate::limit::{Reserved, Used};
use crate::live;
use crate::log::Record;
use crate::log::record::shortened;
use crate::models::Model;
use crate::progress::Progress;
use crate::protocol::{Output, Protocol};
use crate::request::Asked;
use crate::seen::{Hidden, Seen};
use crate::tokens::Usage;

/// The model in the row of a request for an unknown model: clients can invent any number of names.
const NO_MODEL: &str = "unknown";

const LEFT_BEFORE: &str = "the client left before an answer began";
const LEFT_IN_THE_MIDDLE: &str = "the client left before the end of the answer";

/// Tokens of thinking that is hidden and was not asked for: providers think with a medium effort then.
const UNASKED_THINKING: i64 = 8_192;

/// Tokens that a provider still writes until it notices that it was cancelled.
const ON_ITS_WAY: i64 = 32;

/// How a request ended.
pub enum Outcome<'a> {
    /// Answered completely, with the provider's usage if it reported one.
    Answered(Option<Usage>),
    /// Refused or failed before a byte of an answer.
    Failed(&'a str),
    /// The provider broke off in the middle of its answer.
    BrokenOff(&'a str),
    /// The provider was cancelled in the middle of a stream: the client disconnected, or the stream was too long.
    Cancelled,
    /// The client disconnected, and the answer was not read to its end.
    Left,
}

/// The model and the provider that answer.
#[derive(Clone)]
pub struct By {
    pub model: Arc<Model>,
    pub provider: Arc<str>,
    /// What may be shown of the key at the provider; `None` without one.
    pub key: Option<Arc<str>>,
}

pub struct Ticket {
    gateway: Arc<Gateway>,
    pub id: Arc<str>,
    caller: Arc<Caller>,
    protocol: &'static Protocol,
    began: Instant,
    /// When it was made, by the clock.
    made_at: Timestamp,
    stream: bool,
    /// The estimate of the request: tokens of the input, and the output.
    input: i64,
    output: Output,
    /// Whether the provider keeps the answer.
    is_stored: bool,
    by: Option<By>,
    /// The model that the client asked for, once it is known to exist.
    asked_model: Option<Arc<str>>,
    /// How many providers were asked, or the same one again.
    tries: i64,
    /// When the first byte of the provider's answer came.
    first_byte: Option<Duration>,
    progress: Arc<Progress>,
    reserved: Reserved,
    live: Option<Arc<live::Entry>>,
    /// A streamed answer is being forwarded to the client.
    begun: bool,
    /// What the answer contained so far.
    pub seen: Seen,
    finished: bool,
    /// The request used more than this process was granted, and other processes do not know yet.
    pub overdrawn: bool,
}

impl Ticket {
    pub fn new(gateway: Arc<Gateway>, caller: Arc<Caller>, protocol: &'static Protocol) -> Ticket {
        Ticket {
            id: gateway.ids.next(),
            made_at: gateway.app.clock.now(),
            gateway,
            caller,
            protocol,
            began: Instant::now(),
            stream: false,
            input: 0,
            output: Output::default(),
            is_stored: false,
            by: None,
            asked_model: None,
            tries: 0,
            first_byte: None,
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

    pub fn protocol(&self) -> &'static Protocol {
        self.protocol
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

    /// How many choices the client asked for.
    pub fn choices(&self) -> usize {
        self.output.choices
    }

    /// Notes the request, the model that it names, the one that is asked first, and the estimated tokens of the input.
    pub fn asks(&mut self, named: Arc<str>, by: By, asked: &Asked, input: i64) {
        self.asked_model = Some(named);
        (self.stream, self.input, self.output) = (asked.fields.stream, input, asked.fields.output);
        self.is_stored = asked.fields.is_stored;
        let (id, name) = (self.id.clone(), self.caller.name.clone());
        let (at, stream) = (self.gateway.app.clock.now(), asked.fields.stream);
        self.live = Some(self.gateway.live.begin(id, name, by.model.id.clone(), self.protocol.name, stream, at));
        self.by = Some(by);
    }

    /// Notes the tokens of the answer that the request continues: they are input again.
    pub fn continues(&mut self, tokens: i64) {
        self.input = self.input.saturating_add(tokens);
    }

    /// The estimated tokens of the input.
    pub fn input(&self) -> i64 {
        self.input
    }

    pub fn holds(&mut self, reserved: Reserved) {
        self.reserved = reserved;
    }

    /// Notes which provider is asked now. From here on the request may be billed.
    pub fn turns_to(&mut self, by: By) {
        self.progress.set_asked(self.protocol.is_billed);
        self.tries += 1;
        if let Some(live) = &self.live {
            live.set_by(&by.model.id, &by.provider);
        }
        self.by = Some(by);
    }

    /// Notes that the provider refused the request, and so bills nothing.
    pub fn is_refused(&mut self) {
        self.progress.set_asked(false);
    }

    /// Notes that the client disconnected.
    pub fn leaves(&mut self) {
        self.progress.leave();
    }

    /// Notes that some of the provider's answer has come.
    pub fn answer_came(&mut self) {
        if self.first_byte.is_none() {
            self.first_byte = Some(self.began.elapsed());
        }
    }

    /// Notes that a streamed answer begins.
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

    /// Estimates the usage that a provider did not report completely, from its own numbers so far, the estimate of the
    /// input, and the text that the model wrote. Thinking that was requested but not shown counts as fully used.
    fn estimate(&self, more: i64) -> Usage {
        let reported = self.seen.usage.or(self.seen.usage_so_far).unwrap_or_default();
        let hidden = match self.seen.hidden {
            Hidden::Unknown if self.seen.thought == 0 => self.output.thinking,
            Hidden::Unknown | Hidden::None => 0,
            Hidden::Begun => {
                let asked = if self.output.thinking > 0 { self.output.thinking } else { UNASKED_THINKING };
                asked.max(input::text_tokens(self.seen.thought))
            }
        };
        let written = input::text_tokens(self.seen.written);
        let most = if self.output.is_named { self.output.tokens.max(written) } else { i64::MAX };
        let completion = (written + hidden + more).min(most).max(reported.completion);
        // Some providers report zeros at the beginning of a stream. Then nothing is known of a cache either.
        let input = if reported.prompt > 0 { reported } else { Usage { prompt: self.input, ..Usage::default() } };
        Usage { completion, reasoning: None, estimated: true, ..input }
    }

    /// The usage of an answer whose end is unknown: at least the reserved amount.
    fn at_least_reserved(&self) -> Usage {
        let estimate = self.estimate(0);
        Usage { completion: estimate.completion.max(self.output.tokens), ..estimate }
    }

    /// What a usage costs by the prices that were true when the request was made. The table may have learned of them only
    /// after the request began.
    fn cost(&self, by: &By, usage: &Usage) -> Cost {
        let table = self.gateway.models.now();
        let then = by.model.prices_at(self.made_at);
        let known = table.find(&by.model.id).and_then(|model| model.prices_at(self.made_at));
        let newest = then.into_iter().chain(known).max_by_key(|(from, _)| (*from <= self.made_at, *from));
        newest.map_or_else(Cost::default, |(_, prices)| prices.cost(&usage.counts(), self.seen.tier))
    }

    /// Logs the request, then settles its quotas. If this fails, the answer must not be sent.
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
            // The provider refused the request, only after its stream had begun.
            Outcome::BrokenOff(why) if left && self.seen.error && self.seen.written == 0 => {
                (false, Usage::default(), *why)
            }
            Outcome::BrokenOff(_) if left => (true, self.at_least_reserved(), gone),
            Outcome::BrokenOff(why) => (false, self.estimate(0), *why),
            Outcome::Cancelled => (true, self.estimate(ON_ITS_WAY), gone),
            Outcome::Left if self.progress.is_asked() => (true, self.at_least_reserved(), gone),
            Outcome::Left => (false, Usage::default(), gone),
        };
        if left && self.protocol.is_billed {
            let counted = match (succeeded, usage.estimated) {
                (false, _) => "nothing",
                (true, false) => "told",
                (true, true) => "estimated",
            };
            metrics::counter!("tidepool_gateway_left_total", "counted" => counted).increment(1);
        }
        let cost = match &self.by {
            Some(by) if succeeded => self.cost(by, &usage),
            _ => Cost::default(),
        };
        let used = if succeeded { Used { tokens: usage.total(), units: cost.quota } } else { Used::default() };
        let took = self.began.elapsed();
        if let Some(by) = &self.by {
            by.model.counts.count(self.protocol, succeeded, usage, took);
        }
        if !self.protocol.is_billed {
            return Ok(());
        }
        let answer = self.seen.answer_id.take().filter(|_| succeeded && self.is_stored);
        let record = Record {
            id: (&*self.id).into(),
            token: (&*self.caller.name).into(),
            model: self.by.as_ref().map_or(NO_MODEL, |by| &by.model.id).into(),
            provider: self.by.as_ref().map_or("", |by| &by.provider).into(),
            kind: if succeeded { RequestType::SUCCESS.number() } else { RequestType::ERROR.number() },
            stream: self.stream,
            prompt_tokens: usage.prompt,
            completion_tokens: usage.completion,
            quota: cost.quota,
            rest: cost.rest,
            duration_ms: milliseconds(took),
            at_ms: self.gateway.app.clock.now().as_millisecond(),
            estimated: usage.estimated,
            error: shortened(error).into(),
            cache_read: usage.cache_read,
            cache_write: usage.cache_write,
            reasoning: usage.reasoning,
            protocol: self.protocol.name.into(),
            asked_model: self.asked_model.as_deref().unwrap_or_default().into(),
            key_hint: self.by.as_ref().and_then(|by| by.key.as_deref()).unwrap_or_default().into(),
            retries: Some((self.tries - 1).max(0)),
            first_byte_ms: self.first_byte.map(milliseconds),
            answer: answer.as_deref().map(|id| (id.into(), (&*self.caller.fingerprint).into())),
            holds: self.reserved.holds(used).into_iter().map(|(subject, used)| (subject.into(), used)).collect(),
        };
        let written = self.gateway.log.append(&record);
        drop(record);
        if let Some(answer) = answer.filter(|_| written.is_ok()) {
            self.gateway.owners.note(answer, &self.caller.fingerprint, usage.total());
        }
        // Settle also when the write failed: the tokens were used, and this process can still count them.
        self.overdrawn = self.reserved.settle(used);
        written
    }
}

fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
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
