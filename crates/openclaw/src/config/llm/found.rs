//! The model access that a configuration has, and what is wrong with it.

use base::Secret;
use serde_json::Value;

use super::{Api, MODEL, is_ours};
use crate::document::{Document, Path};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub base_url: Option<String>,
    /// The key of our entries; `None` also if one lacks it, or has another.
    pub key: Option<Secret>,
    /// The models of our entries, as agents name them.
    pub models: Vec<String>,
    /// As in the file, with its entry.
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
    /// The primary model is not in the list of its entry.
    UnlistedPrimary,
}

impl Found {
    pub fn read(document: &Document) -> Found {
        let there = |api: &Api| *api == Api::Completions || document.has(api.path("baseUrl"));
        let entries: Vec<Api> = Api::ALL.into_iter().filter(there).collect();
        let key = |api: &Api| document.get_str(api.path("apiKey")).filter(|key| !key.is_empty());
        let first = entries.first().and_then(key);
        let is_same = entries.iter().all(|api| key(api) == first);
        let fallbacks = document.get(Path::from(MODEL).key("fallbacks"));
        let fallbacks = fallbacks.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
        Found {
            base_url: document.get_str(Api::Completions.path("baseUrl")),
            key: first.filter(|_| is_same).map(Secret::new),
            models: entries.iter().flat_map(|api| models(document, *api)).collect(),
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
            Some(primary) if !primary.split_once('/').is_some_and(|(entry, _)| is_ours(entry)) => {
                problems.push(Problem::ForeignPrimary);
            }
            Some(primary) if !self.models.contains(primary) => problems.push(Problem::UnlistedPrimary),
            Some(_) => {}
        }
        problems
    }
}

fn models(document: &Document, api: Api) -> Vec<String> {
    let list = match document.get(api.path("models")) {
        Some(Value::Array(list)) => list,
        _ => vec![],
    };
    let id = |model: &Value| Some(api.reference(model.get("id")?.as_str()?));
    list.iter().filter_map(id).collect()
}
