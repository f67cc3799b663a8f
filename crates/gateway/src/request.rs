//! A client's request: its protocol, the fields that the gateway needs, and the body. Everything else goes to the provider
//! byte for byte, and an edit changes nothing but its own value.

use bytes::Bytes;
use llm::input::Input;

use crate::error::Refusal;
use crate::protocol::{Edit, Fields, Protocol};

/// A parsed request with its body.
#[derive(Debug)]
pub struct Asked {
    pub protocol: &'static Protocol,
    pub body: Bytes,
    pub fields: Fields,
    pub input: Input,
}

impl Asked {
    pub fn parse(protocol: &'static Protocol, body: Bytes) -> Result<Asked, Refusal> {
        let fields = (protocol.parse)(&body)?;
        Ok(Asked { protocol, fields, input: Input::of(&body), body })
    }

    pub fn model(&self) -> &str {
        &self.fields.model
    }

    /// Whether only the gateway asked for the usage of a stream, so that the client does not get it.
    pub fn hides_usage(&self) -> bool {
        self.fields.usage_edit.is_some()
    }

    /// The body for a provider. Two things are edited: the model, if another one of the chain is asked, and the request
    /// for the usage of a stream, if the client did not make it and the provider takes it.
    pub fn body_for(&self, model: &str, takes_usage_request: bool) -> Bytes {
        let usage_edit = self.fields.usage_edit.iter().filter(|_| takes_usage_request);
        let mut edits: Vec<Edit> = usage_edit.cloned().collect();
        if model != self.fields.model {
            edits.push((self.fields.model_at.clone(), serde_json::Value::from(model).to_string().into_bytes()));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Output;
    use proptest::prelude::*;

    fn chat() -> &'static Protocol {
        crate::protocol::at("/v1/chat/completions").unwrap()
    }

    fn asked(body: &str) -> Asked {
        Asked::parse(chat(), Bytes::copy_from_slice(body.as_bytes())).unwrap()
    }

    fn refused(body: &str) -> Refusal {
        Asked::parse(chat(), Bytes::copy_from_slice(body.as_bytes())).unwrap_err()
    }

    #[test]
    fn a_body_without_need_for_an_edit_is_the_very_same() {
        let body = " {\"model\" : \"gpt-4o\",\n \"x\":[1e400, \"\\u00e9\"],\t\"messages\":[]} ";
        let asked = asked(body);
        assert_eq!(asked.body_for("gpt-4o", true), body.as_bytes());
        assert_eq!((asked.model(), asked.fields.stream), ("gpt-4o", false));
    }

    #[test]
    fn an_edit_touches_its_value_only() {
        let body = r#"{ "z": {"model": "inner"}, "model": "claude-opus-4-6" , "temperature": 1.0000, "stream": true}"#;
        assert_eq!(
            asked(body).body_for("gpt-4o", true),
            r#"{"stream_options":{"include_usage":true}, "z": {"model": "inner"}, "model": "gpt-4o" , "temperature": 1.0000, "stream": true}"#
        );
        let body =
            r#"{"stream":true,"stream_options":{"include_obfuscation":false,"include_usage":false},"model":"gpt-4o"}"#;
        assert_eq!(
            asked(body).body_for("gpt-4o", true),
            r#"{"stream":true,"stream_options":{"include_obfuscation":false,"include_usage":true},"model":"gpt-4o"}"#
        );
        let body = r#"{"stream":true,"stream_options":null,"model":"gpt-4o"}"#;
        assert_eq!(
            asked(body).body_for("gpt-4o", true),
            r#"{"stream":true,"stream_options":{"include_usage":true},"model":"gpt-4o"}"#
        );
        let body = r#"{"stream":true,"stream_options":{"include_usage":true},"model":"gpt-4o"}"#;
        assert!(!asked(body).hides_usage());
        assert_eq!(asked(body).body_for("gpt-4o", true), body.as_bytes());
        let body = r#"{"stream":true,"stream_options":7,"model":"gpt-4o"}"#;
        assert_eq!(asked(body).body_for("gpt-4o", true), body.as_bytes(), "the provider's to refuse");
        // A model name that needs escaping.
        assert_eq!(asked(r#"{"model":"a"}"#).body_for("b\"c", true), r#"{"model":"b\"c"}"#);
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
        let of = |fields: &str| asked(&format!(r#"{{"model":"a",{fields}}}"#)).fields.output;
        assert_eq!(asked(r#"{"model":"a"}"#).fields.output.tokens, 4096);
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
            let sent = String::from_utf8(asked(&body).body_for("gemini-2.5-flash", true).to_vec()).unwrap();
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
