//! Parses a chat-completions request. Only the few fields that the gateway needs are read; everything else goes to the
//! provider byte for byte, and an edit changes nothing but its own value.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use llm::input::Input;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::error::Refusal;

/// Tokens that are reserved for an answer when the request names no limit.
const USUAL_ANSWER: u64 = 4096;
/// Tokens of thinking by effort; an unknown effort counts as `MOST_EFFORT`. The numbers are Google's: no other provider
/// publishes any.
const EFFORTS: [(&str, u64); 5] =
    [("none", 0), ("minimal", 1_024), ("low", 1_024), ("medium", 8_192), ("high", 24_576)];
const MOST_EFFORT: u64 = 65_536;
/// No model answers with more; a larger limit in the request counts as this.
const MOST_ANSWER: u64 = 10_000_000;
/// The longest model name that is accepted.
const MOST_MODEL: usize = 200;

#[derive(Deserialize)]
struct Known<'a> {
    #[serde(borrow, default, deserialize_with = "given")]
    model: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    stream: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    stream_options: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    max_tokens: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    max_completion_tokens: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    max_output_tokens: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    n: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    reasoning_effort: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    thinking: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    extra_body: Option<&'a RawValue>,
}

/// A field that is present, also with the value `null`: an edit needs its place in the body.
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// The thinking that a field asks for: `thinking.budget_tokens` (Anthropic), `reasoning.effort` and
/// `reasoning.max_tokens`, and `thinking_config.thinking_budget` (Google).
#[derive(Default, Deserialize)]
#[serde(default)]
struct Thinking<'a> {
    #[serde(alias = "max_tokens", alias = "thinking_budget", alias = "thinkingBudget")]
    budget_tokens: Option<i64>,
    #[serde(borrow)]
    effort: Option<Cow<'a, str>>,
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

impl Thinking<'_> {
    fn tokens(&self) -> u64 {
        let by_effort = self.effort.as_deref().map_or(0, effort);
        // With a negative budget the model decides by itself.
        let budget = self.budget_tokens.map_or(0, |budget| u64::try_from(budget).unwrap_or(MOST_EFFORT));
        budget.max(by_effort)
    }
}

fn effort(word: &str) -> u64 {
    EFFORTS.iter().find(|(known, _)| *known == word).map_or(MOST_EFFORT, |(_, tokens)| *tokens)
}

impl Known<'_> {
    /// The thinking that the request asks for. Providers disagree whether it is part of the longest answer, so it is
    /// added.
    fn thinking(&self) -> u64 {
        let of = |raw: Option<&RawValue>| {
            raw.and_then(|raw| serde_json::from_str::<Thinking<'_>>(raw.get()).ok()).unwrap_or_default().tokens()
        };
        let word = self.reasoning_effort.and_then(|raw| serde_json::from_str::<Cow<'_, str>>(raw.get()).ok());
        let extra = self.extra_body.and_then(|raw| serde_json::from_str::<ExtraBody<'_>>(raw.get()).ok());
        let ways = [
            word.as_deref().map_or(0, effort),
            of(self.reasoning),
            of(self.thinking),
            extra.map_or(0, |extra| extra.google.thinking_config.tokens()),
        ];
        ways.into_iter().max().unwrap_or(0)
    }
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: Option<bool>,
}

/// A parsed request with its body.
#[derive(Debug)]
pub struct Asked {
    pub body: Bytes,
    pub model: String,
    pub stream: bool,
    /// Whether the client itself asked for the usage of a stream.
    pub wants_usage: bool,
    pub input: Input,
    pub output: Output,
    model_at: Range<usize>,
    options: Options,
}

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

/// The place of `stream_options` in the body.
#[derive(Debug, PartialEq)]
enum Options {
    /// It is missing, and can be inserted here, after the opening brace.
    Missing(usize),
    At(Range<usize>),
}

impl Asked {
    pub fn parse(body: Bytes) -> Result<Asked, Refusal> {
        let known: Known<'_> = serde_json::from_slice(&body).map_err(|e| {
            let message = e.to_string();
            // The message has the position only, not the client's text.
            match message.strip_prefix("duplicate field ") {
                Some(field) => Refusal::bad_request(format!("the field {field} stands twice in the body")),
                None => Refusal::bad_request(format!("the body is no JSON object: {}", position(&e))),
            }
        })?;
        let Some(raw_model) = known.model else {
            return Err(Refusal::bad_request("model: is missing").about("model"));
        };
        let model: Cow<'_, str> = serde_json::from_str(raw_model.get())
            .map_err(|_| Refusal::bad_request("model: must be a string").about("model"))?;
        if model.is_empty() || model.len() > MOST_MODEL {
            return Err(Refusal::bad_request("model: must have 1 to 200 characters").about("model"));
        }
        let stream = match known.stream.map(RawValue::get) {
            None | Some("null" | "false") => false,
            Some("true") => true,
            Some(_) => return Err(Refusal::bad_request("stream: must be true or false").about("stream")),
        };
        let wants_usage = known
            .stream_options
            .and_then(|o| serde_json::from_str::<StreamOptions>(o.get()).ok())
            .is_some_and(|o| o.include_usage == Some(true));
        let number = |raw: Option<&RawValue>| raw.and_then(|r| r.get().parse::<u64>().ok());
        let named = [known.max_tokens, known.max_completion_tokens, known.max_output_tokens];
        let named = named.into_iter().filter_map(number).max();
        let choices = number(known.n).unwrap_or(1).clamp(1, 128);
        let of_all = |tokens: u64| tokens.saturating_mul(choices).min(MOST_ANSWER) as i64;
        let thinking = known.thinking();
        let output = Output {
            choices: choices as usize,
            tokens: of_all(named.unwrap_or(USUAL_ANSWER).saturating_add(thinking)),
            thinking: of_all(thinking),
            is_named: named.is_some(),
        };
        let options = match known.stream_options {
            Some(raw) => Options::At(place(&body, raw)),
            None => Options::Missing(body.iter().position(|b| *b == b'{').map_or(0, |at| at + 1)),
        };
        Ok(Asked {
            model: model.into_owned(),
            stream,
            wants_usage,
            input: Input::of(&body),
            output,
            model_at: place(&body, raw_model),
            options,
            body,
        })
    }

    /// The body for a provider. Two things are edited: the model, if another one of the chain is asked, and
    /// `stream_options`, if the client did not ask for the usage of a stream.
    pub fn body_for(&self, model: &str) -> Bytes {
        let mut edits: Vec<(Range<usize>, Vec<u8>)> = vec![];
        if model != self.model {
            edits.push((self.model_at.clone(), serde_json::Value::from(model).to_string().into_bytes()));
        }
        if self.stream && !self.wants_usage {
            match &self.options {
                Options::Missing(at) => {
                    edits.push((*at..*at, br#""stream_options":{"include_usage":true},"#.to_vec()));
                }
                Options::At(place) => {
                    if let Some(wish) = with_usage(&self.body[place.clone()]) {
                        edits.push((place.clone(), wish));
                    }
                }
            }
        }
        if edits.is_empty() {
            return self.body.clone();
        }
        edits.sort_by_key(|(place, _)| place.start);
        let mut out = Vec::with_capacity(self.body.len() + 64);
        let mut at = 0;
        for (place, text) in edits {
            out.extend_from_slice(&self.body[at..place.start]);
            out.extend_from_slice(&text);
            at = place.end;
        }
        out.extend_from_slice(&self.body[at..]);
        out.into()
    }
}

/// The place of a value in the body that it was read from.
fn place(body: &[u8], value: &RawValue) -> Range<usize> {
    let start = value.get().as_ptr() as usize - body.as_ptr() as usize;
    start..start + value.get().len()
}

fn position(error: &serde_json::Error) -> String {
    format!("line {}, column {}", error.line(), error.column())
}

/// `stream_options` with `include_usage`; `None` if it is not an object: the provider refuses that itself.
fn with_usage(options: &[u8]) -> Option<Vec<u8>> {
    let mut value: serde_json::Value = serde_json::from_slice(options).ok()?;
    if value.is_null() {
        value = serde_json::json!({});
    }
    value.as_object_mut()?.insert("include_usage".into(), true.into());
    serde_json::to_vec(&value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn asked(body: &str) -> Asked {
        Asked::parse(Bytes::copy_from_slice(body.as_bytes())).unwrap()
    }

    fn refused(body: &str) -> Refusal {
        Asked::parse(Bytes::copy_from_slice(body.as_bytes())).unwrap_err()
    }

    #[test]
    fn a_body_without_need_for_an_edit_is_the_very_same() {
        let body = " {\"model\" : \"gpt-4o\",\n \"x\":[1e400, \"\\u00e9\"],\t\"messages\":[]} ";
        let asked = asked(body);
        assert_eq!(asked.body_for("gpt-4o"), body.as_bytes());
        assert_eq!((asked.model.as_str(), asked.stream), ("gpt-4o", false));
    }

    #[test]
    fn an_edit_touches_its_value_only() {
        let body = r#"{ "z": {"model": "inner"}, "model": "claude-opus-4-6" , "temperature": 1.0000, "stream": true}"#;
        assert_eq!(
            asked(body).body_for("gpt-4o"),
            r#"{"stream_options":{"include_usage":true}, "z": {"model": "inner"}, "model": "gpt-4o" , "temperature": 1.0000, "stream": true}"#
        );
        let body =
            r#"{"stream":true,"stream_options":{"include_obfuscation":false,"include_usage":false},"model":"gpt-4o"}"#;
        assert_eq!(
            asked(body).body_for("gpt-4o"),
            r#"{"stream":true,"stream_options":{"include_obfuscation":false,"include_usage":true},"model":"gpt-4o"}"#
        );
        let body = r#"{"stream":true,"stream_options":null,"model":"gpt-4o"}"#;
        assert_eq!(
            asked(body).body_for("gpt-4o"),
            r#"{"stream":true,"stream_options":{"include_usage":true},"model":"gpt-4o"}"#
        );
        let body = r#"{"stream":true,"stream_options":{"include_usage":true},"model":"gpt-4o"}"#;
        assert!(asked(body).wants_usage);
        assert_eq!(asked(body).body_for("gpt-4o"), body.as_bytes());
        let body = r#"{"stream":true,"stream_options":7,"model":"gpt-4o"}"#;
        assert_eq!(asked(body).body_for("gpt-4o"), body.as_bytes(), "the provider's to refuse");
        // A model name that needs escaping.
        assert_eq!(asked(r#"{"model":"a"}"#).body_for("b\"c"), r#"{"model":"b\"c"}"#);
    }

    #[test]
    fn what_two_readers_could_read_differently_is_refused() {
        assert!(refused(r#"{"model":"a","model":"b"}"#).message.contains("model"));
        assert!(refused(r#"{"model":"a","mod\u0065l":"b"}"#).message.contains("twice"));
        assert!(refused(r#"{"model":"a","stream":false,"stream":true}"#).message.contains("stream"));
        assert!(refused(r#"{"model":"a"} {"#).message.contains("column"));
        for body in [
            "",
            "[]",
            "{}",
            "null",
            r#"{"model":7}"#,
            r#"{"model":""}"#,
            r#"{"model":"a","stream":1}"#,
            "{\"model\":\"\u{7f}",
        ] {
            assert_eq!(refused(body).status, http::StatusCode::BAD_REQUEST, "{body}");
        }
    }

    #[test]
    fn the_output_is_the_longest_answer_with_its_thinking() {
        let of = |fields: &str| asked(&format!(r#"{{"model":"a",{fields}}}"#)).output;
        assert_eq!(asked(r#"{"model":"a"}"#).output.tokens, 4096);
        assert_eq!(of(r#""max_tokens":100"#), Output { choices: 1, tokens: 100, thinking: 0, is_named: true });
        assert_eq!(of(r#""max_tokens":100,"max_completion_tokens":300"#).tokens, 300);
        assert_eq!(of(r#""max_output_tokens":500"#).tokens, 500);
        assert_eq!(of(r#""max_tokens":100,"n":3"#), Output { choices: 3, tokens: 300, thinking: 0, is_named: true });
        assert_eq!(of(r#""max_tokens":null"#), Output { choices: 1, tokens: 4096, thinking: 0, is_named: false });
        assert_eq!(of(r#""max_tokens":-5"#).tokens, 4096, "the provider's to refuse");
        assert_eq!(of(r#""max_tokens":99999999999999999999"#).tokens, 4096);
        assert_eq!(of(r#""max_tokens":9999999999999999999,"n":128"#).tokens, 10_000_000);
        for (fields, thinking) in [
            (r#""reasoning_effort":"medium""#, 8_192),
            (r#""reasoning_effort":"none""#, 0),
            (r#""reasoning_effort":null"#, 0),
            (r#""reasoning_effort":"as hard as you can""#, 65_536),
            (r#""thinking":{"type":"enabled","budget_tokens":2000}"#, 2_000),
            (r#""thinking":{"type":"disabled"}"#, 0),
            (r#""thinking":true"#, 0),
            (r#""reasoning":{"effort":"high"}"#, 24_576),
            (r#""reasoning":{"max_tokens":3000}"#, 3_000),
            (r#""extra_body":{"google":{"thinking_config":{"thinking_budget":800}}}"#, 800),
            (r#""extra_body":{"google":{"thinking_config":{"thinking_budget":-1}}}"#, 65_536),
            (r#""extra_body":{"x":1}"#, 0),
        ] {
            assert_eq!(
                of(fields),
                Output { choices: 1, tokens: 4096 + thinking, thinking, is_named: false },
                "{fields}"
            );
        }
        let all = of(r#""max_tokens":5000,"thinking":{"budget_tokens":2000},"n":2"#);
        assert_eq!(all, Output { choices: 2, tokens: 14_000, thinking: 4_000, is_named: true });
    }

    proptest! {
        /// Any JSON around the known fields is left unchanged.
        #[test]
        fn unknown_fields_stay_as_they_are(before in json(), after in json(), space in "[ \n\t]{0,3}") {
            let body = format!(r#"{space}{{{space}"a":{before},"stream":true,{space}"model":{space}"gpt-4o"{space},"b":{after}}}{space}"#);
            let sent = String::from_utf8(asked(&body).body_for("gemini-2.5-flash").to_vec()).unwrap();
            let expected = body
                .replacen('{', r#"{"stream_options":{"include_usage":true},"#, 1)
                .replacen(r#""gpt-4o""#, r#""gemini-2.5-flash""#, 1);
            prop_assert_eq!(sent, expected);
        }
    }

    fn json() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("null".to_owned()),
            any::<bool>().prop_map(|b| b.to_string()),
            any::<f64>().prop_filter("finite", |f| f.is_finite()).prop_map(|f| f.to_string()),
            "[a-z \u{e9}\u{1f980}]{0,12}".prop_map(|s| serde_json::Value::from(s).to_string()),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(|v| format!("[{}]", v.join(", "))),
                prop::collection::vec(("[a-z]{1,6}", inner), 0..4).prop_map(|fields| {
                    let fields: Vec<String> = fields.into_iter().map(|(k, v)| format!("\"{k}\" :{v}")).collect();
                    format!("{{{}}}", fields.join(","))
                }),
            ]
        })
    }
}
