//! Anthropic's Messages API, and the counting of a message's tokens.

use std::borrow::Cow;

use llm::provider::Protocol as Speech;
use serde::Deserialize;

use super::thinking::{MOST_EFFORT, Thinking, effort};
use super::tool::Tool;
use super::{Fields, KeyHeader, Output, Protocol, reference, tool};
use crate::echo;
use crate::error::{Refusal, Shape};
use crate::field::{self, Field};
use crate::seen::{Hidden, Seen};
use crate::tokens::{self, Usage};

/// The version of the API for a client that names none: the only one there is.
const VERSION: &str = "2023-06-01";

pub static MESSAGES: Protocol = Protocol {
    place: 1,
    name: "messages",
    path: "/v1/messages",
    speech: Speech::Messages,
    suffix: "",
    query: Some("beta=true"),
    key_header: KeyHeader::ApiKey,
    headers: &[("accept", None), ("anthropic-version", Some(VERSION)), ("anthropic-beta", None)],
    shape: Shape::Anthropic,
    is_billed: true,
    falls_back: true,
    parse,
    whole,
    event,
    echo: &echo::messages::VOICE,
    error_event,
};

pub static COUNT_TOKENS: Protocol = Protocol {
    place: 2,
    name: "count_tokens",
    path: "/v1/messages/count_tokens",
    suffix: "/count_tokens",
    is_billed: false,
    // Another model counts otherwise.
    falls_back: false,
    echo: &echo::messages::COUNT_VOICE,
    ..MESSAGES
};

#[derive(Deserialize)]
struct Known<'a> {
    #[serde(borrow, default)]
    model: Field<'a>,
    #[serde(borrow, default)]
    stream: Field<'a>,
    #[serde(borrow, default)]
    max_tokens: Field<'a>,
    #[serde(borrow, default)]
    thinking: Field<'a>,
    #[serde(borrow, default)]
    output_config: Field<'a>,
    #[serde(borrow, default)]
    tools: Field<'a>,
    #[serde(borrow, default)]
    system: Field<'a>,
    #[serde(borrow, default)]
    messages: Field<'a>,
    #[serde(borrow, default)]
    mcp_servers: Field<'a>,
    #[serde(borrow, default)]
    container: Field<'a>,
    #[serde(borrow, default)]
    user_profile_id: Field<'a>,
}

#[derive(Deserialize)]
struct Typed<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
}

impl Known<'_> {
    fn thinking(&self) -> u64 {
        let kind = self.thinking.read::<Typed<'_>>().map(|typed| typed.kind).unwrap_or_default();
        match &*kind {
            "" | "disabled" => 0,
            "enabled" => self.thinking.read::<Thinking<'_>>().unwrap_or_default().tokens(),
            // The model decides by itself, guided by the effort. Without one it is high.
            _ => {
                let config = self.output_config.read::<Thinking<'_>>().unwrap_or_default();
                let thinking = config.effort.as_deref().map_or_else(|| effort("high"), effort);
                // The limit for the answer includes it.
                self.max_tokens.number().map_or(thinking, |most| thinking.min(most)).min(MOST_EFFORT)
            }
        }
    }

    /// Refuses what the provider would run, or keeps in the account for others.
    fn check(&self, body: &[u8]) -> Result<(), Refusal> {
        let named = [
            ("mcp_servers", self.mcp_servers),
            ("container", self.container),
            ("user_profile_id", self.user_profile_id),
        ];
        for (name, field) in named {
            if field.json().is_some_and(|json| json != "[]") {
                let message = format!("{name}: is run or kept in the provider's account, which others share");
                return Err(Refusal::bad_request(message).about(name));
            }
        }
        tool::check(self.tools, "custom", is_clients)?;
        reference::check(body, self.system, "system")?;
        reference::check(body, self.messages, "messages")
    }
}

/// Tools with a version in their type, which the client runs.
const RUN_BY_CLIENT: [&str; 6] =
    ["bash_20", "text_editor_20", "computer_20", "computer_toolset_20", "browser_toolset_20", "memory_20"];

fn is_clients(kind: &str, _: &Tool<'_>) -> bool {
    kind == "custom" || RUN_BY_CLIENT.iter().any(|known| kind.starts_with(known))
}

fn parse(body: &[u8]) -> Result<Fields, Refusal> {
    let known: Known<'_> = field::object(body)?;
    let (model, model_at) = field::model(body, known.model)?;
    let stream = known.stream.flag("stream")?;
    known.check(body)?;
    let output = Output::with_thinking_included(known.max_tokens.number(), known.thinking());
    Ok(Fields { model, model_at, stream, output, usage_edit: None, previous: None, is_stored: false })
}

#[derive(Deserialize)]
struct Counts<'a> {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    #[serde(borrow, default)]
    cache_creation: Field<'a>,
    output_tokens: Option<u64>,
    #[serde(borrow, default)]
    output_tokens_details: Field<'a>,
    #[serde(borrow, default)]
    iterations: Field<'a>,
    #[serde(borrow, default)]
    service_tier: Field<'a>,
}

/// How long what is written stays in the cache.
#[derive(Deserialize)]
struct Written {
    ephemeral_1h_input_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Details {
    #[serde(alias = "reasoning_tokens")]
    thinking_tokens: Option<u64>,
}

impl Counts<'_> {
    /// The usage by these counts. What they leave out is as it was `before`. `None` if it is not plausible.
    fn usage(&self, before: Usage) -> Option<Usage> {
        let input = match self.input_tokens {
            Some(input) => tokens::plausible(input)?,
            None => before.prompt - before.cache_read.unwrap_or(0) - before.cache_write.unwrap_or(0),
        };
        let part = |counted: Option<u64>, before: Option<i64>| match counted {
            Some(counted) => tokens::plausible(counted).map(Some),
            None => Some(before),
        };
        let cache_read = part(self.cache_read_input_tokens, before.cache_read)?;
        let cache_write = part(self.cache_creation_input_tokens, before.cache_write)?;
        let details = self.output_tokens_details.read::<Details>().and_then(|details| details.thinking_tokens);
        let an_hour = self.cache_creation.read::<Written>().and_then(|written| written.ephemeral_1h_input_tokens);
        let cache_write_1h = part(an_hour, Some(before.cache_write_1h))?.unwrap_or(0).min(cache_write.unwrap_or(0));
        let mut usage = Usage {
            prompt: input + cache_read.unwrap_or(0) + cache_write.unwrap_or(0),
            completion: part(self.output_tokens, Some(before.completion))?.unwrap_or(0),
            cache_read,
            cache_write,
            cache_write_1h,
            reasoning: part(details, before.reasoning)?,
            largest_prompt: before.largest_prompt,
            estimated: false,
        };
        // The total leaves out the iterations that compacted the context, which are billed too.
        let mut all = Usage::default();
        for one in self.iterations.read::<Vec<Counts<'_>>>().unwrap_or_default() {
            let one = one.usage(Usage::default())?;
            all.prompt += one.prompt;
            all.completion += one.completion;
            all.cache_read = sum(all.cache_read, one.cache_read);
            all.cache_write = sum(all.cache_write, one.cache_write);
            all.cache_write_1h += one.cache_write_1h;
            all.largest_prompt = all.largest_prompt.max(Some(one.prompt));
        }
        // Each iteration is a request of its own for the prices of long inputs.
        if all.prompt >= usage.prompt {
            usage.largest_prompt = all.largest_prompt.or(usage.largest_prompt);
        }
        if all.total() > usage.total() {
            usage = Usage { reasoning: usage.reasoning, ..all };
        }
        usage.reasoning = usage.reasoning.map(|reasoning| reasoning.min(usage.completion));
        Some(usage)
    }
}

/// The sum of two parts, of which either may be unknown.
fn sum(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one + other),
        (one, other) => one.or(other),
    }
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    usage: Option<Counts<'a>>,
}

fn whole(body: &[u8], seen: &mut Seen) {
    let counts = serde_json::from_slice::<Answer<'_>>(body).ok().and_then(|answer| answer.usage);
    if let Some(counts) = counts {
        seen.note_tier(counts.service_tier);
        seen.usage = counts.input_tokens.and_then(|_| counts.usage(Usage::default()));
    }
    // The input of a tool is JSON like all the rest, so without usage the whole answer counts.
    seen.written = body.len();
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    message: Option<Answer<'a>>,
    #[serde(borrow)]
    content_block: Option<Typed<'a>>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    usage: Option<Counts<'a>>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    text: Field<'a>,
    #[serde(borrow, default)]
    partial_json: Field<'a>,
    #[serde(borrow, default)]
    thinking: Field<'a>,
    #[serde(borrow, default)]
    stop_reason: Field<'a>,
}

fn event(data: &[u8], seen: &mut Seen) -> bool {
    let Ok(event) = serde_json::from_slice::<Event<'_>>(data) else { return false };
    match &*event.kind {
        "message_start" => {
            seen.hidden = Hidden::None;
            let counts = event.message.and_then(|message| message.usage);
            if let Some(counts) = &counts {
                seen.note_tier(counts.service_tier);
            }
            seen.usage_so_far = counts.and_then(|counts| counts.usage(Usage::default()));
        }
        "content_block_start" => {
            let thinks = event.content_block.is_some_and(|block| block.kind.contains("thinking"));
            seen.hidden = if thinks { Hidden::Begun } else { seen.hidden };
        }
        "content_block_delta" => {
            if let Some(delta) = event.delta {
                seen.written += delta.text.text_length() + delta.partial_json.text_length();
                seen.thought += delta.thinking.text_length();
            }
        }
        "message_delta" => {
            seen.finished += usize::from(event.delta.is_some_and(|delta| delta.stop_reason.is_given()));
            if let Some(counts) = event.usage.filter(|counts| counts.output_tokens.is_some())
                && let Some(usage) = counts.usage(seen.usage_so_far.unwrap_or_default())
            {
                seen.usage_so_far = Some(usage);
                // Without the input's count it is no complete report.
                seen.usage = (usage.prompt > 0).then_some(usage);
            }
        }
        "message_stop" => seen.done = true,
        "error" => seen.error = true,
        _ => {}
    }
    false
}

fn error_event(refusal: &Refusal, _: usize) -> Vec<u8> {
    [b"event: error\ndata: ".as_slice(), &refusal.body(Shape::Anthropic, None), b"\n\n"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(more: &str) -> Result<Fields, Refusal> {
        parse(format!(r#"{{"model":"claude-opus-4-6","messages":[],{more}}}"#).as_bytes())
    }

    #[test]
    fn all_input_is_prompt_and_thinking_is_part_of_the_answer() {
        let of = |counts: &str| {
            let mut seen = Seen::default();
            whole(format!(r#"{{"id":"m","usage":{counts}}}"#).as_bytes(), &mut seen);
            seen.usage
        };
        let an_hour = of(
            r#"{"input_tokens":1,"cache_creation_input_tokens":300,"output_tokens":4,"cache_creation":{"ephemeral_5m_input_tokens":100,"ephemeral_1h_input_tokens":200}}"#,
        );
        assert_eq!(an_hour.map(|usage| (usage.cache_write, usage.cache_write_1h)), Some((Some(300), 200)));
        let counted = of(
            r#"{"input_tokens":10,"cache_creation_input_tokens":200,"cache_read_input_tokens":3000,"output_tokens":40,
            "cache_creation":{"ephemeral_5m_input_tokens":200},"output_tokens_details":{"thinking_tokens":30},"service_tier":"standard"}"#,
        );
        let expected = Usage {
            prompt: 3210,
            completion: 40,
            cache_read: Some(3000),
            cache_write: Some(200),
            reasoning: Some(30),
            ..Usage::default()
        };
        assert_eq!(counted, Some(expected));
        let plain = of(r#"{"input_tokens":10,"output_tokens":4,"cache_read_input_tokens":null}"#);
        assert_eq!(plain, Some(Usage { prompt: 10, completion: 4, ..Usage::default() }));
        let compacted = of(r#"{"input_tokens":100,"output_tokens":5,"iterations":[
            {"type":"compaction","input_tokens":9000,"output_tokens":700},
            {"type":"message","input_tokens":100,"output_tokens":5}]}"#);
        assert_eq!(
            compacted,
            Some(Usage { prompt: 9100, completion: 705, largest_prompt: Some(9000), ..Usage::default() })
        );
        assert_eq!(of("null"), None);
        assert_eq!(of(r#"{"output_tokens":4}"#), None);
        assert_eq!(of(r#"{"input_tokens":9000000000000,"output_tokens":4}"#), None);
    }

    #[test]
    fn a_stream_adds_to_its_counts() {
        let mut seen = Seen::default();
        for data in [
            r#"{"type":"message_start","message":{"id":"m","usage":{"input_tokens":7,"cache_read_input_tokens":90,"output_tokens":1}}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"ping"}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}"#,
        ] {
            event(data.as_bytes(), &mut seen);
        }
        assert_eq!((seen.usage, seen.written, seen.hidden, seen.finished), (None, 5 + 7, Hidden::None, 0));
        assert_eq!(seen.usage_so_far.map(|usage| (usage.prompt, usage.cache_read)), Some((97, Some(90))));
        for data in [
            r#"{"type":"content_block_start","index":2,"content_block":{"type":"thinking","thinking":""}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"thinking_delta","thinking":"mm"}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"signature_delta","signature":"EqQBCgIYAhIM"}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":15}}"#,
            r#"{"type":"message_stop"}"#,
        ] {
            event(data.as_bytes(), &mut seen);
        }
        let usage = Usage { prompt: 97, completion: 15, cache_read: Some(90), ..Usage::default() };
        assert_eq!((seen.usage, seen.hidden, seen.thought), (Some(usage), Hidden::Begun, 2));
        assert!(seen.done && seen.finished == 1 && !seen.error);
        event(br#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, &mut seen);
        assert!(seen.error);
    }

    #[test]
    fn an_answer_is_as_long_as_max_tokens_says_thinking_included() {
        let of = |more: &str| fields(more).unwrap().output;
        let is = |tokens, thinking, is_named| Output { choices: 1, tokens, thinking, is_named };
        assert_eq!(of(r#""max_tokens":1000"#), is(1000, 0, true));
        assert_eq!(of(r#""x":1"#), is(4096, 0, false));
        assert_eq!(of(r#""max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":8000}"#), is(9000, 8000, true));
        assert_eq!(of(r#""max_tokens":900,"thinking":{"type":"enabled","budget_tokens":8000}"#), is(8900, 8000, true));
        assert_eq!(of(r#""max_tokens":64000,"thinking":{"type":"adaptive"}"#), is(64_000, 24_576, true));
        assert_eq!(
            of(r#""max_tokens":64000,"thinking":{"type":"adaptive"},"output_config":{"effort":"low"}"#),
            is(64_000, 1_024, true)
        );
        assert_eq!(of(r#""max_tokens":500,"thinking":{"type":"adaptive"}"#), is(500, 500, true));
        assert_eq!(of(r#""max_tokens":500,"thinking":{"type":"disabled"}"#), is(500, 0, true));
    }

    #[test]
    fn what_the_provider_would_run_is_refused() {
        for refused in [
            r#""tools":[{"type":"web_search_20250305","name":"web_search"}]"#,
            r#""tools":[{"name":"a","input_schema":{}},{"type":"code_execution_20250825","name":"code_execution"}]"#,
            r#""tools":[{"type":"web_fetch_20250910"}]"#,
            r#""tools":[{"type":"mcp_toolset"}]"#,
            r#""tools":[{"type":"advisor_20260301"}]"#,
            r#""tools":[{"type":"custom","type":"web_search_20250305"}]"#,
            r#""tools":[{"type":"w\u0065b_search_20250305"}]"#,
            r#""tools":{"type":"web_search_20250305"}"#,
            r#""mcp_servers":[{"type":"url","url":"https://x"}]"#,
            r#""container":"container_1""#,
            r#""container":{"skills":[]}"#,
            r#""user_profile_id":"p""#,
        ] {
            assert_eq!(fields(refused).unwrap_err().status, http::StatusCode::BAD_REQUEST, "{refused}");
        }
        for allowed in [
            r#""tools":[]"#,
            r#""tools":null,"container":null,"mcp_servers":[]"#,
            r#""tools":[{"name":"a","input_schema":{"type":"web_search_20250305"},"cache_control":{"type":"ephemeral"}}]"#,
            r#""tools":[{"type":"custom","name":"a"},{"type":"bash_20250124","name":"bash"},{"type":"memory_20250818"}]"#,
            r#""tools":[{"type":"computer_20251124"},{"type":"text_editor_20250728"},{"type":null,"name":"b"}]"#,
        ] {
            assert!(fields(allowed).is_ok(), "{allowed}");
        }
    }
}
