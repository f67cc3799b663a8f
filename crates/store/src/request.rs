//! A new row of the LLM gateway's log, and the types of rows.

use jiff::Timestamp;

/// The type of a successful request. All other types but `REFUND` are errors.
pub const SUCCESS: i64 = 2;
/// The type that the embedded gateway and POST /me/chat give to a failed request.
pub const ERROR: i64 = 5;
/// A refund of a foreign gateway, which is subtracted from the sums.
pub const REFUND: i64 = 6;

/// A request to be written to the log.
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
