//! Ids: generated in Rust and stored as text. Each kind of record has its own type, so that two kinds cannot be mixed
//! up.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Deserializer, Serialize};

use crate::{Error, Result};

/// A new id. Version 7, so that ids sort by the time they were made.
pub fn fresh() -> String {
    uuid::Uuid::now_v7().to_string()
}

macro_rules! ids {
    ($($(#[$meta:meta])* $name:ident;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            pub fn fresh() -> $name {
                $name(fresh())
            }
            /// An id from a request or a row. No record of this id need exist.
            pub fn named(text: impl Into<String>) -> $name {
                $name(text.into())
            }
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        /// An id can be read as text, for a log line, a path or an answer.
        impl Deref for $name {
            type Target = str;
            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, text: &&str) -> bool {
                self.0 == *text
            }
        }

        /// With this, a text can look up an entry in a map by id.
        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl From<&$name> for String {
            fn from(id: &$name) -> String {
                id.0.clone()
            }
        }
    )*};
}

ids! {
    /// An employee.
    UserId;
    /// An administrator.
    AdminId;
    /// A managed server.
    ServerId;
    /// An assistant instance. A new one is checked by `NewInstanceId`.
    InstanceId;
    /// A profession.
    ProfessionId;
    /// An entry of the profession pool.
    EntryId;
    /// The binding of an instance to an employee.
    BindingId;
    /// A chat-bot binding.
    ChatBindingId;
    /// A task of the queue.
    TaskId;
    /// An item of the marketplace.
    ItemId;
    /// An item put on an instance.
    InstallId;
    /// A sub key of the LLM gateway.
    KeyId;
    /// A provider of the embedded LLM gateway: a record, or one that the configuration names.
    ProviderId;
    /// A key at a provider.
    ProviderKeyId;
    /// A chat message.
    MessageId;
    /// An alert.
    AlertId;
}

impl InstanceId {
    /// The form by which ids are compared. They are unique without regard to case.
    pub fn key(&self) -> String {
        self.0.to_lowercase()
    }
}

/// The id of an instance to be created. It becomes a token name, a unit name and a part of paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewInstanceId(String);

impl NewInstanceId {
    pub const MAX: usize = 100;
    /// Words that our API paths use in the place of an instance id.
    const RESERVED: &[&str] = &["available", "health-check"];

    pub fn parse(text: &str) -> Result<NewInstanceId> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if text.is_empty() || text.len() > NewInstanceId::MAX || !text.chars().all(allowed) {
            return Err(Error::field("id", "must be 1 to 100 letters, digits, `.`, `_` or `-`"));
        }
        // `.` and `..` are folders, and commands read a leading dash as an option.
        if text.starts_with(['.', '-']) {
            return Err(Error::field("id", "must begin with a letter, a digit or `_`"));
        }
        if NewInstanceId::RESERVED.contains(&text.to_lowercase().as_str()) {
            return Err(Error::field("id", "is a reserved word"));
        }
        Ok(NewInstanceId(text.to_owned()))
    }

    pub fn id(&self) -> InstanceId {
        InstanceId::named(&self.0)
    }
}

impl<'de> Deserialize<'de> for NewInstanceId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<NewInstanceId, D::Error> {
        let text = String::deserialize(from)?;
        NewInstanceId::parse(&text).map_err(|e| {
            let message = e.client.strip_prefix("id: ").unwrap_or(&e.client).to_owned();
            serde::de::Error::custom(message)
        })
    }
}

impl utoipa::PartialSchema for NewInstanceId {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::String)
            .pattern(Some("^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$"))
            .examples(["assistant-01"])
            .into()
    }
}
impl utoipa::ToSchema for NewInstanceId {
    fn name() -> std::borrow::Cow<'static, str> {
        "NewInstanceId".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instance_ids_are_safe_as_names_of_units_tokens_and_folders() {
        for good in ["a", "A.b_c-9", "_x", "9", &"x".repeat(100)] {
            assert!(NewInstanceId::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            ".",
            "..",
            "-rf",
            "a b",
            "a/b",
            "a;b",
            "ä",
            "Available",
            "health-check",
            &"x".repeat(101),
            "a\0",
            "a\n",
        ] {
            assert!(NewInstanceId::parse(bad).is_err(), "{bad}");
        }
    }
}
