//! OpenAI's Responses API.

use std::borrow::Cow;

use llm::provider::Protocol as Speech;
use serde::{Deserialize, Serialize};

use super::thinking::Thinking;
use super::tool::Tool;
use super::{Fields, KeyHeader, Output, Protocol, reference, tool};
use crate::echo;
use crate::error::{Refusal, Shape};
use crate::field::{self, Field};
use crate::seen::{Hidden, Seen};
use crate::tokens::{self, Usage};

/// The longest id of an answer; OpenAI's have some 50 characters.
const MOST_ID: usize = 200;

fn is_id(id: &str) -> bool {
    (1..=MOST_ID).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
}

pub static RESPONSES: Protocol = Protocol {
    place: 3,
    name: "responses",
    path: "/v1/responses",
    speech: Speech::Responses,
    suffix: "",
    query: None,
    key_header: KeyHeader::Bearer,
    headers: &[("accept", None), ("openai-beta", None)],
    shape: Shape::OpenAi,
    is_billed: true,
    falls_back: true,
    parse,
    whole,
    event,
    echo: &echo::responses::VOICE,
    error_event,
};

#[derive(Deserialize)]
struct Known<'a> {
    #[serde(borrow, default)]
    model: Field<'a>,
    #[serde(borrow, default)]
    stream: Field<'a>,
    #[serde(borrow, default)]
    max_output_tokens: Field<'a>,
    #[serde(borrow, default)]
    reasoning: Field<'a>,
    #[serde(borrow, default)]
    tools: Field<'a>,
    #[serde(borrow, default)]
    input: Field<'a>,
    #[serde(borrow, default)]
    store: Field<'a>,
    #[serde(borrow, default)]
    previous_response_id: Field<'a>,
    #[serde(borrow, default)]
    background: Field<'a>,
    #[serde(borrow, default)]
    conversation: Field<'a>,
    #[serde(borrow, default)]
    prompt: Field<'a>,
}

impl Known<'_> {
    /// Refuses what the provider would run, or keeps in the account for others.
    fn check(&self, body: &[u8]) -> Result<(), Refusal> {
        if self.background.flag("background")? {
            let message = "background: an answer that nobody waits for cannot be counted here; leave it out";
            return Err(Refusal::bad_request(message).about("background"));
        }
        for (name, field) in [("conversation", self.conversation), ("prompt", self.prompt)] {
            if field.is_given() {
                let message =
                    format!("{name}: is kept in the provider's account, which others share; send its content");
                return Err(Refusal::bad_request(message).about(name));
            }
        }
        tool::check(self.tools, "function", is_clients)?;
        reference::check(body, self.input, "input")
    }

    fn previous(&self) -> Result<Option<String>, Refusal> {
        let field = self.previous_response_id;
        if !field.is_given() {
            return Ok(None);
        }
        match field.read::<String>() {
            Some(id) if is_id(&id) => Ok(Some(id)),
            _ => Err(Refusal::bad_request("previous_response_id: must be the id of an answer").about(PREVIOUS)),
        }
    }
}

pub const PREVIOUS: &str = "previous_response_id";

fn is_clients(kind: &str, tool: &Tool<'_>) -> bool {
    match kind {
        "function" | "custom" | "local_shell" | "apply_patch" | "computer" | "computer_use_preview" | "namespace" => {
            true
        }
        "shell" => tool.is_in_local_environment(),
        "tool_search" => tool.is_executed_by_client(),
        _ => false,
    }
}

fn parse(body: &[u8]) -> Result<Fields, Refusal> {
    let known: Known<'_> = field::object(body)?;
    let (model, model_at) = field::model(body, known.model)?;
    let stream = known.stream.flag("stream")?;
    known.check(body)?;
    let named = known.max_output_tokens.number();
    let thinking = known.reasoning.read::<Thinking<'_>>().unwrap_or_default().tokens();
    let output = Output::with_thinking_included(named, thinking.min(named.unwrap_or(u64::MAX)));
    let is_stored = known.store.json() != Some("false");
    let previous = known.previous()?;
    Ok(Fields { model, model_at, stream, output, usage_edit: None, previous, is_stored })
}

#[derive(Deserialize)]
struct Counts<'a> {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    total_tokens: Option<u64>,
    #[serde(borrow, default)]
    input_tokens_details: Field<'a>,
    #[serde(borrow, default)]
    output_tokens_details: Field<'a>,
}

impl Counts<'_> {
    fn usage(&self) -> Option<Usage> {
        let prompt = tokens::plausible(self.input_tokens?)?;
        let rest = self.total_tokens.unwrap_or(0).saturating_sub(self.input_tokens?);
        let completion = tokens::plausible(self.output_tokens.unwrap_or(0).max(rest))?;
        let usage = Usage { prompt, completion, ..Usage::default() };
        Some(usage.with_details(self.input_tokens_details, self.output_tokens_details))
    }
}

/// An answer: the body of one that is not streamed, or the `response` of an event.
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow, default)]
    id: Field<'a>,
    #[serde(borrow)]
    usage: Option<Counts<'a>>,
    #[serde(borrow, default)]
    service_tier: Field<'a>,
}

impl Answer<'_> {
    fn note_id(&self, seen: &mut Seen) {
        if seen.answer_id.is_none() {
            let id = self.id.read::<Cow<'_, str>>().filter(|id| is_id(id));
            seen.answer_id = id.map(|id| (&*id).into());
        }
    }
}

fn whole(body: &[u8], seen: &mut Seen) {
    // Items of any type can have text in any field, so without usage the whole answer counts.
    seen.written = body.len();
    let Ok(answer) = serde_json::from_slice::<Answer<'_>>(body) else { return };
    answer.note_id(seen);
    seen.note_tier(answer.service_tier);
    seen.usage = answer.usage.and_then(|counts| counts.usage());
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    response: Option<Answer<'a>>,
    #[serde(borrow)]
    item: Option<Item<'a>>,
    #[serde(borrow, default)]
    delta: Field<'a>,
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
}

fn event(data: &[u8], seen: &mut Seen) -> bool {
    let Ok(event) = serde_json::from_slice::<Event<'_>>(data) else { return false };
    if let Some(response) = &event.response {
        response.note_id(seen);
        seen.note_tier(response.service_tier);
    }
    match &*event.kind {
        "response.created" => seen.hidden = Hidden::None,
        "response.output_item.added" => {
            if event.item.is_some_and(|item| matches!(&*item.kind, "reasoning" | "compaction")) {
                seen.hidden = Hidden::Begun;
            }
        }
        "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
            seen.usage = event.response.and_then(|response| response.usage).and_then(|counts| counts.usage());
            seen.error |= event.kind == "response.failed";
            (seen.done, seen.finished) = (true, 1);
        }
        "error" => seen.error = true,
        kind if kind.starts_with("response.reasoning") => seen.thought += event.delta.text_length(),
        _ => seen.written += event.delta.text_length(),
    }
    false
}

#[derive(Serialize)]
struct ErrorEvent<'a> {
    r#type: &'static str,
    code: &'a str,
    message: &'a str,
    param: Option<&'a str>,
    sequence_number: usize,
}

fn error_event(refusal: &Refusal, number: usize) -> Vec<u8> {
    let error = ErrorEvent {
        r#type: "error",
        code: refusal.code,
        message: &refusal.message,
        param: refusal.param,
        sequence_number: number,
    };
    let json = serde_json::to_vec(&error).unwrap_or_default();
    [b"event: error\ndata: ".as_slice(), &json, b"\n\n"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(more: &str) -> Result<Fields, Refusal> {
        parse(format!(r#"{{"model":"gpt-4o","input":"x",{more}}}"#).as_bytes())
    }

    #[test]
    fn usage_is_read_from_answers_and_from_the_last_event() {
        let counts = r#"{"input_tokens":36,"input_tokens_details":{"cached_tokens":12},"output_tokens":87,"output_tokens_details":{"reasoning_tokens":64},"total_tokens":123}"#;
        let expected =
            Usage { prompt: 36, completion: 87, cache_read: Some(12), reasoning: Some(64), ..Usage::default() };
        let mut answered = Seen::default();
        whole(format!(r#"{{"id":"resp_1","usage":{counts}}}"#).as_bytes(), &mut answered);
        assert_eq!((answered.usage, answered.answer_id.as_deref()), (Some(expected), Some("resp_1")));
        let mut unknown = Seen::default();
        whole(br#"{"id":"resp_1","usage":null}"#, &mut unknown);
        assert_eq!((unknown.usage, unknown.written), (None, 28));
        let mut seen = Seen::default();
        for data in [
            r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","usage":null}}"#,
            r#"{"type":"response.output_item.added","item":{"type":"message"}}"#,
            r#"{"type":"response.output_text.delta","delta":"Hel","obfuscation":"xxxxxxx"}"#,
            r#"{"type":"response.function_call_arguments.delta","delta":"{\"a\""}"#,
            r#"{"type":"response.output_text.done","text":"Hello"}"#,
        ] {
            event(data.as_bytes(), &mut seen);
        }
        assert_eq!((seen.written, seen.hidden, seen.done, seen.usage), (3 + 6, Hidden::None, false, None));
        event(br#"{"type":"response.output_item.added","item":{"type":"reasoning","id":"rs_1"}}"#, &mut seen);
        event(br#"{"type":"response.reasoning_summary_text.delta","delta":"hm"}"#, &mut seen);
        assert_eq!((seen.written, seen.thought, seen.hidden), (9, 2, Hidden::Begun));
        let last = format!(r#"{{"type":"response.completed","response":{{"id":"resp_1","usage":{counts}}}}}"#);
        event(last.as_bytes(), &mut seen);
        assert_eq!((seen.usage, seen.answer_id.as_deref(), seen.done), (Some(expected), Some("resp_1"), true));
    }

    #[test]
    fn what_the_account_would_share_or_the_provider_would_run_is_refused() {
        for refused in [
            r#""background":true"#,
            r#""conversation":"conv_1""#,
            r#""conversation":{"id":"conv_1"}"#,
            r#""prompt":{"id":"pmpt_1"}"#,
            r#""previous_response_id":7"#,
            r#""previous_response_id":"""#,
            r#""tools":[{"type":"web_search"}]"#,
            r#""tools":[{"type":"function","name":"a"},{"type":"file_search","vector_store_ids":["vs_1"]}]"#,
            r#""tools":[{"type":"code_interpreter","container":{"type":"auto"}}]"#,
            r#""tools":[{"type":"image_generation"}]"#,
            r#""tools":[{"type":"mcp","connector_id":"connector_gmail"}]"#,
            r#""tools":[{"type":"shell","environment":{"type":"container_auto"}}]"#,
            r#""tools":[{"type":"shell"}]"#,
            r#""tools":[{"type":"namespace","tools":[{"type":"web_search_preview"}]}]"#,
            r#""tools":[{"type":"tool_search"}]"#,
            r#""tools":[{"type":"a_new_one"}]"#,
        ] {
            assert_eq!(fields(refused).unwrap_err().status, http::StatusCode::BAD_REQUEST, "{refused}");
        }
        for allowed in [
            r#""background":false,"conversation":null,"previous_response_id":null"#,
            r#""tools":[{"type":"function","name":"a"},{"type":"custom"},{"type":"local_shell"},{"type":"apply_patch"}]"#,
            r#""tools":[{"type":"shell","environment":{"type":"local"}},{"type":"tool_search","execution":"client"}]"#,
            r#""tools":[{"type":"namespace","tools":[{"type":"function"}]}]"#,
            r#""text":{"format":{"type":"json_schema"}},"service_tier":"flex""#,
        ] {
            assert!(fields(allowed).is_ok(), "{allowed}");
        }
    }

    #[test]
    fn what_is_kept_and_continued_is_read() {
        let read =
            fields(r#""previous_response_id":"resp_1","max_output_tokens":900,"reasoning":{"effort":"low"}"#).unwrap();
        assert_eq!((read.previous.as_deref(), read.is_stored), (Some("resp_1"), true));
        assert_eq!((read.output.tokens, read.output.thinking, read.output.is_named), (900, 900, true));
        assert!(!fields(r#""store":false"#).unwrap().is_stored);
        assert_eq!(fields(r#""reasoning":{"effort":"high"}"#).unwrap().output.tokens, 4_096 + 24_576);
    }
}
