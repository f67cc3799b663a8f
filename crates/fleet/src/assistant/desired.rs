//! What our records want of an instance on its server.

use std::sync::LazyLock;

use base::Result;
use openclaw::config::{self, Bot, Settings};
use openclaw::document::Change;
use openclaw::{Document, Version};
use remote::host::file::Hash;
use serde_json::Value;

use super::{Assistant, settings};
use crate::App;

/// A part of what our records want.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Key, provider and models.
    Access,
    /// The chat-bot's channel.
    Bot,
    /// Port, address and token of the gateway itself.
    Gateway,
}

/// The release of the platform that this process is of, by the hash of its program: two builds want different things even
/// if nobody raised their version.
pub fn release() -> &'static str {
    static RELEASE: LazyLock<String> = LazyLock::new(|| match std::fs::read("/proc/self/exe") {
        Ok(program) => Hash::of(&program).as_str().to_owned(),
        Err(_) => format!("{} {}", env!("CARGO_PKG_VERSION"), store::migrate::known()),
    });
    &RELEASE
}

pub struct Desired {
    /// The generation of our records that this is of, or an older one.
    generation: i64,
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

    /// The same for an instance that is not made yet: its key is shown as one that will be.
    pub async fn planned(app: &App, assistant: &Assistant, version: &Version) -> Result<Desired> {
        Desired::with(settings::planned(app, assistant).await?, assistant, version)
    }

    fn with(settings: Settings, assistant: &Assistant, version: &Version) -> Result<Desired> {
        let own = settings::wishes(&assistant.instance)?;
        Ok(Desired { generation: assistant.generation, version: version.clone(), settings, own })
    }

    /// The edits of one part alone, for an instance whose configuration the platform never wrote.
    pub fn apply_part(&self, document: &mut Document, part: Part) -> Result<()> {
        match part {
            Part::Access => {
                self.settings.access.as_ref().map_or(Ok(()), |access| access.apply(document, &self.version))
            }
            Part::Bot => self.settings.bot.as_ref().map_or(Ok(()), |bot| bot.apply(document)),
            Part::Gateway => self.settings.gateway.apply(document, &self.version),
        }
    }

    /// Records that all of it is on the server.
    pub async fn was_applied(&self, app: &App, assistant: &Assistant) -> Result<()> {
        Ok(store::reconcile::set_applied(&app.db, &assistant.id(), self.generation, release()).await?)
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
