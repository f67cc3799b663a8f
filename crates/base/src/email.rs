//! E-mail addresses: how they are checked, shown and compared.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

use crate::{Error, Result};

/// An address as its owner writes it. Two addresses are the same when their keys are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Email(String);

impl Email {
    pub const MAX: usize = 255;

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The normalised form by which addresses are compared.
    pub fn key(&self) -> String {
        Email::key_of(&self.0)
    }

    /// Lowercases each character alone. `str::to_lowercase` depends on the neighbours: it turns a final sigma into
    /// another letter.
    pub fn key_of(text: &str) -> String {
        text.trim().chars().flat_map(char::to_lowercase).collect()
    }

    /// The part after the `@`, for comparing with allowed domains.
    pub fn domain(&self) -> String {
        self.key().rsplit('@').next().unwrap_or_default().to_owned()
    }
}

impl FromStr for Email {
    type Err = Error;

    fn from_str(text: &str) -> Result<Email> {
        let text = text.trim();
        let well_formed = text.split_once('@').is_some_and(|(local, domain)| {
            !local.is_empty() && !domain.is_empty() && !domain.contains('@') && !domain.starts_with('.')
        });
        if !well_formed || text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(Error::field("email", "must be an e-mail address"));
        }
        if text.chars().count() > Email::MAX {
            return Err(Error::field("email", format_args!("must have at most {} characters", Email::MAX)));
        }
        Ok(Email(text.to_owned()))
    }
}

impl fmt::Display for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Email {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Email, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(|_| serde::de::Error::custom("must be an e-mail address of at most 255 characters"))
    }
}

impl utoipa::PartialSchema for Email {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        // No `format: email`: we accept addresses that most validators of that format reject.
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::String)
            .min_length(Some(3))
            .max_length(Some(Email::MAX))
            .examples(["ada@example.com"])
            .into()
    }
}
impl utoipa::ToSchema for Email {
    fn name() -> std::borrow::Cow<'static, str> {
        "Email".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn case_and_outer_space_never_make_another_address(local in "[a-zA-Z0-9._%+Σσς-]{1,20}", domain in "[a-zA-Z0-9-]{1,20}\\.[a-z]{2,5}", flips in any::<u64>()) {
            let text = format!("{local}@{domain}");
            let flipped: String = text.chars().enumerate()
                .map(|(i, c)| if flips >> (i % 64) & 1 == 1 { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() })
                .collect();
            let one: Email = text.parse().unwrap();
            let other: Email = format!("  {flipped} ").parse().unwrap();
            prop_assert_eq!(one.key(), other.key());
            prop_assert_eq!(Email::key_of(&one.key()), one.key());
        }

        #[test]
        fn no_text_makes_parsing_panic_or_lets_white_space_through(text in ".*") {
            if let Ok(email) = text.parse::<Email>() {
                prop_assert!(!email.as_str().chars().any(|c| c.is_whitespace() || c.is_control()));
                prop_assert_eq!(email.as_str().matches('@').count(), 1);
            }
        }
    }
}
