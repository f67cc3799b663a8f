//! Chat completions, in OpenAI's format. Every provider speaks it.

use std::borrow::Cow;

use llm::provider::Protocol as Speech;
use memchr::memmem;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::thinking::{Thinking, effort};
use super::{Edit, Fields, KeyHeader, MOST_ANSWER, Output, Protocol, USUAL_ANSWER, reference, tool};
use crate::echo;
use crate::error::{Refusal, Shape};
use crate::field::{self, Field};
use crate::seen::Seen;
use crate::tokens::{self, OpenAiUsage};

pub static CHAT: Protocol = Protocol {
    place: 0,
    name: "chat",
    path: "/v1/chat/completions",
    speech: Speech::Chat,
    suffix: "",
    query: None,
    key_header: KeyHeader::Bearer,
    headers: &[("accept", None), ("openai-beta", None), ("anthropic-beta", None)],
    shape: Shape::OpenAi,
    is_billed: true,
    falls_back: true,
    parse,
    whole,
    event,
    echo: &echo::chat::VOICE,
    error_event,
};

#[derive(Deserialize)]
struct Known<'a> {
    #[serde(borrow, default)]
    model: Field<'a>,
    #[serde(borrow, default)]
    stream: Field<'a>,
    #[serde(borrow, default)]
    stream_options: Field<'a>,
    #[serde(borrow, default)]
    max_tokens: Field<'a>,
    #[serde(borrow, default)]
    max_completion_tokens: Field<'a>,
    #[serde(borrow, default)]
    max_output_tokens: Field<'a>,
    #[serde(borrow, default)]
    n: Field<'a>,
    #[serde(borrow, default)]
    reasoning_effort: Field<'a>,
    #[serde(borrow, default)]
    reasoning: Field<'a>,
    #[serde(borrow, default)]
    thinking: Field<'a>,
    #[serde(borrow, default)]
    extra_body: Field<'a>,
    #[serde(borrow, default)]
    tools: Field<'a>,
    #[serde(borrow, default)]
    web_search_options: Field<'a>,
    #[serde(borrow, default)]
    messages: Field<'a>,
}

#[derive(Deserialize)]
struct ExtraBody<'a> {
    #[serde(borrow)]
    google: ForGoogle<'a>,
}

#[derive(Deserialize)]
struct ForGoogle<'a> {
    #[serde(borrow, alias = "thinkingConfig")]
    thinking_config: Thinking<'a>,
}

impl Known<'_> {
    /// The thinking that the request asks for. Providers disagree whether it is part of the longest answer, so it is
    /// added.
    fn thinking(&self) -> u64 {
        let of = |field: Field<'_>| field.read::<Thinking<'_>>().unwrap_or_default().tokens();
        let word = self.reasoning_effort.read::<Cow<'_, str>>();
        let extra = self.extra_body.read::<ExtraBody<'_>>();
        let ways = [
            word.as_deref().map_or(0, effort),
            of(self.reasoning),
            of(self.thinking),
            extra.map_or(0, |extra| extra.google.thinking_config.tokens()),
        ];
        ways.into_iter().max().unwrap_or(0)
    }

    fn output(&self) -> Output {
        let named = [self.max_tokens, self.max_completion_tokens, self.max_output_tokens];
        let named = named.into_iter().filter_map(Field::number).max();
        let choices = self.n.number().unwrap_or(1).clamp(1, 128);
        let of_all = |tokens: u64| tokens.saturating_mul(choices).min(MOST_ANSWER) as i64;
        let thinking = self.thinking();
        Output {
            choices: choices as usize,
            tokens: of_all(named.unwrap_or(USUAL_ANSWER).saturating_add(thinking)),
            thinking: of_all(thinking),
            is_named: named.is_some(),
        }
    }

    /// Refuses what the provider would run, or keeps in the account for others.
    fn check(&self, body: &[u8]) -> Result<(), Refusal> {
        tool::check(self.tools, "function", |kind, _| matches!(kind, "function" | "custom"))?;
        if self.web_search_options.is_given() {
            let message = "web_search_options: the provider's web search has no price here and is not allowed";
            return Err(Refusal::bad_request(message).about("web_search_options"));
        }
        let extra = self.extra_body.json().unwrap_or_default();
        if ["cached_content", "cachedContent", "\\u00"].iter().any(|word| extra.contains(word)) {
            let message = "extra_body: cached content belongs to the provider's account, which others share";
            return Err(Refusal::bad_request(message).about("extra_body"));
        }
        reference::check(body, self.messages, "messages")
    }
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: Option<bool>,
}

fn parse(body: &[u8]) -> Result<Fields, Refusal> {
    let known: Known<'_> = field::object(body)?;
    let (model, model_at) = field::model(body, known.model)?;
    let stream = known.stream.flag("stream")?;
    known.check(body)?;
    let wants_usage =
        known.stream_options.read::<StreamOptions>().is_some_and(|options| options.include_usage == Some(true));
    let usage_edit = (stream && !wants_usage).then(|| asking_for_usage(body, known.stream_options)).flatten();
    let output = known.output();
    Ok(Fields { model, model_at, stream, output, usage_edit, previous: None, is_stored: false })
}

/// The edit that asks for the usage of a stream; `None` if `stream_options` is not an object: the provider refuses that
/// itself.
fn asking_for_usage(body: &[u8], options: Field<'_>) -> Option<Edit> {
    let Some(at) = options.at(body) else {
        let at = body.iter().position(|b| *b == b'{').map_or(0, |at| at + 1);
        return Some((at..at, br#""stream_options":{"include_usage":true},"#.to_vec()));
    };
    let mut value: serde_json::Value = serde_json::from_slice(&body[at.clone()]).ok()?;
    if value.is_null() {
        value = serde_json::json!({});
    }
    value.as_object_mut()?.insert("include_usage".into(), true.into());
    Some((at, serde_json::to_vec(&value).ok()?))
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    usage: Option<OpenAiUsage<'a>>,
    #[serde(borrow, default)]
    service_tier: Field<'a>,
}

fn whole(body: &[u8], seen: &mut Seen) {
    if let Ok(answer) = serde_json::from_slice::<Answer<'_>>(body) {
        seen.note_tier(answer.service_tier);
        seen.usage = answer.usage.and_then(|counts| counts.usage());
    }
    if seen.usage.is_none() {
        (seen.written, seen.thought) = (written(body), thought(body));
    }
}

/// Bytes that the model wrote, in the JSON of an answer or of a chunk. Estimates are made from them.
fn written(json: &[u8]) -> usize {
    const TEXTS: [&[u8]; 5] = [b"content\"", b"arguments\"", b"refusal\"", b"transcript\"", b"\"reasoning\""];
    TEXTS.iter().map(|key| tokens::texts_at(json, key)).sum()
}

/// Bytes of the model's visible thinking.
fn thought(json: &[u8]) -> usize {
    const TEXTS: [&[u8]; 2] = [b"\"reasoning_content\"", b"\"reasoning\""];
    TEXTS.iter().map(|key| tokens::texts_at(json, key)).sum()
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    usage: Option<OpenAiUsage<'a>>,
    choices: Option<Vec<Choice>>,
    error: Option<IgnoredAny>,
    #[serde(borrow, default)]
    service_tier: Field<'a>,
}

#[derive(Deserialize)]
struct Choice {
    finish_reason: Option<IgnoredAny>,
}

fn event(data: &[u8], seen: &mut Seen) -> bool {
    if data.trim_ascii() == b"[DONE]" {
        seen.done = true;
        return false;
    }
    seen.written += written(data);
    seen.thought += thought(data);
    if ![&b"\"usage\""[..], b"\"error\"", b"\"finish_reason\""].iter().any(|key| tells(data, key)) {
        return false;
    }
    let Ok(chunk) = serde_json::from_slice::<Chunk<'_>>(data) else { return false };
    seen.error |= chunk.error.is_some();
    seen.note_tier(chunk.service_tier);
    let choices = chunk.choices.iter().flatten();
    seen.finished += choices.filter(|choice| choice.finish_reason.is_some()).count();
    let Some(reported) = chunk.usage else { return false };
    if let Some(usage) = reported.usage() {
        seen.usage = Some(usage);
    }
    chunk.choices.is_some_and(|choices| choices.is_empty())
}

/// Whether the JSON has this key with a value other than null. A key inside a string is not found: its quotes are
/// escaped.
fn tells(data: &[u8], key: &[u8]) -> bool {
    memmem::find_iter(data, key).any(|at| {
        let rest = data[at + key.len()..].trim_ascii_start();
        let value = rest.strip_prefix(b":").map(<[u8]>::trim_ascii_start);
        value.is_some_and(|value| !value.starts_with(b"null"))
    })
}

fn error_event(refusal: &Refusal, _: usize) -> Vec<u8> {
    [b"data: ".as_slice(), &refusal.body(Shape::OpenAi, None), b"\n\n"].concat()
}

#[cfg(test)]
mod tests {
    use base::price::Tier;

    use super::*;
    use crate::tokens::Usage;

    #[test]
    fn usage_is_what_the_provider_says() {
        let usage = |body: &[u8]| {
            let mut seen = Seen::default();
            whole(body, &mut seen);
            seen.usage
        };
        let of = |counts: &str| usage(format!(r#"{{"id":"x","usage":{counts},"y":[1]}}"#).as_bytes());
        let reported = |prompt, completion| Some(Usage { prompt, completion, ..Usage::default() });
        assert_eq!(
            of(r#"{"prompt_tokens":12,"completion_tokens":30,"total_tokens":42,"details":{"a":1}}"#),
            reported(12, 30)
        );
        assert_eq!(
            of(r#"{"prompt_tokens":12,"completion_tokens":30,"total_tokens":99}"#),
            reported(12, 87),
            "thinking is paid for"
        );
        assert_eq!(of(r#"{"prompt_tokens":12}"#), reported(12, 0), "a call that only read");
        let details = r#"{"prompt_tokens":12,"completion_tokens":30,"prompt_tokens_details":{"cached_tokens":8},
            "completion_tokens_details":{"reasoning_tokens":99,"audio_tokens":0}}"#;
        let parts = Usage { cache_read: Some(8), reasoning: Some(30), ..reported(12, 30).unwrap() };
        assert_eq!(of(details), Some(parts), "parts are never more than the whole");
        assert_eq!(of(r#"{"prompt_tokens":12,"completion_tokens":30,"prompt_tokens_details":7}"#), reported(12, 30));
        assert_eq!(of("null"), None);
        assert_eq!(of("{}"), None);
        assert_eq!(of(r#"{"prompt_tokens":-1,"completion_tokens":30}"#), None);
        assert_eq!(
            of(r#"{"prompt_tokens":9000000000000000000,"completion_tokens":9000000000000000000}"#),
            None,
            "no sum survives that"
        );
        assert_eq!(usage(b"{\"usage\":{\"prompt_tokens\":1"), None);
        assert_eq!(usage(b""), None);
        let mut seen = Seen::default();
        whole(br#"{"usage":{"prompt_tokens":1},"service_tier":"flex"}"#, &mut seen);
        assert_eq!(seen.tier, Tier::Flex);
        event(br#"{"choices":[{"finish_reason":"stop"}],"service_tier":"default"}"#, &mut seen);
        assert_eq!(seen.tier, Tier::Standard);
    }

    #[test]
    fn what_others_keep_or_the_provider_would_run_is_refused() {
        let refused = |fields: &str| parse(format!(r#"{{"model":"gpt-4o",{fields}}}"#).as_bytes()).is_err();
        assert!(refused(r#""web_search_options":{}"#));
        assert!(refused(r#""tools":[{"type":"web_search"}]"#));
        assert!(refused(r#""extra_body":{"google":{"cached_content":"cachedContents/1"}}"#));
        assert!(refused(r#""messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"file-1"}}]}]"#));
        assert!(!refused(
            r#""web_search_options":null,"tools":[{"type":"function","function":{"name":"file_search"}}]"#
        ));
    }

    #[test]
    fn what_was_written_is_counted_in_bytes() {
        assert_eq!(written(br#"{"choices":[{"delta":{"content":"Hello"}}]}"#), 5);
        assert_eq!(written(br#"{"content": "a\"b\\"}"#), 6);
        assert_eq!(written(br#"{"content":null,"reasoning_content":"abc","arguments":"{\"a\":1}"}"#), 3 + 9);
        assert_eq!(written(br#"{"content":"cut"#), 3);
        assert_eq!(written(br#"{"content":"cut\"#), 4);
        assert_eq!(written(b"content\""), 0);
        assert_eq!(thought(br#"{"content":"ab","reasoning_content":"abc"}"#), 3);
        assert_eq!(thought(br#"{"content":"ab","reasoning":null}"#), 0);
        assert_eq!(written(br#"{"content":"","reasoning":"abcd"}"#), 4);
    }
}
