//! The closed sets of words that requests and answers use, as the OpenAPI document lists them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::Type;
use utoipa::openapi::{ObjectBuilder, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Gives a set of the store its form in the API.
macro_rules! words {
    ($($(#[$m:meta])* $name:ident of $store:path { $($variant:ident = $text:literal),* $(,)? })*) => {$(
        $(#[$m])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $name { $(#[serde(rename = $text)] $variant),* }
        // By hand: the derive does not see a rename that a macro wrote.
        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new().schema_type(Type::String).enum_values(Some([$($text),*])).into()
            }
        }
        impl ToSchema for $name {
            fn name() -> Cow<'static, str> {
                stringify!($name).into()
            }
        }
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
