//! What tidepool writes into an instance's configuration, on top of the existing content. Each part is applied by
//! itself, so that a task writes its part and nothing else. Applying a part twice changes nothing the second time.

mod background;
mod gateway;
mod llm;
mod migrate;
mod reload;
mod telegram;
mod validation;

use base::{Error, Result};
use serde_json::Value;

pub use background::Background;
pub use gateway::{Bind, Gateway};
pub use llm::{Access, Api, Cost, Found, Model, Problem, Rates, is_ours};
pub use migrate::{Migrated, migrate};
pub use reload::{Doubt, doubt, needs_restart, take_back_cold};
pub use telegram::{Bot, Delivery, Senders, Telegram, WEBHOOK_PATH, webhook_port};
pub use validation::{Issue, Removal, Validation, is_routine, remove_unknown};

use crate::document::{Change, Document};
use crate::version::{Support, Version};

/// Everything that the platform decides about an instance.
#[derive(Clone, Debug)]
pub struct Settings {
    pub gateway: Gateway,
    /// `None` leaves the model access as it is.
    pub access: Option<Access>,
    pub background: Background,
    /// `None` leaves the chat-bot as it is.
    pub bot: Option<Bot>,
}

impl Settings {
    /// Migrates older forms, then writes every part. Returns the changes; on an error the document is untouched.
    pub fn apply(&self, document: &mut Document, version: &Version) -> Result<Vec<Change>> {
        edit(document, version, |document| {
            migrate(document, version)?;
            self.gateway.apply(document, version)?;
            if let Some(access) = &self.access {
                access.apply(document, version)?;
            }
            self.background.apply(document)?;
            match &self.bot {
                Some(bot) => bot.apply(document),
                None => Ok(()),
            }
        })
    }
}

/// Applies several edits, all of them or none. Returns the changes.
pub fn edit(
    document: &mut Document,
    version: &Version,
    change: impl FnOnce(&mut Document) -> Result<()>,
) -> Result<Vec<Change>> {
    if version.support() == Support::TooOld {
        let oldest = Version::OLDEST;
        return Err(Error::conflict(format!(
            "the instance runs OpenClaw {version}; its configuration is written for {oldest} and later"
        )));
    }
    let mut edited = document.clone();
    change(&mut edited)?;
    let changes = document.diff(&edited);
    *document = edited;
    Ok(changes)
}

/// A text that OpenClaw reads unchanged. It replaces `${NAME}` in every text by an environment variable, so a text that
/// contains this is refused.
fn literal(field: &str, text: &str) -> Result<Value> {
    if text.contains("${") {
        return Err(Error::conflict(format!("{field} must not contain `${{`: OpenClaw would replace it")));
    }
    Ok(Value::from(text))
}

#[cfg(test)]
mod tests;
