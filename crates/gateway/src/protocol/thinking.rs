//! How many tokens of thinking a request asks for.

use std::borrow::Cow;

use serde::Deserialize;

/// Tokens of thinking by effort; an unknown effort counts as `MOST_EFFORT`. The numbers are Google's: no other provider
/// publishes any.
const EFFORTS: [(&str, u64); 5] =
    [("none", 0), ("minimal", 1_024), ("low", 1_024), ("medium", 8_192), ("high", 24_576)];
pub const MOST_EFFORT: u64 = 65_536;

/// The thinking that a field asks for: `thinking.budget_tokens` (Anthropic), `reasoning.effort` and
/// `reasoning.max_tokens`, and `thinking_config.thinking_budget` (Google).
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Thinking<'a> {
    #[serde(alias = "max_tokens", alias = "thinking_budget", alias = "thinkingBudget")]
    pub budget_tokens: Option<i64>,
    #[serde(borrow)]
    pub effort: Option<Cow<'a, str>>,
}

impl Thinking<'_> {
    pub fn tokens(&self) -> u64 {
        let by_effort = self.effort.as_deref().map_or(0, effort);
        // With a negative budget the model decides by itself.
        let budget = self.budget_tokens.map_or(0, |budget| u64::try_from(budget).unwrap_or(MOST_EFFORT));
        budget.max(by_effort)
    }
}

pub fn effort(word: &str) -> u64 {
    EFFORTS.iter().find(|(known, _)| *known == word).map_or(MOST_EFFORT, |(_, tokens)| *tokens)
}
