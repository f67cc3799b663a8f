//! What an answer contained so far, as its protocol read it.

use std::borrow::Cow;
use std::sync::Arc;

use base::price::Tier;

use crate::field::Field;
use crate::tokens::Usage;

/// What an answer contained so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The last usage that the provider reported.
    pub usage: Option<Usage>,
    /// What the provider reported before the end, where it counts on.
    pub usage_so_far: Option<Usage>,
    /// Bytes that the model wrote, and bytes of thinking that it showed. In chat completions the first include the
    /// second.
    pub written: usize,
    pub thought: usize,
    /// Whether it thinks without showing all of it.
    pub hidden: Hidden,
    /// How many of the choices have their reason to end.
    pub finished: usize,
    /// The last event came.
    pub done: bool,
    /// An event of the stream is an error.
    pub error: bool,
    /// The service tier that the provider says it bills.
    pub tier: Tier,
    /// The provider's id of the answer, where a later request can refer to it.
    pub answer_id: Option<Arc<str>>,
}

impl Seen {
    /// Notes the service tier, if the answer names one.
    pub fn note_tier(&mut self, said: Field<'_>) {
        if let Some(tier) = said.read::<Cow<'_, str>>() {
            self.tier = Tier::said(&tier);
        }
    }
}

/// What a stream says about thinking that it does not show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hidden {
    /// Nothing: the protocol does not say.
    #[default]
    Unknown,
    /// There was none so far.
    None,
    /// It began. The provider bills more than it shows.
    Begun,
}
