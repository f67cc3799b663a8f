//! Embeddings, in OpenAI's format.

use llm::provider::Protocol as Speech;
use serde::Deserialize;

use super::{Fields, KeyHeader, Output, Protocol};
use crate::echo;
use crate::error::{Refusal, Shape};
use crate::field::{self, Field};
use crate::seen::Seen;
use crate::tokens::{OpenAiUsage, Usage};

pub static EMBEDDINGS: Protocol = Protocol {
    place: 4,
    name: "embeddings",
    path: "/v1/embeddings",
    speech: Speech::Embeddings,
    suffix: "",
    query: None,
    key_header: KeyHeader::Bearer,
    headers: &[("accept", None)],
    shape: Shape::OpenAi,
    is_billed: true,
    // The vectors of another model mean something else.
    falls_back: false,
    parse,
    whole,
    event: |_, _| false,
    echo: &echo::embeddings::VOICE,
    error_event: |refusal, _| refusal.body(Shape::OpenAi, None),
};

#[derive(Deserialize)]
struct Known<'a> {
    #[serde(borrow, default)]
    model: Field<'a>,
}

fn parse(body: &[u8]) -> Result<Fields, Refusal> {
    let known: Known<'_> = field::object(body)?;
    let (model, model_at) = field::model(body, known.model)?;
    let output = Output { choices: 1, is_named: true, ..Output::default() };
    Ok(Fields { model, model_at, stream: false, output, usage_edit: None, previous: None, is_stored: false })
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    usage: Option<OpenAiUsage<'a>>,
}

fn whole(body: &[u8], seen: &mut Seen) {
    let counts = serde_json::from_slice::<Answer<'_>>(body).ok().and_then(|answer| answer.usage);
    // What is embedded is all input.
    let all_input = |usage: Usage| Usage { prompt: usage.total(), ..Usage::default() };
    seen.usage = counts.and_then(|counts| counts.usage()).map(all_input);
}
