//! The protocols that clients and providers speak. A protocol is one value: its path, what a provider must speak for it, what
//! is read in a request and in an answer, and how its errors look. Everything else of the gateway handles all of them
//! alike. To add one, write its file and name it in `ALL`.

mod chat;
mod embeddings;
mod messages;
mod reference;
mod responses;
mod thinking;
mod tool;

pub use responses::PREVIOUS;

use std::ops::Range;

use llm::provider::{Protocol as Speech, preset};
use store::model::ProviderKind;

use crate::echo::Voice;
use crate::error::{Refusal, Shape};
use crate::seen::Seen;

/// Tokens that are reserved for an answer when the request names no limit.
const USUAL_ANSWER: u64 = 4096;
/// No model answers with more; a larger limit in the request counts as this.
const MOST_ANSWER: u64 = 10_000_000;

/// All protocols. `Protocol::place` is the place in this list.
pub static ALL: [&Protocol; 5] =
    [&chat::CHAT, &messages::MESSAGES, &messages::COUNT_TOKENS, &responses::RESPONSES, &embeddings::EMBEDDINGS];

pub struct Protocol {
    pub place: usize,
    /// Its name in metrics and in the list of what is under way.
    pub name: &'static str,
    /// The path at this gateway.
    pub path: &'static str,
    /// What a provider must speak.
    pub speech: Speech,
    /// What is added to the address of that. Only Anthropic is known to have more than the protocol itself.
    pub suffix: &'static str,
    /// The one query that is forwarded.
    pub query: Option<&'static str>,
    pub key_header: KeyHeader,
    /// Request headers of the client that are forwarded, with the value for a client that sends none.
    pub headers: &'static [(&'static str, Option<&'static str>)],
    pub shape: Shape,
    /// Whether a request costs something. One that does not is neither logged nor counted against a quota.
    pub is_billed: bool,
    /// Whether the next models of the fallback chain may answer instead.
    pub falls_back: bool,
    /// Reads the fields that the gateway needs, and refuses what the shared account must not be asked for.
    pub parse: fn(&[u8]) -> Result<Fields, Refusal>,
    /// Reads an answer that is not streamed.
    pub whole: fn(&[u8], &mut Seen),
    /// Reads the data of one event. Returns whether the event consists of nothing but usage.
    pub event: fn(&[u8], &mut Seen) -> bool,
    /// How `echo` speaks it.
    pub echo: &'static Voice,
    /// An error in the middle of a stream, as the event after so many others.
    pub error_event: fn(&Refusal, usize) -> Vec<u8>,
}

/// The header in which a provider takes its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyHeader {
    Bearer,
    ApiKey,
}

/// What a protocol reads in a request.
#[derive(Debug)]
pub struct Fields {
    pub model: String,
    /// The place of the model's JSON string in the body.
    pub model_at: Range<usize>,
    pub stream: bool,
    pub output: Output,
    /// The edit that asks for the usage of a stream, if the client itself did not ask for it.
    pub usage_edit: Option<Edit>,
    /// The earlier answer that the request continues.
    pub previous: Option<String>,
    /// Whether the provider keeps the answer, so that a later request can continue it.
    pub is_stored: bool,
}

/// A replacement in the body.
pub type Edit = (Range<usize>, Vec<u8>);

/// The estimate of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// How many choices the client asked for.
    pub choices: usize,
    /// The estimated maximum of all choices together, thinking included.
    pub tokens: i64,
    /// How much of that is thinking.
    pub thinking: i64,
    /// The request names a limit for the answer, so no provider bills more.
    pub is_named: bool,
}

impl Output {
    /// Of a protocol whose limit for the answer includes thinking.
    fn with_thinking_included(named: Option<u64>, thinking: u64) -> Output {
        let tokens = match named {
            // Interleaved thinking may have a budget beyond the limit for the answer.
            Some(named) if thinking > named => named.saturating_add(thinking),
            Some(named) => named,
            None => USUAL_ANSWER.saturating_add(thinking),
        };
        let tokens = tokens.min(MOST_ANSWER) as i64;
        Output {
            choices: 1,
            tokens,
            thinking: (thinking.min(MOST_ANSWER) as i64).min(tokens),
            is_named: named.is_some(),
        }
    }
}

impl Protocol {
    /// Where a provider answers in it; `None` if the provider is not asked in it.
    pub fn url_at(&self, provider: &llm::provider::Provider) -> Option<String> {
        let url = provider.url(self.speech).filter(|_| self.is_had_by(provider.kind))?;
        Some(format!("{url}{}", self.suffix))
    }

    /// Its word in the records of models. Who may be asked may be asked to count.
    pub fn word(&self) -> &'static str {
        if *self == messages::COUNT_TOKENS { messages::MESSAGES.name } else { self.name }
    }

    /// Whether models of this kind can be asked in it, where nothing else is known of their provider.
    pub fn is_spoken_by(&self, kind: ProviderKind) -> bool {
        let speaks = |known: &preset::Preset| known.path(self.speech).is_some() && self.is_had_by(kind);
        kind == ProviderKind::Echo || preset::find(kind, "").is_some_and(speaks)
    }

    fn is_had_by(&self, kind: ProviderKind) -> bool {
        self.suffix.is_empty() || kind == ProviderKind::Anthropic
    }
}

impl PartialEq for Protocol {
    fn eq(&self, other: &Protocol) -> bool {
        self.place == other.place
    }
}

impl std::fmt::Debug for Protocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The protocol that is spoken at a path.
pub fn at(path: &str) -> Option<&'static Protocol> {
    ALL.into_iter().find(|protocol| protocol.path == path)
}

/// Whether somebody answers in a protocol of this format.
pub fn in_shape(shape: Shape, answers: impl Fn(&Protocol) -> bool) -> bool {
    ALL.iter().any(|protocol| protocol.shape == shape && answers(protocol))
}

/// The paths of the protocols in which somebody answers, as a text.
pub fn paths_of(answers: impl Fn(&Protocol) -> bool) -> String {
    let spoken = ALL.iter().filter(|protocol| protocol.is_billed && answers(protocol));
    let paths: Vec<&str> = spoken.map(|protocol| protocol.path).collect();
    paths.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_has_its_place_and_path() {
        for (place, protocol) in ALL.iter().enumerate() {
            assert_eq!(protocol.place, place, "{protocol:?}");
            assert_eq!(at(protocol.path), Some(*protocol));
        }
        assert_eq!(at("/v1/completions"), None);
        let of = |kind| paths_of(|protocol| protocol.is_spoken_by(kind));
        assert_eq!(of(ProviderKind::Anthropic), "/v1/chat/completions, /v1/messages");
        assert_eq!(of(ProviderKind::Openai), "/v1/chat/completions, /v1/responses, /v1/embeddings");
        assert_eq!(messages::COUNT_TOKENS.word(), "messages");
        for protocol in ALL {
            assert!(store::model::Protocol::parse(protocol.word()).is_some(), "{protocol:?}");
        }
    }
}
