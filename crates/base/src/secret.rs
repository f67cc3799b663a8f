//! A text that must not be seen: it prints as `***`, does not serialise, and is read only on purpose.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Deserializer};

use crate::{Error, Result};

#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The text itself. Every call is a place to look at.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What a list may show: enough to recognise it, too little to use it.
    pub fn masked(&self) -> String {
        let length = self.0.chars().count();
        // A short one would be half told by its last four.
        let hidden = if length < 12 { length } else { length - 4 };
        format!("…{}", self.0.chars().skip(hidden).collect::<String>())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Secret, D::Error> {
        String::deserialize(from).map(Secret)
    }
}

impl utoipa::PartialSchema for Secret {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::String)
            .format(Some(utoipa::openapi::SchemaFormat::KnownFormat(utoipa::openapi::KnownFormat::Password)))
            .into()
    }
}
impl utoipa::ToSchema for Secret {
    fn name() -> std::borrow::Cow<'static, str> {
        "Secret".into()
    }
}

/// Bytes that nobody can guess.
pub fn random_bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| Error::internal("the system gives no randomness"))?;
    Ok(bytes)
}

/// A text that can be read aloud: letters and digits that look like no other, five bits each, in groups.
pub fn random_readable<const N: usize>(group: usize) -> Result<Secret> {
    const ALPHABET: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyz023456789";
    let bytes = random_bytes::<N>()?;
    let groups: Vec<String> = bytes
        .chunks(group)
        .map(|group| group.iter().map(|b| char::from(ALPHABET[usize::from(b % 32)])).collect())
        .collect();
    Ok(Secret::new(groups.join("-")))
}

/// A text of 256 random bits, safe in URLs, headers and files.
pub fn random_token() -> Result<Secret> {
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(random_bytes::<32>()?)))
}
