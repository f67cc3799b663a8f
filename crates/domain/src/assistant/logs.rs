//! What an instance writes: the last lines of its journal, and what comes.

use std::time::Duration;

use base::Result;
use jiff::Timestamp;
use remote::host::journal::{self, Entry, Follow};

use super::Assistant;

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

/// The last lines, and then those that come.
pub async fn follow(assistant: &Assistant, lines: usize) -> Result<(Vec<Line>, Follow)> {
    let entries = journal::last(&assistant.host, &assistant.place.unit, lines).await?;
    let from = entries.last().map(|entry| entry.cursor.clone());
    let follow = journal::follow(&assistant.host, &assistant.place.unit, from.as_ref(), FOLLOW).await?;
    Ok((entries.into_iter().map(Line::from).collect(), follow))
}
