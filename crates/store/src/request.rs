//! One row of the LLM gateway's log, as it comes in: what kind of row it is, and what it says.

use jiff::Timestamp;

/// The type of a row that counts: everything else is an error, save a refund.
pub const SUCCESS: i64 = 2;
/// The type that the embedded gateway, and our own forwarding, give to a failed request.
pub const ERROR: i64 = 5;
/// Money given back, in a gateway that does so: taken off the sums.
pub const REFUND: i64 = 6;

/// A request that is to be written down.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRequest {
    pub request_id: String,
    pub token_name: String,
    pub model: String,
    pub provider: String,
    pub kind: i64,
    pub is_stream: bool,
    pub prompt_tokens: i64,
    pub completion_tokens: i64,
    pub quota: i64,
    pub duration_ms: i64,
    pub error_message: String,
    pub estimated: bool,
    pub created_at: Timestamp,
}
