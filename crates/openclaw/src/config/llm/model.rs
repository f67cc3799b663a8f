//! A model in a provider entry. OpenClaw takes what an entry does not say for little: text only, no reasoning, short
//! answers, no cost.

use base::Result;
use serde_json::{Map, Value, json};

use super::super::literal;
use super::Api;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    pub id: String,
    pub name: String,
    /// The protocols in which it can be asked; agents use the first.
    pub apis: Vec<Api>,
    pub context_window: Option<i64>,
    pub max_tokens: Option<i64>,
    /// Whether it reads images; `None` is unknown. Where it does not, OpenClaw has another model describe them.
    pub images: Option<bool>,
    pub reasoning: Option<bool>,
    /// `None` is unknown.
    pub cost: Option<Cost>,
    /// Its provider takes OpenAI's key that leads the same conversation to the same cache.
    pub takes_cache_key: bool,
}

/// What a model costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    pub rates: Rates,
    /// The rates of requests whose input has more tokens than this, the smaller limit first.
    pub above: Vec<(i64, Rates)>,
}

/// Dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    pub input: f64,
    pub output: f64,
    pub cache_read: f64,
    pub cache_write: f64,
}

impl Rates {
    fn map(self) -> Map<String, Value> {
        let Rates { input, output, cache_read, cache_write } = self;
        let all = [("input", input), ("output", output), ("cacheRead", cache_read), ("cacheWrite", cache_write)];
        all.into_iter().map(|(name, usd)| (name.to_owned(), json!(usd))).collect()
    }
}

impl Cost {
    fn value(&self) -> Value {
        let mut cost = self.rates.map();
        if !self.above.is_empty() {
            // A range begins with its first number of tokens and ends before the second.
            let starts =
                std::iter::once((0, self.rates)).chain(self.above.iter().map(|(above, rates)| (above + 1, *rates)));
            let ends = self.above.iter().map(|(above, _)| Some(above + 1)).chain(std::iter::once(None));
            let tiers = starts.zip(ends).map(|((start, rates), end)| {
                let mut tier = rates.map();
                tier.insert("range".into(), end.map_or_else(|| json!([start]), |end| json!([start, end])));
                Value::Object(tier)
            });
            cost.insert("tieredPricing".into(), tiers.collect());
        }
        Value::Object(cost)
    }
}

impl Model {
    /// Its value in the list of an entry. What is unknown, and what an owner added, stays as it is there.
    pub(super) fn entry(&self, api: Api, existing: &[Value]) -> Result<Value> {
        let there = existing.iter().find(|value| value.get("id").and_then(Value::as_str) == Some(&self.id));
        let mut map = there.and_then(Value::as_object).cloned().unwrap_or_default();
        map.insert("id".into(), literal("a model", &self.id)?);
        map.insert("name".into(), literal("a model's name", &self.name)?);
        let known = [
            ("contextWindow", self.context_window.map(Value::from)),
            ("maxTokens", self.max_tokens.map(Value::from)),
            ("input", self.images.map(|images| if images { json!(["text", "image"]) } else { json!(["text"]) })),
            ("reasoning", self.reasoning.map(Value::from)),
            ("cost", self.cost.as_ref().map(Cost::value)),
        ];
        for (key, value) in known {
            if let Some(value) = value {
                map.insert(key.into(), value);
            }
        }
        if self.takes_cache_key && api != Api::Messages {
            let compat = map.entry("compat").or_insert_with(|| json!({}));
            if let Some(compat) = compat.as_object_mut() {
                compat.entry("supportsPromptCacheKey").or_insert(Value::Bool(true));
            }
        }
        Ok(Value::Object(map))
    }
}
