//! The closed sets of words that requests and answers use, as the OpenAPI document lists them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Gives a set of the store its form in the API.
macro_rules! words {
    ($($(#[$m:meta])* $name:ident of $store:path { $($variant:ident = $text:literal),* $(,)? })*) => {$(
        $(#[$m])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
        pub enum $name { $(#[serde(rename = $text)] $variant),* }
        impl From<$store> for $name {
            fn from(word: $store) -> $name {
                use $store as Store;
                match word { $(Store::$variant => $name::$variant),* }
            }
        }
        impl From<$name> for $store {
            fn from(word: $name) -> $store {
                use $store as Store;
                match word { $($name::$variant => Store::$variant),* }
            }
        }
    )*};
}

words! {
    Role of store::admin_user::Role { SuperAdmin = "super_admin", Admin = "admin" }
    Status of store::user::Status { Active = "active", Revoked = "revoked" }
    Level of store::audit::Level { Info = "INFO", Warn = "WARN", Error = "ERROR" }
}
