//! Frames of OpenClaw's WebSocket, protocol 4: requests, answers and events as JSON texts. The parts that we read have
//! types; all other parts are kept and passed on.

mod chat;
mod connect;
mod device;
mod refusal;
mod relay;
mod request;
mod said;

use std::fmt;

use base::{Error, Kind, Result};
use serde::Deserialize;
use serde_json::{Map, Value};

pub use chat::{ChatEvent, ChatState, History, InFlight, Sent, Session, text_of};
pub use connect::{Challenge, Hello, PROTOCOL, Policy, Scope, connect};
pub use device::{Device, Devices, Pending};
pub use refusal::{Close, ErrorBody, Refusal};
pub use relay::{ALLOWED, Head, allowed, forbidden};
pub use said::{MAX_BEFORE_HELLO, Said, accepted, payload, refusal};

/// The longest text that a gateway accepts or sends; a longer one ends the connection.
pub const MAX_BYTES: usize = 26_214_400;

#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    Request(Request),
    Response(Response),
    Event(Event),
    /// A frame of a type that this version of the protocol does not have.
    Other(Map<String, Value>),
}

#[derive(Clone, PartialEq)]
pub struct Request {
    pub id: String,
    pub method: String,
    pub params: Option<Value>,
    pub rest: Map<String, Value>,
}

#[derive(Clone, PartialEq)]
pub struct Response {
    pub id: String,
    /// The payload, or the error.
    pub outcome: std::result::Result<Value, ErrorBody>,
    pub rest: Map<String, Value>,
}

#[derive(Clone, PartialEq)]
pub struct Event {
    pub event: String,
    pub payload: Value,
    /// Counts the events of one connection.
    pub seq: Option<u64>,
    pub rest: Map<String, Value>,
}

impl Frame {
    pub fn parse(text: &str) -> Result<Frame> {
        if text.len() > MAX_BYTES {
            return Err(Error::from(Kind::TooLarge));
        }
        let Ok(Value::Object(mut rest)) = serde_json::from_str(text) else {
            return Err(odd("a frame is no JSON object"));
        };
        let kind = match rest.get("type") {
            Some(Value::String(kind)) => kind.clone(),
            _ => return Err(odd("a frame has no type")),
        };
        let mut take = |key: &str| rest.shift_remove(key);
        match kind.as_str() {
            "req" => {
                let (id, method, params) = (text_in(take("id"))?, text_in(take("method"))?, take("params"));
                take("type");
                Ok(Frame::Request(Request { id, method, params, rest }))
            }
            "res" => {
                let (id, ok, payload, error) = (text_in(take("id"))?, take("ok"), take("payload"), take("error"));
                take("type");
                let outcome = match ok {
                    Some(Value::Bool(true)) => Ok(payload.unwrap_or(Value::Null)),
                    Some(Value::Bool(false)) => Err(ErrorBody::of(error)),
                    _ => return Err(odd("an answer says neither yes nor no")),
                };
                Ok(Frame::Response(Response { id, outcome, rest }))
            }
            "event" => {
                let (event, payload) = (text_in(take("event"))?, take("payload").unwrap_or(Value::Null));
                let seq = take("seq").and_then(|seq| seq.as_u64());
                take("type");
                Ok(Frame::Event(Event { event, payload, seq, rest }))
            }
            _ => Ok(Frame::Other(rest)),
        }
    }

    pub fn to_text(&self) -> String {
        let mut map = Map::new();
        let mut put = |key: &str, value: Value| map.insert(key.to_owned(), value);
        let rest = match self {
            Frame::Request(request) => {
                put("type", "req".into());
                put("id", request.id.as_str().into());
                put("method", request.method.as_str().into());
                if let Some(params) = &request.params {
                    put("params", params.clone());
                }
                &request.rest
            }
            Frame::Response(response) => {
                put("type", "res".into());
                put("id", response.id.as_str().into());
                put("ok", response.outcome.is_ok().into());
                match &response.outcome {
                    Ok(payload) => put("payload", payload.clone()),
                    Err(error) => put("error", error.to_value()),
                };
                &response.rest
            }
            Frame::Event(event) => {
                put("type", "event".into());
                put("event", event.event.as_str().into());
                put("payload", event.payload.clone());
                if let Some(seq) = event.seq {
                    put("seq", seq.into());
                }
                &event.rest
            }
            Frame::Other(rest) => rest,
        };
        map.extend(rest.clone());
        Value::Object(map).to_string()
    }
}

impl Event {
    /// The payload as a type with the fields that we read.
    pub fn read<T: for<'a> Deserialize<'a>>(&self) -> Option<T> {
        T::deserialize(&self.payload).ok()
    }

    /// Sent before the gateway closes its connections.
    pub fn is_shutdown(&self) -> bool {
        self.event == "shutdown"
    }
}

impl Response {
    pub fn read<T: for<'a> Deserialize<'a>>(&self) -> Result<T> {
        match &self.outcome {
            Ok(payload) => {
                T::deserialize(payload).map_err(|error| odd(&format!("an answer of another shape: {error}")))
            }
            Err(error) => Err(error.to_error()),
        }
    }
}

/// Does not print the content of frames: they carry messages of people and tokens.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({:?}, {})", self.id, self.method)
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.outcome {
            Ok(_) => write!(f, "Response({:?}, ok)", self.id),
            Err(error) => write!(f, "Response({:?}, {})", self.id, error.code),
        }
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event({}, {:?})", self.event, self.seq)
    }
}

fn text_in(value: Option<Value>) -> Result<String> {
    match value {
        Some(Value::String(text)) => Ok(text),
        _ => Err(odd("a frame lacks a text that belongs to its type")),
    }
}

fn odd(why: &str) -> Error {
    Error::new(Kind::Gateway, "the instance answered badly").with_operator(why)
}

#[cfg(test)]
mod tests;
