//! Texts with a limit: the limit is part of the type, so a field cannot be read without it.

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Deserializer};

/// Free text of at most `MAX` characters, possibly empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text<const MAX: usize>(String);

/// One line of 1 to `MAX` characters, without white space around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name<const MAX: usize>(String);

/// A text that is not empty. A record has an `Option<NonEmpty>` where its column stores `''` for "none".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NonEmpty(String);

impl NonEmpty {
    /// `None` for an empty text.
    pub fn new(text: impl Into<String>) -> Option<NonEmpty> {
        Some(text.into()).filter(|text| !text.is_empty()).map(NonEmpty)
    }
}

impl Deref for NonEmpty {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NonEmpty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<NonEmpty> for String {
    fn from(text: NonEmpty) -> String {
        text.0
    }
}

impl<const MAX: usize> From<Text<MAX>> for String {
    fn from(text: Text<MAX>) -> String {
        text.0
    }
}

impl<const MAX: usize> From<Name<MAX>> for String {
    fn from(name: Name<MAX>) -> String {
        name.0
    }
}

impl<const MAX: usize> Text<MAX> {
    pub fn parse(text: &str) -> Result<Text<MAX>, String> {
        // PostgreSQL cannot store a NUL in a text.
        if text.contains('\0') {
            return Err("must not contain a NUL character".into());
        }
        if text.chars().count() > MAX {
            return Err(format!("must have at most {MAX} characters"));
        }
        Ok(Text(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<const MAX: usize> Name<MAX> {
    pub fn parse(text: &str) -> Result<Name<MAX>, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("must not be empty".into());
        }
        if text.chars().any(char::is_control) {
            return Err("must not contain control characters".into());
        }
        Ok(Name(Text::<MAX>::parse(text)?.0))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de, const MAX: usize> Deserialize<'de> for Text<MAX> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Text::parse(&String::deserialize(from)?).map_err(serde::de::Error::custom)
    }
}

impl<'de, const MAX: usize> Deserialize<'de> for Name<MAX> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Name::parse(&String::deserialize(from)?).map_err(serde::de::Error::custom)
    }
}

fn schema(min: Option<usize>, max: usize) -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
    utoipa::openapi::ObjectBuilder::new()
        .schema_type(utoipa::openapi::schema::Type::String)
        .min_length(min)
        .max_length(Some(max))
        .into()
}

impl<const MAX: usize> utoipa::PartialSchema for Text<MAX> {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        schema(None, MAX)
    }
}
impl<const MAX: usize> utoipa::ToSchema for Text<MAX> {
    fn name() -> std::borrow::Cow<'static, str> {
        format!("Text{MAX}").into()
    }
}
impl<const MAX: usize> utoipa::PartialSchema for Name<MAX> {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        schema(Some(1), MAX)
    }
}
impl<const MAX: usize> utoipa::ToSchema for Name<MAX> {
    fn name() -> std::borrow::Cow<'static, str> {
        format!("Name{MAX}").into()
    }
}
