//! What an instance writes: the last lines of its journal, and what comes.

use std::collections::VecDeque;
use std::time::Duration;

use base::{Result, Secret};
use jiff::Timestamp;
use remote::host::journal::{self, Entry, Follow};
use store::{chat_binding, gateway_key};

use super::Assistant;
use crate::App;

/// How long one following lasts; whoever wants more begins again.
const FOLLOW: Duration = Duration::from_secs(3600);

pub struct Line {
    pub at: Timestamp,
    pub text: String,
}

impl From<Entry> for Line {
    fn from(entry: Entry) -> Line {
        Line { at: entry.at, text: entry.message }
    }
}

/// The last lines, oldest first.
pub async fn last(assistant: &Assistant, lines: usize) -> Result<Vec<Line>> {
    Ok(journal::last(&assistant.host, &assistant.place.unit, lines).await?.into_iter().map(Line::from).collect())
}

/// What takes the instance's own secrets out of what it writes.
pub struct Veil(Vec<Secret>);

impl Veil {
    pub async fn of(app: &App, assistant: &Assistant) -> Result<Veil> {
        let id = assistant.id();
        let mut secrets = vec![assistant.instance.token(&app.sealer)?];
        if let Some(key) = gateway_key::of_instance(&app.db, &id).await? {
            secrets.push(key.key(&app.sealer)?);
        }
        for binding in chat_binding::of_instance(&app.db, &id).await? {
            secrets.push(binding.token(&app.sealer)?);
        }
        Ok(Veil(secrets))
    }

    pub fn over(&self, line: Line) -> Line {
        let hide = |text: String, secret: &Secret| match secret.expose() {
            short if short.len() < 6 => text,
            secret => text.replace(secret, "***"),
        };
        Line { at: line.at, text: self.0.iter().fold(line.text, hide) }
    }
}

/// The lines of a running instance, as they come.
pub struct Stream {
    veil: Veil,
    waiting: VecDeque<Line>,
    follow: Follow,
}

/// The last lines, and then those that come.
pub async fn follow(app: &App, assistant: &Assistant, lines: usize) -> Result<Stream> {
    let entries = journal::last(&assistant.host, &assistant.place.unit, lines).await?;
    let from = entries.last().map(|entry| entry.cursor.clone());
    let follow = journal::follow(&assistant.host, &assistant.place.unit, from.as_ref(), FOLLOW).await?;
    let waiting = entries.into_iter().map(Line::from).collect();
    Ok(Stream { veil: Veil::of(app, assistant).await?, waiting, follow })
}

impl Stream {
    /// The next line. Its end is an error that says why.
    pub async fn next(&mut self) -> Result<Line> {
        let line = match self.waiting.pop_front() {
            Some(line) => line,
            None => self.follow.next().await?.into(),
        };
        Ok(self.veil.over(line))
    }
}
