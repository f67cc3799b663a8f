//! What foreign logs say of a request in JSON: new-api in the column `other`, LiteLLM in `metadata`. All of it depends on
//! the release and on the provider, so whatever is missing or odd is unknown, and never stops the reader.

use serde_json::Value;

use crate::request::Detail;

/// Larger counts are wrong, and would falsify every sum.
const MOST: i64 = 1_000_000_000;

/// What a row says beside its columns.
pub struct Said<'a> {
    pub json: &'a str,
    pub prompt_tokens: i64,
    /// The call's type, where the log has a column for it.
    pub call: &'a str,
    pub first_byte_ms: Option<i64>,
}

/// Reads what a row says.
pub type Read = fn(Said<'_>) -> Detail;

/// Of a log that says nothing more.
pub fn nothing(_: Said<'_>) -> Detail {
    Detail::default()
}

/// new-api's `other`. Counts of cached tokens are there in every row of a chat, 0 where the provider said nothing.
pub fn new_api(said: Said<'_>) -> Detail {
    let Ok(other) = serde_json::from_str::<Value>(said.json) else { return Detail::default() };
    let read = count(&other["cache_tokens"]);
    let write = most([&other["cache_write_tokens"], &other["cache_creation_tokens"]]);
    // Anthropic's own counts of the prompt leave out what was cached.
    let apart = match other["usage_semantic"].as_str() {
        Some(semantic) => semantic == "anthropic",
        None => other["claude"].as_bool() == Some(true),
    };
    let cached = read.unwrap_or(0) + write.unwrap_or(0);
    // What was read from the cache is a part of the input, whatever the row calls itself.
    let input = match count(&other["input_tokens_total"]).filter(|total| *total > 0) {
        Some(total) => total.max(read.unwrap_or(0)),
        None if apart || cached > said.prompt_tokens => said.prompt_tokens + cached,
        None => said.prompt_tokens,
    };
    let tries = other["admin_info"]["use_channel"].as_array().map(|channels| channels.len() as i64);
    Detail {
        protocol: by_path(other["request_path"].as_str().unwrap_or_default()).to_owned(),
        retries: tries.filter(|tries| *tries > 0).map(|tries| tries - 1),
        // -1000 without a stream.
        first_byte_ms: other["frt"].as_f64().filter(|ms| (0.0..1e12).contains(ms)).map(|ms| ms as i64),
        ..parts(input, read, write, None)
    }
}

/// The parts of LiteLLM's `metadata` that `litellm::SAID` selects. Its prompt has all input, what was cached included.
pub fn litellm(said: Said<'_>) -> Detail {
    let Ok(json) = serde_json::from_str::<Value>(said.json) else { return Detail::default() };
    let usage = [&json["more"], &json["usage"]];
    let any = |one: fn(&Value) -> [&Value; 2]| most(usage.into_iter().flat_map(one));
    let read = any(|usage| [&usage["cache_read_input_tokens"], &usage["prompt_tokens_details"]["cached_tokens"]]);
    let write =
        any(|usage| [&usage["cache_creation_input_tokens"], &usage["prompt_tokens_details"]["cache_creation_tokens"]]);
    let reasoning = any(|usage| [&usage["completion_tokens_details"]["reasoning_tokens"], &usage["reasoning_tokens"]]);
    let cached = read.unwrap_or(0) + write.unwrap_or(0);
    let input = if cached > said.prompt_tokens { said.prompt_tokens + cached } else { said.prompt_tokens };
    Detail {
        protocol: by_call(said.call).to_owned(),
        retries: count(&json["retries"]),
        first_byte_ms: said.first_byte_ms.filter(|ms| *ms >= 0),
        ..parts(input, read, write, reasoning)
    }
}

fn parts(input: i64, read: Option<i64>, write: Option<i64>, reasoning: Option<i64>) -> Detail {
    Detail {
        known_input_tokens: read.map(|_| input),
        cache_read_tokens: read,
        cache_write_tokens: write,
        reasoning_tokens: reasoning,
        ..Detail::default()
    }
}

/// Some releases write counts as floats.
fn count(value: &Value) -> Option<i64> {
    let count = value.as_i64().or_else(|| value.as_f64().filter(|n| n.abs() <= MOST as f64).map(|n| n as i64));
    count.filter(|count| (0..=MOST).contains(count))
}

/// The same count stands in several places; a place that a release does not fill has 0.
fn most<'a>(values: impl IntoIterator<Item = &'a Value>) -> Option<i64> {
    values.into_iter().filter_map(count).max()
}

/// The embedded gateway's name of the protocol at a path; empty for other paths.
fn by_path(path: &str) -> &'static str {
    match path.trim_end_matches('/') {
        "/v1/chat/completions" | "/pg/chat/completions" => "chat",
        "/v1/messages" => "messages",
        "/v1/responses" => "responses",
        "/v1/embeddings" => "embeddings",
        _ => "",
    }
}

fn by_call(call: &str) -> &'static str {
    match call {
        "completion" | "acompletion" => "chat",
        "anthropic_messages" => "messages",
        "responses" | "aresponses" => "responses",
        "embedding" | "aembedding" => "embeddings",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(json: &str) -> Said<'_> {
        Said { json, prompt_tokens: 100, call: "acompletion", first_byte_ms: Some(40) }
    }

    fn counts(detail: &Detail) -> [Option<i64>; 4] {
        [detail.known_input_tokens, detail.cache_read_tokens, detail.cache_write_tokens, detail.reasoning_tokens]
    }

    #[test]
    fn new_api_counts_claudes_cache_beside_the_prompt() {
        let openai = new_api(said(
            r#"{"cache_tokens":60,"frt":431.0,"request_path":"/v1/chat/completions","admin_info":{"use_channel":["3","1"]}}"#,
        ));
        assert_eq!(counts(&openai), [Some(100), Some(60), None, None]);
        assert_eq!((openai.protocol.as_str(), openai.retries, openai.first_byte_ms), ("chat", Some(1), Some(431)));
        let claude = r#"{"cache_tokens":3000,"cache_creation_tokens":200,"claude":true,"frt":-1000.0}"#;
        let claude = new_api(said(claude));
        assert_eq!(counts(&claude), [Some(3300), Some(3000), Some(200), None]);
        assert_eq!((claude.protocol.as_str(), claude.retries, claude.first_byte_ms), ("", None, None));
        let named = r#"{"cache_tokens":30.0,"cache_write_tokens":7,"claude":true,"usage_semantic":"openai"}"#;
        assert_eq!(counts(&new_api(said(named))), [Some(100), Some(30), Some(7), None]);
        let total = r#"{"cache_tokens":30,"usage_semantic":"anthropic","input_tokens_total":140}"#;
        assert_eq!(counts(&new_api(said(total))), [Some(140), Some(30), None, None]);
        let unnamed = r#"{"cache_tokens":900,"cache_creation_tokens":50}"#;
        assert_eq!(
            counts(&new_api(said(unnamed))),
            [Some(1050), Some(900), Some(50), None],
            "it cannot be a part of 100"
        );
        let small = r#"{"cache_tokens":150,"usage_semantic":"anthropic","input_tokens_total":140}"#;
        assert_eq!(counts(&new_api(said(small))), [Some(150), Some(150), None, None], "all of it at most");
    }

    #[test]
    fn litellm_counts_the_cache_in_the_prompt() {
        let anthropic = litellm(said(
            r#"{"more":{"cache_read_input_tokens":60,"cache_creation_input_tokens":10,"prompt_tokens_details":{"cached_tokens":60}},
                "usage":null,"retries":2}"#,
        ));
        assert_eq!(counts(&anthropic), [Some(100), Some(60), Some(10), None]);
        assert_eq!((anthropic.protocol.as_str(), anthropic.retries), ("chat", Some(2)));
        assert_eq!(anthropic.first_byte_ms, Some(40));
        let openai = r#"{"more":{"prompt_tokens_details":{"cached_tokens":64},"cache_read_input_tokens":0},
            "usage":{"completion_tokens_details":{"reasoning_tokens":12}},"retries":null}"#;
        assert_eq!(counts(&litellm(said(openai))), [Some(100), Some(64), None, Some(12)]);
        let apart = r#"{"more":{"cache_read_input_tokens":900,"cache_creation_input_tokens":50}}"#;
        assert_eq!(
            counts(&litellm(said(apart))),
            [Some(1050), Some(900), Some(50), None],
            "it cannot be a part of 100"
        );
    }

    #[test]
    fn what_is_missing_or_odd_is_unknown() {
        for json in ["", "null", "[]", "7", "{", r#"{"cache_tokens":-1}"#, r#"{"cache_tokens":"many"}"#] {
            assert_eq!(counts(&new_api(said(json))), [None; 4], "{json}");
        }
        for json in ["", "null", r#"{"more":null,"usage":null}"#, r#"{"more":{"cache_read_input_tokens":1e18}}"#] {
            assert_eq!(counts(&litellm(said(json))), [None; 4], "{json}");
        }
    }
}
