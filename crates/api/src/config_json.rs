//! An instance's configuration document as requests carry it: a text that holds a JSON object, or the
//! object itself. It is always answered as a text.

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use utoipa::openapi::schema::{OneOfBuilder, Type};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema};

pub struct ConfigJson(String);

/// Room for every configuration there is, and for no accident.
const MAX_BYTES: usize = 512 * 1024;

impl ConfigJson {
    pub fn into_text(self) -> String {
        self.0
    }
}

impl Default for ConfigJson {
    fn default() -> ConfigJson {
        ConfigJson("{}".into())
    }
}

impl<'de> Deserialize<'de> for ConfigJson {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<ConfigJson, D::Error> {
        let problem = || serde::de::Error::custom("must be a JSON object, or a text that holds one");
        let (text, value) = match Value::deserialize(from)? {
            Value::String(text) => {
                let value = serde_json::from_str(&text).map_err(|_| problem())?;
                (text, value)
            }
            value => (value.to_string(), value),
        };
        if !value.is_object() {
            return Err(problem());
        }
        if text.len() > MAX_BYTES {
            return Err(serde::de::Error::custom("must have at most 512 KiB"));
        }
        Ok(ConfigJson(text))
    }
}

impl utoipa::PartialSchema for ConfigJson {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new().schema_type(Type::String).examples(["{\"agents\":{}}"]);
        OneOfBuilder::new().item(text).item(ObjectBuilder::new().schema_type(Type::Object)).into()
    }
}
impl utoipa::ToSchema for ConfigJson {
    fn name() -> std::borrow::Cow<'static, str> {
        "ConfigJson".into()
    }
}
