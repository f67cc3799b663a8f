//! Tokens per day that an employee may use.

use serde::{Deserialize, Deserializer};

/// 0 means no limit; there are no negative quotas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota(i64);

impl Quota {
    pub fn get(self) -> i64 {
        self.0
    }
}

impl<'de> Deserialize<'de> for Quota {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Quota, D::Error> {
        match i64::deserialize(from)? {
            tokens if tokens < 0 => Err(serde::de::Error::custom("must be 0 (no limit) or more")),
            tokens => Ok(Quota(tokens)),
        }
    }
}

impl utoipa::PartialSchema for Quota {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::Integer)
            .format(Some(utoipa::openapi::SchemaFormat::KnownFormat(utoipa::openapi::KnownFormat::Int64)))
            .minimum(Some(0))
            .examples([100_000])
            .into()
    }
}
impl utoipa::ToSchema for Quota {
    fn name() -> std::borrow::Cow<'static, str> {
        "Quota".into()
    }
}
