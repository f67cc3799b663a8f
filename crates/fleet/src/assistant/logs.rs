//! What an instance writes to its console: the last lines, and what comes.

use std::collections::VecDeque;
use std::time::Duration;

use base::id::InstanceId;
use base::{Kind, Result, Secret};
use jiff::Timestamp;
use remote::host::journal::{Entry, Follow};
use store::{chat_binding, gateway_key, instance};

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
    Ok(assistant.place.runner.last_lines(&assistant.host, lines).await?.into_iter().map(Line::from).collect())
}

/// What takes the instance's own secrets out of what it writes.
pub struct Veil(Vec<Secret>);

impl Veil {
    pub async fn of(app: &App, id: &InstanceId) -> Result<Veil> {
        let instance = instance::find(&app.db, id).await?.ok_or(Kind::NotFound)?;
        let mut secrets = vec![instance.token(&app.sealer)?];
        if let Some(key) = gateway_key::of_instance(&app.db, id).await? {
            secrets.push(key.key(&app.sealer)?);
        }
        for binding in chat_binding::of_instance(&app.db, id).await? {
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
    id: InstanceId,
    veil: Veil,
    waiting: VecDeque<Line>,
    follow: Follow,
}

/// The last lines, and then those that come.
pub async fn follow(app: &App, assistant: &Assistant, lines: usize) -> Result<Stream> {
    let runner = &assistant.place.runner;
    let entries = runner.last_lines(&assistant.host, lines).await?;
    let from = entries.last().map(|entry| entry.cursor.clone());
    let follow = runner.follow(&assistant.host, from.as_ref(), FOLLOW).await?;
    let waiting = entries.into_iter().map(Line::from).collect();
    let id = assistant.id();
    Ok(Stream { veil: Veil::of(app, &id).await?, id, waiting, follow })
}

impl Stream {
    /// The next line, as it was written. Its end is an error that says why.
    pub async fn next(&mut self) -> Result<Line> {
        match self.waiting.pop_front() {
            Some(line) => Ok(line),
            None => Ok(self.follow.next().await?.into()),
        }
    }

    pub fn veiled(&self, line: Line) -> Line {
        self.veil.over(line)
    }

    /// Hides the secrets that the instance has now, too.
    pub async fn veil_anew(&mut self, app: &App) -> Result<()> {
        let now = Veil::of(app, &self.id).await?;
        self.veil.0.retain(|old| !now.0.iter().any(|new| new.expose() == old.expose()));
        self.veil.0.extend(now.0);
        Ok(())
    }
}
