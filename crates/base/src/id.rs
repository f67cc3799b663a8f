//! Ids: made in Rust, kept as text, one type per kind of record so that two cannot be mixed up.

use std::fmt;

/// A new id. Version 7, so that ids sort by the time they were made.
pub fn fresh() -> String {
    uuid::Uuid::now_v7().to_string()
}

macro_rules! ids {
    ($($(#[$meta:meta])* $name:ident;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            pub fn fresh() -> $name {
                $name(fresh())
            }
            /// An id that somebody else names: it need not exist.
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
    )*};
}

ids! {
    /// An employee.
    UserId;
    /// An administrator.
    AdminId;
    /// An item of the marketplace.
    ItemId;
    /// An item put on an instance.
    InstallId;
}
