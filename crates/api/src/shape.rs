//! Shapes that both APIs share.

use base::{Secret, Text};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a login page may offer.
#[derive(Serialize, ToSchema)]
pub struct LoginOptions {
    /// Whether GET /auth/sso leads anywhere.
    pub sso: bool,
    /// The version of the running build.
    #[schema(example = "0.1.0")]
    pub version: &'static str,
}

#[derive(Deserialize, ToSchema)]
pub struct Login {
    #[schema(value_type = String, max_length = 255, example = "ada@example.com")]
    pub email: Text<255>,
    pub password: Secret,
}

#[derive(Deserialize, ToSchema)]
pub struct ChangePassword {
    pub old: Secret,
    /// At least 8 characters.
    pub new: Secret,
}

/// The answer of every delete.
#[derive(Serialize, ToSchema)]
pub struct Deleted {
    pub id: String,
}
