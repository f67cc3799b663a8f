//! How many tokens a request used: the provider's report, and the text that an estimate is made from where there is
//! none.

use base::price::Counts;
use serde::Deserialize;

use crate::field::Field;

/// Larger counts are wrong, and would falsify every sum.
const MOST: u64 = 1_000_000_000;

/// The tokens of one request. They mean the same in every protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// All input, what was read from a cache and written into it included.
    pub prompt: i64,
    /// All that the model wrote, thinking included.
    pub completion: i64,
    /// Parts of the prompt; `None` if the provider does not say.
    pub cache_read: Option<i64>,
    pub cache_write: Option<i64>,
    /// A part of what was written into a cache: what is kept there for an hour.
    pub cache_write_1h: i64,
    /// A part of the completion; `None` if the provider does not say.
    pub reasoning: Option<i64>,
    /// The largest input that a model read at once, where the prompt is the sum of several; it decides about the prices
    /// of long inputs.
    pub largest_prompt: Option<i64>,
    /// The numbers are the gateway's estimate, not the provider's report.
    pub estimated: bool,
}

impl Usage {
    pub fn total(&self) -> i64 {
        self.prompt + self.completion
    }

    /// The tokens by their prices, each once. An estimate keeps the parts that were reported.
    pub fn counts(&self) -> Counts {
        let cache_read = self.cache_read.unwrap_or(0).min(self.prompt);
        let written = self.cache_write.unwrap_or(0).min(self.prompt - cache_read);
        let cache_write_1h = self.cache_write_1h.min(written);
        Counts {
            input: self.prompt - cache_read - written,
            cache_read,
            cache_write: written - cache_write_1h,
            cache_write_1h,
            output: self.completion,
            largest_prompt: self.largest_prompt,
        }
    }

    /// Takes the parts out of the details that OpenAI's formats give.
    pub fn with_details(self, input: Field<'_>, output: Field<'_>) -> Usage {
        let input = input.read::<Details>().unwrap_or_default();
        let output = output.read::<Details>().unwrap_or_default();
        let part = |count: Option<u64>, of: i64| count.and_then(plausible).map(|count| count.min(of));
        Usage {
            cache_read: part(input.cached_tokens, self.prompt),
            cache_write: part(input.cache_write_tokens, self.prompt),
            reasoning: part(output.reasoning_tokens, self.completion),
            ..self
        }
    }
}

/// A count, unless it is too large to be one.
pub fn plausible(count: u64) -> Option<i64> {
    i64::try_from(count).ok().filter(|_| count <= MOST)
}

#[derive(Default, Deserialize)]
struct Details {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
    reasoning_tokens: Option<u64>,
}

/// `usage` of chat completions and embeddings.
#[derive(Deserialize)]
pub struct OpenAiUsage<'a> {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    total_tokens: Option<u64>,
    /// DeepSeek's name of what came from its cache.
    prompt_cache_hit_tokens: Option<u64>,
    #[serde(borrow, default)]
    prompt_tokens_details: Field<'a>,
    #[serde(borrow, default)]
    completion_tokens_details: Field<'a>,
}

impl OpenAiUsage<'_> {
    /// The usage, if it is plausible. Some providers count thinking in the total only; it is billed, so the completion
    /// includes it.
    pub fn usage(&self) -> Option<Usage> {
        let prompt = self.prompt_tokens?;
        let rest = self.total_tokens.unwrap_or(0).saturating_sub(prompt);
        let completion = self.completion_tokens.unwrap_or(0).max(rest);
        let usage = Usage { prompt: plausible(prompt)?, completion: plausible(completion)?, ..Usage::default() };
        let usage = usage.with_details(self.prompt_tokens_details, self.completion_tokens_details);
        let hit = self.prompt_cache_hit_tokens.and_then(plausible).map(|hit| hit.min(usage.prompt));
        Some(Usage { cache_read: usage.cache_read.or(hit), ..usage })
    }
}

/// Bytes of all strings that are values of this key.
pub fn texts_at(json: &[u8], key: &[u8]) -> usize {
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
    fn a_cache_is_read_by_either_name() {
        let of = |json: &str| serde_json::from_str::<OpenAiUsage<'_>>(json).unwrap().usage().unwrap().cache_read;
        let hit =
            r#"{"prompt_tokens":100,"completion_tokens":5,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36}"#;
        assert_eq!(of(hit), Some(64));
        let both = r#"{"prompt_tokens":100,"prompt_cache_hit_tokens":64,"prompt_tokens_details":{"cached_tokens":60}}"#;
        assert_eq!(of(both), Some(60));
        assert_eq!(of(r#"{"prompt_tokens":10,"prompt_cache_hit_tokens":64}"#), Some(10), "never more than the whole");
        assert_eq!(of(r#"{"prompt_tokens":100}"#), None);
    }

    #[test]
    fn each_token_is_counted_once() {
        let usage = Usage {
            prompt: 100,
            completion: 9,
            cache_read: Some(60),
            cache_write: Some(30),
            cache_write_1h: 10,
            reasoning: Some(5),
            largest_prompt: Some(70),
            estimated: false,
        };
        let counts = Counts {
            input: 10,
            cache_read: 60,
            cache_write: 20,
            cache_write_1h: 10,
            output: 9,
            largest_prompt: Some(70),
        };
        assert_eq!(usage.counts(), counts);
        // What was reported of a cache before a stream was broken off stays what it is.
        assert_eq!(Usage { estimated: true, ..usage }.counts(), counts);
        let plain = Usage { prompt: 100, completion: 9, estimated: true, ..Usage::default() };
        assert_eq!(plain.counts(), Counts::plain(100, 9));
        // Parts that are more than the whole never make it more.
        let wrong = Usage { cache_read: Some(90), cache_write: Some(90), cache_write_1h: 90, ..usage }.counts();
        assert_eq!(wrong, Counts { input: 0, cache_read: 90, cache_write: 0, ..counts });
    }
}
