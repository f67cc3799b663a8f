//! Fields of a request's body, read where they stand. An edit replaces nothing but the value at its place.

use std::borrow::Cow;
use std::ops::Range;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::error::Refusal;

/// The longest model name that is accepted.
const MOST_MODEL: usize = 200;

/// A field's value as it stands in the body. A value of `null` has a place, but otherwise counts as missing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Field<'a>(Option<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Field<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Field<'a>, D::Error> {
        <&'a RawValue>::deserialize(from).map(|raw| Field(Some(raw)))
    }
}

impl<'a> Field<'a> {
    /// The JSON of the value; `None` if it is missing or null.
    pub fn json(self) -> Option<&'a str> {
        self.0.map(RawValue::get).filter(|json| *json != "null")
    }

    pub fn is_given(self) -> bool {
        self.json().is_some()
    }

    /// Its place in the body that it was read from.
    pub fn at(self, body: &[u8]) -> Option<Range<usize>> {
        let json = self.0?.get();
        let start = json.as_ptr() as usize - body.as_ptr() as usize;
        Some(start..start + json.len())
    }

    /// The value, if it is given and of this type.
    pub fn read<T: Deserialize<'a>>(self) -> Option<T> {
        serde_json::from_str(self.json()?).ok()
    }

    pub fn number(self) -> Option<u64> {
        self.json()?.parse().ok()
    }

    /// Bytes of a string as it stands in the JSON; 0 if it is none.
    pub fn text_length(self) -> usize {
        self.json().filter(|json| json.starts_with('"')).map_or(0, |json| json.len().saturating_sub(2))
    }

    pub fn flag(self, name: &'static str) -> Result<bool, Refusal> {
        match self.json() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(Refusal::bad_request(format!("{name}: must be true or false")).about(name)),
        }
    }
}

/// Reads the body as an object. A field that stands twice is refused: two readers could take different values.
pub fn object<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|e| {
        let message = e.to_string();
        // The message has the position only, not the client's text.
        match message.strip_prefix("duplicate field ") {
            Some(field) => Refusal::bad_request(format!("the field {field} stands twice in the body")),
            None => {
                Refusal::bad_request(format!("the body is no JSON object: line {}, column {}", e.line(), e.column()))
            }
        }
    })
}

/// The model's name, and its place in the body.
pub fn model(body: &[u8], field: Field<'_>) -> Result<(String, Range<usize>), Refusal> {
    let Some(at) = field.at(body) else { return Err(Refusal::bad_request("model: is missing").about("model")) };
    let Some(model) = field.read::<Cow<'_, str>>() else {
        return Err(Refusal::bad_request("model: must be a string").about("model"));
    };
    if model.is_empty() || model.len() > MOST_MODEL {
        return Err(Refusal::bad_request("model: must have 1 to 200 characters").about("model"));
    }
    Ok((model.into_owned(), at))
}
