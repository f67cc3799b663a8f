//! What our records want of an instance on its server.

use base::Result;
use openclaw::config::{self, Bot, Settings};
use openclaw::document::Change;
use openclaw::{Document, Version};
use serde_json::Value;

use super::{Assistant, settings};
use crate::App;

pub struct Desired {
    /// The release that it runs, by which the keys of the configuration are chosen.
    pub version: Version,
    settings: Settings,
    /// What administrators set for this instance (`config_json`). Ours come after it, and win.
    own: Value,
}

impl Desired {
    /// What the records say now. A key is made if the instance has none yet.
    pub async fn of(app: &App, assistant: &Assistant, version: &Version) -> Result<Desired> {
        Desired::with(settings::of(app, assistant).await?, assistant, version)
    }

    /// The same for who only looks: no key is made.
    pub async fn known(app: &App, assistant: &Assistant, version: &Version) -> Result<Desired> {
        Desired::with(settings::known(app, assistant).await?, assistant, version)
    }

    fn with(settings: Settings, assistant: &Assistant, version: &Version) -> Result<Desired> {
        Ok(Desired { version: version.clone(), settings, own: settings::wishes(&assistant.instance)? })
    }

    /// The same without the bot of a holder who has left, also if the records know of none.
    pub fn without_foreign_bot(mut self) -> Desired {
        self.settings.bot = self.settings.bot.or(Some(Bot::Off));
        self
    }

    /// The edits of the configuration. They change nothing once they are in place. Keys that are not ours, and `meta`,
    /// stay as they are.
    pub fn apply(&self, document: &mut Document) -> Result<()> {
        settings::merge(document, &self.own)?;
        self.settings.apply(document, &self.version).map(drop)
    }

    /// What the edits would change in this document.
    pub fn changes(&self, document: &Document) -> Result<Vec<Change>> {
        config::edit(&mut document.clone(), &self.version, |document| self.apply(document))
    }
}
