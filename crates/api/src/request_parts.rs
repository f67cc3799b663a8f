//! What the log has of a request beside its tokens and its cost.

use base::money::Spend;
use serde::Serialize;
use store::request_log::Request;
use utoipa::ToSchema;

/// What else is known of a request. null and "" are unknown, never 0: providers and foreign gateways tell different parts, and
/// requests from before this was recorded have none.
#[derive(Serialize, ToSchema)]
pub struct RequestParts {
    /// chat, messages, responses or embeddings.
    #[schema(example = "messages")]
    protocol: String,
    /// The model that was asked for; `model` is the one that answered.
    #[schema(example = "claude-opus-4-6")]
    asked_model: String,
    /// The end of the provider's key that was used, masked.
    key_hint: String,
    /// All input, cached parts included, if it is known how much of it was read from a cache.
    known_input_tokens: Option<i64>,
    /// Of the input, what the provider read from its cache.
    cache_read_tokens: Option<i64>,
    /// Of the input, what the provider wrote into its cache.
    cache_write_tokens: Option<i64>,
    /// Of the output, what was thinking.
    reasoning_tokens: Option<i64>,
    /// How many tries failed before the last one.
    retries: Option<i64>,
    /// From the request to the first byte of the provider's answer.
    first_byte_ms: Option<i64>,
    /// The exact cost in US dollars, to nine decimals.
    #[schema(example = "0.012345678")]
    cost_exact: String,
}

impl RequestParts {
    pub fn of(request: &Request) -> RequestParts {
        RequestParts {
            protocol: request.protocol.clone(),
            asked_model: request.asked_model.clone(),
            key_hint: request.key_hint.clone(),
            known_input_tokens: request.known_input_tokens,
            cache_read_tokens: request.cache_read_tokens,
            cache_write_tokens: request.cache_write_tokens,
            reasoning_tokens: request.reasoning_tokens,
            retries: request.retries,
            first_byte_ms: request.first_byte_ms,
            cost_exact: Spend(request.quota).exact_usd(request.quota_rest),
        }
    }
}
