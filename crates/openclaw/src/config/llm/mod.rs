//! An instance's access to models: one provider entry for each protocol that its models need, and the models that its
//! agents use.

mod found;
mod memory;
mod model;

use base::{Error, Result, Secret};
use serde_json::{Map, Value, json};

use super::literal;
use crate::document::{Document, Path};
use crate::version::Version;
pub use found::{Found, Problem};
pub use model::{Cost, Model, Rates};

const PROVIDERS: [&str; 2] = ["models", "providers"];
const MODEL: [&str; 3] = ["agents", "defaults", "model"];
/// The settings of single models. Without `POLICY` its keys are also the list of the allowed ones.
const MODELS: [&str; 3] = ["agents", "defaults", "models"];
const PARAMS: [&str; 3] = ["agents", "defaults", "params"];
const POLICY: [&str; 4] = ["agents", "defaults", "modelPolicy", "allow"];
const RETENTION: &str = "cacheRetention";

/// The first release that has a list of the allowed models.
const KNOWS_POLICY: Version = Version::new(2026, 8, 1);

/// A protocol in which an assistant asks models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Api {
    Completions,
    Messages,
    Responses,
}

impl Api {
    pub const ALL: [Api; 3] = [Api::Completions, Api::Messages, Api::Responses];

    /// The name of its provider entry.
    pub const fn entry(self) -> &'static str {
        match self {
            Api::Completions => "tidepool",
            Api::Messages => "tidepool-anthropic",
            Api::Responses => "tidepool-responses",
        }
    }

    /// OpenClaw's name of it.
    const fn word(self) -> &'static str {
        match self {
            Api::Completions => "openai-completions",
            Api::Messages => "anthropic-messages",
            Api::Responses => "openai-responses",
        }
    }

    /// The name of a model as agents use it.
    pub fn reference(self, model: &str) -> String {
        format!("{}/{model}", self.entry())
    }

    /// The address to which OpenClaw adds the path of the protocol.
    pub fn base_url(self, gateway_url: &str) -> String {
        let bare = gateway_url.trim_end_matches('/');
        let bare = bare.strip_suffix("/v1").unwrap_or(bare);
        match self {
            Api::Messages => bare.to_owned(),
            Api::Completions | Api::Responses => format!("{bare}/v1"),
        }
    }

    fn path(self, key: &str) -> Path {
        Path::from(PROVIDERS).key(self.entry()).key(key)
    }
}

/// Whether a provider entry is one of ours.
pub fn is_ours(entry: &str) -> bool {
    Api::ALL.iter().any(|api| api.entry() == entry)
}

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
    /// The model that embeds texts for its memory.
    pub embedding: Option<String>,
}

impl Access {
    pub fn apply(&self, document: &mut Document, version: &Version) -> Result<()> {
        if self.key.expose().is_empty() {
            return Err(Error::internal("the sub key of an instance must not be empty"));
        }
        let primary = self.reference(&self.primary)?;
        let fallbacks: Result<Vec<Value>> = self.fallbacks.iter().map(|id| Ok(self.reference(id)?.into())).collect();
        for api in Api::ALL {
            self.set_entry(document, api)?;
        }
        // The value may be a plain text instead of an object.
        if document.get_str(MODEL).is_some() {
            document.remove(MODEL)?;
        }
        let model = |key: &str| Path::from(MODEL).key(key);
        document.set(model("primary"), literal("a model", &primary)?)?;
        document.set(model("fallbacks"), Value::Array(fallbacks?))?;
        self.allow(document, version)?;
        self.keep_caches(document)?;
        memory::set(document, version, self.embedding.as_deref())
    }

    /// The models that are asked in a protocol by preference, or can be.
    fn models_of(&self, api: Api) -> impl Iterator<Item = &Model> {
        self.models.iter().filter(move |model| model.apis.contains(&api))
    }

    fn reference(&self, id: &str) -> Result<String> {
        let found = self.models.iter().find(|model| model.id == id);
        let api = found.and_then(|model| model.apis.first());
        api.map(|api| api.reference(id))
            .ok_or_else(|| Error::conflict(format!("the model {id} is not among those of the gateway")))
    }

    /// Writes the entry of a protocol, or removes it if no model needs it. The first one is always there: it has the key
    /// for the assistant's memory, too. Settings that an owner added to one of our models stay.
    fn set_entry(&self, document: &mut Document, api: Api) -> Result<()> {
        if api != Api::Completions && self.models_of(api).next().is_none() {
            return document.remove(Path::from(PROVIDERS).key(api.entry())).map(drop);
        }
        document.set(api.path("baseUrl"), literal("the gateway's address", &api.base_url(&self.gateway_url))?)?;
        document.set(api.path("api"), json!(api.word()))?;
        document.set(api.path("apiKey"), literal("the sub key", self.key.expose())?)?;
        let existing = match document.get(api.path("models")) {
            Some(Value::Array(list)) => list,
            _ => vec![],
        };
        let list: Result<Vec<Value>> = self.models_of(api).map(|model| model.entry(api, &existing)).collect();
        document.set(api.path("models"), Value::Array(list?)).map(drop)
    }

    /// If the file restricts which models may be chosen, allows ours too. If it does not, no list is started.
    fn allow(&self, document: &mut Document, version: &Version) -> Result<()> {
        if *version >= KNOWS_POLICY
            && let Some(Value::Array(mut list)) = document.get(POLICY)
        {
            if list.is_empty() {
                return Ok(());
            }
            let ours = Api::ALL.into_iter().filter(|api| self.models_of(*api).next().is_some());
            for all in ours.map(|api| Value::from(api.reference("*"))) {
                if !list.contains(&all) {
                    list.push(all);
                }
            }
            return document.set(POLICY, Value::Array(list)).map(drop);
        }
        if document.keys(MODELS).is_empty() {
            return Ok(());
        }
        for api in Api::ALL {
            for model in self.models_of(api) {
                let path = Path::from(MODELS).key(api.reference(&model.id));
                if !document.has(&path) {
                    document.set(path, Value::Object(Map::new()))?;
                }
            }
        }
        Ok(())
    }

    /// Has the provider's cache used, which OpenClaw does not at an address that is not Anthropic's own unless it is said.
    /// What an owner chose stays.
    fn keep_caches(&self, document: &mut Document) -> Result<()> {
        let mut cached = self.models_of(Api::Messages).peekable();
        let for_all = Path::from(PARAMS).key(RETENTION);
        if cached.peek().is_none() || document.has(&for_all) {
            return Ok(());
        }
        // Without another list, a first setting of a single model would forbid all others.
        if document.keys(MODELS).is_empty() {
            return document.set(for_all, json!("short")).map(drop);
        }
        for model in cached {
            let path = Path::from(MODELS).key(Api::Messages.reference(&model.id)).key("params").key(RETENTION);
            if !document.has(&path) {
                document.set(path, json!("short"))?;
            }
        }
        Ok(())
    }
}
