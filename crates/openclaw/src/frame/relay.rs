//! What an employee's browser may send through the platform's relay: requests of a few methods, and nothing else.

use std::borrow::Cow;

use base::{Error, Result};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Map;

use super::refusal::ErrorBody;
use super::{Frame, MAX_BYTES, Response};

/// Chats, the list of conversations, and the models to choose from. A new chat is `sessions.create`. Methods that
/// reset, delete or configure are not allowed. A method of a newer release is added only after a review.
pub const ALLOWED: &[&str] = &[
    "chat.abort",
    "chat.history",
    "chat.message.get",
    "chat.metadata",
    "chat.send",
    "chat.startup",
    "chat.toolTitles",
    "models.list",
    "sessions.create",
    "sessions.list",
    "sessions.patch",
    "sessions.preview",
    "sessions.subscribe",
];

pub fn allowed(method: &str) -> bool {
    ALLOWED.binary_search(&method).is_ok()
}

/// The part of a client's text that the relay checks before it passes the text on unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head<'a> {
    pub id: Cow<'a, str>,
    pub method: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Looked<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(default, rename = "params")]
    _params: Option<IgnoredAny>,
}

impl<'a> Head<'a> {
    /// Parses the head of a request; every other text is refused. A duplicate key is refused too, because the gateway
    /// might read the other value.
    pub fn parse(text: &'a str) -> Result<Head<'a>> {
        let refused = |why: &'static str| Error::new(base::Kind::BadRequest, why);
        if text.len() > MAX_BYTES {
            return Err(Error::from(base::Kind::TooLarge));
        }
        // serde would accept a list as the fields in their order.
        if !text.trim_start().starts_with('{') {
            return Err(refused("a frame must be a JSON object"));
        }
        let looked: Looked<'a> =
            serde_json::from_str(text).map_err(|_| refused("a frame must be a request with id and method"))?;
        if looked.kind != "req" {
            return Err(refused("a frame must be a request"));
        }
        if looked.id.len() > 200 || looked.method.len() > 200 {
            return Err(refused("the id or the method of a request is too long"));
        }
        Ok(Head { id: looked.id, method: looked.method })
    }
}

/// The answer to a request that is not passed on, in the gateway's form.
pub fn forbidden(head: &Head<'_>) -> String {
    let error = ErrorBody {
        code: "FORBIDDEN".into(),
        message: format!("{} is not available here", head.method),
        ..ErrorBody::default()
    };
    Frame::Response(Response { id: head.id.clone().into_owned(), outcome: Err(error), rest: Map::new() }).to_text()
}
