//! Classifies a gateway's frame by its head alone. A text of 25 MB can become a tree of a gigabyte, so no tree is
//! built, and only an expected payload is parsed, directly into its type.

use std::borrow::Cow;

use base::{Error, Kind, Result};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{ErrorBody, Frame, MAX_BYTES, odd};

/// The longest text that is accepted before the hello. The hello itself has 15 KB.
pub const MAX_BEFORE_HELLO: usize = 64 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said<'a> {
    /// The answer to the request with this id.
    Response(Cow<'a, str>),
    Event(Cow<'a, str>),
    Other,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    id: Cow<'a, str>,
    #[serde(borrow, default)]
    event: Cow<'a, str>,
}

impl<'a> Said<'a> {
    pub fn parse(text: &'a str) -> Result<Said<'a>> {
        let head: Head<'a> = read(text)?;
        Ok(match head.kind.as_ref() {
            "res" => Said::Response(head.id),
            "event" => Said::Event(head.event),
            _ => Said::Other,
        })
    }
}

/// Checks whether an answer is a success; returns the gateway's error if it is not.
pub fn accepted(text: &str) -> Result<()> {
    refusal(text)?.map_or(Ok(()), |refused| Err(refused.to_error()))
}

/// The gateway's error in an answer; `None` if the answer is a success.
pub fn refusal(text: &str) -> Result<Option<ErrorBody>> {
    #[derive(Deserialize)]
    struct Outcome {
        ok: bool,
    }
    if read::<Outcome>(text)?.ok {
        return Ok(None);
    }
    if text.len() > MAX_BEFORE_HELLO {
        return Err(odd("a refusal of many words"));
    }
    match Frame::parse(text)? {
        Frame::Response(response) => response.outcome.err().map(Some).ok_or_else(|| odd("no refusal")),
        _ => Err(odd("no answer")),
    }
}

/// The payload of an answer.
pub fn payload<T: DeserializeOwned>(text: &str) -> Result<T> {
    #[derive(Deserialize)]
    struct Whole<T> {
        payload: T,
    }
    accepted(text)?;
    Ok(read::<Whole<T>>(text)?.payload)
}

fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T> {
    if text.len() > MAX_BYTES {
        return Err(Error::from(Kind::TooLarge));
    }
    // serde would accept a list as the fields in their order.
    if !text.trim_start().starts_with('{') {
        return Err(odd("a frame is no JSON object"));
    }
    serde_json::from_str(text).map_err(|error| odd(&format!("a frame of another shape: {error}")))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_head_tells_what_it_is() {
        let said = |text| Said::parse(text).unwrap();
        let event = r#"{"type":"event","event":"connect.challenge","payload":{"nonce":"n"}}"#;
        assert_eq!(said(event), Said::Event("connect.challenge".into()));
        assert_eq!(said(r#"{"payload":{"type":"event"},"id":"7","ok":true,"type":"res"}"#), Said::Response("7".into()));
        assert_eq!(said(r#"{"type":"new","x":1}"#), Said::Other);
        for bad in ["", "[]", "null", "[\"res\",\"1\",\"\"]", "{}", r#"{"type":1}"#, r#"{"type":"res""#] {
            assert!(Said::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_answer_is_read_as_what_it_should_be() {
        let yes = r#"{"type":"res","id":"1","ok":true,"payload":{"sessions":[1,2]}}"#;
        assert_eq!(payload::<Value>(yes).unwrap()["sessions"][1], 2);
        assert!(payload::<String>(yes).is_err() && accepted(yes).is_ok());
        let no = r#"{"type":"res","id":"1","ok":false,"error":{"code":"FORBIDDEN","message":"not you"}}"#;
        assert_eq!(payload::<Value>(no).unwrap_err().operator.as_deref(), Some("FORBIDDEN: not you"));
        let long = format!(r#"{{"type":"res","id":"1","ok":false,"error":[{}0]}}"#, "0,".repeat(MAX_BEFORE_HELLO));
        assert!(accepted(&long).is_err());
        assert!(accepted(r#"{"type":"res","id":"1"}"#).is_err());
    }
}
