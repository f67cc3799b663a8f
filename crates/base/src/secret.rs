//! A secret text: it prints as `***`, cannot be serialised, and is read only through `expose`.

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

    /// The text itself. A review must look at every call.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The form for lists: enough to recognise the secret, too little to use it.
    pub fn masked(&self) -> String {
        let length = self.0.chars().count();
        // The last four characters would reveal too much of a short secret.
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

/// Cryptographically secure random bytes.
pub fn random_bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| Error::internal("the system gives no randomness"))?;
    Ok(bytes)
}

/// A random text that can be read aloud: lower-case letters and digits without look-alikes, five bits each, in groups
/// of `group`.
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
