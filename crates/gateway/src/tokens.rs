//! How many tokens a request used: the provider's report, and the text that an estimate is made from where there is
//! none.

use serde::Deserialize;

/// Larger counts are wrong, and would falsify every sum.
const MOST: u64 = 1_000_000_000;

/// Prompt and completion tokens of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub prompt: i64,
    pub completion: i64,
    /// The numbers are the gateway's estimate, not the provider's report.
    pub estimated: bool,
}

impl Usage {
    pub fn total(&self) -> i64 {
        self.prompt + self.completion
    }
}

/// `usage` as the providers' OpenAI-compatible endpoints give it.
#[derive(Debug, Deserialize)]
pub struct ReportedUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    total_tokens: Option<u64>,
}

impl ReportedUsage {
    /// The usage, if it is plausible. Some providers count thinking in the total only; it is billed, so the completion
    /// includes it.
    pub fn usage(&self) -> Option<Usage> {
        let prompt = self.prompt_tokens?;
        let rest = self.total_tokens.unwrap_or(0).saturating_sub(prompt);
        let completion = self.completion_tokens.unwrap_or(0).max(rest);
        if prompt > MOST || completion > MOST {
            return None;
        }
        Some(Usage { prompt: prompt as i64, completion: completion as i64, estimated: false })
    }
}

/// An answer that is not streamed.
#[derive(Deserialize)]
struct Answer {
    usage: Option<ReportedUsage>,
}

/// The usage in the body of an answer that is not streamed.
pub fn of_answer(body: &[u8]) -> Option<Usage> {
    serde_json::from_slice::<Answer>(body).ok()?.usage?.usage()
}

/// Bytes that the model wrote, in the JSON of an answer or of a chunk. Estimates are made from them.
pub fn written(json: &[u8]) -> usize {
    const TEXTS: [&[u8]; 5] = [b"content\"", b"arguments\"", b"refusal\"", b"transcript\"", b"\"reasoning\""];
    TEXTS.iter().map(|key| texts_at(json, key)).sum()
}

/// Bytes of the model's visible thinking.
pub fn thought(json: &[u8]) -> usize {
    const TEXTS: [&[u8]; 2] = [b"\"reasoning_content\"", b"\"reasoning\""];
    TEXTS.iter().map(|key| texts_at(json, key)).sum()
}

/// Bytes of all strings that are values of this key.
fn texts_at(json: &[u8], key: &[u8]) -> usize {
    memchr::memmem::find_iter(json, key).map(|at| text_at(&json[at + key.len()..])).sum()
}

/// The length of the string after a key; 0 if the value is not a string.
fn text_at(after_key: &[u8]) -> usize {
    let mut rest = after_key.trim_ascii_start();
    let Some((b':', value)) = rest.split_first() else { return 0 };
    rest = value.trim_ascii_start();
    let Some((b'"', text)) = rest.split_first() else { return 0 };
    let mut at = 0;
    while let Some(next) = memchr::memchr2(b'"', b'\\', &text[at..]) {
        at += next;
        if text[at] == b'"' {
            return at;
        }
        at += 2;
        if at >= text.len() {
            break;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_what_the_provider_says() {
        let of = |usage: &str| of_answer(format!(r#"{{"id":"x","usage":{usage},"y":[1]}}"#).as_bytes());
        let reported = |prompt, completion| Some(Usage { prompt, completion, estimated: false });
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
        assert_eq!(of("null"), None);
        assert_eq!(of("{}"), None);
        assert_eq!(of(r#"{"prompt_tokens":-1,"completion_tokens":30}"#), None);
        assert_eq!(
            of(r#"{"prompt_tokens":9000000000000000000,"completion_tokens":9000000000000000000}"#),
            None,
            "no sum survives that"
        );
        assert_eq!(of_answer(b"{\"usage\":{\"prompt_tokens\":1"), None);
        assert_eq!(of_answer(b""), None);
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
