//! An instance's access to models: one provider entry named `tidepool`, and the models that its agents use.

use base::{Error, Result, Secret};
use serde_json::{Map, Value, json};

use super::literal;
use crate::document::{Document, Path};
use crate::version::Version;

/// The name of the provider entry.
pub const PROVIDER: &str = "tidepool";

const ENTRY: [&str; 3] = ["models", "providers", PROVIDER];
const MODEL: [&str; 3] = ["agents", "defaults", "model"];
const POLICY: [&str; 4] = ["agents", "defaults", "modelPolicy", "allow"];
const LEGACY_POLICY: [&str; 3] = ["agents", "defaults", "models"];

/// The first release in which the allowed models are a list; before, they were the keys of a map.
const KNOWS_POLICY: Version = Version::new(2026, 8, 1);

/// The model access of an instance.
#[derive(Clone, Debug)]
pub struct Access {
    /// The gateway's address as the instance sees it.
    pub gateway_url: String,
    /// The instance's sub key.
    pub key: Secret,
    pub models: Vec<Model>,
    /// The id of the model its agents use.
    pub primary: String,
    /// The ids of the models that they use when that fails, in order.
    pub fallbacks: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    pub id: String,
    pub name: String,
    pub context_window: Option<u32>,
    pub max_tokens: Option<u32>,
    /// The model accepts images; otherwise OpenClaw has them described first.
    pub images: bool,
}

impl Access {
    pub fn apply(&self, document: &mut Document, version: &Version) -> Result<()> {
        document.set(entry("baseUrl"), literal("the gateway's address", &base_url(&self.gateway_url))?)?;
        document.set(entry("api"), json!("openai-completions"))?;
        set_key(document, &self.key)?;
        set_models(document, version, &self.models, &self.primary, &self.fallbacks)
    }
}

/// The base URL of `/chat/completions`.
pub fn base_url(gateway_url: &str) -> String {
    let bare = gateway_url.trim_end_matches('/');
    if bare.ends_with("/v1") { bare.to_owned() } else { format!("{bare}/v1") }
}

/// The name of one of our models as agents use it.
pub fn reference(model: &str) -> String {
    format!("{PROVIDER}/{model}")
}

fn entry(key: &str) -> Path {
    Path::from(ENTRY).key(key)
}

/// Writes the sub key alone.
pub fn set_key(document: &mut Document, key: &Secret) -> Result<()> {
    if key.expose().is_empty() {
        return Err(Error::internal("the sub key of an instance must not be empty"));
    }
    document.set(entry("apiKey"), literal("the sub key", key.expose())?)?;
    Ok(())
}

/// Writes the models alone. Settings that an owner added to one of our models stay.
pub fn set_models(
    document: &mut Document,
    version: &Version,
    models: &[Model],
    primary: &str,
    fallbacks: &[String],
) -> Result<()> {
    for id in std::iter::once(primary).chain(fallbacks.iter().map(String::as_str)) {
        if !models.iter().any(|model| model.id == id) {
            return Err(Error::conflict(format!("the model {id} is not among those of the gateway")));
        }
    }
    let existing = match document.get(entry("models")) {
        Some(Value::Array(list)) => list,
        _ => vec![],
    };
    let list: Result<Vec<Value>> = models.iter().map(|model| model_entry(model, &existing)).collect();
    document.set(entry("models"), Value::Array(list?))?;
    // The value may be a plain text instead of an object.
    if document.get_str(MODEL).is_some() {
        document.remove(MODEL)?;
    }
    let model = |key: &str| Path::from(MODEL).key(key);
    document.set(model("primary"), literal("a model", &reference(primary))?)?;
    let fallbacks: Vec<Value> = fallbacks.iter().map(|id| reference(id).into()).collect();
    document.set(model("fallbacks"), Value::Array(fallbacks))?;
    allow(document, version, models)
}

fn model_entry(model: &Model, existing: &[Value]) -> Result<Value> {
    let there = existing.iter().find(|value| value.get("id").and_then(Value::as_str) == Some(&model.id));
    let mut map = there.and_then(Value::as_object).cloned().unwrap_or_default();
    map.insert("id".into(), literal("a model", &model.id)?);
    map.insert("name".into(), literal("a model's name", &model.name)?);
    let mut number = |key: &str, value: Option<u32>| {
        if let Some(value) = value {
            map.insert(key.into(), value.into());
        }
    };
    number("contextWindow", model.context_window);
    number("maxTokens", model.max_tokens);
    if model.images {
        map.insert("input".into(), json!(["text", "image"]));
    }
    Ok(Value::Object(map))
}

/// If the file restricts which models may be chosen, allows ours too. If it does not, no list is started.
fn allow(document: &mut Document, version: &Version, models: &[Model]) -> Result<()> {
    if *version >= KNOWS_POLICY {
        let Some(Value::Array(mut list)) = document.get(POLICY) else { return Ok(()) };
        let all = Value::from(reference("*"));
        if !list.is_empty() && !list.contains(&all) {
            list.push(all);
            document.set(POLICY, Value::Array(list))?;
        }
        return Ok(());
    }
    if document.keys(LEGACY_POLICY).is_empty() {
        return Ok(());
    }
    for model in models {
        let path = Path::from(LEGACY_POLICY).key(reference(&model.id));
        if !document.has(&path) {
            document.set(path, Value::Object(Map::new()))?;
        }
    }
    Ok(())
}

/// The model access that a document has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub base_url: Option<String>,
    pub key: Option<Secret>,
    /// The ids of the provider entry's models.
    pub models: Vec<String>,
    /// As in the file, with its provider.
    pub primary: Option<String>,
    pub fallbacks: Vec<String>,
}

/// What is wrong with an instance's model access, from the file alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    NoProvider,
    NoKey,
    NoModels,
    NoPrimary,
    /// The primary model belongs to another provider.
    ForeignPrimary,
    /// The primary model is not in our provider's list.
    UnlistedPrimary,
}

impl Found {
    pub fn read(document: &Document) -> Found {
        let models = match document.get(entry("models")) {
            Some(Value::Array(list)) => list,
            _ => vec![],
        };
        let id = |model: &Value| model.get("id").and_then(Value::as_str).map(str::to_owned);
        let fallbacks = document.get(Path::from(MODEL).key("fallbacks"));
        let fallbacks = fallbacks.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
        Found {
            base_url: document.get_str(entry("baseUrl")),
            key: document.get_str(entry("apiKey")).filter(|key| !key.is_empty()).map(Secret::new),
            models: models.iter().filter_map(id).collect(),
            primary: document.get_str(MODEL).or_else(|| document.get_str(Path::from(MODEL).key("primary"))),
            fallbacks: fallbacks.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        }
    }

    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = vec![];
        if self.base_url.is_none() {
            problems.push(Problem::NoProvider);
        }
        if self.key.is_none() {
            problems.push(Problem::NoKey);
        }
        if self.models.is_empty() {
            problems.push(Problem::NoModels);
        }
        match &self.primary {
            None => problems.push(Problem::NoPrimary),
            Some(primary) => match primary.strip_prefix(PROVIDER).and_then(|rest| rest.strip_prefix('/')) {
                None => problems.push(Problem::ForeignPrimary),
                Some(id) if !self.models.iter().any(|model| model == id) => problems.push(Problem::UnlistedPrimary),
                Some(_) => {}
            },
        }
        problems
    }
}
