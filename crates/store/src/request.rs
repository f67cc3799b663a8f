//! A new row of the LLM gateway's log, and the types of rows.

use jiff::Timestamp;

use crate::Result;
use crate::db::{Column, Row, Value};

/// The type of a row of the log, a number that foreign gateways choose. All types but `SUCCESS` and `REFUND` are
/// errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestType(i64);

impl RequestType {
    pub const SUCCESS: RequestType = RequestType(2);
    /// The type that the embedded gateway and POST /me/chat give to a failed request.
    pub const ERROR: RequestType = RequestType(5);
    /// A refund of a foreign gateway, which is subtracted from the sums.
    pub const REFUND: RequestType = RequestType(6);

    pub fn new(number: i64) -> RequestType {
        RequestType(number)
    }

    pub fn number(self) -> i64 {
        self.0
    }
}

impl Column for RequestType {
    fn read(row: &Row, name: &str) -> Result<RequestType> {
        row.get(name).map(RequestType)
    }
}

impl From<RequestType> for Value {
    fn from(r#type: RequestType) -> Value {
        r#type.0.into()
    }
}

/// A request to be written to the log.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRequest {
    pub request_id: String,
    pub token_name: String,
    pub model: String,
    pub provider: String,
    pub kind: RequestType,
    pub is_stream: bool,
    pub prompt_tokens: i64,
    pub completion_tokens: i64,
    pub quota: i64,
    pub duration_ms: i64,
    pub error_message: String,
    pub estimated: bool,
    pub detail: Detail,
    pub created_at: Timestamp,
}

/// What else is known of a request. `None` and empty texts are unknown, and never taken for 0: providers and foreign
/// logs tell different parts, and rows of older releases have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// All input, what was read from a cache and written into it included, if it is known how much was read. Some foreign
    /// logs count that beside the prompt.
    pub known_input_tokens: Option<i64>,
    /// Parts of the input.
    pub cache_read_tokens: Option<i64>,
    pub cache_write_tokens: Option<i64>,
    /// A part of the completion.
    pub reasoning_tokens: Option<i64>,
    /// The name of the protocol.
    pub protocol: String,
    /// The model that was asked for; the row's own is the one that answered.
    pub asked_model: String,
    /// The end of the provider's key that was used, masked.
    pub key_hint: String,
    /// How many tries failed before the last one.
    pub retries: Option<i64>,
    /// From the request to the first byte of the provider's answer.
    pub first_byte_ms: Option<i64>,
}
